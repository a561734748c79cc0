"""What a run over ACP has used where its agent tells it in a file of its session alone, and budgets on it."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.outcome import OutcomeStatus, Tokens
from claudomator_py.domain.report import unmeasured
from tests.fakes.acp import SESSION
from tests.unit.agents.acp_runs import Ran, Runs, task


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path, program="cline")


def ran(runs: Runs, text: str | None, age_s: float = -30.0, session: str = SESSION, **request: Any) -> Ran:
    """A run whose agent has written that of its session, so long ago."""
    if text is not None:
        file = runs.place / f".cline/data/sessions/{SESSION}/{SESSION}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        os.utime(file, (time.time() - age_s, time.time() - age_s))
    new = {"result": {"sessionId": session}}
    return runs.run({"answers": {"session/new": new}}, **request)


def told(used: object, made: object) -> str:
    return json.dumps({"metadata": {"aggregateUsage": {"inputTokens": used, "outputTokens": made}}})


def test_the_sums_of_a_session_are_read_from_its_file(runs: Runs) -> None:
    assert ran(runs, told(1200, 25)).outcome.tokens == Tokens(input=1200, output=25)


def test_a_session_that_goes_on_counts_what_is_new(runs: Runs) -> None:
    prior = Tokens(input=1000, output=20)
    again = ran(runs, told(1200, 25), resume=True, conversation=SESSION, prior_tokens=prior)
    assert again.outcome.tokens == Tokens(input=200, output=5)


def test_the_usage_of_a_turn_may_be_in_the_metadata_of_its_result(tmp_path: Path) -> None:
    usage = {"inputTokens": 1200, "outputTokens": 25, "totalTokens": 1225}
    outcome = (
        Runs(tmp_path, program="grok").run({"turn": [{"say": "Done."}, {"end": {"_meta": {"usage": usage}}}]}).outcome
    )
    assert (outcome.status, outcome.tokens) == (OutcomeStatus.SUCCEEDED, Tokens(input=1200, output=25))


def test_the_usage_of_each_call_may_be_in_an_update_and_again_in_other_words(tmp_path: Path) -> None:
    words = ({"inputTokens": 7, "outputTokens": 2}, {"prompt_tokens": 7, "completion_tokens": 2})
    call = [{"update": {"sessionUpdate": "usage_update", "used": 9, "_meta": {"usage": usage}}} for usage in words]
    outcome = Runs(tmp_path, program="codebuddy").run({"turn": [*call, {"say": "Done."}, *call, {"end": {}}]}).outcome
    assert (outcome.status, outcome.tokens) == (OutcomeStatus.SUCCEEDED, Tokens(input=14, output=4))


@pytest.mark.parametrize(
    "text",
    [None, "", "[]", "{", told(-1, 2), told(True, 2), told("12", 3), told(None, 3), told(1.5, 2), "x" * 2_000_000],
)
def test_what_is_not_known_stays_so(runs: Runs, text: str | None) -> None:
    outcome = ran(runs, text).outcome
    assert (outcome.status, outcome.tokens) == (OutcomeStatus.SUCCEEDED, Tokens())


def test_what_an_earlier_run_wrote_is_not_of_this_one(runs: Runs) -> None:
    assert ran(runs, told(1200, 25), age_s=60).outcome.tokens == Tokens()


@pytest.mark.parametrize("session", ["../session-1", "session-1/../session-1", "/etc", "", "."])
def test_an_id_names_no_other_file(runs: Runs, session: str) -> None:
    assert ran(runs, told(1200, 25), session=session).outcome.tokens == Tokens()


@pytest.mark.parametrize(
    ("program", "budget", "refused"),
    [
        ("kimi", {"tokens": 1000}, False),
        ("pi-acp", {"tokens": 1000}, False),
        ("fast-agent-acp", {"tokens": 1000}, True),
        ("opencode", {"tokens": 1000}, True),
        ("nobody-knows-it", {"tokens": 1000}, True),
        ("nobody-knows-it", {"usd": 1.0}, True),
        ("vibe-acp", {"usd": 1.0}, True),
        ("opencode", {"usd": 1.0}, False),
        ("cline", {"tokens": 1000}, False),
        ("gemini", {"tokens": 1000}, False),
        ("vibe-acp", {"tokens": 1000}, False),
        ("claude-agent-acp", {"usd": 1.0, "tokens": 1000}, False),
    ],
)
def test_a_budget_on_what_is_not_told_is_refused(program: str, budget: dict[str, float], *, refused: bool) -> None:
    agent = AgentSpec(name="an-agent", kind="acp", command=(program,))
    assert bool(unmeasured(task(budget=budget), agent)) is refused
