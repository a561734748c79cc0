"""How many runs a cluster does for the daemon, how soon one starts, and what that costs, beside bare ``sbatch``."""

import os
import random
import shlex
import statistics
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from claudomator_py.domain.task import AgentHint, TaskSpec
from tests.e2e.daemon import Daemon
from tests.e2e.on_cluster import on_cluster, start
from tests.e2e.scenarios_support import document
from tests.e2e.site import Site
from tests.patience import wait_until
from tests.slurm import NODES, ask

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("slurm_cluster")]

RUNS = 500
SLOTS = 8
STARTS = 20
PATIENCE_S = 900.0
LEAST_SHARE, LEAST_AHEAD = 0.4, 0.6
"""Of what bare ``sbatch`` does; the latter if as many runs are pending as begin at once. A run has a supervisor, and
two processors are all there is for both."""
AT_THEIR_PACE = 200
MAX_CPU = 1.5
"""Of what a run takes of the daemon on this machine, where runs come and go as often as on the cluster."""
Begin = Callable[[str], None]
TICKS_S = os.sysconf("SC_CLK_TCK")


def test_a_cluster_keeps_pace_with_bare_sbatch(site: Site, tell: Callable[[str], None]) -> None:
    """Slurm has all bare jobs at once. Of the agent ``sh`` it has no more than there are slots; of ``other`` it has
    twice as many, of which a licence lets no more begin."""
    ask("scontrol", "update", "PartitionName=agents", f"OverSubscribe=FORCE:{SLOTS // len(NODES)}")
    try:
        bare_s = bare(site, RUNS)
        on_cluster(
            site,
            "cluster",
            "local",
            slots=SLOTS,
            further=["other"],
            ahead=SLOTS,
            host={"licenses": {"other": "agents"}},
            concurrency={"total": 2 * SLOTS},
        )
        daemon = start(site)
        here_s, here_cpu_s = done_by(site, daemon, "local", RUNS)
        there_s, there_cpu_s = done_by(site, daemon, "cluster", RUNS)
        ahead_s, _ = done_by(site, daemon, "cluster", RUNS, agent="other")
        lasts = f"do: sleep {SLOTS * there_s / RUNS:.2f}"
        paced_s, paced_cpu_s = done_by(site, daemon, "local", AT_THEIR_PACE, lasts)
    finally:
        ask("scontrol", "update", "PartitionName=agents", "OverSubscribe=FORCE:8")
    there_ms, here_ms, paced_ms = (
        cpu / runs * 1000 for cpu, runs in ((there_cpu_s, RUNS), (here_cpu_s, RUNS), (paced_cpu_s, AT_THEIR_PACE))
    )
    tell(
        f"{RUNS} runs through {SLOTS} slots: {RUNS / there_s:.1f} a second, with as many pending"
        f" {RUNS / ahead_s:.1f}, bare sbatch {RUNS / bare_s:.1f},"
        f" this machine {RUNS / here_s:.1f}; of the daemon's CPU, with its children's, a run takes {there_ms:.1f} ms,"
        f" on this machine {here_ms:.1f} ms, and {paced_ms:.1f} ms at {AT_THEIR_PACE / paced_s:.1f} a second"
    )
    assert bare_s / there_s >= LEAST_SHARE
    assert bare_s / ahead_s >= LEAST_AHEAD
    assert there_ms <= MAX_CPU * paced_ms


def done_by(
    site: Site, daemon: Daemon, host: str, runs: int, does: str = "do: true", agent: str = "sh"
) -> tuple[float, float]:
    """Have a host do the runs; return how long it takes, and the daemon's processor time."""
    daemon.client.drain()
    before = _ends(site)
    texts = (document(f"{host}-{before + number}", does, host=host, agent=agent) for number in range(runs))
    site.drop(f"{host}-{before}.yaml", "\n---\n".join(texts))
    wait_until(lambda: daemon.client.status().counts.get("QUEUED") == runs, "the tasks", PATIENCE_S)
    cpu_before_s, began = cpu_s(daemon.pid), time.monotonic()
    daemon.client.undrain()
    # To be asked for its status all the time would take more of it than the runs do.
    wait_until(lambda: _ends(site) == before + runs, "their ends", PATIENCE_S)
    wait_until(lambda: daemon.client.status().counts.get("COMPLETED") == before + runs, "their records", PATIENCE_S)
    return time.monotonic() - began, cpu_s(daemon.pid) - cpu_before_s


def _ends(site: Site) -> int:
    return sum(entry.what == "end" for entry in site.ledger.entries())


def test_a_run_on_a_cluster_starts_nearly_as_soon_as_with_bare_sbatch(site: Site, tell: Callable[[str], None]) -> None:
    on_cluster(site, slots=SLOTS)
    daemon = start(site)
    noted = site.work / "began"
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(STARTS):
        ways: tuple[tuple[Begin, list[float]], ...] = (
            (partial(submit, site, number), theirs),
            (partial(ask_for, daemon, number), ours),
        )
        for begin, took in ways:
            noted.unlink(missing_ok=True)
            # Slurm starts what waits once a second, and what follows on the end of the last job has its own rhythm.
            time.sleep(random.random())
            began = time.time_ns()
            begin(f"do: date +%s%N > {noted}.new; mv {noted}.new {noted}")
            wait_until(noted.exists)
            took.append((int(noted.read_text()) - began) / 1e9)
            wait_until(lambda: "cl-" not in (jobs := ask("squeue", "-h", "-o", "%j")) and "b-" not in jobs)
    ours_s, theirs_s = statistics.mean(ours), statistics.mean(theirs)
    tell(f"asked for to begun: {ours_s:.2f} s, with bare sbatch {theirs_s:.2f} s ({ours_s / theirs_s:.2f} times)")


def ask_for(daemon: Daemon, number: int, instructions: str) -> None:
    """Have the daemon do that."""
    daemon.client.submit(TaskSpec(name=f"t{number}", instructions=instructions, agent=AgentHint(type="sh")))


def submit(site: Site, number: int, instructions: str = "") -> None:
    """Have Slurm do that by itself."""
    command = f"CLAUDOMATOR_RUN=b{number} CLAUDOMATOR_ATTEMPT=1 exec {shlex.join(site.ledger.agent)}"
    script = f"#!/bin/sh\n{command} <<'END'\n{instructions}\nEND\n"
    options = ["--parsable", "--no-requeue", f"--job-name=b-{number}", "--output=/dev/null", "--chdir=/"]
    done = subprocess.run(
        ["sbatch", *options, "--export-file=/dev/null"], input=script, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def bare(site: Site, number: int) -> float:
    """Return how long Slurm takes with that many jobs of the same program, submitted as fast as it takes them."""
    began = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        assert len([*pool.map(partial(submit, site), range(number))]) == number
    wait_until(lambda: _ends(site) == number, "the jobs", PATIENCE_S)
    took = time.monotonic() - began
    wait_until(lambda: "b-" not in ask("squeue", "--noheader", "--format=%j"), "their end")
    site.ledger.file.unlink()
    return took


def cpu_s(pid: int) -> float:
    """Return the processor time of a process, of those of its children that have ended, and of the one that lives and
    starts supervisors here, without theirs."""
    own, living = _ticks(pid)[11:15], [_ticks(child)[11:13] for child in map(int, _children(pid))]
    return (sum(own) + sum(map(sum, living))) / TICKS_S


def _children(pid: int) -> list[str]:
    return " ".join(file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/children")).split()


def _ticks(pid: int) -> list[int]:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [0, *map(int, fields[1:])]
