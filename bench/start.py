"""What commands, starts and an idle daemon cost, in CPU (user and system) of the processes themselves.

Beside them, where it is installed, the same of task-spooler (``tsp``), which is written in C and keeps nothing on disk.
"""

import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROUNDS = 9
IDLE_S = 20.0
SETTLED_S = 8.0
"""By then a daemon has looked at its agents and kept what it saw."""
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
CLAUDOMATOR = Path(sys.executable).with_name("claudomator")


def measure() -> None:
    """Print the median and the range of each; and what an idle daemon uses."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        _tell("--version", [home.command("--version") for _ in range(ROUNDS)])
        _tell("start, fresh home", [_start(Home(Path(folder) / str(number))) for number in range(ROUNDS)])
        _tell("start again", [_start(home) for _ in range(ROUNDS + 1)][1:])
        with home.daemon() as daemon:
            _tell("status", [home.command("status") for _ in range(ROUNDS)])
            _idle("idle daemon", daemon)
        if tsp := shutil.which("tsp"):
            _spooler(tsp, Path(folder))


class Home:
    """A folder in which a daemon keeps its state, and commands find it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        (folder / "claudomator.yaml").write_text("http:\n  listen: 127.0.0.1:0\n")
        self.environ = {"PATH": os.defpath, "HOME": str(folder)}

    def command(self, *arguments: str) -> float:
        """Seconds of CPU of a command."""
        return cpu_of_child([str(CLAUDOMATOR), *arguments], self.environ, self.folder)

    @contextmanager
    def daemon(self) -> Iterator[int]:
        """The process id of a daemon that is ready."""
        with socket_of_manager(self.folder) as (address, ready):
            daemon = subprocess.Popen(
                [CLAUDOMATOR, "serve"],
                env={**self.environ, "NOTIFY_SOCKET": address},
                cwd=self.folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            try:
                ready()
                yield daemon.pid
            finally:
                daemon.send_signal(signal.SIGTERM)
                daemon.wait(timeout=60)


@contextmanager
def socket_of_manager(folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """The address for ``NOTIFY_SOCKET``, and what waits there until the daemon says that it is ready."""
    import socket

    address = folder / "notify"
    address.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(address))
        manager.settimeout(60)

        def ready() -> None:
            while b"READY=1" not in manager.recv(4096):
                pass

        yield str(address), ready


def cpu_of_child(command: list[str], environ: dict[str, str], folder: Path) -> float:
    """Seconds of CPU of a command and what it waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environ, cwd=folder, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cpu_of(process: int) -> float:
    """Seconds of CPU so far, of the process and of children that it waited for."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, words[11:15])) / TICKS_A_SECOND


def _start(home: Home) -> float:
    with home.daemon() as daemon:
        return cpu_of(daemon)


def _idle(name: str, daemon: int) -> None:
    time.sleep(SETTLED_S)
    before, began = cpu_of(daemon), time.monotonic()
    time.sleep(IDLE_S)
    share = (cpu_of(daemon) - before) / (time.monotonic() - began)
    resident = _status(daemon, "VmRSS") / 1024
    sys.stdout.write(f"  {name:<20} {share:6.2%} CPU in {IDLE_S:.0f} s, {resident:.0f} MiB resident\n")


def _status(process: int, field: str) -> int:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1])
    raise ValueError(field)


def _spooler(tsp: str, folder: Path) -> None:
    """Its server starts with the first command."""
    own = folder / "tsp"
    own.mkdir()

    def command(server: int, *arguments: str) -> float:
        environ = {"PATH": os.defpath, "HOME": str(own), "TMPDIR": str(own), "TS_SOCKET": str(own / str(server))}
        return cpu_of_child([tsp, *arguments], environ, own)

    _tell("tsp, start", [command(server) for server in range(ROUNDS)])
    _tell("tsp, list", [command(0) for _ in range(ROUNDS)])
    for server in range(ROUNDS):
        command(server, "-K")


def _tell(name: str, figures: list[float]) -> None:
    low, middle, high = min(figures), statistics.median(figures), max(figures)
    sys.stdout.write(f"  {name:<20} {middle:6.3f} s CPU  ({low:.3f} to {high:.3f}, {len(figures)} rounds)\n")
