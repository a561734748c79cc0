"""The daemon killed at random moments, over and over, under load; the shims too. Then everything must be accounted for.

A failure names its seed; ``CLAUDOMATOR_CHAOS_SEED`` repeats the same choices, if not the same timing.
"""

import os
import secrets
import signal
import sys
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from claudomator_py.client.errors import DaemonNotRunning
from claudomator_py.core.outcome import Outcome
from claudomator_py.runs.settle import shim_identity
from claudomator_py.runs.shim import procfs
from tests.chaos.workload import Operator
from tests.e2e.harness import Daemon, Site, open_site, wait_until
from tests.e2e.invariants import Facts, hold
from tests.e2e.warm import WarmStarter

EARLY_S = 0.3
LATE_S = 1.0
READY_S = 30.0


@dataclass
class Chaos:
    """One series of kills."""

    site: Site
    random: Random
    operator: Operator
    kills: int
    kill_shims: bool
    tasks_a_life: int
    shims_killed: int = 0
    before_ready: int = 0

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
        self.before_ready += not ready

    def _work(self, daemon: Daemon) -> None:
        try:
            for _ in range(self.tasks_a_life):
                self.operator.work(daemon.client, 1)
                if self.kill_shims:
                    self._kill_shims()
        except DaemonNotRunning:
            return

    def _kill_shims(self) -> None:
        """Each that lives, with a chance of one in four."""
        shims = [shim_identity(self.site.state / "runs" / run_id) for run_id in self.site.run_ids()]
        for shim in shims:
            if shim is not None and self.random.random() < 0.25:
                self.shims_killed += procfs.send(shim.pid, shim.start_time, signal.SIGKILL)


def chaos(site: Site, seed: int, *, tasks: int, kills: int, kill_shims: bool = False) -> tuple[Chaos, Facts]:
    """Have it all happen, then let one daemon finish in peace and check what must hold."""
    random = Random(seed)
    operator = Operator(random, site, tasks)
    series = Chaos(site, random, operator, kills, kill_shims, tasks_a_life=max(1, 3 * tasks // kills))
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
    return series, facts


def report(series: Chaos, facts: Facts) -> None:
    """The figures, for whoever wants to see them."""
    states = Counter(task.state for task in facts.tasks.values())
    ends = Counter(Outcome.model_validate(run.outcome).status.value for run in facts.runs.values() if run.outcome)
    revoked = sum(run.state == "revoked" for run in facts.runs.values())
    say(
        f"{series.kills} daemons killed, {series.before_ready} of them right after their start;"
        f" {series.shims_killed} shims killed; {len(facts.tasks)} tasks {dict(states)};"
        f" {len(facts.runs)} runs {dict(ends)}, {revoked} revoked; {series.operator.refused} requests refused"
    )


def say(text: str) -> None:
    """Shown when a test fails, and with ``-s``."""
    sys.stdout.write(f"{text}\n")


def lost(facts: Facts) -> list[str]:
    """Runs that ended nobody knows how."""
    return [run.id for run in facts.runs.values() if run.outcome and run.outcome["status"] == "lost"]


@pytest.fixture
def seed() -> int:
    """The seed: given, or a new one each time."""
    given = os.environ.get("CLAUDOMATOR_CHAOS_SEED")
    chosen = int(given) if given else secrets.randbelow(10**6)
    say(f"CLAUDOMATOR_CHAOS_SEED={chosen}")
    return chosen


def test_a_few_kills_of_the_daemon_show_in_no_run(site: Site, seed: int) -> None:
    _, facts = chaos(site, seed, tasks=40, kills=10)
    assert not lost(facts), "a run was lost, though no shim was killed"


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_many_kills_of_the_daemon_show_in_no_run(site: Site, seed: int) -> None:
    _, facts = chaos(site, seed, tasks=500, kills=200)
    assert not lost(facts), "a run was lost, though no shim was killed"


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_many_kills_of_daemon_and_shims_leave_everything_accounted_for(site: Site, seed: int) -> None:
    series, _ = chaos(site, seed, tasks=250, kills=100, kill_shims=True)
    assert series.shims_killed > 10


@pytest.mark.chaos
@pytest.mark.timeout(300)
def test_kills_of_the_daemon_show_in_no_run_with_postgresql(
    tmp_path: Path, warm: WarmStarter, postgresql_url: str, seed: int
) -> None:
    with open_site(tmp_path / "site", warm=warm, database=postgresql_url) as site:
        _, facts = chaos(site, seed, tasks=60, kills=20)
        assert not lost(facts), "a run was lost, though no shim was killed"
