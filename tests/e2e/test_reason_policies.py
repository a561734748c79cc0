"""What follows from each reason code, seen from outside: a real daemon, and an agent of its own for every code.

What is expected stands here once more, and not in the words of ``REASON_POLICIES``: the table and the daemon are held
to the same.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal

import pytest

from claudomator_py.domain.outcome import Reason
from claudomator_py.resources.agents import AgentView, HoldView
from claudomator_py.resources.runs import RunView
from claudomator_py.resources.tasks import RejectRequest, TaskView
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import ENDED, document, ended, in_state, kill_run, last_run
from tests.e2e.site import Site, open_site
from tests.fakes.steps import from_document
from tests.patience import wait_until
from tests.warm.starter import WarmStarter

MODELS = {"fast": "small", "balanced": "middling", "powerful": "large"}
HeldFor = Literal["a while", "a reset", "an operator"]
MANY = 20


@dataclass(frozen=True)
class Case:
    """A task that ends for a reason, and what is to follow.

    outcome: what its agent ends with, each time. runs, attempts: how many there are in the end; tiers: theirs. held:
    what for its agent is left alone after the first run; None: it goes on with other tasks.
    """

    outcome: str = "success"
    state: str = "FAILED"
    runs: int = 1
    attempts: int = 1
    held: HeldFor | None = None
    tiers: tuple[str, ...] = ("balanced", "balanced")
    fields: dict[str, Any] = field(default_factory=dict)
    attempts_allowed: int = 2


TWICE: dict[str, Any] = {"runs": 2, "attempts": 2}
# The second run is that of the release.
WAITS: dict[str, Any] = {"state": "QUEUED", "runs": 2, "attempts": 0, "held": "a while"}
STOPS_AGENT: dict[str, Any] = {"state": "QUEUED", "attempts": 0, "held": "an operator"}

CASES: dict[Reason, Case] = {
    Reason.RATE_LIMITED: Case("limited(reset=1h)", state="QUEUED", attempts=0, held="a reset"),
    Reason.OVERLOADED: Case("overloaded", **WAITS),
    Reason.NETWORK: Case("network", **WAITS),
    Reason.AUTH: Case("auth", **STOPS_AGENT),
    Reason.NO_CREDIT: Case("no_credit", **STOPS_AGENT),
    Reason.INVALID_MODEL: Case("invalid_model"),
    Reason.CONTEXT_TOO_LONG: Case("context_too_long", **TWICE, tiers=("balanced", "powerful"), attempts_allowed=5),
    Reason.REFUSED: Case("refused"),
    Reason.TURN_LIMIT: Case("turn_limit"),
    Reason.BUDGET: Case("budget"),
    Reason.TIMEOUT: Case("hang", fields={"timeout": "500ms"}),
    Reason.STALLED: Case("hang", **TWICE, fields={"stall_timeout": "500ms"}),
    Reason.CHECK_FAILED: Case("success", **TWICE, fields={"check": ["false"]}),
    Reason.CHECK_UNAVAILABLE: Case("success", fields={"check": ["no-such-program-here"]}),
    Reason.PERMISSION_DENIED: Case("permission_denied"),
    Reason.BAD_INVOCATION: Case("success unknown=key"),
    Reason.INTERRUPTED: Case("crash"),
    Reason.CANCELLED: Case("hang", state="CANCELLED"),
    Reason.REJECTED: Case(runs=0, attempts=0, fields={"approval": True}),
    Reason.DEPENDENCY_FAILED: Case(runs=0, attempts=0, fields={"depends_on": ["refused"]}),
    Reason.OUTPUT_LIMIT: Case("output_limit"),
    Reason.SETUP_FAILED: Case(fields={"working_dir": "/nonexistent/shop"}),
    Reason.DISK_FULL: Case("disk_full", **TWICE),
    Reason.LOST: Case("hang"),
    Reason.UNFINISHED: Case("unfinished", **TWICE),
    Reason.NO_ANSWER: Case("no_answer", **TWICE),
    Reason.AGENT_ERROR: Case("fail", **TWICE),
}
ELSEWHERE = {
    Reason.HANDOFF_REFUSED: "tests/contract/test_service_handoffs.py",
    Reason.UNREACHABLE: "tests/e2e/test_remote_agents.py",
    Reason.NOT_RUNNING: "tests/e2e/test_hub_connections.py",
    Reason.CLONE_FAILED: "tests/e2e/test_slurm_clones.py",
    Reason.PUSH_FAILED: "tests/e2e/test_slurm_clones.py",
    Reason.PREEMPTED: "tests/e2e/test_slurm_causes.py",
    Reason.REQUEUED: "tests/e2e/test_slurm_causes.py",
    Reason.EXPIRED: "tests/contract/test_service_policy.py",
}
"""Those that need a specialist, a remote agent or a policy, by where they are proven."""


@dataclass(frozen=True)
class Seen:
    """What became of a case. agent: as it was after the first run; other: a task that came to it then."""

    task: TaskView
    runs: list[RunView]
    agent: AgentView
    other: TaskView


def test_every_reason_has_a_case_or_a_word_why_not() -> None:
    assert CASES.keys() | ELSEWHERE.keys() == set(Reason)
    assert not CASES.keys() & ELSEWHERE.keys()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, warm: WarmStarter) -> Iterator[Daemon]:
    """A daemon to which all the tasks were given."""
    agents = {reason.value: {"kind": "simulated", "max_concurrent": 1, "models": MODELS} for reason in CASES}
    root = tmp_path_factory.mktemp("reasons") / "site"
    with open_site(root, warm=warm, agents=agents, concurrency={"total": len(CASES)}) as site:
        daemon = site.start().ready()
        for reason, case in CASES.items():
            site.drop(f"{reason}.yaml", text_of(reason, case))
        act(site, daemon)
        yield daemon


def text_of(reason: Reason, case: Case) -> str:
    retry = {"max_attempts": case.attempts_allowed, "backoff": "10ms"}
    return document(None, f"simulate: outcome={case.outcome}", agent=reason.value, retry=retry, **case.fields)


def act(site: Site, daemon: Daemon) -> None:
    """What somebody has to do for a task to end so."""
    in_state(daemon, Reason.REJECTED, "NEEDS_INPUT")
    daemon.client.reject(Reason.REJECTED, RejectRequest())
    in_state(daemon, Reason.CANCELLED, "RUNNING")
    daemon.client.cancel(Reason.CANCELLED)
    in_state(daemon, Reason.LOST, "RUNNING")
    kill_run(site, last_run(daemon, Reason.LOST).id)


@pytest.fixture(scope="module")
def seen(daemon: Daemon) -> dict[Reason, Seen]:
    """What became of all of them: their agents are looked at after the first run, and are given another task."""
    for reason, case in CASES.items():
        if case.runs:
            wait_until(partial(have_ended, daemon, reason, 1), f"{reason} to end")
    agents = {agent.name: agent for agent in daemon.client.agents()}
    others = {reason: given_another(daemon, reason, case) for reason, case in CASES.items()}
    for reason, case in CASES.items():
        if case.held == "a while":
            daemon.client.release(reason)
            wait_until(partial(have_ended, daemon, reason, case.runs), f"{reason} to end again")
    results = {}
    for reason, case in CASES.items():
        task = ended(daemon, reason) if case.state in ENDED else in_state(daemon, reason, case.state)
        results[reason] = Seen(task, daemon.client.runs(reason), agents[reason], others[reason])
    return results


def have_ended(daemon: Daemon, ref: str, count: int) -> bool:
    """Whether so many of the task's runs have."""
    return sum(run.outcome is not None for run in daemon.client.runs(ref)) >= count


def given_another(daemon: Daemon, reason: Reason, case: Case) -> TaskView:
    """A task that asks for the same agent, once it is done, or is seen to wait."""
    task = submitted(daemon, f"{reason}-other", reason)
    if case.held is None:
        return ended(daemon, task.id)

    def waits() -> TaskView | None:
        now = daemon.client.task(task.id)
        return now if now.reason == "limited" else None

    return wait_until(waits, f"{reason} to hold its agent")


def submitted(daemon: Daemon, name: str, agent: Reason) -> TaskView:
    """A task that would succeed."""
    return daemon.client.submit(from_document(json.loads(document(name, "simulate: text=ok", agent=agent.value))))


@pytest.mark.parametrize("reason", CASES, ids=str)
def test_what_follows_from_it(seen: dict[Reason, Seen], reason: Reason) -> None:
    case, result = CASES[reason], seen[reason]
    reasons = {run.outcome.reason for run in result.runs if run.outcome is not None}
    assert reasons <= {reason}
    # What is held for a while is tried again after it, which a busy machine may have come to meanwhile.
    runs = result.runs[: case.runs] if case.held == "a while" else result.runs
    assert (result.task.state, len(runs), result.task.attempts) == (case.state, case.runs, case.attempts)
    if case.state == "FAILED":
        assert result.task.reason == reason
    assert tuple(run.tier for run in runs) == case.tiers[: case.runs]
    assert_held(result, reason, case.held)


def assert_held(seen: Seen, reason: Reason, held: HeldFor | None) -> None:
    """Whether its agent is left alone, and by whom that can be ended."""
    if held is None:
        assert (seen.agent.limited, seen.other.state) == (False, "COMPLETED")
        return
    assert (seen.other.state, seen.other.reason) == ("QUEUED", "limited")
    hold: HoldView = seen.agent.holds[0]
    assert hold.reason == reason
    if held == "an operator":
        assert (hold.until, hold.provenance) == (None, "reported")
        return
    assert hold.until is not None
    left = datetime.fromisoformat(hold.until) - datetime.fromisoformat(hold.since)
    if held == "a reset":
        outcome = seen.runs[0].outcome
        assert outcome is not None
        assert (hold.provenance, hold.until) == ("reported", outcome.reset_at)
        # The agent reckons an hour from its own look at the clock; how long after that it ends is the machine's affair.
        assert timedelta(minutes=50) < left < timedelta(hours=1, minutes=1)
    else:
        assert hold.provenance == "estimated"
        assert timedelta(0) < left < timedelta(minutes=1)


@pytest.mark.parametrize("reason", [Reason.AUTH, Reason.NO_CREDIT], ids=str)
def test_what_an_operator_has_to_mend_does_not_burn_the_queue(
    daemon: Daemon, seen: dict[Reason, Seen], reason: Reason
) -> None:
    assert seen[reason].agent.limited
    ids = {submitted(daemon, f"{reason}-{number}", reason).id for number in range(MANY)}

    def waiting() -> list[tuple[str | None, int]]:
        return [(task.reason, task.runs) for task in daemon.client.all_tasks() if task.id in ids]

    assert waiting() == [("limited", 0)] * MANY
    assert len(daemon.client.runs(reason)) == 1, "and it was met once"
    daemon.client.release(reason)
    # The first in the queue meets it again, and all of the others wait once more.
    wait_until(lambda: len(daemon.client.runs(reason)) == 2, "one more run")
    wait_until(lambda: waiting() == [("limited", 0)] * MANY, "the hold")
