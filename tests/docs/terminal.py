"""A user's terminal in a folder of its own: a shell, and daemons in the background. No process is left behind."""

import os
import secrets
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from claudomator_py.hosts.shim import procfs
from tests.patience import PATIENCE_S

REPOSITORY = Path(__file__).parents[2]
COMMAND = (str(Path(sys.executable).with_name("claudomator")),)
"""The command of this checkout."""
HOME = "/home/ann"
"""What the pages call the folder in which they are run."""
_TOOLS = {
    *("bash", "cat", "chmod", "cp", "curl", "cut", "date", "dirname", "echo", "env", "false", "find", "git", "grep"),
    *("head", "kill", "ln", "ls", "make", "mkdir", "mv", "printf", "rm", "sed", "sh", "sleep", "sort", "tail", "test"),
    *("touch", "tr", "true", "wc"),
}
_HIDDEN = "is in a folder that the unit hides from the service"
LIMIT_S = 600.0
"""For a command, such as the installation of packages on a loaded machine."""
_READY = "http://127.0.0.1:"


class Terminal:
    """A bash whose working directory and variables last from command to command."""

    def __init__(self, root: Path, environ: Mapping[str, str], shell: Sequence[str] = ("bash",)) -> None:
        """shell: the command of one, before its arguments."""
        self.root = root
        self._environ = environ
        self._command = [*ends_with_parent(), _found(shell[0]), *shell[1:], "--noprofile", "--norc"]
        self._shell = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=root,
            env=environ,
            start_new_session=True,
        )
        self._printed = b""
        self._daemon: subprocess.Popen[bytes] | None = None
        self._log = root / ".daemon.log"

    def run(self, command: str) -> str:
        """What the command prints on both of its outputs. Fails if it does not end."""
        mark = f"end-{secrets.token_hex(8)}\n"
        stdin, stdout = self._shell.stdin, self._shell.stdout
        assert stdin is not None
        assert stdout is not None
        script = f"{{ {command}\n}} </dev/null\ncode=$?; printf '%s' '{mark}'; (exit $code)\n"
        stdin.write(script.encode())
        stdin.flush()
        deadline = time.monotonic() + LIMIT_S
        while mark.encode() not in self._printed:
            shown = self._printed.decode(errors="replace")
            if not select.select([stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"{command!r} has not ended within {LIMIT_S:.0f} s, after printing {shown!r}")
            piece = os.read(stdout.fileno(), 1 << 16)
            if not piece:
                raise AssertionError(f"the shell ended at {command!r} after printing {shown!r}")
            self._printed += piece
        # What is in the background may print later.
        printed, _, self._printed = self._printed.partition(mark.encode())
        return self._shown(printed.decode(errors="replace"))

    def write(self, path: str, text: str, *, append: bool) -> None:
        """Write a file, relative to the shell's folder."""
        target = Path(self.folder(), path)
        target.parent.mkdir(parents=True, exist_ok=True)
        # As an editor does it: complete at once.
        partial = target.with_name(f".{target.name}.partial")
        partial.write_text((target.read_text() if append else "") + text)
        partial.rename(target)

    def start(self, command: str) -> None:
        """Start a daemon in the background, and wait until it listens. Fails if one runs."""
        assert self._daemon is None, "a daemon runs already"
        self._log.write_bytes(b"")
        with self._log.open("ab") as log:
            self._daemon = subprocess.Popen(
                [*self._command, "-c", f"exec {command}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder(),
                env=self._environ,
                start_new_session=True,
            )
        end = time.monotonic() + PATIENCE_S
        while _READY not in self.log():
            assert self._daemon.poll() is None, f"{command} ended: {self.log()}"
            assert time.monotonic() < end, f"{command} is not ready: {self.log()}"
            time.sleep(0.05)

    def log(self) -> str:
        """What the daemon has printed."""
        return self._shown(self._log.read_text(errors="replace")) if self._log.exists() else ""

    def stop(self) -> None:
        """End the daemon as Ctrl-C does."""
        assert self._daemon is not None, "no daemon runs"
        self._daemon.send_signal(signal.SIGINT)
        self._daemon.wait(PATIENCE_S)
        self._daemon = None

    def close(self) -> None:
        """End everything that was started here."""
        if self._daemon is not None:
            self._daemon.kill()
            self._daemon.wait()
        self._shell.kill()
        end = time.monotonic() + PATIENCE_S
        while (left := _processes_in(self.root)) and time.monotonic() < end:
            for process in left:
                procfs.send(process.pid, process.start, signal.SIGKILL)
            time.sleep(0.01)
        self._shell.communicate()  # last, as what it had in the background holds its output open

    def folder(self) -> str:
        """Return where its shell is, as this process sees it."""
        return self.run("pwd").strip().replace(HOME, str(self.root))

    def _shown(self, text: str) -> str:
        # Only a checkout is told so, and only where it lies in a home.
        lines = [line for line in text.splitlines(keepends=True) if _HIDDEN not in line]
        return "".join(lines).replace(str(self.root), HOME)


@contextmanager
def open_terminal(root: Path, command: Sequence[str] = COMMAND) -> Iterator[Terminal]:
    """A terminal in that folder, which is its user's home. command: what ``claudomator`` is there."""
    root.mkdir(parents=True, exist_ok=True)
    root = root.resolve()
    terminal = Terminal(root, _environ(root, command))
    try:
        yield terminal
    finally:
        terminal.close()


def ends_with_parent() -> list[str]:
    """The words before a command that ends with the test: neither a daemon nor a loop of a page may outlive one that
    was killed. A function for the child would have this process forked, which costs more than many a page."""
    return [_found("setpriv"), "--pdeathsig", "KILL"]


def _environ(root: Path, command: Sequence[str]) -> Mapping[str, str]:
    """A PATH with the command and common tools on it, so that what else is installed here makes no difference."""
    programs = root / ".bin"
    programs.mkdir()
    for tool in _TOOLS:
        if (result := shutil.which(tool)) is not None:
            (programs / tool).symlink_to(result)
    # Not a link: python would not find what is installed beside it.
    (programs / "python3").write_text(f'#!{_found("bash")}\nexec {sys.executable} "$@"\n')
    (programs / "python3").chmod(0o755)
    # A daemon takes a free port, where the reader's takes the usual one.
    started = shlex.join(command)
    script = [
        f"#!{_found('bash')}",
        f"export PYTHONPATH={REPOSITORY}",
        f'[ "$1" != serve ] || exec {started} serve --listen 127.0.0.1:0 "${{@:2}}"',
        f'exec {started} "$@"',
    ]
    (programs / "claudomator").write_text("\n".join([*script, ""]))
    (programs / "claudomator").chmod(0o755)
    return {"HOME": str(root), "PATH": str(programs), "LANG": "C.UTF-8", "TERM": "dumb", "CHECKOUT": str(REPOSITORY)}


def _found(program: str) -> str:
    result = shutil.which(program)
    assert result is not None, f"the documentation, or its test, uses {program}, which is not installed"
    return result


def _processes_in(root: Path) -> list[procfs.Process]:
    """Processes that work below the folder or carry the id of a run in it."""
    runs = [path.name.encode() for path in root.glob("**/runs/*") if path.is_dir()]
    processes = []
    for process in procfs.snapshot().values():
        if process.pid == os.getpid() or not process.alive:
            continue
        try:
            here = Path(f"/proc/{process.pid}/cwd").readlink().is_relative_to(root)
            environ = Path(f"/proc/{process.pid}/environ").read_bytes()
        except OSError:
            continue
        if here or any(procfs.RUN_VARIABLE.encode() + b"=" + run in environ for run in runs):
            processes.append(process)
    return processes
