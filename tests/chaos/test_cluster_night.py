"""A night on a cluster: four agents, one of which meets its limit, and 24 tasks; a node is lost with its runs, the
controller is killed twice, and the daemon is replaced in between."""

import os
import signal
import time
from collections.abc import Callable

import pytest

from claudomator_py.hosts.local.fate import shim_identity
from claudomator_py.hosts.shim import procfs
from tests.e2e.invariants import hold
from tests.e2e.on_cluster import on_cluster, start, starts
from tests.e2e.scenarios_support import document, started
from tests.e2e.site import Site
from tests.patience import wait_until
from tests.slurm import NODES, Cluster, ask

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

TASKS = 24
STUCK_S = 150.0
AGENTS = ("sh", "other", "simulated", "limited")


def test_a_night_of_a_cluster_ends_with_all_done(
    site: Site, slurm_cluster: Cluster, tell: Callable[[str], None]
) -> None:
    began = time.monotonic()
    more = {"slots": 3, "concurrency": {"total": 9}, "simulated": ["cluster"], "further": ("other", "limited")}
    on_cluster(site, "cluster", **more)  # type: ignore[arg-type]
    daemon = start(site)
    names = []
    for number in range(TASKS):
        agent = AGENTS[number % 4]
        names.append(f"{agent}-{number:02}")
        simulated = ["simulate: delay=2s text=done"]
        if number == AGENTS.index("limited"):
            simulated.insert(0, "simulate: outcome=limited(reset=15s)")
        does = ["do: sleep 3"] if agent in ("sh", "other") else simulated
        retry = {"max_attempts": 20, "backoff": "20ms"}
        site.drop(f"{names[-1]}.yaml", document(None, *does, agent=agent, on_lost="retry", retry=retry))
    started(site, 3)
    slurm_cluster.kill_controller()
    slurm_cluster.start_controller()
    started(site, 5)
    assert daemon.stop() == 0
    lost = lose_node(site, slurm_cluster, "n1")
    daemon = start(site)
    slurm_cluster.start_node("n1")
    ask("scontrol", "update", "NodeName=n1", "State=RESUME")
    started(site, 8)
    slurm_cluster.kill_controller()
    slurm_cluster.start_controller()

    def is_all_done() -> bool:
        for node in NODES:
            if "drain" in ask("sinfo", "-h", "-n", node, "-o", "%T"):
                ask("scontrol", "update", f"NodeName={node}", "State=RESUME")
        return daemon.client.status().counts.get("COMPLETED") == TASKS

    wait_until(is_all_done, "all to be done", STUCK_S)
    wait_until(lambda: "cl-" not in ask("squeue", "--noheader", "--format=%j"), "the end of all jobs")
    assert daemon.stop() == 0
    facts = hold(site, file_names=names)
    assert set(starts(site).values()) == {1}
    reasons = [run.outcome["reason"] for run in facts.runs.values() if run.outcome and run.outcome["reason"]]
    assert "rate_limited" in reasons
    tell(
        f"{TASKS} tasks of {len(AGENTS)} agents, {len(facts.runs)} runs in {time.monotonic() - began:.0f} s:"
        f" {lost} lost with a node, {reasons.count('rate_limited')} at a limit, the controller killed twice,"
        " the daemon replaced once; all done, none begun twice, nothing left"
    )


def lose_node(site: Site, cluster: Cluster, node: str) -> int:
    """Kill a node's daemon and all that runs there, as where its power is cut; how many runs that were."""
    os.kill(cluster.pid(f"slurmd-{node}"), signal.SIGKILL)
    doomed: list[int] = []
    for root in site.run_roots:
        for path in root.glob("[!.]*"):
            shim = shim_identity(path)
            try:
                environ = b"" if shim is None else procfs_environ(shim.pid)
            except OSError:
                continue
            if shim is not None and f"SLURMD_NODENAME={node}\0".encode() in environ:
                doomed.append(shim.pid)
    steps = [process.ppid for pid in doomed if (process := procfs.read(pid)) is not None]
    below = [process.pid for process in procfs.descendants(doomed, procfs.snapshot())]
    for pid in (*steps, *doomed, *below):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return len(doomed)


def procfs_environ(pid: int) -> bytes:
    """Return the variables that a process was started with."""
    with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
        return file.read()
