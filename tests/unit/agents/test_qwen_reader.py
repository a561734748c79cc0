"""What Qwen Code's events mean, where recordings do not show it."""

import json
from typing import Any

import pytest

from claudomator_py.agents.event_reader import EventReader
from claudomator_py.agents.qwen.events import QwenEvents
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason, Tokens
from claudomator_py.domain.run import ExitRecord

NOW_MS = 1_795_293_600_000
REFUSED = "[API Error: 429 Rate limit reached. Please try again in 20m3s.]\nPossible quota limitations in place."


def message(text: str, used: int = 0) -> dict[str, Any]:
    usage = {"input_tokens": used, "output_tokens": used}
    return {"type": "assistant", "message": {"content": [{"type": "text", "text": text}], "usage": usage}}


def result(text: str, used: int = 0) -> dict[str, Any]:
    usage = {"input_tokens": used, "output_tokens": used}
    return {"type": "result", "subtype": "success", "is_error": False, "result": text, "usage": usage}


def read(*events: object, exit_code: int = 0, stderr: bytes = b"", **known: Any) -> Outcome:
    reader = EventReader(QwenEvents(**known))
    for event in events:
        reader.feed("stdout", json.dumps(event).encode() + b"\n")
    reader.feed("stderr", stderr)
    return reader.outcome(ExitRecord(exit_code, None, NOW_MS - 1000, NOW_MS), NOW_MS)


def test_a_failed_request_is_no_success_although_it_says_so() -> None:
    outcome = read(message(REFUSED), result(REFUSED))
    assert (outcome.status, outcome.reason, outcome.text) == (OutcomeStatus.LIMITED, Reason.RATE_LIMITED, None)
    assert outcome.reset_at == NOW_MS + 1_203_000


def test_an_answer_that_quotes_a_failed_request_is_an_answer() -> None:
    outcome = read(message(REFUSED, used=9), result(REFUSED, used=9))
    assert (outcome.status, outcome.text) == (OutcomeStatus.SUCCEEDED, REFUSED)


def test_that_the_service_answered_with_nothing_is_no_answer_although_tokens_were_counted_for_it() -> None:
    empty = "[API Error: Model stream ended with empty response text.]"
    outcome = read(message(empty, used=25), result(empty, used=75))
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.NO_ANSWER)
    quoted = f"The log says: {empty}"
    assert read(message(quoted, used=25), result(quoted, used=75)).status is OutcomeStatus.SUCCEEDED


def test_a_failed_request_that_it_got_over_does_not_count() -> None:
    outcome = read(message(REFUSED), message("Done.", used=9), result("Done.", used=9))
    assert (outcome.status, outcome.text) == (OutcomeStatus.SUCCEEDED, "Done.")


def test_what_was_said_before_the_connection_broke_off_does_not_hide_that() -> None:
    text = "I look at [API Error: 401 it] first. [API Error: terminated (cause: other side closed)]"
    outcome = read(message(text), result(text))
    assert (outcome.reason, outcome.detail) == (Reason.NETWORK, "terminated (cause: other side closed)")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("403 <!DOCTYPE html><html><title>Hotel Wi-Fi login</title></html>", Reason.NETWORK),
        ("403 Forbidden", Reason.AUTH),
        (
            "Streaming request received a non-SSE response (HTTP 200). Body prefix: <!DOCTYPE html>Wi-Fi login</html>",
            Reason.NETWORK,
        ),
        ("Model stream ended without a finish reason.", Reason.NETWORK),
        ("Model request exceeds the endpoint request-body limit (HTTP 413)", Reason.CONTEXT_TOO_LONG),
    ],
)
def test_what_answered_instead_of_the_service(text: str, reason: Reason) -> None:
    assert read(message(f"[API Error: {text}]"), result(f"[API Error: {text}]"), exit_code=1).reason is reason


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        ("[API Error: Quota exceeded for quota metric 'Requests per day']", "limited", Reason.RATE_LIMITED),
        ("Qwen OAuth quota exceeded: Your free daily quota has been reached.", "limited", Reason.RATE_LIMITED),
        ("Qwen OAuth free tier has been discontinued as of 2026-04-15.", "failed", Reason.AUTH),
    ],
)
def test_its_own_account(text: str, status: str, reason: Reason) -> None:
    outcome = read(message(text), result(text))
    assert (outcome.status, outcome.reason) == (status, reason)


def test_tokens_of_a_conversation_that_goes_on_are_its_own_share() -> None:
    events = (message("Done.", used=9), result("Done.", used=30))
    assert read(*events, resumed=True, prior=Tokens(input=20, output=20)).tokens == Tokens(input=10, output=10)
    assert read(*events, resumed=True, prior=None).tokens == Tokens(input=9, output=9)


def test_once_a_tool_was_called_stderr_is_not_believed() -> None:
    call = {"type": "tool_use", "id": "1", "name": "run_shell_command", "input": {}}
    events = [message("Going on.", used=9), {"type": "assistant", "message": {"content": [call]}}]
    outcome = read(*events, exit_code=1, stderr=b"Rate limit reached\n")
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.AGENT_ERROR)
    assert read(*events[:1], exit_code=1, stderr=b"Rate limit reached\n").status is OutcomeStatus.LIMITED


def test_a_warning_is_not_why_it_ended() -> None:
    stderr = b"Warning: running headless without a sandbox.\nAn unexpected critical error occurred:\nError: EROFS: x\n"
    outcome = read(exit_code=1, stderr=stderr)
    assert (outcome.reason, outcome.detail) == (Reason.SETUP_FAILED, "Error: EROFS: x")


def test_a_login_that_is_missing_is_one_although_it_exits_as_for_its_settings() -> None:
    stderr = b"Please set an Auth method in your settings.json\n"
    assert read(exit_code=52, stderr=stderr).reason is Reason.AUTH


def test_a_limit_that_is_waited_out_a_minute_at_a_time() -> None:
    again = {"attempt": 1, "maxRetries": 10, "delayMs": 60_000}
    retry = {"type": "system", "subtype": "retry", "session_id": "s", "data": again}
    words = b"Retrying in 60s (attempt 1/10): [API Error: 429 Rate limit reached, try again in 3h]\n"

    def killed(*events: object, stderr: bytes = b"") -> Outcome:
        reader = EventReader(QwenEvents())
        for event in events:
            reader.feed("stdout", json.dumps(event).encode() + b"\n")
        reader.feed("stderr", stderr)
        return reader.outcome(ExitRecord(-9, "stall", NOW_MS - 1_000, NOW_MS), NOW_MS)

    waits = killed(retry, stderr=words)
    assert (waits.status, waits.reset_at) == (OutcomeStatus.LIMITED, None)
    assert "429" in str(waits.detail)
    assert killed(stderr=words).reason is Reason.STALLED, "a tool may print such words"
    assert killed(retry).reason is Reason.STALLED
    assert killed(retry, message("It went on.", 1), stderr=words).reason is Reason.STALLED


def retried(**data: object) -> dict[str, Any]:
    return {"type": "system", "subtype": "retry", "data": {"reason": "retry", "discardedToolCalls": 0, **data}}


def test_an_answer_that_it_has_continued_as_often_as_it_does_is_cut_off() -> None:
    anew, goes_on = retried(preserveText=False), retried(preserveText=True)
    ends = [message("Half. Half.", used=9), result("Half. Half.", used=9)]
    outcome = read(message("Half.", used=9), anew, *[goes_on] * 3, *ends)
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.UNFINISHED)
    assert read(message("Half.", used=9), anew, *[goes_on] * 2, *ends).status is OutcomeStatus.SUCCEEDED
    assert read(*[goes_on] * 3, *ends).status is OutcomeStatus.SUCCEEDED, "a connection that broke off"


def test_an_answer_that_was_continued_before_a_tool_ran_says_nothing_of_the_next() -> None:
    call = {"type": "tool_use", "id": "c", "name": "run_shell_command", "input": {"command": "true"}}
    used = {"type": "assistant", "message": {"content": [call], "usage": {"input_tokens": 9, "output_tokens": 9}}}
    done = {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "c", "content": ""}]}}
    retries = [retried(preserveText=False), *[retried(preserveText=True)] * 3]
    assert read(*retries, used, done, message("Done.", used=9), result("Done.", used=9)).text == "Done."
