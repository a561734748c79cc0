"""A Slurm cluster of two nodes on this machine, of Debian's packages, unpacked and not installed."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.patience import wait_until

PACKAGES = ("munge", "libmunge2", "libhwloc15", "slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins")
FETCHED = Path(__file__).parents[1] / "build" / "slurm"
"""Where ``python -m tests.slurm`` puts them, as where only that has a way to the registry."""
NODES = ("n1", "n2")

CONFIGURATION = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
AuthInfo=socket={folder}/munge/socket
PluginDir={libraries}/slurm-wlm
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=1
JobRequeue=0
ReturnToService=2
KillWait=5
SlurmdTimeout=20
MpiDefault=none
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=4
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=4
Licenses=agents:8,single:1
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
PartitionName=agents Nodes=ALL Default=YES OverSubscribe=FORCE:8 PriorityTier=1
PartitionName=urgent Nodes=ALL OverSubscribe=EXCLUSIVE PriorityTier=10
"""


class Cluster:
    """Its daemons. It is on PATH, for this process, until it is closed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        unpacked = folder / "unpacked" / "usr"
        libraries = unpacked / "lib" / f"{os.uname().machine}-linux-gnu"
        for name in ("unpacked", "munge", "state", *(f"spool-{node}" for node in NODES)):
            (folder / name).mkdir(mode=0o755)
        unpack(folder)
        self._patch = pytest.MonkeyPatch()
        self._patch.setenv("PATH", f"{unpacked}/bin:{unpacked}/sbin:{os.environ['PATH']}")
        self._patch.setenv("LD_LIBRARY_PATH", f"{libraries}/slurm-wlm:{libraries}")
        self._patch.setenv("SLURM_CONF", f"{folder}/slurm.conf")
        (folder / "slurm.conf").write_text(
            CONFIGURATION.format(
                host=socket.gethostname().partition(".")[0], folder=folder, libraries=libraries, ports=free_ports(3)
            )
        )

    def start(self) -> None:
        """Start all daemons, and wait for the nodes."""
        self._munge()
        self.start_controller()
        for node in NODES:
            self.start_node(node)
        wait_until(lambda: set(ask("sinfo", "-h", "-o", "%T").split()) == {"idle"})

    def start_controller(self) -> None:
        """Start the controller, from the state that it has saved."""
        run("slurmctld-wlm")

    def restart_node(self, node: str, *, without: Path | None = None) -> None:
        """Start a node's daemon anew. without: folder that this node does not see, as if it was not mounted there."""
        os.kill(self.pid(f"slurmd-{node}"), signal.SIGTERM)
        wait_until(lambda: not self.lives(f"slurmd-{node}"), f"the end of the daemon of {node}")
        self.start_node(node, without=without)
        wait_until(lambda: ask("sinfo", "-h", "-n", node, "-o", "%T").split()[:1] == ["idle"], f"{node} to be idle")

    def start_node(self, node: str, *, without: Path | None = None) -> None:
        """Start a node's daemon. without: see ``restart_node``."""
        command = ["slurmd-wlm", "-N", node, "-d", f"{self.folder}/unpacked/usr/sbin/slurmstepd-wlm"]
        if without is not None:
            command = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs none "{without}" && exec "$@"', "sh", *command]
        try:
            run(*command)
        except subprocess.TimeoutExpired:
            # It asks each step on its node first, without a limit: what stands still is said.
            sys.stderr.write(self.standing(node))
            run(*command)
        # It leaves its id only after the command has returned, and until then the file is empty, or has the last one.
        wait_until(lambda: self.lives(f"slurmd-{node}"), f"the daemon of {node}")

    def kill_controller(self) -> None:
        """Kill the controller without a word, and have it forget what it has not saved."""
        os.kill(self.pid("slurmctld"), signal.SIGKILL)

    def pid(self, name: str) -> int:
        """Return the id of ``slurmctld``, or of a node's ``slurmd-n1``."""
        return int((self.folder / f"{name}.pid").read_text())

    def lives(self, name: str) -> bool:
        """Whether the daemon's id is known, and a process has it."""
        return _is_there(self.folder / f"{name}.pid")

    def standing(self, node: str) -> str:
        """Return the end of the log of a node's daemon, and what all of Slurm's processes here are doing."""
        lines = (self.folder / f"slurmd-{node}.log").read_text(errors="replace").splitlines()[-20:]
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if f"SLURM_CONF={self.folder}/slurm.conf".encode() in (entry / "environ").read_bytes():
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    if "slurm" in command:
                        state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                        lines.append(f"{entry.name} {state} {(entry / 'wchan').read_text()} {command[:80]}")
        return f"{node} does not come back:\n" + "\n".join([*lines, ""])

    def close(self) -> None:
        """End the daemons, by their ids."""
        for name in ("slurmctld", *(f"slurmd-{node}" for node in NODES), "munge/munged"):
            try:
                os.kill(self.pid(name), signal.SIGTERM)
            except (OSError, ValueError):
                continue
        self._patch.undo()

    def _munge(self) -> None:
        munge = self.folder / "munge"
        (munge / "key").write_bytes(os.urandom(1024))
        (munge / "key").chmod(0o600)
        files = [f"--{name}={munge}/{file}" for name, file in MUNGE_FILES.items()]
        run("munged", "--force", *files)


MUNGE_FILES = {
    "key-file": "key",
    "socket": "socket",
    "pid-file": "munged.pid",
    "log-file": "log",
    "seed-file": "seed",
}


def unpack(folder: Path) -> None:
    """Unpack Debian's packages. Skips the test where they are not to be had."""
    debs = FETCHED
    if len([*debs.glob("*.deb")]) < len(PACKAGES) or os.geteuid() != 0:
        debs = folder / "debs"
        if (obstacle := fetch(debs)) is not None:
            pytest.skip(obstacle)
    for deb in debs.glob("*.deb"):
        run("dpkg", "-x", str(deb), str(folder / "unpacked"))


def fetch(folder: Path) -> str | None:
    """Download Debian's packages into the folder. Returns why there can be no cluster; None: they are there."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        return "a cluster needs root, and the packages of Debian or one of its kin"
    folder.mkdir(parents=True, exist_ok=True)
    for before in ([], ["update", "-qq"]):
        if before:
            subprocess.run(["apt-get", *before], capture_output=True, timeout=120, check=False)
        download = ["apt-get", "download", "-qq", *PACKAGES]
        if subprocess.run(download, cwd=folder, capture_output=True, timeout=120, check=False).returncode == 0:
            return None
    return "Slurm's packages cannot be downloaded"


def free_ports(number: int) -> list[int]:
    """Return ports that nobody uses at present."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [listening.getsockname()[1] for listening in sockets]
    for listening in sockets:
        listening.close()
    return ports


def run(*command: str) -> None:
    """Run the command, which has to succeed. What it leaves behind does not hold the standard streams."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=False, timeout=60, check=False)
    assert done.returncode == 0, command


def ask(*command: str) -> str:
    """Return what the command prints; nothing where it fails."""
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Have a cluster for a while."""
    present = Cluster(folder)
    began = time.monotonic()
    try:
        present.start()
        yield present
    finally:
        present.close()
        wait_until(lambda: not any(map(_is_there, folder.glob("*.pid"))) or time.monotonic() > began + 60)


def _is_there(file: Path) -> bool:
    try:
        return Path(f"/proc/{int(file.read_text())}").exists()
    except (OSError, ValueError):
        return False


if __name__ == "__main__" and (obstacle := fetch(FETCHED)) is not None:
    sys.exit(f"{obstacle}; tests that need one are skipped")
