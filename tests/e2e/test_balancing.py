"""Where tasks go: three simulated agents behind a real daemon, limits that come and go, wishes, order, reasons."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from claudomator_py.domain.blocked import BlockCode
from claudomator_py.domain.blocked_words import sentence
from claudomator_py.domain.wording import worded
from claudomator_py.resources.agents import AgentView
from claudomator_py.resources.tasks import TaskView
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, ended, in_state, started, waits_for, why
from tests.e2e.site import Site, open_site
from tests.fakes.decisions import placement_of
from tests.patience import wait_until
from tests.warm.starter import WarmStarter

BUSY = "simulate: outcome=hang"
DONE = "simulate: outcome=success"
LIMIT = "outcome=limited(reset=1h)"


def simulated(script: str | None = None, slots: int = 2) -> dict[str, object]:
    return {"kind": "simulated", "auto_select": True, "max_concurrent": slots, "script": script}


@pytest.fixture
def three(tmp_path: Path, warm: WarmStarter) -> Iterator[Site]:
    """A site with the agents alpha, beta and gamma."""
    agents = {name: simulated() for name in ("gamma", "alpha", "beta")}
    with open_site(tmp_path / "site", warm=warm, agents=agents, concurrency={"total": 8}) as site:
        yield site


def runs_on(site: Site, daemon: Daemon, name: str, *lines: str, agent: object = None, **fields: object) -> TaskView:
    """Drop a task and wait until it runs, or is done."""
    site.drop(f"{name}.yaml", document(None, *lines, agent=agent, **fields))
    return in_state(daemon, name, "RUNNING", "COMPLETED")


def agent_of(daemon: Daemon, name: str) -> AgentView:
    return next(agent for agent in daemon.client.agents() if agent.name == name)


def test_tasks_go_to_the_least_active_and_ties_to_the_first_name(three: Site) -> None:
    daemon = three.start().ready()

    went = [runs_on(three, daemon, f"task-{number}", BUSY).agent for number in range(6)]

    assert went == ["alpha", "beta", "gamma"] * 2
    assert {agent.name: agent.active for agent in daemon.client.agents()} == {"alpha": 2, "beta": 2, "gamma": 2}
    second = why(daemon, "task-1")
    assert "task-1 is RUNNING on beta" in second
    assert " went to beta: least active" in second
    assert "alpha was busier (1 of 2 slots)." in second
    assert "gamma was as busy as beta, which comes first alphabetically." in second
    three.drop("late.yaml", document(None, BUSY, agent=None))
    late = waits_for(daemon, "late", "slots")
    for name in ("alpha", "beta", "gamma"):
        assert f"{name} is full (2 of 2 slots)" in str(late.reason_text)


def test_many_at_once_are_spread_evenly(three: Site) -> None:
    daemon = three.start().ready()

    three.drop("many.yaml", "\n---\n".join(document(f"task-{number}", BUSY, agent=None) for number in range(6)))

    wait_until(lambda: daemon.client.status().counts.get("RUNNING") == 6, "six runs")
    assert Counter(task.agent for task in daemon.client.all_tasks()) == {"alpha": 2, "beta": 2, "gamma": 2}


def test_work_flows_around_a_limit_and_back_when_it_is_over(three: Site) -> None:
    daemon = three.start().ready()
    # It insists, so it meets the limit and waits for its end, where others go elsewhere.
    patient = document(None, "simulate: outcome=limited(reset=1h)", agent="alpha")
    three.drop("patient.yaml", patient)
    wait_until(lambda: agent_of(daemon, "alpha").limited, "alpha to be limited")
    held = agent_of(daemon, "alpha")
    waiting = waits_for(daemon, "patient", "limited")
    outcome = daemon.client.runs("patient")[0].outcome
    assert outcome is not None
    assert waiting.waiting_until == held.limited_until == outcome.reset_at
    assert ("rate_limited" in str(held.hold_reason), held.provenance) == (True, "reported")

    three.drop("around.yaml", document(None, DONE, agent=None))
    assert ended(daemon, "around").agent == "beta"
    assert "alpha was limited (" in why(daemon, "around")
    assert "(simulated, reported)" in why(daemon, "around")

    daemon.client.cancel("patient")
    daemon.client.release("alpha")
    assert runs_on(three, daemon, "back", DONE).agent == "alpha"


def test_a_task_that_meets_a_limit_goes_on_elsewhere_without_losing_an_attempt(three: Site) -> None:
    three.configure(agents={"alpha": simulated(LIMIT), "beta": simulated()})
    daemon = three.start().ready()

    three.drop("task.yaml", document(None, "Write the report.", agent=None, retry={"max_attempts": 1}))

    task = ended(daemon, "task")
    assert (task.state, task.agent, task.attempts) == ("COMPLETED", "beta", 1)
    first, second = daemon.client.runs("task")
    assert (first.agent, first.attempt, second.agent, second.attempt) == ("alpha", 1, "beta", 1)
    story = why(daemon, "task")
    assert "Run 1 on alpha met a limit" in story
    assert "It resets at" in story
    assert " went to beta: " in story
    assert "alpha was limited (" in story

    released = daemon.client.release("alpha")
    assert not released.limited
    # It is asked again, says so again, and is held again.
    three.drop("next.yaml", document(None, "Write the report.", agent=None))
    assert ended(daemon, "next").agent == "beta"
    assert [run.agent for run in daemon.client.runs("next")] == ["alpha", "beta"]


def test_with_every_agent_limited_tasks_wait_for_the_earliest_reset(three: Site) -> None:
    three.configure(agents={"alpha": simulated("outcome=limited(reset=2h)"), "beta": simulated(LIMIT)})
    daemon = three.start().ready()
    three.drop("task.yaml", document(None, "Write the report.", agent=None))

    wait_until(lambda: all(agent.limited for agent in daemon.client.agents()), "both limits")
    task = waits_for(daemon, "task", "limited")

    assert task.waiting_until == agent_of(daemon, "beta").limited_until
    assert task.blocked is not None
    assert task.blocked.code is BlockCode.AGENTS_LIMITED
    first, second = task.blocked.params.agents
    assert (first.params.agent, second.params.agent) == ("alpha", "beta")
    assert worded(sentence(second, brief=True)).startswith("beta is limited (simulated, reported) until ")
    assert [hold.agent for hold in task.holds] == ["alpha", "beta"]
    assert [run.agent for run in daemon.client.runs("task")] == ["alpha", "beta"]


def test_trying_all_the_same_asks_limited_agents_with_a_growing_pause(three: Site) -> None:
    three.configure(agents={"alpha": simulated(LIMIT)}, balancing={"when_all_limited": "try"})
    daemon = three.start().ready()
    three.drop("task.yaml", document(None, "Write the report.", agent=None, retry={"max_attempts": 1, "backoff": "1s"}))

    # The first run finds the limit, the second is a try; from then on it pauses between two tries.
    in_state(daemon, "task", "WAITING")
    assert "Every agent is limited; one was tried anyway." in why(daemon, "task")
    wait_until(lambda: len(daemon.client.runs("task")) >= 4, "the fourth run")
    task = in_state(daemon, "task", "WAITING")
    assert (task.reason, task.attempts) == ("backoff", 0)
    runs = [run for run in daemon.client.runs("task") if run.ended_at is not None]
    ends = [datetime.fromisoformat(str(run.ended_at)) for run in runs]
    starts = [datetime.fromisoformat(run.started_at) for run in runs]
    assert starts[2] - ends[1] >= timedelta(seconds=2)
    assert starts[3] - ends[2] >= timedelta(seconds=4)


def test_a_wish_is_granted_overridden_or_insisted_on(three: Site) -> None:
    three.configure(
        agents={"alpha": simulated(), "gamma": simulated(slots=1), "lint": {**simulated(), "auto_select": False}},
        balancing={"prefer_wait": "1s"},
    )
    daemon = three.start().ready()

    wished = runs_on(three, daemon, "wished", BUSY, agent={"type": "gamma"})
    assert wished.agent == "gamma"
    assert " went to gamma: the task prefers gamma" in why(daemon, "wished")

    overridden = runs_on(three, daemon, "overridden", BUSY, agent={"type": "gamma"})
    assert overridden.agent == "alpha"
    assert "The task prefers gamma, which" in why(daemon, "overridden")
    assert "full (1 of 1 slots)" in why(daemon, "overridden")
    decision = daemon.client.why("overridden").decisions[0]
    assert "gamma" in str(placement_of(decision).overridden_hint)

    three.drop("strict.yaml", document(None, BUSY, agent={"type": "gamma", "strict": True}))
    strict = waits_for(daemon, "strict", "slots")
    assert "gamma is full (1 of 1 slots)" in str(strict.reason_text)
    daemon.client.cancel("wished")
    assert in_state(daemon, "strict", "RUNNING").agent == "gamma"

    # What is not open to balancing is chosen by name only, and then insisted on.
    assert runs_on(three, daemon, "linted", DONE, agent={"type": "lint"}).agent == "lint"
    assert "lint" not in why(daemon, "overridden")


def test_wishes_can_be_ignored_altogether(three: Site) -> None:
    three.configure(agents={"alpha": simulated(), "gamma": simulated()}, balancing={"type_hint": "ignore"})
    daemon = three.start().ready()

    assert runs_on(three, daemon, "task", DONE, agent={"type": "gamma"}).agent == "alpha"


def test_priorities_decide_the_order_and_dependencies_inherit_them(site: Site) -> None:
    site.configure(concurrency={"total": 1})
    daemon = site.start().ready()
    site.drop("first.yaml", document(None, "do: until [ -e ../../../../go ]; do sleep 0.05; done"))
    started(site)
    for name, priority, dependencies in (
        ("b-low", "low", []),
        ("a-normal", "normal", []),
        ("needed", "low", []),
        ("urgent", "urgent", ["needed"]),
        ("high", "high", []),
    ):
        site.drop(f"{name}.yaml", document(None, "do: true", priority=priority, depends_on=dependencies))
        in_state(daemon, name, "QUEUED", "WAITING")

    assert in_state(daemon, "urgent", "WAITING").reason_text == "waits for needed (QUEUED)"
    assert [task.name for task in daemon.client.status().queued] == ["needed", "high", "a-normal", "b-low", "urgent"]
    (site.root / "go").touch()
    site.drain(daemon)

    names = {run.id: task.name for task in daemon.client.all_tasks() for run in daemon.client.runs(task.id)}
    assert [names[run_id] for run_id in started(site, 6)] == ["first", "needed", "urgent", "high", "a-normal", "b-low"]


def test_one_directory_is_used_by_one_run_at_a_time(site: Site) -> None:
    daemon = site.start().ready()
    shared, other = site.work / "shared", site.work / "other"
    shared.mkdir()
    other.mkdir()
    wait = "do: until [ -e go ]; do sleep 0.05; done"
    site.drop("one.yaml", document(None, wait, working_dir=str(shared)))
    in_state(daemon, "one", "RUNNING")

    site.drop("two.yaml", document(None, wait, working_dir=str(shared)))
    site.drop("elsewhere.yaml", document(None, "do: true", working_dir=str(other)))

    assert ended(daemon, "elsewhere").state == "COMPLETED"
    two = waits_for(daemon, "two", "workdir")
    assert two.reason_text == f"{shared} is in use by one (RUNNING)"
    assert f"two is QUEUED: {shared} is in use by one (RUNNING)." in why(daemon, "two")
    (shared / "go").touch()
    assert ended(daemon, "two").state == "COMPLETED"
    assert len(started(site, 3)) == 3
