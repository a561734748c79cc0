"""What a run of Gemini CLI came to, beyond what was recorded."""

import json
from typing import Any, Literal

import pytest

from claudomator_py.agents.event_reader import EventReader
from claudomator_py.agents.gemini.events import GeminiEvents
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Provenance, Reason
from claudomator_py.domain.run import ExitRecord

STARTED_MS = 1_795_293_400_000
HOURS_MS = 26_248_223
ASLEEP = f"Attempt 1 failed: Your quota will reset after 7h12m3s.. Retrying after {HOURS_MS}ms...\n".encode()
EndedBy = Literal["cancel", "timeout", "stall", "output_limit", "disk_full", "interrupt"]


def ended(exit_code: int | None = 0, ended_by: EndedBy | None = None) -> ExitRecord:
    return ExitRecord(exit_code, ended_by, STARTED_MS, STARTED_MS + 90_000)


def at(seconds: float) -> str:
    return f"2026-11-21T20:36:{40 + seconds:06.3f}Z"


def init() -> dict[str, object]:
    return {"type": "init", "timestamp": at(0), "session_id": "s", "model": "m"}


def said(text: str, role: str = "assistant", **fields: object) -> dict[str, object]:
    return {"type": "message", "role": role, "content": text, "delta": True, **fields}


def tool(name: str = "write_file", **result: object) -> list[dict[str, object]]:
    used: dict[str, object] = {"type": "tool_use", "tool_name": name, "tool_id": "t1", "parameters": {}}
    return [used, {"type": "tool_result", "tool_id": "t1", "status": "success", **result}]


def result(**fields: object) -> dict[str, object]:
    stats = {"total_tokens": 130, "input_tokens": 100, "output_tokens": 20}
    return {"type": "result", "status": "success", "stats": stats, **fields}


def error(message: str, kind: str = "unknown") -> dict[str, object]:
    return result(status="error", error={"type": kind, "message": message})


def read(*events: Any, exit_record: ExitRecord | None = None, stderr: bytes = b"") -> Outcome:
    reader = EventReader(GeminiEvents())
    reader.feed("stdout", b"".join(json.dumps(event).encode() + b"\n" for event in events))
    reader.feed("stderr", stderr)
    return reader.outcome(exit_record or ended(1), STARTED_MS + 90_000)


def test_the_answer_is_what_came_after_the_last_tool() -> None:
    outcome = read(init(), said("I will write it."), *tool(), said("It is "), said("written."), result())
    assert outcome.text == "It is written."


def test_an_answer_before_a_last_tool_is_one_if_nothing_follows() -> None:
    assert read(init(), said("I am done."), *tool(), result()).text == "I am done."


def test_thoughts_are_output_tokens() -> None:
    tokens = read(init(), result()).tokens
    assert (tokens.input, tokens.output) == (100, 30)


def test_what_is_quoted_is_no_failure() -> None:
    quote = "[API Error: You have exhausted your daily quota on this model.]\nRetrying after 26248223ms..."
    outcome = read(init(), said(quote, role="user"), said(quote), result(), exit_record=ended(0))
    assert (outcome.status, outcome.text) == (OutcomeStatus.SUCCEEDED, quote)


# What it adds itself to each refusal with status 429.
ADVICE = (
    "Please wait and try again later. To increase your limits, request a quota increase through AI Studio, "
    "or switch to another /auth method"
)


@pytest.mark.parametrize(
    ("message", "kind", "exit_code", "reason"),
    [
        ("[API Error: You have exhausted your daily quota on this model.]", "unknown", 173, "rate_limited"),
        ("[API Error: No capacity available for model gemini-pro on the server]", "unknown", 173, "overloaded"),
        ("[API Error: Your prepayment credits are depleted.]", "unknown", 173, "no_credit"),
        ("[API Error: something new]", "unknown", 173, "rate_limited"),
        ("[API Error: something new]", "unknown", 247, "overloaded"),
        ("[API Error: something new]", "unknown", 147, "auth"),
        (
            '[API Error: {"error":{"message":"<!DOCTYPE html><title>Wi-Fi login</title>","code":403}}]',
            "x",
            147,
            "network",
        ),
        ("[API Error: Incomplete JSON segment at the end]", "unknown", 1, "network"),
        ("Model stream ended without a finish reason.", "unknown", 1, "network"),
        (f"[API Error: Too many requests]\n{ADVICE}", "unknown", 173, "rate_limited"),
        (f"[API Error: Slow down]\n{ADVICE}", "unknown", 1, "rate_limited"),
        ("[API Error: something new]", "unknown", 1, "agent_error"),
        ('[API Error: {"error":{"code":503,"message":"?","status":"UNAVAILABLE"}}]', "unknown", 1, "overloaded"),
        ("[API Error: models/gemini-nope is not found for API version v1beta]", "unknown", 1, "invalid_model"),
        ("The input token count exceeds the maximum number of tokens allowed", "unknown", 144, "context_too_long"),
        ("Reached max session turns for this session.", "FatalTurnLimitedError", 53, "turn_limit"),
        ("Please set an Auth method", "FatalAuthenticationError", 41, "auth"),
        ("Error executing tool write_file: ENOSPC: no space left on device", "no_space_left", 54, "disk_full"),
        ("[API Error: exception TypeError: fetch failed sending request]", "unknown", 1, "network"),
    ],
)
def test_an_error_is_read_by_its_type_its_exit_code_and_its_words(
    message: str, kind: str, exit_code: int, reason: str
) -> None:
    assert read(init(), error(message, kind), exit_record=ended(exit_code)).reason == reason


def test_a_suggested_time_counts_from_when_it_was_printed() -> None:
    late = error("[API Error: Resource exhausted.\nSuggested retry after 600s.]") | {"timestamp": at(5)}
    outcome = read(init(), late, exit_record=ended(173))
    assert (outcome.reset_at, outcome.provenance) == (STARTED_MS + 605_000, Provenance.REPORTED)


def test_a_success_after_an_error_is_none() -> None:
    stopped = {"type": "error", "severity": "error", "message": "Maximum session turns exceeded"}
    assert read(init(), said("Still at it."), stopped, result(), exit_record=ended(0)).reason is Reason.TURN_LIMIT
    warned = {"type": "error", "severity": "warning", "message": "Approaching the limit of turns"}
    assert read(init(), said("Done."), warned, result(), exit_record=ended(0)).status is OutcomeStatus.SUCCEEDED
    mended = read(init(), stopped, said("Done."), result(), exit_record=ended(0))
    assert mended.status is OutcomeStatus.SUCCEEDED


@pytest.mark.parametrize("status", ["error", "cancelled", None])
def test_only_success_is_success(status: str | None) -> None:
    assert read(init(), said("Done."), result(status=status), exit_record=ended(0)).status is OutcomeStatus.FAILED


@pytest.mark.parametrize("exit_code", [0, 1, 130, -15])
def test_without_a_result_nothing_succeeded(exit_code: int) -> None:
    assert read(init(), said("Done."), exit_record=ended(exit_code)).status is OutcomeStatus.FAILED


def test_denied_tools_are_told() -> None:
    unknown = {"status": "error", "error": {"type": "tool_not_registered", "message": "not found"}}
    asked = {"status": "error", "error": {"type": "unhandled", "message": "Tool execution requires user confirmation"}}
    outcome = read(init(), *tool("write_file", **unknown), *tool("run_shell_command", **asked), said("No."), result())
    assert (outcome.detail or "").startswith("2 tool calls were denied: run_shell_command, write_file.")


def sleeper(*events: dict[str, object], stderr: bytes = ASLEEP) -> EventReader:
    reader = EventReader(GeminiEvents())
    reader.feed("stderr", stderr)
    reader.feed("stdout", b"".join(json.dumps(event).encode() + b"\n" for event in (init(), *events)))
    return reader


def test_a_sleep_of_hours_is_seen_while_it_lasts() -> None:
    reader = sleeper(said("Do it.", role="user", timestamp=at(2)))
    assert reader.stuck_until == STARTED_MS + 2_000 + HOURS_MS
    assert reader.stuck_since == STARTED_MS + 2_000
    reader.feed("stdout", json.dumps(result(timestamp=at(3))).encode() + b"\n")
    assert reader.stuck_until is None, "it is over"


@pytest.mark.parametrize("ended_by", ["cancel", "stall", "timeout", "interrupt", None])
def test_whoever_ends_the_sleep_finds_the_limit(ended_by: EndedBy | None) -> None:
    outcome = sleeper().outcome(ended(-9, ended_by), STARTED_MS + 90_000)
    assert (outcome.status, outcome.reason) == (OutcomeStatus.LIMITED, Reason.RATE_LIMITED)
    assert (outcome.reset_at, outcome.provenance) == (STARTED_MS + HOURS_MS, Provenance.REPORTED)


def test_a_lost_run_stays_lost() -> None:
    assert sleeper().outcome(None, STARTED_MS + 90_000).status is OutcomeStatus.LOST


def test_a_sleep_that_is_over_is_no_limit() -> None:
    """The event that followed it came after at least that long."""
    much_later = "2026-11-22T09:00:00.000Z"
    reader = sleeper(said("Hello again.", timestamp=much_later))
    assert reader.stuck_until is None
    assert reader.outcome(ended(-15, "cancel"), STARTED_MS).status is OutcomeStatus.CANCELLED


@pytest.mark.parametrize(
    "line",
    [
        b"Attempt 1 failed: Suggested retry after 60s.. Retrying after 60030ms...\n",
        b"Error executing tool run_shell_command: Retrying after 26248223ms...\n",
    ],
)
def test_a_short_pause_or_the_words_of_a_tool_are_no_limit(line: bytes) -> None:
    reader = sleeper(stderr=line)
    assert reader.stuck_until is None
    assert reader.outcome(ended(-15, "timeout"), STARTED_MS).reason is Reason.TIMEOUT


def test_a_sleep_announced_in_pieces_is_seen() -> None:
    reader = EventReader(GeminiEvents())
    reader.feed("stdout", json.dumps(init()).encode() + b"\n")
    for byte in ASLEEP.rstrip():
        assert reader.stuck_until is None or reader.stuck_until <= STARTED_MS + HOURS_MS
        reader.feed("stderr", bytes([byte]))
    assert reader.stuck_until == STARTED_MS + HOURS_MS, "the line needs no end"


FAKED = "Attempt 1 failed: Your quota will reset after 99h.. Retrying after 359999999ms..."
FAILED = tool("run_shell_command", status="error", error={"type": "shell", "message": f"failed:\n{FAKED}"})
TOLD = f"Error executing tool run_shell_command: failed:\n{FAKED}\n".encode()


@pytest.mark.parametrize("ended_by", ["stall", "timeout", None])
def test_a_sleep_that_a_tool_has_printed_is_none_of_its_own(ended_by: EndedBy | None) -> None:
    reader = sleeper(*FAILED, stderr=TOLD)
    assert (reader.stuck_until, reader.stuck_since) == (None, None)
    assert reader.outcome(ended(1, ended_by), STARTED_MS).status is OutcomeStatus.FAILED


def test_a_sleep_that_a_tool_has_printed_in_colour_is_none_of_its_own() -> None:
    coloured = FAKED.replace("Retrying", "Retr\x1b[31mying")
    failed = tool("run_shell_command", status="error", error={"type": "shell", "message": coloured})
    record = f"Error executing tool run_shell_command: failed:\n{coloured}\n".encode()
    assert sleeper(*failed, stderr=record).stuck_until is None


def test_what_stderr_repeats_of_a_tool_is_not_believed_before_its_result_is_read() -> None:
    other = tool("write_file", status="error", error={"type": "x", "message": "no"})
    reader = sleeper(*other, FAILED[0], stderr=TOLD)
    assert reader.stuck_until is None, "the tool is running yet, as far as the events go"
    reader = sleeper(stderr=TOLD)
    assert reader.stuck_until is None, "stderr is ahead of the events"
    reader.feed("stdout", b"".join(json.dumps(event).encode() + b"\n" for event in FAILED))
    assert reader.stuck_until is None
    assert reader.outcome(ended(-9, "stall"), STARTED_MS).reason is Reason.STALLED


def test_its_own_sleep_after_a_tool_that_failed_is_believed() -> None:
    reader = sleeper(*FAILED, stderr=TOLD + ASLEEP)
    assert reader.stuck_until == STARTED_MS + HOURS_MS


def test_a_sleep_while_a_tool_runs_is_believed_once_all_is_read() -> None:
    """An agent of its own that it has started as a tool may be what met the limit."""
    reader = sleeper(FAILED[0])
    assert reader.stuck_until is None
    assert reader.outcome(ended(-9, "stall"), STARTED_MS).reset_at == STARTED_MS + HOURS_MS


def test_the_message_of_a_sleep_may_have_several_lines() -> None:
    lines = f"Attempt 2 failed: Quota exceeded.\n* metric: free_tier\nPlease wait.. Retrying after {HOURS_MS}ms...\n"
    assert sleeper(stderr=lines.encode()).stuck_until == STARTED_MS + HOURS_MS
    assert sleeper(stderr=lines.partition("\n")[2].encode()).stuck_until is None, "it has no beginning"


def test_more_sleeps_in_what_tools_print_than_can_be_remembered_make_none_believed() -> None:
    printed = "\n".join(f"Retrying after {length}ms" for length in range(2_000))
    assert sleeper(*tool(output=printed)).stuck_until is None


def test_the_words_of_a_tool_that_ended_the_run_are_not_its_own() -> None:
    fatal = "Error executing tool run_shell_command: 429 Too Many Requests, rate limit; retry after 3600s"
    assert read(init(), error(fatal, "STOP_EXECUTION"), exit_record=ended(54)).reason is Reason.AGENT_ERROR
    assert read(init(), error(fatal, "no_space_left"), exit_record=ended(54)).reason is Reason.DISK_FULL


def test_without_a_result_only_the_exit_code_says_what_went_wrong_once_tools_may_have_run() -> None:
    stderr = b"Error when talking to Gemini API: You have exhausted your daily quota on this model.\n"
    assert read(init(), *tool(), exit_record=ended(1), stderr=stderr).reason is Reason.AGENT_ERROR
    assert read(init(), *tool(), exit_record=ended(173), stderr=b"?").reason is Reason.RATE_LIMITED
    assert read(exit_record=ended(1), stderr=stderr).reason is Reason.RATE_LIMITED
    assert read(init(), said("Hi."), exit_record=ended(1), stderr=stderr).reason is Reason.RATE_LIMITED, "no tool ran"
    assert read(exit_record=ended(1), stderr=TOLD + stderr).reason is Reason.AGENT_ERROR


DAILY = "[API Error: You have exhausted your daily quota on this model.]"
METRIC = "Quota exceeded for quota metric '{}' and limit '{} per day per user' of service 'cloudcode-pa.googleapis.com'"
FREE_TIER = (
    "You exceeded your current quota, please check your plan and billing details.\n* Quota exceeded for metric: "
    "generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 250, model: gemini-2.5-flash\n"
    "Please retry in 21.3s."
)
DIMENSION = (
    '{"quotaId": "GenerateRequestsPerDayPerProjectPerModel", "quotaDimensions": '
    '{"location": "global", "model": "gemini-3.1-pro"}} RESOURCE_EXHAUSTED'
)


@pytest.mark.parametrize(
    ("message", "limit", "family"),
    [
        (DAILY, "daily", "gemini-3.8-flash"),
        ("You have exhausted your capacity on this model. Your quota will reset after 7h.", None, "gemini-3.8-flash"),
        (METRIC.format(*2 * ["Gemini 2.5 Pro Requests"]), "daily", "gemini-2.5-pro"),
        (METRIC.format(*2 * ["Queries"]), "daily", None),
        (FREE_TIER, None, "gemini-2.5-flash"),
        ("Quota limit reached for gemini-3-pro: 100 requests per day", "daily", "gemini-3-pro"),
        ("You have reached your daily limit.", "daily", None),
        ("You have exceeded your requests per day for this project", "daily", None),
        (DIMENSION, "daily", "gemini-3.1-pro"),
        ("Quota exceeded for quota metric 'Generate Content API requests per minute'", "per_minute", None),
    ],
)
def test_a_quota_of_one_model_is_that_models(message: str, limit: str | None, family: str | None) -> None:
    alias = {**init(), "model": "flash"}
    stats: dict[str, object] = {"models": {"gemini-3.5-flash-lite": {}, "gemini-3.8-flash": {}}}
    outcome = read(alias, {**error(message), "stats": stats})
    assert (outcome.status, outcome.limit, outcome.family) == (OutcomeStatus.LIMITED, limit, family)
    assert outcome.model == "gemini-3.8-flash"


@pytest.mark.parametrize("exit_code", [41, 52])
def test_a_login_that_is_missing_is_one_whatever_the_exit_code(exit_code: int) -> None:
    stderr = b"Please set an Auth method in your settings.json or specify one of: GEMINI_API_KEY\n"
    assert read(exit_record=ended(exit_code), stderr=stderr).reason is Reason.AUTH
    assert read(error(stderr.decode(), "FatalConfigError"), exit_record=ended(exit_code)).reason is Reason.AUTH


@pytest.mark.parametrize(
    ("message", "exit_code", "reason"),
    [("Please set an Auth method in your settings", 52, Reason.AUTH), (DAILY, 1, Reason.RATE_LIMITED)],
)
def test_an_error_that_is_all_it_prints_counts(message: str, exit_code: int, reason: Reason) -> None:
    printed = {"session_id": "a", "error": {"type": "Error", "message": message, "code": exit_code}}
    assert read(printed, exit_record=ended(exit_code)).reason is reason


def test_any_other_error_of_its_settings_is_one_of_how_it_was_started() -> None:
    assert read(exit_record=ended(52), stderr=b"Invalid JSON in settings.json\n").reason is Reason.BAD_INVOCATION
