"""Runs that call themselves a success and are none, of every CLI: by what they print before their last word."""

from typing import Any

import pytest

from claudomator_py.domain.outcome import OutcomeStatus, Reason
from claudomator_py.domain.report import Stage
from tests.unit.agents.test_run_ends import KINDS, LIMIT, Event, ended, item, message, reader

SUCCEEDED, FAILED, LIMITED = OutcomeStatus.SUCCEEDED, OutcomeStatus.FAILED, OutcomeStatus.LIMITED
CLAUDE, CODEX, GEMINI, OPENCODE, QWEN = (KINDS[kind] for kind in ("claude", "codex", "gemini", "opencode", "qwen"))
DENIED = {"permission_denials": [{"tool_name": "Write", "tool_use_id": "1", "tool_input": {"file_path": "/x"}}]}
POLICY = {"type": "policy_violation", "message": "Tool execution denied by policy."}
REJECTED = {"status": "error", "error": "The user rejected permission to use this specific tool call."}


def back(*, error: bool = False, call_id: str = "1") -> Event:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": "no" if error else "ok", "is_error": error}
    return {"type": "user", "message": {"content": [block]}}


def gemini_result(**error: str) -> Event:
    return {"type": "tool_result", "tool_id": "1", "status": "error" if error else "success", "error": error or None}


def warned(words: str, severity: str = "warning") -> Event:
    return {"type": "error", "severity": severity, "message": words}


ONLY_DENIED: dict[str, tuple[list[Event], Event]] = {
    "claude": ([CLAUDE.begin, CLAUDE.tool, back(error=True)], {**CLAUDE.end, **DENIED}),
    "qwen": ([QWEN.begin, QWEN.tool, back(error=True)], {**QWEN.end, **DENIED}),
    "gemini": ([GEMINI.begin, GEMINI.tool, gemini_result(**POLICY)], GEMINI.end),
    "codex": ([CODEX.begin, item("command_execution", command="make", status="declined")], CODEX.end),
    "opencode": (
        [OPENCODE.begin, {"type": "tool_use", "part": {"tool": "write", "state": REJECTED}}, OPENCODE.begin],
        OPENCODE.end,
    ),
}


@pytest.mark.parametrize("kind", ONLY_DENIED)
def test_a_run_whose_every_call_was_denied_and_that_says_nothing_has_done_nothing(kind: str) -> None:
    events, end = ONLY_DENIED[kind]
    outcome = ended(kind, *events, end)
    assert (outcome.status, outcome.reason, outcome.denials) == (FAILED, Reason.PERMISSION_DENIED, 1)
    assert "1 tool call was denied" in str(outcome.detail)

    words = ended(kind, *events, KINDS[kind].text, end)
    assert (words.status, words.denials) == (SUCCEEDED, 1), "what it says of that is an answer"


def test_one_call_beside_those_that_were_denied_is_work() -> None:
    other = message({"type": "tool_use", "name": "Read", "id": "2", "input": {}})
    outcome = ended("claude", *ONLY_DENIED["claude"][0], other, back(call_id="2"), {**CLAUDE.end, **DENIED})
    assert (outcome.status, outcome.denials) == (SUCCEEDED, 1)
    run = item("command_execution", command="ls", status="completed") | {}
    run["item"]["id"] = "2"
    assert ended("codex", *ONLY_DENIED["codex"][0], run, CODEX.end).status is SUCCEEDED


def test_a_plan_that_nobody_can_approve_is_an_answer() -> None:
    plan = message({"type": "tool_use", "name": "ExitPlanMode", "id": "1", "input": {"plan": "Do it."}})
    denial = {"permission_denials": [{"tool_name": "ExitPlanMode", "tool_use_id": "1", "tool_input": {"plan": "x"}}]}
    assert ended("claude", CLAUDE.begin, plan, back(error=True), {**CLAUDE.end, **denial}).status is SUCCEEDED


@pytest.mark.parametrize("text", ["Background task b1 was stopped.", "The last answer of the conversation."])
@pytest.mark.parametrize(("code", "by", "reason"), [(-15, "timeout", "timeout"), (-9, None, "interrupted")])
def test_a_result_of_no_turn_that_has_words_is_none_either(text: str, code: int, by: Any, reason: str) -> None:
    first = [CLAUDE.begin, {**CLAUDE.end, "num_turns": 0, "result": text}]
    assert reader("claude", *first).stage is Stage.WORKING
    assert ended("claude", *first, code=code, by=by).reason == reason
    assert ended("claude", *first).reason is Reason.NO_ANSWER
    assert ended("claude", *first, CLAUDE.begin, CLAUDE.text, CLAUDE.end).status is SUCCEEDED


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("API Error: 529 Overloaded", Reason.OVERLOADED),
        ("API Error (Connection error.)", Reason.NETWORK),
        ("API Error: something that nobody knows", Reason.AGENT_ERROR),
        ("Prompt is too long", Reason.CONTEXT_TOO_LONG),
        ("Credit balance is too low", Reason.NO_CREDIT),
        ("Invalid API key · Please run /login", Reason.AUTH),
        ("Claude AI usage limit reached|1795304166", Reason.RATE_LIMITED),
    ],
)
def test_what_claude_code_says_last_in_the_place_of_its_model_counts(words: str, reason: Reason) -> None:
    own = {"type": "assistant", "message": {"model": "<synthetic>", "content": [{"type": "text", "text": words}]}}
    end = {**CLAUDE.end, "result": words}
    outcome = ended("claude", CLAUDE.begin, CLAUDE.tool, back(), own, end)
    assert (outcome.reason, outcome.text) == (reason, None)
    assert outcome.status is (LIMITED if reason is Reason.RATE_LIMITED else FAILED)

    by_model = message({"type": "text", "text": words})
    assert ended("claude", CLAUDE.begin, by_model, end).status is SUCCEEDED, "an answer may quote it"
    assert ended("claude", CLAUDE.begin, own, CLAUDE.text, {**end, "result": "Done."}).status is SUCCEEDED


def test_an_error_in_the_last_message_counts_whatever_the_result_calls_it() -> None:
    assert CLAUDE.limit is not None
    words = "You've hit your session limit"
    before = [CLAUDE.begin, CLAUDE.tool, back(), CLAUDE.limit]
    for text in (words, ""):
        assert ended("claude", *before, {**CLAUDE.end, "result": text}).status is LIMITED
    assert ended("claude", *before, CLAUDE.text, {**CLAUDE.end, "result": "Done."}).status is SUCCEEDED
    subagent = {**CLAUDE.limit, "parent_tool_use_id": "1"}
    assert ended("claude", CLAUDE.begin, CLAUDE.text, subagent, {**CLAUDE.end, "result": "Done."}).status is SUCCEEDED


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"subtype": "paused"}, Reason.UNFINISHED),
        ({"subtype": "background_requested"}, Reason.UNFINISHED),
        ({"api_error": "connection_failed"}, Reason.NETWORK),
        ({"api_error_status": 529}, Reason.OVERLOADED),
        ({"api_error_status": None, "api_error": None}, None),
        ({"subtype": None}, None),
    ],
)
def test_a_result_of_claude_that_names_a_trouble_is_no_success(fields: Event, reason: Reason | None) -> None:
    assert ended("claude", CLAUDE.begin, CLAUDE.text, {**CLAUDE.end, **fields}).reason is reason


def test_a_refusal_that_only_the_message_names_is_one() -> None:
    last = {"type": "assistant", "message": {**CLAUDE.text["message"], "stop_reason": "refusal"}}
    result = {name: value for name, value in CLAUDE.end.items() if name != "stop_reason"}
    assert ended("claude", CLAUDE.begin, last, result).reason is Reason.REFUSED


@pytest.mark.parametrize(
    "stopped",
    [
        [warned("Loop detected, stopping execution")],
        [warned("Agent execution blocked: not on a Sunday")],
        [warned("Agent execution stopped: enough")],
        [GEMINI.tool, gemini_result(type="stop_execution", message="A hook has ended it")],
    ],
)
def test_gemini_calls_a_success_what_it_has_stopped_itself(stopped: list[Event]) -> None:
    outcome = ended("gemini", GEMINI.begin, GEMINI.text, *stopped, GEMINI.end)
    assert (outcome.status, outcome.reason, outcome.text) == (FAILED, Reason.UNFINISHED, None)
    assert ended("gemini", GEMINI.begin, *stopped, GEMINI.text, GEMINI.end).status is SUCCEEDED, "it has gone on"


@pytest.mark.parametrize("words", ["Loop detected, stopping execution", "Agent execution stopped: by a hook"])
def test_gemini_names_that_in_one_object_too(words: str) -> None:
    whole = {"session_id": "s", "response": "I am at it.", "stats": {}, "warnings": ["Ripgrep is missing", words]}
    assert ended("gemini", whole).reason is Reason.UNFINISHED
    assert ended("gemini", {**whole, "warnings": ["Ripgrep is missing"]}).status is SUCCEEDED


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("The model returned an empty response with no text or thoughts. This may be transient.", Reason.NO_ANSWER),
        ("The model returned an empty text response. If your context window is near", Reason.NO_ANSWER),
        ("The model returned reasoning thoughts but no final response text. If your context window", Reason.NO_ANSWER),
        ("Model response was truncated because it exceeded the token limit. Try using /compress", Reason.UNFINISHED),
        ("Invalid stream: The model returned an empty response or malformed tool call.", Reason.UNFINISHED),
        ("The model response was blocked due to safety settings.", Reason.REFUSED),
        ("The model response was blocked due to recitation/copyright filters.", Reason.REFUSED),
    ],
)
def test_gemini_says_what_was_wrong_with_an_answer(words: str, reason: Reason) -> None:
    end = {**GEMINI.end, "status": "error"}
    assert ended("gemini", GEMINI.begin, GEMINI.tool, warned(words, "error"), end).reason is reason


def test_an_error_right_before_codex_calls_its_turn_completed_has_ended_it() -> None:
    limit = CODEX.limit
    assert limit is not None
    assert ended("codex", CODEX.begin, CODEX.text, limit, CODEX.end).status is LIMITED
    assert ended("codex", CODEX.begin, limit, CODEX.text, CODEX.end).status is SUCCEEDED, "it has gone on"
    retried = {"type": "error", "message": "Reconnecting... 1/5 (stream disconnected)"}
    assert ended("codex", CODEX.begin, CODEX.text, retried, CODEX.end).status is SUCCEEDED


def test_a_list_of_what_is_to_be_done_is_no_work() -> None:
    plan = item("todo_list", items=[{"text": "Write it.", "completed": False}])
    assert ended("codex", CODEX.begin, plan, CODEX.end).reason is Reason.NO_ANSWER


@pytest.mark.parametrize("last", [[], [{"type": "assistant", "message": {"content": []}}]])
def test_qwen_that_says_nothing_after_a_tool_was_stopped(last: list[Event]) -> None:
    outcome = ended("qwen", QWEN.begin, QWEN.text, QWEN.tool, back(), *last, QWEN.end)
    assert (outcome.status, outcome.reason) == (FAILED, Reason.UNFINISHED)
    structured = {**QWEN.end, "result": '{"answer": 3}', "structured_result": {"answer": 3}}
    assert ended("qwen", QWEN.begin, QWEN.tool, back(), structured).status is SUCCEEDED
    assert ended("qwen", QWEN.begin, QWEN.tool, back(), QWEN.text, QWEN.end).status is SUCCEEDED


@pytest.mark.parametrize("stop_reason", ["max_tokens", "length", "unheard_of", "tool_use"])
def test_a_last_message_of_qwen_that_was_cut_off_is_no_end(stop_reason: str) -> None:
    last = {"type": "assistant", "message": {"content": [{"type": "text", "text": "I"}], "stop_reason": stop_reason}}
    assert ended("qwen", QWEN.begin, last, {**QWEN.end, "result": "I"}).reason is Reason.UNFINISHED


@pytest.mark.parametrize("subtype", ["error_max_turns", "error_during_execution", "error_of_tomorrow"])
def test_a_result_of_qwen_that_calls_itself_an_error_is_one(subtype: str) -> None:
    assert ended("qwen", QWEN.begin, QWEN.text, {**QWEN.end, "subtype": subtype}).status is FAILED


def test_opencode_goes_on_after_it_has_made_its_conversation_shorter() -> None:
    """As 1.18.33 was seen to: a step that ends with stop, a text for the model, and the next step when that answers."""
    summary = [OPENCODE.begin, {"type": "text", "part": {"text": "So far: the tests fail."}}, OPENCODE.end]
    shorter = [OPENCODE.begin, OPENCODE.tool, *summary, {"type": "text", "part": {"text": "Continue, or ask."}}]
    assert reader("opencode", *shorter).stage is Stage.WORKING, "a slow model is not cut off"
    for code, by, reason in ((-15, "timeout", Reason.TIMEOUT), (-9, None, Reason.INTERRUPTED)):
        assert ended("opencode", *shorter, code=code, by=by).reason is reason
    assert ended("opencode", *shorter).status is FAILED, "it ended before its model went on"
    outcome = ended("opencode", *shorter, OPENCODE.begin, OPENCODE.text, OPENCODE.end)
    assert (outcome.status, outcome.text) == (SUCCEEDED, "Done.")


OPEN_CALL = {k: v for k, v in CLAUDE.end.items() if k != "stop_reason"}


def test_a_result_after_a_call_that_was_not_answered_ends_nothing() -> None:
    """Versions whose messages and results give no reason for their end."""
    for result in (OPEN_CALL, {**OPEN_CALL, "stop_reason": None, "result": "Let me see."}):
        for texts in ([CLAUDE.tool], [CLAUDE.text, CLAUDE.tool], [CLAUDE.tool, back(), CLAUDE.tool]):
            outcome = ended("claude", CLAUDE.begin, *texts, result)
            assert (outcome.status, outcome.reason) == (FAILED, Reason.UNFINISHED), texts
    assert ended("claude", CLAUDE.begin, CLAUDE.tool, back(), OPEN_CALL).status is SUCCEEDED
    answered = {**OPEN_CALL, "structured_output": {"a": 1}}
    assert ended("claude", CLAUDE.begin, CLAUDE.tool, answered).status is SUCCEEDED


@pytest.mark.parametrize(("code", "by"), [(1, None), (-15, "stall"), (-9, None)])
def test_a_limit_that_the_program_tells_in_a_message_of_its_own_is_one(code: int, by: Any) -> None:
    text = message({"type": "text", "text": LIMIT})
    text["message"]["model"] = "<synthetic>"
    first = {**CLAUDE.end, "num_turns": 0}
    outcome = ended("claude", CLAUDE.begin, first, CLAUDE.tool, back(), text, code=code, by=by)
    assert (outcome.status, outcome.reason) == (LIMITED, Reason.RATE_LIMITED)
    text["message"]["model"] = "claude-opus-5"
    assert ended("claude", CLAUDE.begin, CLAUDE.tool, back(), text, code=code, by=by).status is FAILED, "a quotation"


def test_that_somebody_interrupted_it_is_no_success() -> None:
    text = message({"type": "text", "text": "[Request interrupted by user for tool use]"})
    text["message"]["model"] = "<synthetic>"
    outcome = ended("claude", CLAUDE.begin, CLAUDE.text, text, CLAUDE.end)
    assert (outcome.status, outcome.reason) == (FAILED, Reason.INTERRUPTED)


@pytest.mark.parametrize("nothing", [" ", "\n", "\N{ZERO WIDTH SPACE}", "\N{WORD JOINER}\n", "\N{NO-BREAK SPACE}\x07"])
def test_an_answer_that_nobody_can_see_is_none(nothing: str) -> None:
    fields: dict[str, Event] = {
        "claude": message({"type": "text", "text": nothing}),
        "qwen": message({"type": "text", "text": nothing}),
        "gemini": {"type": "message", "role": "assistant", "content": nothing, "delta": True},
        "codex": item("agent_message", text=nothing),
        "opencode": {"type": "text", "part": {"text": nothing}},
    }
    for kind, event in fields.items():
        assert ended(kind, KINDS[kind].begin, event, KINDS[kind].end).reason is Reason.NO_ANSWER, kind
    payload = {"type": "assistant.message", "data": {"content": nothing}}
    assert ended("copilot", payload, {"type": "result", "exitCode": 0}).reason is Reason.NO_ANSWER


@pytest.mark.parametrize("why", ["max_tokens", "tool_use", "pause_turn", "length"])
def test_a_result_of_qwen_that_tells_of_a_model_that_was_cut_off(why: str) -> None:
    outcome = ended("qwen", QWEN.begin, QWEN.text, {**QWEN.end, "stop_reason": why})
    assert (outcome.status, outcome.reason) == (FAILED, Reason.UNFINISHED)
    assert ended("qwen", QWEN.begin, QWEN.text, {**QWEN.end, "stop_reason": "end_turn"}).status is SUCCEEDED
    turns = {**QWEN.end, "is_error": True, "subtype": "error_max_turns"}
    assert ended("qwen", QWEN.begin, QWEN.text, turns, code=1).reason is Reason.TURN_LIMIT


@pytest.mark.parametrize(
    "words",
    ["Response truncated due to token limits.", "Response stopped due to safety reasons.", "Max session turns reached"],
)
def test_a_warning_of_gemini_that_its_model_was_stopped(words: str) -> None:
    outcome = ended("gemini", GEMINI.begin, GEMINI.text, warned(words), GEMINI.end)
    assert (outcome.status, outcome.reason) == (FAILED, Reason.UNFINISHED)


def test_a_limit_that_codex_tells_as_an_item_ends_its_turn() -> None:
    for first in ([], [CODEX.text]):
        outcome = ended("codex", CODEX.begin, *first, item("error", message=LIMIT), CODEX.end)
        assert (outcome.status, outcome.reason) == (LIMITED, Reason.RATE_LIMITED)
        assert ended("codex", CODEX.begin, item("error", message=LIMIT), CODEX.text, CODEX.end).status is SUCCEEDED
    near = item("error", message="Heads up: you are close to your usage limit.")
    assert ended("codex", CODEX.begin, CODEX.text, near, CODEX.end).status is SUCCEEDED


COPILOT: dict[str, Event] = {
    "text": {"type": "assistant.message", "data": {"content": "Done."}},
    "asks": {"type": "assistant.message", "data": {"content": "Let me see.", "toolRequests": [{"name": "bash"}]}},
    "begins": {"type": "assistant.turn_start", "data": {}},
    "tool": {"type": "tool.execution_start", "data": {"toolCallId": "1", "toolName": "bash"}},
    "end": {"type": "result", "exitCode": 0},
}


def test_what_copilot_begins_after_its_result_takes_that_back() -> None:
    assert ended("copilot", COPILOT["text"], COPILOT["end"]).status is SUCCEEDED
    for second in ("text", "begins", "tool"):
        for code, by, reason in ((-9, "timeout", "timeout"), (-15, "stall", "stalled"), (-15, None, "interrupted")):
            outcome = ended("copilot", COPILOT["text"], COPILOT["end"], COPILOT[second], code=code, by=by)
            assert (outcome.status, outcome.reason) == (FAILED, reason), second
    assert ended("copilot", COPILOT["asks"], COPILOT["end"]).reason is Reason.UNFINISHED
    assert ended("copilot", COPILOT["asks"], COPILOT["tool"], COPILOT["text"], COPILOT["end"]).status is SUCCEEDED
    aborted = ended("copilot", COPILOT["text"], {"type": "abort", "data": {}}, COPILOT["end"])
    assert (aborted.status, aborted.reason) == (FAILED, Reason.INTERRUPTED)


@pytest.mark.parametrize("why", ["content_filter", "max_tokens", "error", "other", "unknown"])
def test_a_last_step_of_opencode_that_ended_otherwise_was_cut_off(why: str) -> None:
    end = {"type": "step_finish", "part": {"reason": why}}
    outcome = ended("opencode", OPENCODE.begin, OPENCODE.text, end)
    assert (outcome.status, outcome.reason) == (FAILED, Reason.UNFINISHED)
    calls = {"type": "step_finish", "part": {"reason": "tool-calls"}}
    assert ended("opencode", OPENCODE.begin, OPENCODE.tool, calls).reason is Reason.AGENT_ERROR
