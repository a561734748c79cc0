"""What the process of a hub agent's run prints: what each event says, and what the run came to."""

import json
from typing import Any

import pytest

from claudomator_py.agents.hub.kind import KIND
from claudomator_py.domain.outcome import OutcomeStatus, Reason
from claudomator_py.domain.run import ExitRecord

NOW_MS = 1_795_293_400_000


def read(*events: dict[str, Any]) -> Any:
    """The reader, with these events read."""
    reader = KIND.reader()
    for event in events:
        reader.feed("stdout", json.dumps(event).encode() + b"\n")
    return reader


def outcome(*events: dict[str, Any], code: int = 1) -> Any:
    return read(*events).outcome(ExitRecord(code, None, NOW_MS - 1_000, NOW_MS, None), NOW_MS)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"type": "accepted", "agent": "shepherd"}, "accepted by shepherd"),
        ({"type": "waking"}, "the agent is not connected, and is being woken"),
        ({"type": "progress", "text": "seven so far", "percent": 12.5}, "12%: seven so far"),
        ({"type": "progress", "text": "seven so far"}, "seven so far"),
        ({"type": "progress", "percent": 100}, "100%"),
        ({"type": "end", "outcome": "completed", "text": "42 sheep"}, "42 sheep"),
        ({"type": "end", "outcome": "lost", "error": "away"}, "away"),
    ],
)
def test_an_event_says_something_to_people(event: dict[str, Any], words: str) -> None:
    texts = [part.text for part in KIND.events(None).take(event)]

    assert texts == [words]


@pytest.mark.parametrize(
    ("end", "status", "reason"),
    [
        ({"outcome": "completed", "text": "42 sheep"}, OutcomeStatus.SUCCEEDED, None),
        ({"outcome": "failed", "text": "no", "reason": "refused"}, OutcomeStatus.FAILED, Reason.REFUSED),
        ({"outcome": "failed", "text": "no"}, OutcomeStatus.FAILED, Reason.AGENT_ERROR),
        ({"outcome": "failed", "text": "no", "reason": "my own"}, OutcomeStatus.FAILED, Reason.AGENT_ERROR),
        # What is said of accounts, people and this machine is not an agent's to say.
        ({"outcome": "failed", "text": "no", "reason": "cancelled"}, OutcomeStatus.FAILED, Reason.AGENT_ERROR),
        ({"outcome": "failed", "text": "no", "reason": "rate_limited"}, OutcomeStatus.LIMITED, Reason.RATE_LIMITED),
        ({"outcome": "lost", "error": "away"}, OutcomeStatus.LOST, Reason.LOST),
        ({"outcome": "unreachable", "error": "away"}, OutcomeStatus.FAILED, Reason.UNREACHABLE),
        ({"outcome": "not_running", "error": "start it"}, OutcomeStatus.FAILED, Reason.NOT_RUNNING),
    ],
)
def test_a_run_ends_as_the_hub_or_the_agent_says(
    end: dict[str, Any], status: OutcomeStatus, reason: Reason | None
) -> None:
    result = outcome({"type": "accepted"}, {"type": "end", **end}, code=0 if reason is None else 1)

    assert (result.status, result.reason) == (status, reason)
    assert (result.text or result.detail) == (end.get("text") or end.get("error"))


def test_a_process_that_ends_without_a_word_is_a_fault_of_ours() -> None:
    result = outcome({"type": "accepted"})

    assert (result.status, result.reason) == (OutcomeStatus.FAILED, Reason.AGENT_ERROR)
