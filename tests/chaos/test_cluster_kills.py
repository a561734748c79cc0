"""A cluster struck again and again, with runs on it: nothing may be lost, begun twice, left over or made up."""

import time
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from tests.chaos.cluster_strikes import Strikes
from tests.e2e.invariants import Facts, hold
from tests.e2e.on_cluster import on_cluster, start
from tests.e2e.scenarios_support import document
from tests.e2e.site import Site
from tests.patience import wait_until
from tests.slurm import Cluster, ask

pytestmark = pytest.mark.slurm

SLOTS = 16
PAUSE_S = 2.5
"""Up to so long after tasks have come the next strike follows: before their submission, before or after their start."""
STUCK_S = 300.0
WORK = {
    "short": "do: sleep 0.2",
    "long": "do: sleep 4",
    "child": "do: setsid sleep 600 & sleep 1",
    "failing": "do: sleep 1\ndo: exit 7",
}
Note = Callable[[str], None]


def struck(site: Site, cluster: Cluster, random: Random, strikes: int) -> tuple[Strikes, Facts]:
    """Have it all happen, then let what is left finish in peace, and check what must hold."""
    on_cluster(site, slots=SLOTS, concurrency={"total": SLOTS})
    series = Strikes(site, cluster, start(site), random)
    names: list[str] = []
    while series.done.total() < strikes:
        for kind in random.sample([*WORK], k=2):
            names.append(f"{kind}-{len(names):03}")
            # What is lost is tried again; what fails by itself is not, so that each has one end to come to.
            retry = {"max_attempts": 1 if kind == "failing" else 100, "backoff": "20ms"}
            site.drop(f"{names[-1]}.yaml", document(None, WORK[kind], on_lost="retry", retry=retry))
        time.sleep(random.uniform(0, PAUSE_S))
        series.strike()
    daemon = series.daemon
    wait_until(lambda: sum(daemon.client.status().counts.values()) >= len(names), "the files to be taken")
    site.drain(daemon, STUCK_S)

    # The daemon cancels those that Slurm has requeued, or holds since their start failed, though their runs are over.
    wait_until(lambda: "cl-" not in ask("squeue", "--noheader", "--format=%j"), "the end of all jobs", STUCK_S)
    assert daemon.stop() == 0
    facts = hold(site, file_names=names)
    assert not [*site.root.glob("shared/*/variables.json")]
    wrong = [
        (task.name, task.state, task.reason)
        for task in facts.tasks.values()
        if not task.name.startswith("failing") and task.state != "COMPLETED"
    ]
    assert not wrong
    return series, facts


def in_words(series: Strikes, facts: Facts) -> str:
    """Return the figures, in words."""
    outcomes = Counter(run.outcome["reason"] or run.outcome["status"] for run in facts.runs.values() if run.outcome)
    revoked = sum(run.state == "revoked" for run in facts.runs.values())
    return (
        f"{series.done.total()} strikes {dict(series.done)}, nodes drained {series.drained} times;"
        f" {len(facts.tasks)} tasks, {len(facts.runs)} runs {dict(outcomes)}, {revoked} revoked;"
        " 0 tasks lost, 0 runs begun twice, 0 processes left, 0 ends made up"
    )


@pytest.mark.slow
def test_strikes_at_a_cluster_leave_everything_accounted_for(
    site: Site, slurm_cluster: Cluster, seed: int, tell: Note
) -> None:
    tell(in_words(*struck(site, slurm_cluster, Random(seed), strikes=12)))


@pytest.mark.chaos
@pytest.mark.timeout(3_600)  # On a loaded machine it takes more than the 900 s of others; `STUCK_S` limits a hang.
def test_many_strikes_at_a_cluster_leave_everything_accounted_for(
    site: Site, slurm_cluster: Cluster, seed: int, tell: Note
) -> None:
    tell(in_words(*struck(site, slurm_cluster, Random(seed), strikes=200)))
