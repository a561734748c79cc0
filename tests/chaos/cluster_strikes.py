"""What befalls a cluster and the daemon that has runs on it: deaths by ``kill -9``, nodes that stand still, and people
who use Slurm's commands beside it."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

from claudomator_py.hosts.local.fate import shim_identity
from claudomator_py.hosts.shim import procfs
from tests.e2e.daemon import Daemon
from tests.e2e.on_cluster import start
from tests.e2e.site import Site
from tests.slurm import NODES, Cluster, ask

AWAY_S = 2.0
STILL_S = (1.0, 30.0)
"""The longer one is longer than Slurm waits for a node."""
STANDS_STILL = "node stands still"

Undo = Callable[[], None]


class Strikes:
    """One after the other, each soon repaired as whoever looks after a cluster would."""

    def __init__(self, site: Site, cluster: Cluster, daemon: Daemon, random: Random) -> None:
        self.daemon = daemon
        self.done: Counter[str] = Counter()
        self.drained = 0
        """How often Slurm has drained a node, as where a forgotten job's id came again."""
        self._site = site
        self._cluster = cluster
        self._random = random
        self._kinds = {
            "controller": self._controller,
            "node's daemon": self._node,
            "step": self._step,
            "supervisor": self._supervisor,
            "daemon": self._daemon,
            STANDS_STILL: self._still,
            "requeue": self._requeue,
            "cancelled": self._cancelled,
        }

    def strike(self) -> None:
        """Strike once, or at two at a time, and repair it. What finds nothing to strike at is not counted."""
        chosen = self._random.sample([*self._kinds], k=self._random.choice((1, 1, 2)))
        struck = [(kind, undo) for kind in chosen if (undo := self._kinds[kind]()) is not None]
        time.sleep(self._random.uniform(0, AWAY_S))
        # A node's daemon asks each step on its node before it is there, and waits for those that stand still.
        for kind, undo in sorted(struck, key=lambda strike: strike[0] != STANDS_STILL):
            undo()
            self.done[kind] += 1
        for node in NODES:
            if "drain" in ask("sinfo", "-h", "-n", node, "-o", "%T"):
                self.drained += 1
                ask("scontrol", "update", f"NodeName={node}", "State=RESUME")

    def _controller(self) -> Undo:
        self._cluster.kill_controller()
        return self._cluster.start_controller

    def _node(self) -> Undo:
        node = self._random.choice(NODES)
        os.kill(self._cluster.pid(f"slurmd-{node}"), signal.SIGKILL)
        return lambda: self._cluster.start_node(node)

    def _daemon(self) -> Undo:
        self.daemon.kill()

        def again() -> None:
            self.daemon = start(self._site)

        return again

    def _step(self) -> Undo | None:
        return self._kill(step_of)

    def _supervisor(self) -> Undo | None:
        return self._kill(lambda supervisor: supervisor)

    def _kill(self, which: Callable[[int], int | None]) -> Undo | None:
        supervisors = self._supervisors()
        if not supervisors or (pid := which(self._random.choice(supervisors))) is None:
            return None
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            return _nothing
        return None

    def _still(self) -> Undo:
        """Stop a node's daemon with all of its jobs, as where a machine hangs."""
        node = self._random.choice(NODES)
        roots = [self._cluster.pid(f"slurmd-{node}")]
        for supervisor in self._supervisors():
            with suppress(OSError):
                if f"SLURMD_NODENAME={node}\0".encode() in Path(f"/proc/{supervisor}/environ").read_bytes():
                    roots += [step for step in [step_of(supervisor)] if step is not None]
        stopped = [*roots, *(process.pid for process in procfs.descendants(roots, procfs.snapshot()))]
        _send(stopped, signal.SIGSTOP)
        time.sleep(self._random.choices(STILL_S, (5, 1))[0])
        return lambda: _send(stopped, signal.SIGCONT)

    def _requeue(self) -> Undo | None:
        # Slurm requeues our jobs only for whoever allows that first.
        return self._asked("scontrol update JobId={0} Requeue=1", "scontrol requeue {0}")

    def _cancelled(self) -> Undo | None:
        return self._asked("scancel {0}")

    def _asked(self, *commands: str) -> Undo | None:
        jobs = ask("squeue", "--noheader", "--format=%i").split()
        if not jobs:
            return None
        job = self._random.choice(jobs)
        for command in commands:
            ask(*command.format(job).split())
        return _nothing

    def _supervisors(self) -> list[int]:
        shims = [shim_identity(path) for root in self._site.run_roots for path in root.glob("[!.]*")]
        return [shim.pid for shim in shims if shim is not None]


def step_of(supervisor: int) -> int | None:
    """Return the id of Slurm's process that has started it, if that lives."""
    process = procfs.read(supervisor)
    parent = None if process is None else process.ppid
    with suppress(OSError):
        if b"slurmstepd" in Path(f"/proc/{parent}/cmdline").read_bytes():
            return parent
    return None


def _send(pids: list[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _nothing() -> None:
    """What is over by itself."""
