"""What commands, starts and an idle daemon cost, in CPU (user and system) of the processes themselves."""

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

IDLE_S = 20.0
SETTLED_S = 8.0
"""By then a daemon has looked at its agents and kept what it saw."""
READY_S = 60.0
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
CLAUDOMATOR = Path(sys.executable).with_name("claudomator")


class Home:
    """A folder in which a daemon keeps its state, and commands find it."""

    def __init__(self, folder: Path, config: Mapping[str, Any], program: Sequence[str] = (str(CLAUDOMATOR),)) -> None:
        """program: runs another build than this one."""
        self.folder = folder
        self._program = program
        folder.mkdir()
        # JSON is YAML.
        (folder / "claudomator.yaml").write_text(json.dumps({"http": {"listen": "127.0.0.1:0"}, **config}))
        self.environ = {"PATH": os.defpath, "HOME": str(folder)}

    def command(self, *arguments: str) -> float:
        """Seconds of CPU of a command."""
        return cpu_of_child([*self._program, *arguments], self.environ, self.folder)

    def started(self) -> tuple[float, float]:
        """Seconds of CPU of a daemon until it was ready, and MiB of memory while nobody had asked it anything."""
        with self.daemon() as daemon:
            return _cpu_s(daemon), _resident_mib(daemon)

    @contextmanager
    def daemon(self) -> Iterator[int]:
        """The process id of a daemon that is ready."""
        with _socket_of_manager(self.folder) as (address, ready):
            daemon = subprocess.Popen(
                [*self._program, "serve"],
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
                daemon.wait(timeout=READY_S)


def idle(daemons: Mapping[str, int], settled_s: float = SETTLED_S) -> dict[str, tuple[float, float]]:
    """By name, the share of a CPU that the process of a daemon with nothing to do uses, and MiB of memory."""
    time.sleep(settled_s)
    before = {name: (_cpu_s(daemon), time.monotonic()) for name, daemon in daemons.items()}
    time.sleep(IDLE_S)
    return {
        name: ((_cpu_s(daemon) - before[name][0]) / (time.monotonic() - before[name][1]), _resident_mib(daemon))
        for name, daemon in daemons.items()
    }


def spooler_commands(folder: Path) -> dict[str, float]:
    """Seconds of CPU of the same commands of task-spooler; its server starts with the first. None without it."""
    tsp = shutil.which("tsp")
    if tsp is None:
        return {}
    environ = {"PATH": os.defpath, "HOME": str(folder), "TMPDIR": str(folder), "TS_SOCKET": str(folder / "tsp")}
    try:
        return {
            name: cpu_of_child([tsp, *arguments], environ, folder)
            for name, arguments in {"version": ["-V"], "start": [], "status": ["-l"]}.items()
        }
    finally:
        cpu_of_child([tsp, "-K"], environ, folder)


@contextmanager
def _socket_of_manager(folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """The address for ``NOTIFY_SOCKET``, and what waits there until the daemon says that it is ready."""
    address = folder / "notify"
    address.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(address))
        manager.settimeout(READY_S)

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


def _cpu_s(process: int) -> float:
    """Seconds of CPU so far, of the process and of children that it waited for."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, words[11:15])) / TICKS_A_SECOND


def _resident_mib(process: int) -> float:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ValueError(process)
