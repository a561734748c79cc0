"""What a run of Codex came to, beyond what was recorded."""

import json
from typing import Any

import pytest

from claudomator_py.agents.codex.events import CodexEvents
from claudomator_py.agents.codex.kind import Codex
from claudomator_py.agents.event_reader import EventReader
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Provenance, Reason, Tokens
from claudomator_py.domain.run import EndedBy, ExitRecord, LaunchRequest
from claudomator_py.domain.task import TaskSpec

NOW_MS = 1_795_293_400_000  # 2026-11-21T20:36:40Z
HOUR_MS = 3_600_000
BEGUN = ({"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"})


def ended(exit_code: int | None = 1) -> ExitRecord:
    return ExitRecord(exit_code, None, NOW_MS - 60_000, NOW_MS)


def said(text: str) -> dict[str, object]:
    return {"type": "item.completed", "item": {"type": "agent_message", "text": text}}


def completed(tokens: int = 1200, output: int = 25) -> dict[str, object]:
    usage = {"input_tokens": tokens, "cached_input_tokens": 200, "output_tokens": output, "reasoning_output_tokens": 5}
    return {"type": "turn.completed", "usage": usage}


def failed(message: str) -> dict[str, object]:
    return {"type": "turn.failed", "error": {"message": message}}


def read(*events: Any, exit_record: ExitRecord | None = None, stderr: bytes = b"", **reader: Any) -> Outcome:
    codex = EventReader(CodexEvents(**reader))
    codex.feed("stdout", b"".join(json.dumps(event).encode() + b"\n" for event in (*BEGUN, *events)))
    codex.feed("stderr", stderr)
    return codex.outcome(exit_record or ended(), NOW_MS)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("You\u2019ve hit your usage limit. Upgrade to Pro or try again later.", "rate_limited"),
        ("You've reached your 5 hour message limit. Try again in 3h 42m.", "rate_limited"),
        ("exceeded retry limit, last status: 429 Too Many Requests, request id: 503", "rate_limited"),
        ("exceeded retry limit, last status: 503 Service Unavailable", "overloaded"),
        ("unexpected status 502 Bad Gateway: , url: http://127.0.0.1:429/v1/responses", "overloaded"),
        ("Selected model is at capacity. Please try a different model.", "overloaded"),
        (
            "stream disconnected before completion: Incomplete response returned, reason: max_output_tokens",
            "unfinished",
        ),
        ("Quota exceeded. Check your plan and billing details.", "no_credit"),
        ("Your workspace is out of credits. Add credits to continue.", "no_credit"),
        ("You hit your spend cap set in your workspace. Increase your spend cap to continue.", "no_credit"),
        ("unexpected status 403 Forbidden: no", "auth"),
        ("unexpected status 403 Forbidden: <!DOCTYPE html><html><title>Wi-Fi: please log in</title></html>", "network"),
        ("unexpected status 502 Bad Gateway: <html>Rate limit of requests</html>, url: http://x/v1", "overloaded"),
        ("Your access token could not be refreshed. Please log out and sign in again.", "auth"),
        ("The 'gpt-nope' model is not supported when using Codex with a ChatGPT account.", "invalid_model"),
        ("Codex ran out of room in the model's context window.", "context_too_long"),
        ("Invalid prompt: we've limited access to this content for safety reasons.", "refused"),
        ("stream disconnected before completion: idle timeout waiting for SSE", "network"),
        ("something entirely new", "agent_error"),
    ],
)
def test_a_failure_is_read_by_its_words(message: str, reason: str) -> None:
    assert read(failed(message)).reason == reason


@pytest.mark.parametrize(
    ("words", "zone", "reset_at"),
    [
        ("try again at 9:36 PM.", "UTC", NOW_MS + HOUR_MS - 40_000),
        ("try again at 4:36 PM.", "America/New_York", NOW_MS + HOUR_MS - 40_000),
        ("try again at 8:35 PM.", "UTC", NOW_MS + 24 * HOUR_MS - 100_000),
        ("try again at Nov 24th, 2026 8:36 PM.", "UTC", NOW_MS + 72 * HOUR_MS - 40_000),
        ("try again in 3 days 4 hours 2 minutes.", None, NOW_MS + 76 * HOUR_MS + 120_000),
        ("Please try again in 1.5s.", None, NOW_MS + 1_500),
    ],
)
def test_when_a_limit_resets(words: str, zone: str | None, reset_at: int) -> None:
    outcome = read(failed(f"You\u2019ve hit your usage limit. Upgrade to Pro, or {words}"), zone=zone)
    assert (outcome.status, outcome.provenance) == (OutcomeStatus.LIMITED, Provenance.REPORTED)
    assert outcome.reset_at == reset_at


def answered(status: int, **headers: str) -> bytes:
    text = ", ".join(f'"x-codex-{name.replace("_", "-")}": "{value}"' for name, value in headers.items())
    line = f"DEBUG codex_http_client::client: Request completed method=POST url=http://x/v1/responses status={status} ?"
    return f'2026-11-22T05:06:11Z {line} headers={{"date": "x", {text}}} version=HTTP/1.1\n'.encode()


PRIMARY = {"primary_used_percent": "100.0", "primary_reset_at": "1795331212"}
SECONDARY = {"secondary_used_percent": "100.0", "secondary_reset_at": "1795431212"}
IN_WORDS = "You\u2019ve hit your usage limit. Upgrade to Pro, or try again later."


@pytest.mark.parametrize(
    ("lines", "reset_at"),
    [
        ([answered(429, **PRIMARY)], 1795331212_000),
        ([answered(429, **PRIMARY, **SECONDARY)], 1795431212_000),
        ([answered(429, **PRIMARY, **{**SECONDARY, "secondary_used_percent": "40"})], 1795331212_000),
        ([answered(429, **PRIMARY), answered(200)], 1795331212_000),
        ([answered(429, **PRIMARY), answered(429)], None),
        ([answered(429, **{**PRIMARY, "primary_used_percent": "99.9"})], None),
        ([answered(429, primary_used_percent="100", primary_reset_at="soon")], None),
    ],
)
def test_the_log_of_a_refused_request_says_to_the_second_when_a_limit_resets(
    lines: list[bytes], reset_at: int | None
) -> None:
    outcome = read(failed(IN_WORDS), stderr=b"".join(lines))
    assert (outcome.status, outcome.reset_at) == ("limited", reset_at)
    exact = read(failed(f"{IN_WORDS[:-6]}at 7:06 AM."), stderr=lines[0])
    assert exact.reset_at is not None


def test_a_refused_request_is_no_limit_by_itself() -> None:
    assert read(failed("stream disconnected"), stderr=answered(429, **PRIMARY)).status == "failed"
    assert read(said("Done."), completed(), stderr=answered(429, **PRIMARY)).status == "succeeded"


def test_a_limit_of_one_model_is_named() -> None:
    outcome = read(failed("You\u2019ve hit your usage limit for gpt-6.1-sol. Switch to another model now."))
    assert (outcome.limit, outcome.provenance) == ("gpt-6.1-sol", Provenance.ESTIMATED)
    assert (outcome.family, outcome.model) == ("gpt-6.1-sol", "gpt-6.1-sol")


def test_a_limit_of_one_model_may_be_named_before_it() -> None:
    assert read(failed("You've hit your GPT-5.3-Codex-Spark limit.")).family == "gpt-5.3-codex-spark"
    assert read(failed("You've hit your 5-hour limit.")).family is None


def test_a_limit_of_one_model_is_told_with_its_reset() -> None:
    text = "You've hit your usage limit for GPT-5.3-Codex-Spark. Switch to another model now, or try again at {}."
    outcome = read(failed(text.format("Dec 2nd, 2026 10:40 AM")))
    assert (outcome.status, outcome.family) == ("limited", "gpt-5.3-codex-spark")
    assert outcome.provenance is Provenance.REPORTED


@pytest.mark.parametrize(
    "message",
    [
        "You've hit your usage limit. Upgrade to Pro, or try again at 5:38 PM.",
        "You've hit your usage limit for today. Try again in 2 hours.",
        "You've hit your usage limit for this week.",
    ],
)
def test_a_limit_that_names_no_model_is_for_all(message: str) -> None:
    outcome = read(failed(message))
    assert (outcome.status, outcome.limit, outcome.family) == ("limited", None, None)


def test_the_zone_is_that_of_the_run() -> None:
    task = TaskSpec(name="t", instructions="x", env={"TZ": "Asia/Tokyo"})
    agent = AgentSpec(name="codex", kind="codex", env={"TZ": "UTC"})
    reader = Codex().reader(LaunchRequest("run", agent, task, "x", None, "t"))
    reader.feed("stdout", json.dumps(failed("usage limit, try again at 6:36 AM.")).encode())
    assert reader.outcome(ended(), NOW_MS).reset_at == NOW_MS + HOUR_MS - 40_000


def test_a_resumed_thread_counts_its_own_share() -> None:
    outcome = read(completed(3600, 75), prior=Tokens(input=2400, output=50))
    assert outcome.tokens == Tokens(input=1200, output=25)


@pytest.mark.parametrize(
    ("prior", "tokens"),
    [(Tokens(), Tokens()), (Tokens(input=1200, output=25), Tokens(input=1200, output=25))],
)
def test_what_was_used_before_comes_with_the_request(prior: Tokens, tokens: Tokens) -> None:
    task, agent = TaskSpec(name="t", instructions="x"), AgentSpec(name="codex", kind="codex")
    request = LaunchRequest("run", agent, task, "x", None, "t", resume=True, prior_tokens=prior)
    reader = Codex().reader(request)
    reader.feed("stdout", json.dumps(completed(2400, 50)).encode())
    assert reader.outcome(ended(0), NOW_MS).tokens == tokens


def test_what_is_quoted_is_no_failure() -> None:
    quote = "You\u2019ve hit your usage limit. try again at 5:38 PM."
    outcome = read(said(quote), completed(), exit_record=ended(0), stderr=f"ERROR: {quote}\n".encode())
    assert (outcome.status, outcome.text) == (OutcomeStatus.SUCCEEDED, quote)


def test_an_error_that_was_overcome_is_none() -> None:
    trouble = {"type": "error", "message": "Reconnecting... 1/5 (unexpected status 503 Service Unavailable)"}
    assert read(trouble, said("Done."), completed()).status is OutcomeStatus.SUCCEEDED


def test_the_last_trouble_of_a_run_that_fell_silent_is_what_it_came_to() -> None:
    trouble = {"type": "error", "message": "Reconnecting... 4/5 (unexpected status 503 Service Unavailable)"}
    assert read(trouble).reason is Reason.OVERLOADED
    assert read(trouble, said("It works again.")).reason is Reason.AGENT_ERROR


def test_a_wait_for_the_network_that_took_too_long_is_an_outage_and_can_be_retried() -> None:
    waiting = "Reconnecting... waiting for network (Connection failed: error sending request)"
    trouble = {"type": "error", "message": waiting}
    late = ExitRecord(-15, "timeout", NOW_MS - 60_000, NOW_MS)
    cancelled = ExitRecord(-15, "cancel", NOW_MS - 60_000, NOW_MS)

    assert read(trouble, trouble, exit_record=late).reason is Reason.NETWORK
    assert read(trouble, trouble, exit_record=cancelled).reason is Reason.NETWORK
    assert read(trouble, said("It works again."), exit_record=cancelled).status is OutcomeStatus.CANCELLED
    assert read(trouble, said("It works again."), exit_record=late).reason is Reason.TIMEOUT
    assert read(trouble, said("Done."), completed(), exit_record=ended(0)).status is OutcomeStatus.SUCCEEDED


def test_a_wait_for_the_network_counts_from_the_first_request_that_failed() -> None:
    reader = EventReader(CodexEvents())
    failing = "DEBUG codex_http_client::client: Request failed method=POST url=http://x/v1/responses is_connect=true"
    waiting = {"type": "error", "message": "Reconnecting... waiting for network (Connection failed: no route)"}
    reader.feed("stdout", b"".join(json.dumps(event).encode() + b"\n" for event in (*BEGUN, waiting)))
    assert (reader.stuck_since, reader.stuck_until) == (None, None), "its events have no times"
    reader.feed("stderr", f"2026-11-21T20:29:00.5Z {failing}\n".encode() + answered(200))
    assert (reader.stuck_since, reader.stuck_until) == (None, None), "that may be long ago"
    reader.feed("stderr", f"2026-11-21T20:30:00.5Z {failing}\n2026-11-21T20:31:00Z {failing}\n".encode())
    assert (reader.stuck_since, reader.stuck_until) == (REFUSED_MS, None)
    reader.feed("stdout", json.dumps(said("It works again.")).encode() + b"\n")
    assert reader.stuck_since is None


def paused(status: int, retry_after: str) -> bytes:
    line = f"DEBUG codex_http_client::client: Request completed method=POST url=http://x/v1/responses status={status} ?"
    headers = f'headers={{"retry-after": "{retry_after}"}} version=HTTP/1.1'
    return f"2026-11-21T20:30:00.5Z {line} {headers}\n".encode()


REFUSED_MS = NOW_MS - 400_000 + 500
TRYING = {"type": "error", "message": "Reconnecting... 1/5 (exceeded retry limit, last status: 429 Too Many Requests)"}


@pytest.mark.parametrize(
    ("retry_after", "until"),
    [("7200", REFUSED_MS + 2 * HOUR_MS), ("Sat, 21 Nov 2026 22:30:00 GMT", REFUSED_MS - 500 + 2 * HOUR_MS)],
)
@pytest.mark.parametrize("ended_by", ["stall", "timeout", "cancel"])
def test_a_pause_of_hours_is_a_limit_while_it_lasts(retry_after: str, until: int, ended_by: EndedBy) -> None:
    reader = EventReader(CodexEvents())
    reader.feed("stdout", b"".join(json.dumps(event).encode() + b"\n" for event in (*BEGUN, TRYING)))
    reader.feed("stderr", paused(429, retry_after))
    assert (reader.stuck_until, reader.stuck_since) == (until, REFUSED_MS)
    outcome = reader.outcome(ExitRecord(-15, ended_by, NOW_MS - 600_000, NOW_MS), NOW_MS)
    assert (outcome.status, outcome.reset_at) == (OutcomeStatus.LIMITED, until)
    assert outcome.provenance is Provenance.REPORTED

    reader.feed("stderr", answered(200))
    assert (reader.stuck_until, reader.stuck_since) == (None, None), "it goes on"


@pytest.mark.parametrize(
    "line", [paused(429, "60"), paused(429, "soon"), paused(200, "7200"), b"> " + paused(429, "7200")]
)
def test_a_short_pause_or_none_is_no_limit(line: bytes) -> None:
    late = ExitRecord(-15, "timeout", NOW_MS - 600_000, NOW_MS)
    assert read(TRYING, stderr=line, exit_record=late).reason is Reason.TIMEOUT


def test_a_pause_that_an_overloaded_service_asked_for_is_an_outage() -> None:
    late = ExitRecord(-15, "stall", NOW_MS - 600_000, NOW_MS)
    assert read(stderr=paused(503, "3600"), exit_record=late).reason is Reason.OVERLOADED
    cancelled = ExitRecord(-15, "cancel", NOW_MS - 600_000, NOW_MS)
    assert read(stderr=paused(503, "3600"), exit_record=cancelled).reason is Reason.OVERLOADED


def test_the_last_of_several_turns_counts() -> None:
    again = {"type": "turn.started"}
    assert read(said("One."), completed(), again, failed("at capacity")).reason is Reason.OVERLOADED
    assert read(completed(), again, exit_record=ended(0)).reason is Reason.AGENT_ERROR
    assert read(failed("at capacity"), again, said("Two."), completed()).text == "Two."


def test_prose_on_stderr_is_no_error() -> None:
    """Without --json it has the whole conversation there."""
    stderr = b"OpenAI Codex v0.169.0\nuser\nWhy: you've hit your usage limit?\ncodex\nrate limit exceeded\n"
    codex = EventReader(CodexEvents())
    codex.feed("stderr", stderr)
    assert codex.outcome(ended(), NOW_MS).reason is Reason.AGENT_ERROR


def test_a_start_that_failed_is_told_in_its_words() -> None:
    codex = EventReader(CodexEvents())
    codex.feed(
        "stderr", b"Reading prompt from stdin...\nError: thread/resume failed: no rollout found for thread id 9\n"
    )
    outcome = codex.outcome(ended(), NOW_MS)
    assert outcome.reason is Reason.BAD_INVOCATION
    assert outcome.detail == "thread/resume failed: no rollout found for thread id 9"


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
def test_the_log_agrees_with_the_words_whatever_zone_they_are_in(zone: str) -> None:
    outcome = read(failed("usage limit, try again at 7:06 AM."), stderr=answered(429, **PRIMARY), zone=zone)
    assert outcome.reset_at == 1795331212_000


@pytest.mark.parametrize(
    "words", ["try again at 7:09 AM.", "try again at Nov 29th, 2026 7:06 AM.", "try again in 2h 5m."]
)
def test_a_log_that_contradicts_the_words_is_not_believed(words: str) -> None:
    """A tool may have printed it."""
    reset = read(failed(f"usage limit, {words}"), zone="UTC").reset_at
    assert read(failed(f"usage limit, {words}"), stderr=answered(429, **PRIMARY), zone="UTC").reset_at == reset


@pytest.mark.parametrize("before", [b"> ", b"2026-11-22T05:06:11Z ERROR codex_core: tool failed: "])
def test_a_line_of_the_log_within_another_line_is_none(before: bytes) -> None:
    outcome = read(failed(IN_WORDS), stderr=before + answered(429, **PRIMARY))
    assert outcome.provenance is Provenance.ESTIMATED


def test_once_a_tool_was_called_the_events_alone_say_what_went_wrong() -> None:
    stderr = b"ERROR: You've hit your usage limit. Try again at 5:38 PM.\n"
    call = {"type": "item.started", "item": {"id": "1", "type": "command_execution", "command": "ls"}}
    assert read(call, stderr=stderr).reason is Reason.AGENT_ERROR
    assert read(stderr=stderr).reason is Reason.RATE_LIMITED
    trouble = {"type": "error", "message": "usage limit"}
    assert read(trouble, stderr=b"ERROR: 401 Unauthorized\n").reason is Reason.RATE_LIMITED


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        (b"OpenAI Codex v0.169.0\nexec\nls\nERROR: hit your usage limit.\n", Reason.RATE_LIMITED),
        (b"OpenAI Codex v0.169.0\nexec\nERROR: hit your usage limit.\ncodex\nIt failed.\n", Reason.AGENT_ERROR),
        (b"error: unexpected argument '--nope' found\n\nUsage: codex exec\n", Reason.BAD_INVOCATION),
    ],
)
def test_in_plain_text_an_error_comes_at_the_end(stderr: bytes, reason: Reason) -> None:
    codex = EventReader(CodexEvents())
    codex.feed("stderr", stderr)
    assert codex.outcome(ended(), NOW_MS).reason is reason
