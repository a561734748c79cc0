"""The daemon killed at random moments, over and over, under load; the shims too. Then everything must be accounted for.

A failure names its seed; ``CLAUDOMATOR_CHAOS_SEED`` repeats the same choices, if not the same timing.
"""

import signal
import sys
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Self

import pytest

from claudomator_py.client import DaemonNotRunning
from claudomator_py.domain.outcome import Outcome
from claudomator_py.hosts.local.fate import shim_identity
from claudomator_py.hosts.shim import procfs, record
from tests.chaos.workload import Operator
from tests.e2e.daemon import Daemon
from tests.e2e.invariants import Facts, hold
from tests.e2e.site import Site, open_site
from tests.patience import wait_until
from tests.warm.starter import WarmStarter

EARLY_S = 0.3
LATE_S = 1.0
READY_S = 30.0


class ShimKiller:
    """Kills one in five shims, of runs and of checks, soon after it is first seen; in a ``with`` block."""

    def __init__(self, site: Site, random: Random) -> None:
        self.killed = 0
        self._runs = site.state / "runs"
        self._random = random
        self._seen: set[Path] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._over.wait(0.01):
            for path in self._directories() - self._seen:
                shim = shim_identity(path)
                if shim is not None or (path / record.EXIT).exists():
                    self._seen.add(path)
                if shim is not None and self._random.random() < 0.2:
                    self.killed += procfs.send(shim.pid, shim.start_time, signal.SIGKILL)

    def _directories(self) -> set[Path]:
        try:
            return {*self._runs.glob("[!.]*"), *self._runs.glob("[!.]*/check*")}
        except FileNotFoundError:  # One was removed meanwhile.
            return set()


@dataclass
class Chaos:
    """One series of kills of the daemon."""

    site: Site
    random: Random
    operator: Operator
    kills: int
    tasks_a_life: int
    early: int = 0

    def run(self) -> None:
        """Kill one daemon after the other, in the midst of whatever it does."""
        for _ in range(self.kills):
            self._live_and_die(self.site.start())

    def _live_and_die(self, daemon: Daemon) -> None:
        """Every second daemon dies within moments of its start, the others once they have answered."""
        ready = self.random.random() < 0.5
        if ready:
            daemon.ready()
        killer = threading.Timer(
            self.random.uniform(0, LATE_S if ready else EARLY_S), daemon.send, args=(signal.SIGKILL,)
        )
        killer.start()
        try:
            if ready:
                self._work(daemon)
        finally:
            killer.join()
            daemon.wait()
        self.early += not ready

    def _work(self, daemon: Daemon) -> None:
        try:
            self.operator.work(daemon.client, self.tasks_a_life)
        except DaemonNotRunning:
            return


def chaos(site: Site, seed: int, *, tasks: int, kills: int) -> Facts:
    """Have it all happen, then let one daemon finish in peace and check what must hold."""
    random = Random(seed)
    operator = Operator(random, site, tasks)
    series = Chaos(site, random, operator, kills, tasks_a_life=max(1, 3 * tasks // kills))
    series.run()
    daemon = site.start().ready()
    while not operator.done:
        operator.work(daemon.client)
    wait_until(lambda: sum(daemon.client.status().counts.values()) >= tasks, "the files to be taken", READY_S)
    site.drain(daemon)
    assert daemon.stop() == 0
    facts = hold(site, acknowledged=operator.acknowledged, file_names=operator.file_names)
    assert sorted(task.name for task in facts.tasks.values()) == sorted(operator.names)
    report(series, facts)
    return facts


def report(series: Chaos, facts: Facts) -> None:
    """The figures, for whoever wants to see them."""
    states = Counter(task.state for task in facts.tasks.values())
    ends = Counter(Outcome.model_validate(run.outcome).status.value for run in facts.runs.values() if run.outcome)
    revoked = sum(run.state == "revoked" for run in facts.runs.values())
    say(
        f"{series.kills} daemons killed, {series.early} of them right after their start;"
        f" {len(facts.tasks)} tasks {dict(states)};"
        f" {len(facts.runs)} runs {dict(ends)}, {revoked} revoked; {series.operator.refused} requests refused"
    )


def say(text: str) -> None:
    """Shown when a test fails, and with ``-s``."""
    sys.stdout.write(f"{text}\n")


def lost(facts: Facts) -> list[str]:
    """Runs that ended nobody knows how."""
    return [run.id for run in facts.runs.values() if run.outcome and run.outcome["status"] == "lost"]


def test_a_few_kills_of_the_daemon_show_in_no_run(site: Site, seed: int) -> None:
    facts = chaos(site, seed, tasks=40, kills=10)
    assert not lost(facts), "a run was lost, though no shim was killed"


@pytest.mark.chaos
def test_many_kills_of_the_daemon_show_in_no_run(site: Site, seed: int) -> None:
    facts = chaos(site, seed, tasks=500, kills=200)
    assert not lost(facts), "a run was lost, though no shim was killed"


@pytest.mark.chaos
def test_many_kills_of_daemon_and_shims_leave_everything_accounted_for(site: Site, seed: int) -> None:
    with ShimKiller(site, Random(seed + 1)) as killer:
        facts = chaos(site, seed, tasks=250, kills=100)
    say(f"{killer.killed} shims killed")
    # Some die too late, after they have recorded the end, and those of checks are only begun again.
    assert 0 < len(lost(facts)) <= killer.killed


@pytest.mark.chaos
def test_kills_of_the_daemon_show_in_no_run_with_postgresql(
    tmp_path: Path, warm: WarmStarter, postgresql_url: str, seed: int
) -> None:
    with open_site(tmp_path / "site", warm=warm, database=postgresql_url) as site:
        facts = chaos(site, seed, tasks=60, kills=20)
        assert not lost(facts), "a run was lost, though no shim was killed"
