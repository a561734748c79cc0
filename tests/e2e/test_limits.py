"""What a limit stops and what goes on at its end: simulated agents behind a real daemon, which is killed meanwhile."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.scenarios_support import document, ended, in_state, waits_for
from tests.e2e.site import Site, open_site
from tests.patience import wait_until
from tests.warm.starter import WarmStarter

MANY = 6


@pytest.fixture
def two(tmp_path: Path, warm: WarmStarter) -> Iterator[Site]:
    """A site with the agents alpha and beta on one account, and gamma on another."""
    usual: dict[str, object] = {"kind": "simulated", "auto_select": True, "max_concurrent": 4}
    agents = {"alpha": {**usual, "account": "one"}, "beta": {**usual, "account": "one"}, "gamma": usual}
    with open_site(tmp_path / "site", warm=warm, agents=agents, concurrency={"total": 8}) as site:
        yield site


def test_a_task_that_waits_goes_on_in_its_conversation_at_the_reset(two: Site) -> None:
    daemon = two.start().ready()
    lines = ("simulate: outcome=limited(reset=5s)", 'simulate: text="went on" outcome=success')
    two.drop("patient.yaml", document(None, *lines, agent="alpha", on_limit="wait", retry={"max_attempts": 1}))
    in_state(daemon, "patient", "QUEUED", "RUNNING", "COMPLETED")
    wait_until(lambda: any(run.outcome for run in daemon.client.runs("patient")), "patient to meet its limit")
    daemon.kill()

    daemon = two.start().ready()

    task = ended(daemon, "patient")
    assert (task.state, task.agent, task.attempts, task.runs) == ("COMPLETED", "alpha", 1, 2)
    assert "went on" in str(task.result_text)
    first, second = daemon.client.runs("patient")
    assert first.outcome is not None
    assert second.outcome is not None
    assert second.resumes == first.id
    assert second.outcome.conversation_id == first.outcome.conversation_id
    assert second.started_at >= str(first.outcome.reset_at)


def test_a_task_that_is_to_fail_at_a_limit_does(two: Site) -> None:
    daemon = two.start().ready()
    two.drop("hasty.yaml", document(None, "simulate: outcome=limited(reset=1h)", agent=None, on_limit="fail"))
    task = ended(daemon, "hasty")
    assert (task.state, task.reason, task.runs) == ("FAILED", "rate_limited", 1)
    limited = {agent.name for agent in daemon.client.agents() if agent.limited}
    assert (task.agent, limited) == ("alpha", {"alpha", "beta"}), "they share an account"


def test_after_a_limit_one_task_goes_first_and_the_others_follow_once_it_answers(two: Site) -> None:
    daemon = two.start().ready()
    daemon.client.hold("gamma")
    two.drop("first.yaml", document(None, "simulate: outcome=limited(reset=4s)", agent="alpha", on_limit="fail"))
    assert ended(daemon, "first").reason == "rate_limited"
    # The probe is silent until it is cancelled; the next one answers after a second and goes on.
    two.drop("a-silent.yaml", document(None, "simulate: outcome=hang", agent=None, priority="urgent"))
    in_state(daemon, "a-silent", "QUEUED", "RUNNING")
    for number in range(MANY):
        two.drop(f"task-{number}.yaml", document(None, "simulate: delay=1h", agent=None))
    in_state(daemon, f"task-{MANY - 1}", "QUEUED")
    in_state(daemon, "a-silent", "RUNNING")
    waiting = waits_for(daemon, "task-0", "limited")
    assert "being tried after its limit" in str(waiting.reason_text)
    assert daemon.client.status().counts.get("RUNNING") == 1

    daemon.client.cancel("a-silent")

    wait_until(lambda: daemon.client.status().counts.get("RUNNING") == MANY, "all to run")
    assert not any(agent.holds for agent in daemon.client.agents() if agent.name != "gamma")
