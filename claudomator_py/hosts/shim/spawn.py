"""Starting a program: in an opened directory, with given files as its standard streams, and nothing else inherited."""

from __future__ import annotations

import errno
import os
import signal

from claudomator_py.hosts.shim.crash import crash

_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_IGNORED_HERE = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP, signal.SIGINT)
_REPORT = 3


def spawn(argv: list[str], env: dict[str, str], cwd: int, streams: tuple[int, int, int]) -> int:
    """Start it in a session of its own and return its pid. Raises OSError when it cannot be started.

    cwd and streams are descriptors above 2. The program is looked up in the PATH of env.
    """
    candidates = _candidates(argv[0], env)
    report, report_write = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        _become(candidates, argv, env, cwd, streams, report_write)
    crash("agent-forked")
    os.close(report_write)
    with open(report, "rb") as file:
        code = file.read()
    if code:
        os.waitpid(pid, 0)
        number = int(code)
        raise OSError(number, os.strerror(number))
    crash("agent-spawned")
    return pid


def _candidates(program: str, env: dict[str, str]) -> list[str]:
    if "/" in program:
        return [program]
    return [os.path.join(folder, program) for folder in env.get("PATH", _DEFAULT_PATH).split(":") if folder]


def _become(
    candidates: list[str], argv: list[str], env: dict[str, str], cwd: int, streams: tuple[int, int, int], report: int
) -> None:
    """In the forked child: turn into the program, or report the error number and end."""
    problem = errno.ENOENT
    try:
        os.setsid()
        os.fchdir(cwd)
        for target, fd in enumerate(streams):
            os.dup2(fd, target)
        if report != _REPORT:
            os.dup2(report, _REPORT, inheritable=False)
        os.closerange(_REPORT + 1, os.sysconf("SC_OPEN_MAX"))
        for number in _IGNORED_HERE:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for candidate in candidates:
            try:
                os.execve(candidate, argv, env)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except PermissionError as denied:
                problem = denied.errno or errno.EACCES
        os.write(_REPORT, str(problem).encode())
    except (OSError, ValueError) as failure:
        os.write(_REPORT, str(getattr(failure, "errno", errno.EINVAL)).encode())
    finally:
        os._exit(127)
