"""What a run of Claude Code came to, beyond what was recorded."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from claudomator_py.agents.claude.events import ClaudeEvents
from claudomator_py.agents.event_reader import EventReader
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Provenance, Reason
from claudomator_py.domain.report import Stage
from claudomator_py.domain.run import EndedBy, ExitRecord

NOW_MS = 1_795_293_400_000
LIMIT_MESSAGE = "You've hit your 5-hour limit · resets 6:36pm (America/New_York)"
SESSION = "11111111-2222-4333-8444-555555555555"


def ended(exit_code: int | None = 0, ended_by: EndedBy | None = None, error: str | None = None) -> ExitRecord:
    return ExitRecord(exit_code, ended_by, NOW_MS - 60_000, NOW_MS, error)


def lines(events: Iterable[object]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def result(**fields: object) -> dict[str, object]:
    good = {"is_error": False, "subtype": "success", "result": "Done.", "terminal_reason": "completed"}
    return {"type": "result", "session_id": SESSION, **good, **fields}


def error(text: str, **fields: object) -> dict[str, object]:
    return result(**{"is_error": True, "result": text, "terminal_reason": "api_error", **fields})


def error_message(text: str, category: str, **fields: object) -> dict[str, object]:
    message = {"model": "<synthetic>", "content": [{"type": "text", "text": text}]}
    return {"type": "assistant", "session_id": SESSION, "message": message, "error": category, **fields}


def answer(text: str) -> dict[str, object]:
    return {"type": "assistant", "message": {"model": "claude", "content": [{"type": "text", "text": text}]}}


def rejected(**info: object) -> dict[str, object]:
    return {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", **info}}


def read(*events: object, exit_record: ExitRecord | None = None, stderr: bytes = b"", **reader: Any) -> Outcome:
    claude = EventReader(ClaudeEvents(**reader))
    claude.feed("stdout", lines(events))
    claude.feed("stderr", stderr)
    return claude.outcome(exit_record or ended(1), NOW_MS)


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        (
            [error("API Error: 400 Your credit balance is too low to access the API.", api_error_status=400)],
            "no_credit",
        ),
        (
            [error_message("Credit balance is too low", "billing_error"), error("Credit balance is too low")],
            "no_credit",
        ),
        ([error("You're out of extra usage", api_error_status=429, api_error="usage_limit_reached")], "no_credit"),
        ([error("Invalid API key · Please run /login")], "auth"),
        ([error_message("Account on hold", "account_on_hold"), error("Account on hold")], "auth"),
        ([error("Prompt is too long", terminal_reason="prompt_too_long")], "context_too_long"),
        ([error("API Error: 400 prompt is too long: 210000 tokens > 200000 maximum")], "context_too_long"),
        ([error("There's an issue with the selected model (foo). It may not exist.")], "invalid_model"),
        (
            [error_message("nothing known", "model_not_found"), error("nothing known", api_error_status=404)],
            "invalid_model",
        ),
        ([error("Declined.", stop_reason="refusal")], "refused"),
        ([result(stop_reason="refusal")], "refused"),
        ([error("API Error: Claude Code is unable to respond to this request (Usage Policy)")], "refused"),
        ([result(subtype="error_max_turns", is_error=False, result=None)], "turn_limit"),
        ([result(subtype="error_max_budget_usd", is_error=True, result=None)], "budget"),
        ([error("x", api_error_status=502)], "overloaded"),
        ([error("API Error: Connection error.")], "network"),
        ([error("API Error: API returned an empty or malformed response (HTTP 200) - check for a proxy")], "network"),
        ([error("x", api_error="connection_failed")], "network"),
        ([error("what is this")], "agent_error"),
        ([{"type": "result", "subtype": "success", "result": "no is_error at all"}], "agent_error"),
    ],
)
def test_each_kind_of_failure(events: list[object], reason: str) -> None:
    outcome = read(*events)
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, reason), outcome


@pytest.mark.parametrize(
    ("events", "reset_at", "limit"),
    [
        ([error("Claude AI usage limit reached|1795304166")], 1_795_304_166_000, None),
        ([error("Session limit reached ∙ resets 6:36pm")], 1_795_304_160_000, "five_hour"),
        ([error(LIMIT_MESSAGE, api_error="usage_limit_reached")], 1_795_304_160_000, "five_hour"),
        (
            [error("You've hit your weekly limit · resets Nov 24, 3:36pm (America/New_York)")],
            1_795_552_560_000,
            "seven_day",
        ),
        ([error("You've hit your Sonnet limit", api_error_status=429)], None, "seven_day_sonnet"),
        (
            [
                rejected(resetsAt=1_795_304_166, rateLimitType="seven_day_opus"),
                error(LIMIT_MESSAGE, api_error_status=429),
            ],
            1_795_304_166_000,
            "seven_day_opus",
        ),
    ],
)
def test_limits_of_all_versions(events: list[object], reset_at: int | None, limit: str | None) -> None:
    outcome = read(*events, zone="America/New_York")
    assert (outcome.status, outcome.reason) == (OutcomeStatus.LIMITED, Reason.RATE_LIMITED), outcome
    assert (outcome.reset_at, outcome.limit) == (reset_at, limit)
    assert outcome.provenance is (Provenance.ESTIMATED if reset_at is None else Provenance.REPORTED)


def test_a_rejection_that_was_lifted_is_forgotten() -> None:
    lifted = {"type": "rate_limit_event", "rate_limit_info": {"status": "allowed"}}
    outcome = read(rejected(resetsAt=1_795_304_166), lifted, error("Request rejected (429)", api_error_status=429))
    assert (outcome.status, outcome.reset_at) == (OutcomeStatus.LIMITED, None)


def test_a_clock_time_counts_from_when_it_was_printed_not_from_when_it_is_read() -> None:
    claude = EventReader(ClaudeEvents())
    message = error_message(LIMIT_MESSAGE, "rate_limit", timestamp="2026-11-21T20:36:07.457Z")
    claude.feed("stdout", lines([message, error(LIMIT_MESSAGE)]))
    days_later = NOW_MS + 5 * 86_400_000
    assert claude.outcome(None, days_later).reset_at == 1_795_304_160_000


@pytest.mark.parametrize("text", [LIMIT_MESSAGE, "Not logged in · Please run /login", "API Error: 529 overloaded"])
def test_an_answer_that_quotes_an_error_is_an_answer(text: str) -> None:
    tool_result = {"type": "user", "message": {"content": [{"type": "tool_result", "content": text, "is_error": True}]}}
    outcome = read(answer(text), tool_result, answer(text), result(result=text), exit_record=ended(0))
    assert (outcome.status, outcome.text, outcome.reason) == (OutcomeStatus.SUCCEEDED, text, None)


def test_an_answer_that_quotes_a_limit_before_a_crash_is_no_limit() -> None:
    outcome = read(answer(LIMIT_MESSAGE), exit_record=ended(1))
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.AGENT_ERROR)


def test_the_last_error_counts_when_it_died_before_its_result() -> None:
    outcome = read(error_message("Not logged in", "authentication_failed"))
    assert outcome.reason is Reason.AUTH


def test_an_error_that_it_got_over_does_not_count() -> None:
    outcome = read(error_message("x", "authentication_failed"), answer("going on"))
    assert outcome.reason is Reason.AGENT_ERROR


@pytest.mark.parametrize(
    ("exit_record", "status", "reason"),
    [
        (ended(-9), "failed", "interrupted"),
        (ended(143), "failed", "interrupted"),
        (ended(0), "failed", "agent_error"),
        (ended(1), "failed", "agent_error"),
        (ended(127), "failed", "agent_error"),
        (ended(None, error="No such file or directory: claude"), "failed", "setup_failed"),
        (ended(-15, "cancel"), "cancelled", "cancelled"),
        (ended(143, "timeout"), "failed", "timeout"),
        (ended(-9, "stall"), "failed", "stalled"),
        (ended(-9, "output_limit"), "failed", "output_limit"),
        (ended(-9, "disk_full"), "failed", "disk_full"),
    ],
)
def test_without_a_terminal_event(exit_record: ExitRecord, status: str, reason: str) -> None:
    outcome = read({"type": "system", "subtype": "init", "session_id": SESSION}, exit_record=exit_record)
    assert (outcome.status, outcome.reason) == (status, reason)
    assert outcome.conversation_id == SESSION, "it can be resumed"


@pytest.mark.parametrize("how", ["timeout", "stall", "output_limit", "disk_full"])
def test_work_that_was_done_stays_done_when_the_process_then_had_to_be_stopped(how: EndedBy) -> None:
    assert read(result(), exit_record=ended(-9, how)).status is OutcomeStatus.SUCCEEDED
    assert read(error(LIMIT_MESSAGE, api_error_status=429), exit_record=ended(-9, how)).status is OutcomeStatus.LIMITED


def test_a_cancel_stays_a_cancel() -> None:
    outcome = read(result(), exit_record=ended(0, "cancel"))
    assert (outcome.status, outcome.reason) == (OutcomeStatus.CANCELLED, Reason.CANCELLED)


def test_an_interruption_by_the_shim_is_told_by_its_cause() -> None:
    interrupted = result(is_error=True, subtype="error_during_execution", terminal_reason="aborted_streaming")
    assert read(interrupted, exit_record=ended(0, "timeout")).reason is Reason.TIMEOUT
    assert read(interrupted, exit_record=ended(0)).reason is Reason.INTERRUPTED


def test_with_a_lost_supervisor_only_a_complete_terminal_event_counts() -> None:
    whole = lines([result()])
    for cut in (0, 1, len(whole) // 2, len(whole) - 2):
        claude = EventReader(ClaudeEvents())
        claude.feed("stdout", whole[:cut])
        outcome = claude.outcome(None, NOW_MS)
        assert claude.stage is Stage.WORKING
        assert (outcome.status, outcome.reason) == (OutcomeStatus.LOST, Reason.LOST), cut
    for complete in (whole, whole.rstrip(b"\n")):
        claude = EventReader(ClaudeEvents())
        claude.feed("stdout", complete)
        assert claude.stage is Stage.DONE
        assert claude.outcome(None, NOW_MS).status is OutcomeStatus.SUCCEEDED


def test_an_outcome_may_be_asked_for_before_all_has_come() -> None:
    whole = lines([result()])
    claude = EventReader(ClaudeEvents())
    claude.feed("stdout", whole[:40])
    assert claude.outcome(ended(1), NOW_MS).reason is Reason.AGENT_ERROR
    claude.feed("stdout", whole[40:])
    assert claude.outcome(ended(0), NOW_MS).status is OutcomeStatus.SUCCEEDED


def test_the_last_result_counts_and_usage_adds_up() -> None:
    def used(dollars: float) -> dict[str, object]:
        return {"opus": {"inputTokens": 10, "cacheReadInputTokens": 5, "outputTokens": 2, "costUSD": dollars}}

    first = result(result="One.", model_usage_since_last_result=used(0.5), total_cost_usd=0.5)
    second = result(result="Two.", model_usage_since_last_result=used(0.25), total_cost_usd=0.75)
    outcome = read(first, second)
    assert outcome.text == "Two."
    assert (outcome.tokens.input, outcome.tokens.output, outcome.cost_usd) == (30, 4, 0.75)


@pytest.mark.parametrize(
    ("resumed", "prior", "cost"), [(False, None, 0.75), (True, 0.5, 0.25), (True, None, None), (True, 0.8, 0.0)]
)
def test_an_older_versions_dollars_are_the_conversations(
    resumed: bool, prior: float | None, cost: float | None
) -> None:
    event = result(usage={"input_tokens": 100, "output_tokens": 7}, total_cost_usd=0.75)
    outcome = read(event, resumed=resumed, prior_cost_usd=prior)
    assert (outcome.tokens.input, outcome.tokens.output) == (100, 7)
    assert outcome.cost_usd == cost


def test_denied_tools_are_counted_once() -> None:
    denials = [{"tool_name": "Bash", "tool_use_id": "1"}, {"tool_name": "Write", "tool_use_id": "2"}]
    events = [{"type": "system", "subtype": "permission_denied", **denials[0]}, result(permission_denials=denials)]
    outcome = read(*events, exit_record=ended(0))
    assert outcome.status is OutcomeStatus.SUCCEEDED
    assert (outcome.detail or "").startswith("2 tool calls were denied: Bash, Write.")


def test_what_stderr_says_before_there_is_a_conversation() -> None:
    outcome = read(stderr=b"error: unknown option '--session-id'\n")
    assert (outcome.reason, outcome.detail) == (Reason.BAD_INVOCATION, "error: unknown option '--session-id'")


def test_no_text_is_unfit_to_be_stored() -> None:
    outcome = read(result(result="a\ud800b\0c" + "x" * 1_000_000), exit_record=ended(0))
    assert outcome.text is not None
    assert outcome.text.startswith("a?bc")
    assert len(outcome.text) <= 100_000
    assert len(read(error("y" * 1_000_000)).detail or "") <= 4_000


@pytest.mark.parametrize("odd", [None, True, -1, 1e400, "x", [], {}, [None], {"a": None}, 2**80])
def test_fields_of_any_type_are_borne(odd: object) -> None:
    names = ["is_error", "subtype", "result", "errors", "usage", "modelUsage", "model_usage_since_last_result"]
    names += ["total_cost_usd", "permission_denials", "terminal_reason", "api_error", "api_error_status", "stop_reason"]
    for name in names:
        assert read(result(**{name: odd})).status
    for name in ("error", "message", "timestamp", "api_error_params", "session_id"):
        assert read(error_message("x", "rate_limit") | {name: odd}, error("y")).status
    for name in ("resetsAt", "rateLimitType", "status"):
        assert read(rejected(**{name: odd}), error("y", api_error_status=429)).status
    assert read({"type": odd}, {"type": "rate_limit_event", "rate_limit_info": odd}).status


def test_a_warning_that_a_limit_is_near_is_told_until_it_is_taken_back() -> None:
    near = {"status": "allowed_warning", "resetsAt": NOW_MS // 1000, "utilization": 0.9, "rateLimitType": "five_hour"}
    warning = {"type": "rate_limit_event", "rate_limit_info": near}
    over = {"type": "rate_limit_event", "rate_limit_info": {"status": "allowed"}}
    outcome = read(warning, result(), exit_record=ended(0))
    assert outcome.near_limit_until == NOW_MS // 1000 * 1000
    assert (outcome.near_limit, outcome.near_limit_used) == ("five_hour", 0.9)
    assert read(warning, over, result(), exit_record=ended(0)).near_limit_until is None


def test_the_errors_of_all_tools_that_a_broken_run_lists_are_not_its_own() -> None:
    listed = ["[ede_diagnostic] result_type=user", "Shell command failed: 429, usage limit reached|1795400000"]
    broken = {**error("", subtype="error_during_execution", errors=listed, terminal_reason=None), "result": None}
    outcome = read(answer("I look."), broken)
    assert (outcome.reason, outcome.reset_at) == (Reason.AGENT_ERROR, None)
    assert "429" in (outcome.detail or ""), "it is told all the same"
    unknown = {**broken, "errors": ["No conversation found with session ID: 1"]}
    assert read(unknown).reason is Reason.BAD_INVOCATION, "no tool has run yet"
    limited = error_message("You've hit your session limit", "rate_limit", api_error_status=429)
    assert read(answer("I look."), limited, broken).status is OutcomeStatus.LIMITED, "an event of its own says so"


def test_stderr_says_nothing_of_a_limit_once_a_tool_was_called() -> None:
    words = b"Claude AI usage limit reached|1795400000\n"
    begins = {"type": "system", "subtype": "init", "session_id": SESSION}
    assert read(stderr=words).status is OutcomeStatus.LIMITED
    assert read(begins, stderr=words).status is OutcomeStatus.LIMITED
    call = {"type": "tool_use", "id": "1", "name": "Bash", "input": {}}
    after = read(begins, {"type": "assistant", "message": {"content": [call]}}, stderr=words)
    assert (after.reason, after.detail) == (Reason.AGENT_ERROR, words.decode().strip())


def begun(model: str) -> dict[str, object]:
    return {"type": "system", "subtype": "init", "session_id": SESSION, "model": model}


@pytest.mark.parametrize(
    ("window", "words", "family"),
    [
        ("seven_day_opus", None, "opus"),
        ("seven_day_haiku", None, "haiku"),
        ("seven_day_brontosaurus", None, "brontosaurus"),
        ("seven_day_overage_included", None, "fable"),
        ("seven_day_overage_included", "You've hit your Fable limit · resets Nov 24, 3pm", "fable"),
        ("seven_day", "You've hit your Fable limit", "fable"),
        (None, "You've hit your Fable limit", "fable"),
        (None, "You've hit your weekly Mythos limit", "mythos"),
        (None, "You've hit your Opus 4.8 limit", "opus"),
        (None, "Fable limit reached ∙ resets 6:36pm", "fable"),
        (None, "Fable weekly limit reached ∙ resets 6:36pm", "fable"),
        ("seven_day_fable_5", None, "fable-5"),
        (None, "You've hit your usage limit for Fable · resets 6:36pm", "fable"),
        (None, "You've hit your limit for Claude Fable", "fable"),
        (None, "You've hit your usage limit for claude-opus-5. Switch to another model now.", "claude-opus-5"),
        (None, "You've hit your limit for the model `claude-mythos-6` · resets 6:36pm", "claude-mythos-6"),
        ("seven_day", "You've reached your weekly limit for claude-haiku-4-5-20251001", "claude-haiku-4-5-20251001"),
        ("five_hour", None, None),
        ("seven_day", None, None),
        (None, "You've hit your Monthly limit", None),
        (None, "You've hit your Team limit", None),
        ("seven_day_oauth_apps", None, None),
        ("overage", None, None),
        (None, "You've hit your session limit", None),
        (None, "You've hit your weekly limit", None),
        (None, "You've hit your Claude limit", None),
        (None, "Weekly limit reached ∙ resets 6:36pm", None),
        (None, "Usage limit reached ∙ resets 6:36pm", None),
        (None, "Claude AI usage limit reached|1795304166", None),
    ],
)
def test_which_models_a_limit_is_for_follows_from_what_the_program_says(
    window: str | None, words: str | None, family: str | None
) -> None:
    refusal = [rejected(resetsAt=1_795_304_166, rateLimitType=window)] if window is not None else []
    ends = error(words or "You've hit your limit", api_error_status=429)
    outcome = read(begun("claude-fable-5"), *refusal, ends)
    assert (outcome.status, outcome.family) == (OutcomeStatus.LIMITED, family)
    assert outcome.model == "claude-fable-5"


def test_what_is_used_of_a_window_is_that_of_its_family() -> None:
    windows = {"seven_day_overage_included": {"utilization": 0.5, "resetsAt": 1_795_304_166}}
    payload = {"type": "rate_limit_event", "rate_limit_info": {"status": "allowed", "unifiedWindows": windows}}
    assert read(payload, result(), exit_record=ended(0)).windows["seven_day_overage_included"].family == "fable"
