"""Real agent CLIs meet a limit: the agent is held until its end, the task goes on elsewhere, and nobody asks again."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from email.utils import formatdate

import pytest

from tests.e2e.scenarios_support import ended, why
from tests.fakes import chat_api, gemini_api, messages_api, responses_api
from tests.fakes.http_api import Refusal, Text
from tests.real_clis.clis import CLAUDE, CODEX, GEMINI, OPENCODE, Cli
from tests.real_clis.place import END_S, NEXT, Place, outcome_of

MINUTE_S = 60
HOUR_S = 3600


@dataclass(frozen=True)
class Limit:
    """How a service says it. early_s, late_s: how far the hold may be off the time named; None: no time is.

    timeout: the task's, for a CLI that waits in silence and does not say until when; by itself the daemon has five
    minutes of patience with it.
    """

    cli: Cli
    refusal: Callable[[int], Refusal]
    early_s: float | None = None
    late_s: float = 0
    timeout: str | None = None
    window: str = ""


LIMITS = {
    "claude-subscription": Limit(CLAUDE, messages_api.used_up, early_s=0, window="5h window"),
    "claude-key": Limit(CLAUDE, lambda _: messages_api.throttled(HOUR_S)),
    "codex-subscription": Limit(CODEX, responses_api.used_up, early_s=0),
    "codex-key": Limit(CODEX, lambda _: responses_api.throttled()),
    # It waits as long as it is asked to, in silence; its log says so.
    "codex-asleep": Limit(
        CODEX, lambda at: responses_api.throttled(formatdate(at, usegmt=True)), early_s=0, late_s=MINUTE_S
    ),
    "gemini-day": Limit(GEMINI, lambda _: gemini_api.daily_quota_used_up(), window="daily"),
    # It says for how long it sleeps, which is the time named and up to a fifth of it.
    "gemini-asleep": Limit(
        GEMINI,
        lambda at: gemini_api.capacity_used_up(at - time.time(), "2h"),
        early_s=MINUTE_S,
        late_s=0.25 * 2 * HOUR_S,
    ),
    "gemini-key": Limit(GEMINI, lambda _: gemini_api.throttled()),
    "opencode-asleep": Limit(OPENCODE, lambda _: chat_api.throttled(HOUR_S), timeout=f"{OPENCODE.start_s}s"),
}


@pytest.mark.parametrize(
    ("cli", "limit"), [pytest.param(limit.cli, limit, id=name, marks=limit.cli.marks) for name, limit in LIMITS.items()]
)
def test_it_is_held_and_the_task_flows_on_as_the_same_attempt(place: Place, cli: Cli, limit: Limit) -> None:
    key = CLAUDE.login if limit.refusal is messages_api.used_up else cli.key
    place.configure(key=key, next_agent=True)
    resets_at_s = int(time.time()) + 2 * HOUR_S
    place.api.script(limit.refusal(resets_at_s))
    daemon = place.start(key)

    place.drop("greet", retry={"max_attempts": 1}, **({} if limit.timeout is None else {"timeout": limit.timeout}))

    task = ended(daemon, "greet", END_S)
    assert (task.state, task.agent, task.attempts) == ("COMPLETED", NEXT, 1), task
    limited, done = daemon.client.runs("greet")
    assert (limited.agent, limited.attempt, done.agent, done.attempt) == (cli.kind, 1, NEXT, 1)
    assert limited.outcome is not None
    assert (limited.outcome.status, limited.outcome.reason) == ("limited", "rate_limited")

    # Of the whole account, or of the family whose quota is used up.
    (held,) = place.agent(daemon).holds
    assert held.reason == "rate_limited"
    assert held.until is not None
    until_s = datetime.fromisoformat(held.until).timestamp()
    if limit.early_s is None:
        assert held.provenance == "estimated"
        assert time.time() < until_s < time.time() + HOUR_S
    else:
        assert held.provenance == "reported"
        assert resets_at_s - limit.early_s <= until_s <= resets_at_s + limit.late_s
    story = why(daemon, "greet")
    assert f"Run 1 on {cli.kind} met a limit" in story
    assert f" went to {NEXT}: " in story
    assert f"{cli.kind} was limited (" in story
    assert limit.window in story

    heard = place.api.heard
    place.drop("next")
    assert ended(daemon, "next", END_S).agent == NEXT
    assert place.api.heard == heard, "it was asked although it is limited"
    assert not place.running(cli.program.name)


@pytest.mark.parametrize("cli", [pytest.param(OPENCODE, id="opencode", marks=OPENCODE.marks)])
def test_a_limit_of_a_second_is_over_when_the_task_comes_back(place: Place, cli: Cli) -> None:
    place.api.script(chat_api.throttled(1))
    daemon = place.start()

    place.drop("greet", retry={"max_attempts": 1})
    first = outcome_of(daemon, "greet")
    assert (first.status, first.provenance) == ("limited", "reported")
    place.api.script(place.writes(), Text())

    task = ended(daemon, "greet", END_S)
    assert (task.state, task.attempts) == ("COMPLETED", 1)


@pytest.mark.parametrize("cli", [pytest.param(CLAUDE, id="claude", marks=CLAUDE.marks)])
def test_a_task_that_waits_goes_on_in_its_conversation_at_the_reset(place: Place, cli: Cli) -> None:
    place.configure(key=CLAUDE.login, next_agent=True)
    place.api.script(messages_api.used_up(int(time.time()) + 12))
    daemon = place.start(CLAUDE.login)

    place.drop("greet", on_limit="wait", retry={"max_attempts": 1})
    place.drop("meanwhile")
    limited = outcome_of(daemon, "greet")
    assert (limited.status, limited.provenance) == ("limited", "reported")
    assert ended(daemon, "meanwhile", END_S).agent == NEXT, "the other agent is used meanwhile"
    heard = place.api.heard
    place.api.script(Text("It is done."))

    task = ended(daemon, "greet", END_S)
    assert (task.state, task.agent, task.attempts, task.runs) == ("COMPLETED", cli.kind, 1, 2), why(daemon, "greet")
    assert place.api.heard == heard + 1, "once, at the reset"
    first, second = daemon.client.runs("greet")
    assert second.resumes == first.id
    assert second.started_at >= str(limited.reset_at)
    assert second.outcome is not None
    assert second.outcome.conversation_id == limited.conversation_id
    assert place.agent(daemon).holds == (), "the probe has answered"
