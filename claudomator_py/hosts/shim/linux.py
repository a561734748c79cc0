"""System calls: becoming a subreaper, punching holes into files, and starting a program that inherits nothing else."""

from __future__ import annotations

import ctypes
import errno
import os

from claudomator_py.hosts.shim.builtin import signal
from claudomator_py.hosts.shim.crash import crash

_PR_SET_CHILD_SUBREAPER = 36
_FALLOC_FL_KEEP_SIZE = 1
_FALLOC_FL_PUNCH_HOLE = 2

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
_libc.prctl.argtypes = (ctypes.c_int,) + (ctypes.c_ulong,) * 4


def become_subreaper() -> None:
    """Make orphaned descendants children of this process. Raises OSError."""
    _check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def punch_hole(fd: int, start: int, end: int) -> None:
    """Free the disk space of the bytes from start to end, which then read as zeros; the size stays. Raises OSError."""
    _check(_libc.fallocate(fd, _FALLOC_FL_PUNCH_HOLE | _FALLOC_FL_KEEP_SIZE, start, end - start))


def _check(result: int) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_IGNORED_HERE = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP, signal.SIGINT)


def spawn(argv: list[str], env: dict[str, str], cwd: int, streams: tuple[int, int, int]) -> int:
    """Start a program in its own session and return its pid. Raises OSError if it cannot be started.

    cwd, streams: descriptors above 2; all open descriptors of this process are closed in the program. The program is
    looked up in the PATH of env. This process changes to cwd meanwhile, and is in the root directory before and after.
    """
    os.fchdir(cwd)
    try:
        pid = _spawn_first(_candidates(argv[0], env), argv, env, streams)
    finally:
        os.chdir("/")
    crash("agent-spawned")
    return pid


def _candidates(program: str, env: dict[str, str]) -> list[str]:
    if "/" in program:
        return [program]
    folders = env.get("PATH", _DEFAULT_PATH).split(":")
    return [path for folder in folders if folder and os.path.exists(path := os.path.join(folder, program))]


def _spawn_first(candidates: list[str], argv: list[str], env: dict[str, str], streams: tuple[int, int, int]) -> int:
    """Spawn the first candidate that exists. Not by a fork, after which each touched memory page would be copied."""
    problem: OSError = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    for candidate in candidates:
        try:
            return os.posix_spawn(
                candidate,
                argv,
                env,
                file_actions=[(os.POSIX_SPAWN_DUP2, fd, target) for target, fd in enumerate(streams)],
                setsid=True,
                setsigmask=(),
                setsigdef=_IGNORED_HERE,
            )
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as denied:
            problem = denied
        except ValueError as unusable:
            raise OSError(errno.EINVAL, str(unusable)) from unusable
    raise problem
