"""Starting shims through a fork server, or as one interpreter per shim if the fork server does not work."""

import json
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.hosts.local.fate import AnyPath
from claudomator_py.hosts.shim import crash, forkserver, procfs

log = logging.getLogger(__name__)

_INSTALLATION = str(Path(__file__).parents[3])
_IMPORT = "import sys; sys.path.append(sys.argv.pop(1)); from claudomator_py.hosts.shim.{0} import {1}; {1}()"
_ANSWER_S = 10.0
_MAX_ATTEMPTS = 2
_MAX_IDLE = 4
_MAX_CONNECTED = 64
"""Maximum number of shims that can be reused; each needs two open files. With more concurrent runs, the cost of a fork
does not matter."""


class Shim:
    """A shim with a run. It can be reused once the run has ended; after ``close`` it exits then."""

    def __init__(self, pid: int, connection: socket.socket | None = None) -> None:
        """connection: to the process; None for a process that exits after its run."""
        process = procfs.read(pid)
        self.pid = pid
        self.start_time = 0 if process is None else process.start
        """Start time in clock ticks since boot; 0 if the process has exited."""
        self._connection = connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Make it exit after its run. Safe to repeat."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @property
    def is_alive(self) -> bool:
        """Whether the process is alive."""
        return procfs.is_same(self.pid, self.start_time)

    @property
    def is_connected(self) -> bool:
        """Whether it may take another run."""
        return self._connection is not None

    def listen(self) -> socket.socket | None:
        """Return another socket, which becomes readable once the run has ended by itself or the shim has exited; see
        ``ended_by_itself``. None if only the end of the process can be observed."""
        if self._connection is None:
            return None
        connection = self._connection.dup()
        connection.setblocking(False)
        return connection

    def give(self, run_dir: AnyPath, environ: dict[str, str]) -> None:
        """Give it a run. Raises OSError."""
        if self._connection is None:
            raise OSError("the shim accepts no more runs")
        self._connection.settimeout(_ANSWER_S)
        forkserver.send(self._connection, {"directory": _absolute(run_dir), "environ": environ})
        self._connection.setblocking(False)

    def poll_ready(self) -> bool | None:
        """Take its report, and return whether it waits for another run; None if it has not reported yet."""
        return self._connection is not None and ended_by_itself(self._connection, leave=False)


def ended_by_itself(connection: socket.socket, *, leave: bool = True) -> bool | None:
    """Return True if the shim at the other end has reported that its run ended by itself and that it waits for another,
    False if it has exited, None if neither. leave: keep the message for another reader."""
    try:
        return connection.recv(1, socket.MSG_PEEK if leave else 0) == forkserver.AGAIN
    except BlockingIOError:
        return None
    except OSError:
        return False


def _absolute(run_dir: AnyPath) -> str:
    place = str(run_dir)
    return place if place.startswith("/") else str(Path(place).absolute())


class Launcher:
    """Starts shims, which outlive the launcher, its fork server and the daemon.

    Safe to call from many threads. The fork server is started with the first run, and again if it is lost. A run gets a
    shim that waits for reuse, if there is one.
    """

    def __init__(self, umask: int = -1, open_files: int | None = None) -> None:
        """umask: umask of the runs; -1 for that of this process. open_files: soft limit of open files for each process
        of a run; None for that of this process."""
        self.umask = umask
        self.begin = _beginning(umask, open_files)
        """Code with which each shim begins."""
        self._lock = threading.Lock()
        self._server: _ForkServer | None = None
        self._direct: list[int] = []
        self._connected: list[Shim] = []
        self._idle: list[Shim] = []
        """Shims to reuse; some may not have reported yet that they are ready."""

    def start(self, run_dir: AnyPath, env: Mapping[str, str], first: Callable[[], None] | None = None) -> Shim:
        """Give the run to a shim. From then on, its state is in the run directory.

        first: called before that, on a separate thread, while the shim waits; must not raise. A shim that is closed
        meanwhile exits without the run.

        env: the agent's variables, sent through a socket or the shim's standard input, never through a file on disk.
        The returned pid does not imply that the shim took the run: if an answer is lost, a second shim is started, and
        one of the two exits. Raises OSError if no process can be created.
        """
        # The shim is no process of the run, and must not look like one.
        environ = {name: value for name, value in env.items() if name != procfs.RUN_VARIABLE}
        if crash.VARIABLE in os.environ:
            environ.setdefault(crash.VARIABLE, os.environ[crash.VARIABLE])
        with self._lock:
            waiting = self._waiting(run_dir) if first is not None else None
        if first is not None and waiting is not None:
            threading.Thread(target=self._give, args=(waiting, run_dir, environ, first), daemon=True).start()
            return waiting
        if first is not None:
            first()
        with self._lock:
            shim = self._reuse(run_dir, environ)
            shim = shim or self._from_server(run_dir, lambda server: server.start(run_dir, environ))
            shim = shim or Shim(self._start_directly(run_dir, environ))
            self._limit_connected(shim)
        crashpoint("run-spawned")
        return shim

    def _waiting(self, run_dir: AnyPath) -> Shim | None:
        """Return a shim that waits for a run; None if there is no fork server."""
        while self._idle:
            shim = self._idle.pop(0)
            if shim.poll_ready():
                return shim
            shim.close()
        return self._from_server(run_dir, _ForkServer.take)

    def _give(self, shim: Shim, run_dir: AnyPath, environ: dict[str, str], first: Callable[[], None]) -> None:
        try:
            first()
            shim.give(run_dir, environ)
        except Exception as problem:  # Without this, the shim would wait forever, and keep its slot.
            log.warning("the shim of %s could not be given its run: %s", run_dir, problem)
            shim.close()
            return
        with self._lock:
            self._limit_connected(shim)
        crashpoint("run-spawned")

    def take_back(self, shim: Shim) -> None:
        """Keep a shim whose run has ended for reuse, or make it exit if it cannot be reused."""
        with self._lock:
            self._idle.append(shim)
            if len(self._idle) > _MAX_IDLE:
                self._idle.pop(0).close()

    def close(self) -> None:
        """End the fork server and idle shims. The other shims exit after their runs."""
        with self._lock:
            for shim in (*self._idle, *self._connected):
                shim.close()
            self._idle.clear()
            self._connected.clear()
            self._drop()
            self._reap()

    def _limit_connected(self, shim: Shim) -> None:
        self._connected = [other for other in self._connected if other.is_connected and other is not shim]
        if len(self._connected) < _MAX_CONNECTED:
            self._connected.append(shim)
        else:
            shim.close()

    def _reuse(self, run_dir: AnyPath, environ: dict[str, str]) -> Shim | None:
        for shim in list(self._idle):
            is_ready = shim.poll_ready()
            if is_ready is None:
                continue
            self._idle.remove(shim)
            if is_ready:
                with suppress(OSError):
                    shim.give(run_dir, environ)
                    return shim
            shim.close()
        return None

    def _from_server(self, run_dir: AnyPath, ask: "Callable[[_ForkServer], Shim]") -> Shim | None:
        problem: OSError | None = None
        for _ in range(_MAX_ATTEMPTS):
            try:
                if self._server is None:
                    self._server = _ForkServer(self.begin)
                return ask(self._server)
            except OSError as failure:
                problem = failure
                self._drop()
        log.warning("the fork server cannot be used; starting the shim of %s directly: %s", run_dir, problem)
        return None

    def _start_directly(self, run_dir: AnyPath, environ: dict[str, str]) -> int:
        self._reap()
        command = interpreter(self.begin, "main", "main_with_input", _absolute(run_dir))
        # A task's variables are for its agent only: LD_PRELOAD in the shim's environment would load code into it.
        with in_memory(json.dumps(environ).encode()) as fd:
            given = (os.POSIX_SPAWN_DUP2, fd, 0)
            pid = os.posix_spawn(sys.executable, command, {}, file_actions=[given], setsid=True)
        self._direct.append(pid)
        return pid

    def _reap(self) -> None:
        """Reap directly started shims that have exited; they are children of this process."""
        self._direct = [pid for pid in self._direct if os.waitpid(pid, os.WNOHANG)[0] == 0]

    def _drop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None


@contextmanager
def in_memory(data: bytes) -> Iterator[int]:
    """Yield the descriptor of an in-memory file with that content, positioned at its beginning. Raises OSError."""
    fd = os.memfd_create("environment")
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(data)
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)


class _ForkServer:
    """The fork server's process and the daemon's end of its socket."""

    def __init__(self, begin: str) -> None:
        """begin: see ``interpreter``. Raises OSError."""
        ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        with theirs:
            try:
                self._process = subprocess.Popen(
                    interpreter(begin, "forkserver", "serve"), env={}, stdin=theirs.fileno(), start_new_session=True
                )
            except OSError:
                ours.close()
                raise
        ours.settimeout(_ANSWER_S)
        self._socket = ours

    def start(self, run_dir: AnyPath, environ: dict[str, str]) -> Shim:
        """Give the run to a process that the server has forked for it. Raises OSError, also if the server is gone or
        does not answer."""
        shim = self._take()
        try:
            shim.give(run_dir, environ)
        except BaseException:
            shim.close()
            raise
        with suppress(OSError):  # the run is with the shim; the next start notices that the server is gone
            self._socket.send(b"+")
        return shim

    def take(self) -> Shim:
        """Return a process that waits for a run. Raises OSError."""
        shim = self._take()
        with suppress(OSError):  # as above
            self._socket.send(b"+")
        return shim

    def _take(self) -> Shim:
        """Receive the process that the server offers. Raises OSError."""
        data, descriptors, _, _ = socket.recv_fds(
            self._socket, forkserver.OFFER_BYTES, 1, flags=socket.MSG_CMSG_CLOEXEC
        )
        if not descriptors:
            raise OSError(f"the fork server offers no process: {data.decode(errors='replace') or 'it has exited'}")
        return Shim(json.loads(data)["pid"], socket.socket(fileno=descriptors[0]))

    def close(self) -> None:
        """End the server by closing its socket; kill it if it does not exit."""
        self._socket.close()
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _beginning(umask: int, open_files: int | None) -> str:
    """Return code that sets the umask and limits of a shim, which each process of its run inherits."""
    begin = "" if umask < 0 else f"import os; os.umask({umask:#o}); "
    if open_files is not None:
        limits = f"({open_files}, resource.getrlimit(resource.RLIMIT_NOFILE)[1])"
        begin += f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, {limits}); "
    return begin


def interpreter(
    begin: str, module: str, function: str, *arguments: str, python: str = sys.executable, library: str = _INSTALLATION
) -> list[str]:
    """Return the command of an isolated interpreter, without site packages or environment: it can import only the
    standard library and our modules. begin: code to execute first."""
    flags = ("-I", "-S", "-X", "utf8")
    return [python, *flags, "-c", begin + _IMPORT.format(module, function), library, *arguments]
