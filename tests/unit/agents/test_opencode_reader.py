"""What a run of opencode came to, beyond what was recorded."""

import json
from typing import Any, Literal

import pytest

from claudomator_py.agents.event_reader import EventReader
from claudomator_py.agents.opencode.events import OpencodeEvents
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Provenance, Reason, Tokens
from claudomator_py.domain.run import ExitRecord

NOW_MS = 1_795_293_400_000  # 2026-11-21T20:36:40Z
EndedBy = Literal["cancel", "timeout", "stall", "output_limit", "disk_full", "interrupt", "wind_down"]
REJECTED = "The user rejected permission to use this specific tool call."


def ended(exit_code: int | None = 1, ended_by: EndedBy | None = None) -> ExitRecord:
    return ExitRecord(exit_code, ended_by, NOW_MS - 60_000, NOW_MS)


def event(kind: str, at_ms: int = NOW_MS, **part: object) -> dict[str, object]:
    return {"type": kind, "timestamp": at_ms, "sessionID": "ses_1", "part": part}


def step(reason: str = "stop", **part: object) -> list[dict[str, object]]:
    tokens = {"total": 130, "input": 60, "output": 20, "reasoning": 10, "cache": {"read": 30, "write": 10}}
    part = {"reason": reason, "tokens": tokens, "cost": 0.5, **part}
    return [{**event("step_finish"), "part": part}]


def said(text: str) -> list[dict[str, object]]:
    return [event("step_start"), event("text", text=text)]


def tool(name: str, error: str | None = None) -> dict[str, object]:
    state = {"status": "completed"} if error is None else {"status": "error", "error": error}
    return event("tool_use", tool=name, state=state)


def failure(message: str, name: str = "APIError", **data: object) -> dict[str, object]:
    error = {"name": name, "data": {"message": message, **data}}
    return {"type": "error", "timestamp": NOW_MS, "sessionID": "ses_1", "error": error}


def logged(message: str, seconds: int = 41, **fields: str) -> bytes:
    more = " ".join(f"{name}={value}" for name, value in fields.items())
    return (
        f"timestamp=2026-11-21T20:36:{seconds}.000Z level=ERROR run=1 "
        f'message="stream error" {more} agent=build error.error="{message}"\n'
    ).encode()


def read(*events: Any, exit_record: ExitRecord | None = None, stderr: bytes = b"") -> Outcome:
    reader = EventReader(OpencodeEvents())
    reader.feed("stdout", b"".join(json.dumps(each).encode() + b"\n" for each in events))
    reader.feed("stderr", stderr)
    return reader.outcome(exit_record or ended(), NOW_MS)


def test_all_steps_are_counted_and_the_last_one_answers() -> None:
    outcome = read(*said("First."), tool("bash"), *step("tool-calls"), *said("Done."), *step(), exit_record=ended(0))
    assert (outcome.status, outcome.text) == (OutcomeStatus.SUCCEEDED, "Done.")
    assert outcome.tokens == Tokens(input=200, output=60)
    assert outcome.cost_usd == pytest.approx(1.0)
    assert outcome.conversation_id == "ses_1"


def test_reasoning_is_counted_once() -> None:
    apart = {"total": 60, "input": 30, "output": 20, "reasoning": 10}
    within = {"total": 50, "input": 30, "output": 20, "reasoning": 10}
    unsummed = {"input": 30, "output": 20, "reasoning": 10}
    counted = [read(*said("x"), *step(tokens=tokens)).tokens.output for tokens in (apart, within, unsummed)]
    assert counted == [30, 20, 30]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (failure("no", statusCode=401), "auth"),
        (failure("no", "ProviderAuthError"), "auth"),
        (failure("Forbidden", statusCode=403), "auth"),
        (failure("no", statusCode=529), "overloaded"),
        (failure("Temporary Redirect", statusCode=307), "network"),
        (failure("Overloaded"), "overloaded"),
        (failure("no", statusCode=429), "rate_limited"),
        (failure("You exceeded your current quota, check your billing", statusCode=429), "no_credit"),
        (failure("no", statusCode=429, responseBody='{"code": "insufficient_quota"}'), "no_credit"),
        (failure("You exceeded your current quota. Quota metric: free_tier", statusCode=429), "rate_limited"),
        (failure("Your credit balance is too low", statusCode=400), "no_credit"),
        (failure("prompt is too long", statusCode=400), "context_too_long"),
        (failure("too long", "ContextOverflowError"), "context_too_long"),
        (failure("The model `nope` does not exist", statusCode=404), "invalid_model"),
        (failure("Unable to connect. Is the computer able to access the url?"), "network"),
        (failure("aborted", "MessageAbortedError"), "interrupted"),
        (failure("what?", "UnknownError"), "agent_error"),
    ],
)
def test_an_error_is_read_by_name_words_and_status(error: object, reason: str) -> None:
    assert read(error).reason == reason


@pytest.mark.parametrize(
    ("headers", "reset_at"),
    [
        ({"retry-after": "3600"}, NOW_MS + 3_600_000),
        ({"retry-after-ms": "250", "retry-after": "1"}, NOW_MS + 250),
        ({"retry-after": "Sat, 21 Nov 2026 22:36:40 GMT"}, NOW_MS + 7_200_000),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_a_limit_resets_when_the_service_says(headers: dict[str, str], reset_at: int | None) -> None:
    outcome = read(failure("Rate limit reached", statusCode=429, responseHeaders=headers))
    assert (outcome.status, outcome.reset_at) == (OutcomeStatus.LIMITED, reset_at)
    assert outcome.provenance is (Provenance.ESTIMATED if reset_at is None else Provenance.REPORTED)


def test_what_is_quoted_is_no_failure() -> None:
    quote = "Rate limit reached for requests, error: 429"
    outcome = read(*said(quote), *step(), exit_record=ended(0))
    assert (outcome.status, outcome.text) == (OutcomeStatus.SUCCEEDED, quote)


def test_a_rejected_tool_ends_the_run_and_is_no_success() -> None:
    outcome = read(event("step_start"), tool("bash", REJECTED), *step("tool-calls"), exit_record=ended(0))
    assert outcome.reason is Reason.PERMISSION_DENIED
    assert (outcome.detail or "").startswith("1 tool call was denied: bash.")


def test_a_tool_that_failed_is_not_one_that_was_rejected() -> None:
    outcome = read(tool("bash", "exit 1"), *step("tool-calls"), *said("It failed."), *step(), exit_record=ended(0))
    assert (outcome.status, outcome.detail) == (OutcomeStatus.SUCCEEDED, None)


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("length", "unfinished"), ("content-filter", "refused"), ("tool-calls", "agent_error"), ("?", "unfinished")],
)
def test_another_end_than_a_stop_is_no_success(finish: str, reason: str) -> None:
    assert read(*said("x"), *step(finish), exit_record=ended(0)).reason == reason


def test_an_error_after_the_answer_counts_and_one_before_does_not() -> None:
    trouble = failure("no", statusCode=503)
    assert read(*said("x"), *step(), trouble).reason is Reason.OVERLOADED
    assert read(trouble, *said("x"), *step()).status is OutcomeStatus.SUCCEEDED


@pytest.mark.parametrize("ended_by", ["stall", "timeout", "cancel", None])
def test_a_limit_that_only_its_log_tells_of(ended_by: EndedBy | None) -> None:
    stderr = logged("AI_APICallError: Rate limit reached for requests")
    outcome = read(event("step_start"), exit_record=ended(-15, ended_by), stderr=stderr)
    assert (outcome.status, outcome.reason) == (OutcomeStatus.LIMITED, Reason.RATE_LIMITED)
    assert (outcome.reset_at, outcome.provenance) == (None, Provenance.ESTIMATED)


@pytest.mark.parametrize(
    "stderr",
    [
        logged("AI_APICallError: Rate limit reached", seconds=39),
        logged("AI_APICallError: Rate limit reached", small="true"),
        b"Rate limit reached\n",
    ],
)
def test_what_its_log_says_of_the_past_or_of_something_else_is_no_limit(stderr: bytes) -> None:
    assert read(event("step_start"), exit_record=ended(-15, "stall"), stderr=stderr).reason is Reason.STALLED


def test_a_limit_is_seen_while_it_lasts() -> None:
    reader = EventReader(OpencodeEvents())
    reader.feed("stderr", logged("AI_APICallError: Rate limit reached"))
    assert (reader.stuck_since, reader.stuck_until) == (NOW_MS + 1_000, None)
    reader.feed("stdout", json.dumps(event("step_start", at_ms=NOW_MS + 5_000)).encode() + b"\n")
    assert reader.stuck_since is None, "it goes on"


@pytest.mark.parametrize(
    ("ended_by", "reason"),
    [("stall", "overloaded"), ("timeout", "overloaded"), ("cancel", "overloaded"), ("interrupt", "interrupted")],
)
def test_a_service_in_trouble_that_it_asked_for_too_long(ended_by: EndedBy, reason: str) -> None:
    stderr = logged("AI_APICallError: overloaded")
    assert read(exit_record=ended(-15, ended_by), stderr=stderr).reason == reason


def test_a_wait_for_a_service_counts_from_the_first_refusal_since_the_last_event() -> None:
    reader = EventReader(OpencodeEvents())
    for seconds in (38, 41, 45):
        reader.feed("stderr", logged("AI_APICallError: overloaded", seconds=seconds))
        reader.feed("stdout", json.dumps(event("step_start")).encode() + b"\n")
    assert (reader.stuck_since, reader.stuck_until) == (NOW_MS + 1_000, None)
    reader.feed("stdout", json.dumps(event("step_start", at_ms=NOW_MS + 9_000)).encode() + b"\n")
    assert reader.stuck_since is None, "it goes on"


def broken_off(*within: dict[str, object], at_ms: int = NOW_MS) -> list[dict[str, object]]:
    nothing = {"input": 0, "output": 0, "reasoning": 0, "cache": {"write": 0, "read": 0}}
    return [event("step_start", at_ms), *within, event("step_finish", at_ms, reason="unknown", tokens=nothing, cost=0)]


@pytest.mark.parametrize("ended_by", ["stall", "timeout", "cancel"])
@pytest.mark.parametrize("within", [(), (event("text", text="First I"),), (tool("invalid"),)])
def test_answers_that_are_all_broken_off_are_an_outage(
    ended_by: EndedBy, within: tuple[dict[str, object], ...]
) -> None:
    reader = EventReader(OpencodeEvents())
    for number in range(2):
        lines = b"".join(json.dumps(each).encode() + b"\n" for each in broken_off(*within, at_ms=NOW_MS + number))
        reader.feed("stdout", lines)
        assert reader.stuck_since is None, "it may be an accident"
    reader.feed("stdout", b"".join(json.dumps(each).encode() + b"\n" for each in broken_off(*within, at_ms=NOW_MS + 9)))
    assert reader.stuck_since == NOW_MS
    outcome = reader.outcome(ended(-15, ended_by), NOW_MS)
    assert outcome.reason is Reason.NETWORK
    assert outcome.detail == "the last 3 answers of the model's service were broken off"


@pytest.mark.parametrize("between", [broken_off(tool("bash"), tool("invalid")), [*said("x"), *step()]])
def test_broken_answers_with_work_between_them_are_no_outage(between: list[dict[str, object]]) -> None:
    record = ended(-15, "timeout")
    outcome = read(*broken_off(), *broken_off(), *between, *broken_off(), *broken_off(), exit_record=record)
    assert outcome.reason is Reason.TIMEOUT


def test_an_error_that_refers_to_the_log_is_explained_by_it() -> None:
    vague = failure("Unexpected server error. Check server logs for details.", "UnknownError")
    outcome = read(vague, stderr=logged("ProviderModelNotFoundError: Model not found: mock/nope."))
    assert outcome.reason is Reason.INVALID_MODEL
    assert outcome.detail == "ProviderModelNotFoundError: Model not found: mock/nope."


def test_a_start_that_failed_is_told_in_its_words() -> None:
    outcome = read(stderr=b"\x1b[91m\x1b[1mError: \x1b[0mSession not found\n")
    assert (outcome.reason, outcome.detail) == (Reason.BAD_INVOCATION, "Session not found")
    outcome = read(stderr=b"\x1b[91m\x1b[1mError: \x1b[0mUnexpected error\n\ndatabase is locked\n\n")
    assert (outcome.reason, outcome.detail) == (Reason.AGENT_ERROR, "Unexpected error: database is locked")


LATER = logged("AI_APICallError: Rate limit reached").replace(b"agent=", b"session.id=ses_1 agent=")
OTHERS = LATER.replace(b"ses_1", b"ses_2")


def test_the_log_of_another_opencode_that_a_tool_has_started_is_not_its_own() -> None:
    assert read(event("step_start"), exit_record=ended(-15, "stall"), stderr=LATER).status is OutcomeStatus.LIMITED
    assert read(event("step_start"), exit_record=ended(-15, "stall"), stderr=OTHERS).reason is Reason.STALLED
    assert read(event("step_start"), stderr=OTHERS).reason is Reason.AGENT_ERROR
    assert read(exit_record=ended(-15, "stall"), stderr=OTHERS).status is OutcomeStatus.LIMITED, "no tool has run yet"


def test_only_a_refused_request_is_a_limit_that_it_waits_out() -> None:
    other = LATER.replace(b'"stream error"', b'"tool failed"')
    assert read(event("step_start"), exit_record=ended(-15, "stall"), stderr=other).reason is Reason.STALLED
    within = b"> " + LATER
    assert read(event("step_start"), exit_record=ended(-15, "stall"), stderr=within).reason is Reason.STALLED


def test_once_there_are_events_only_the_last_word_of_its_log_says_what_went_wrong() -> None:
    stderr = b"Error: Rate limit reached, 429 Too Many Requests\n"
    assert read(event("step_start"), stderr=stderr).reason is Reason.AGENT_ERROR
    assert read(stderr=stderr).reason is Reason.RATE_LIMITED
    assert read(event("step_start"), stderr=LATER).reason is Reason.RATE_LIMITED
    assert read(event("step_start", at_ms=NOW_MS + 5_000), stderr=LATER).reason is Reason.AGENT_ERROR


@pytest.mark.parametrize(
    ("events", "stderr"),
    [
        ([failure("Model not found: anthropic/nope. Did you mean: claude?", "UnknownError")], b""),
        ([failure("no words", "ProviderModelNotFoundError")], b""),
        ([], b"\x1b[91m\x1b[1mError: \x1b[0mModel not found: anthropic/nope\n"),
        ([], b"Model not found: anthropic/nope\n"),
        ([], b'ProviderModelNotFoundError: ProviderModelNotFoundError\n data: {\n  providerID: "a",\n'),
    ],
)
def test_a_model_that_is_not_known_is_told_although_it_exits_with_0(events: list[Any], stderr: bytes) -> None:
    assert read(*events, exit_record=ended(0), stderr=stderr).reason is Reason.INVALID_MODEL


def test_a_summary_of_a_conversation_that_was_too_long_ends_no_run() -> None:
    """It asks again with the summary, and summarises again if that is too long as well, without end."""
    overflow, note = failure("maximum context length", "ContextOverflowError"), event("text", text="It was compacted.")
    summary = [*said("What was done so far."), *step()]
    for before in ([overflow], [overflow, *summary, note, overflow]):
        assert read(*before, *summary, exit_record=ended(-15, "timeout")).reason is Reason.TIMEOUT
        assert read(*before, *summary, note, exit_record=ended(-15, "timeout")).reason is Reason.TIMEOUT
        assert (
            read(*before, *summary, note, overflow, exit_record=ended(-15, "timeout")).reason is Reason.CONTEXT_TOO_LONG
        )
        done = read(*before, *summary, note, *said("Done."), *step(), exit_record=ended(-15, "wind_down"))
        assert (done.status, done.text) == (OutcomeStatus.SUCCEEDED, "Done.")


def test_a_gateway_that_fails_is_an_outage_also_in_words_alone() -> None:
    late = ended(-15, "timeout")
    for words in ("Bad Gateway", "Service Unavailable", "Gateway Time-out"):
        assert read(stderr=logged(f"AI_APICallError: {words}"), exit_record=late).reason is Reason.OVERLOADED


def test_silence_with_0_says_nothing_of_why() -> None:
    stderr = b"timestamp=1 level=INFO message=credentials\n"
    assert read(exit_record=ended(0), stderr=stderr).reason is Reason.AGENT_ERROR
