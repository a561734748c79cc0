"""Pythons, forked from one that has begun: ``tests.warm.zygote``. Most are bare, without site packages."""

import atexit
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, cast

_REPOSITORY = Path(__file__).parents[2]
_BARE = ("-I", "-S", "-X", "utf8")
_BEGIN = "import sys; sys.path.append({!r}); from tests.warm.zygote import serve; serve(*{!r})"
_LIMITS = [number for name, number in vars(resource).items() if name.startswith("RLIMIT_")]
_OF_RUNS = (
    *("claudomator_py.hosts.shim.main", "claudomator_py.agents.a2a_client.main"),
    *("argparse", "dataclasses", "shlex"),  # of the simulated agent
)

_OF_DAEMONS = (
    *("claudomator_py.store.migrate", "sqlalchemy.dialects.postgresql.psycopg"),
    *("claudomator_py.hosts.git.merging", "claudomator_py.hosts.local.launcher"),
)


class Zygote:
    """The process that they are forked from; it ends with the one that has made this, if not before."""

    def __init__(self, *imported: str, flags: Sequence[str] = _BARE) -> None:
        """imported: the modules that what is forked would import. flags: of Python."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind("")  # to a name that the system makes up, and that is no file
            listener.listen(128)
            self._address = listener.getsockname()
            command = [sys.executable, *flags, "-c", _BEGIN.format(str(_REPOSITORY), imported)]
            self._process = subprocess.Popen(command, env={}, stdin=listener.fileno(), start_new_session=True)

    def start(
        self,
        command: Sequence[str],
        *,
        environ: Mapping[str, str],
        files: Sequence[int],
        cwd: Path | None = None,
        new_session: bool = False,
    ) -> "Forked":
        """Start a process for that command, ``python FLAGS -c CODE ARGUMENT...`` or ``python FLAGS FILE ARGUMENT...``.

        files: its standard input, output and error.
        """
        request = {
            "command": [*command],
            "environ": {**environ},
            "cwd": str(cwd or Path.cwd()),
            "umask": _umask(),
            "limits": [(number, resource.getrlimit(number)) for number in _LIMITS],
            "new_session": new_session,
        }
        with self.asked(request, files) as connection:
            return Forked(self, int(connection.recv(64)))

    def read(
        self, command: Sequence[str], *, given: bytes, environ: Mapping[str, str], cwd: Path | None = None
    ) -> "Read":
        """Start one whose output is to be read. given: its standard input, as a file."""
        errors = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 - closed with what was started
        ours, theirs = os.pipe()
        with tempfile.TemporaryFile() as stdin, os.fdopen(theirs, "wb") as stdout:
            stdin.write(given)
            stdin.seek(0)
            files = (stdin.fileno(), stdout.fileno(), errors.fileno())
            started = self.start(command, environ=environ, files=files, cwd=cwd)
        return Read(started, os.fdopen(ours, "rb"), errors)

    @contextmanager
    def asked(self, request: Mapping[str, Any], files: Sequence[int] = ()) -> Iterator[socket.socket]:
        """Where the answer to that comes."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.connect(self._address)
            socket.send_fds(connection, [json.dumps(request).encode()], files)
            yield connection

    def close(self) -> None:
        """End it; what it has forked goes on."""
        self._process.kill()
        self._process.wait()


class Forked:
    """A process that was forked so, and what is used of ``subprocess.Popen``."""

    def __init__(self, zygote: Zygote, pid: int) -> None:
        self.zygote = zygote
        self.pid = pid
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, negative for a signal. Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            with self.zygote.asked({"wait": self.pid}) as connection:
                if not select.select([connection], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
                status = connection.recv(64)
            assert status, "the process that bare Pythons are forked from has ended: what it said stands above"
            self.returncode = int(status)
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """To one that has ended, nothing."""
        with self.zygote.asked({"signal": number, "pid": self.pid}) as connection:
            connection.recv(1)  # nothing: it is done

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


class Read(Forked):
    """One whose standard output is read from a pipe."""

    def __init__(self, started: Forked, stdout: BinaryIO, stderr: BinaryIO) -> None:
        super().__init__(started.zygote, started.pid)
        self.stdout = stdout
        self._stderr = stderr

    def communicate(self, timeout: float | None = None) -> tuple[bytes, bytes]:
        """What it writes until it has ended, and what it has written as errors."""
        with self.stdout, self._stderr:
            text = self.stdout.read()
            self.wait(timeout)
            self._stderr.seek(0)
            return text, self._stderr.read()


def _umask() -> int:
    """To set it is how else to ask for it, and other threads make files meanwhile."""
    _, _, rest = Path("/proc/self/status").read_text().partition("Umask:")
    return int(rest.split()[0], 8)


@cache
def of_runs() -> Zygote:
    """That of this process, for shims and the programs of agents."""
    return _until_exit(Zygote(*_OF_RUNS))


@cache
def of_daemons() -> Zygote:
    """That of this process, for parts of a daemon; it has site packages."""
    return _until_exit(Zygote(*_OF_DAEMONS, flags=()))


def _until_exit(zygote: Zygote) -> Zygote:
    atexit.register(zygote.close)
    return zygote
