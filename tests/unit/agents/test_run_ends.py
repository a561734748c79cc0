"""What ends a run, of every CLI alike: its last turn, with work in it; else whatever ended its program."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.report import Stage
from claudomator_py.domain.run import ExitRecord
from claudomator_py.ports import OutputReader

NOW_MS = 1_795_293_400_000
Event = dict[str, Any]
SUCCEEDED, FAILED = OutcomeStatus.SUCCEEDED, OutcomeStatus.FAILED


@dataclass(frozen=True)
class Words:
    """How a CLI puts it. end: what ends a turn well, in which nothing was used. thought: of a model that only thinks.

    limit: that a limit was met, as the last thing that it says before it ends its turn.
    """

    begin: Event
    text: Event
    tool: Event
    end: Event
    thought: Event
    limit: Event | None = None


def message(block: Event, **more: object) -> Event:
    return {"type": "assistant", "message": {"content": [block]}, **more}


def item(kind: str, begin: bool = False, **fields: object) -> Event:
    return {"type": "item.started" if begin else "item.completed", "item": {"id": "1", "type": kind, **fields}}


LIMIT = "You've hit your usage limit. Try again at Dec 2nd, 2026 10:40 AM."
RESULT = {"type": "result", "is_error": False, "result": "", "usage": {"input_tokens": 0, "output_tokens": 0}}
KINDS = {
    "claude": Words(
        {"type": "system", "subtype": "init"},
        message({"type": "text", "text": "Done."}),
        message({"type": "tool_use", "name": "Write", "id": "1", "input": {}}),
        {**RESULT, "subtype": "success", "stop_reason": "end_turn", "num_turns": 1},
        message({"type": "thinking", "thinking": "Hm."}),
        message({"type": "text", "text": "You've hit your session limit"}, error="rate_limit"),
    ),
    "qwen": Words(
        {"type": "system", "subtype": "init"},
        message({"type": "text", "text": "Done."}),
        message({"type": "tool_use", "name": "write_file", "id": "1", "input": {}}),
        {**RESULT, "subtype": "success", "num_turns": 1},
        message({"type": "thinking", "thinking": "Hm."}),
        message({"type": "text", "text": "[API Error: 429 Rate limit reached, try again in 3h]"}),
    ),
    "gemini": Words(
        {"type": "init", "model": "pro"},
        {"type": "message", "role": "assistant", "content": "Done.", "delta": True},
        {"type": "tool_use", "tool_name": "write_file", "tool_id": "1", "parameters": {}},
        {"type": "result", "status": "success", "stats": {"input_tokens": 0, "output_tokens": 0}},
        {"type": "message", "role": "assistant", "content": " ", "delta": True},
        {"type": "error", "severity": "error", "message": "You have exhausted your daily quota on this model."},
    ),
    "codex": Words(
        {"type": "turn.started"},
        item("agent_message", text="Done."),
        item("command_execution", begin=True, command="make"),
        {"type": "turn.completed", "usage": {"input_tokens": 0, "output_tokens": 0}},
        item("reasoning", text="Hm."),
        {"type": "error", "message": LIMIT},
    ),
    "opencode": Words(
        {"type": "step_start"},
        {"type": "text", "part": {"text": "Done."}},
        {"type": "tool_use", "part": {"tool": "write", "state": {"status": "completed"}}},
        {"type": "step_finish", "part": {"reason": "stop", "tokens": {"input": 0, "output": 0}}},
        {"type": "reasoning", "part": {"text": "Hm."}},
        {"type": "error", "error": {"name": "APIError", "data": {"message": "Too many requests", "statusCode": 429}}},
    ),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def words(kind: str) -> Words:
    return KINDS[kind]


def reader(kind: str, *events: Event) -> OutputReader:
    output_reader = AGENT_KINDS[kind].reader()
    for event in events:
        output_reader.feed("stdout", json.dumps(event).encode() + b"\n")
    return output_reader


def ended(kind: str, *events: Event, code: int = 0, by: Any = None) -> Outcome:
    return reader(kind, *events).outcome(ExitRecord(code, by, NOW_MS - 60_000, NOW_MS), NOW_MS)


def test_a_turn_with_a_text_or_a_tool_in_it_is_a_success(kind: str, words: Words) -> None:
    for work in ([words.text], [words.tool], [words.tool, words.thought], [words.thought, words.text]):
        events = [words.begin, *work, words.end]
        assert reader(kind, *events).stage is Stage.DONE
        assert ended(kind, *events).status is SUCCEEDED, work
        assert ended(kind, *events, code=-9, by="timeout").status is SUCCEEDED, "it was done by then"


def test_an_answer_of_nothing_is_none(kind: str, words: Words) -> None:
    for nothing in ([], [words.begin], [words.begin, words.thought]):
        outcome = ended(kind, *nothing, words.end)
        assert (outcome.status, outcome.reason) == (FAILED, Reason.NO_ANSWER), nothing
        assert outcome.detail


def test_what_begins_another_turn_takes_the_end_of_the_one_before_back(kind: str, words: Words) -> None:
    first = [words.begin, words.text, words.end]
    for second in ([words.begin], [words.tool], [words.begin, words.tool]):
        assert reader(kind, *first, *second).stage is Stage.WORKING
        for code, by, reason in ((-9, "timeout", "timeout"), (-15, "stall", "stalled"), (-15, None, "interrupted")):
            outcome = ended(kind, *first, *second, code=code, by=by)
            assert (outcome.status, outcome.reason) == (FAILED, reason), second
        assert reader(kind, *first, *second).outcome(None, NOW_MS).status is OutcomeStatus.LOST
        assert ended(kind, *first, *second, words.end).status is SUCCEEDED


def test_a_limit_that_was_met_last_is_one_whatever_ended_the_program(kind: str, words: Words) -> None:
    assert words.limit is not None
    for first in ([], [words.begin, words.text, words.end]):
        events = [*first, words.begin, words.tool, words.limit]
        for code, by in ((1, None), (-15, None), (-9, "stall")):
            assert ended(kind, *events, code=code, by=by).status is OutcomeStatus.LIMITED, first
        assert ended(kind, *events, code=-15, by="cancel").status is OutcomeStatus.CANCELLED


STREAMS = {"gemini": {"type": "tool_result", "tool_id": "1"}, "codex": item("command_execution", command="make")}


@pytest.mark.parametrize(("kind", "event"), STREAMS.items(), ids=STREAMS)
def test_the_result_of_a_tool_after_the_end_of_a_turn_is_of_another_one(kind: str, event: Event) -> None:
    words = KINDS[kind]
    events = [words.begin, words.text, words.end, event]
    assert reader(kind, *events).stage is Stage.WORKING
    assert ended(kind, *events, code=-15, by="timeout").reason is Reason.TIMEOUT
    assert ended(kind, *events, words.end).status is SUCCEEDED


def test_an_event_that_was_cut_off_is_one_more(kind: str, words: Words) -> None:
    output_reader = reader(kind, words.begin, words.text, words.end)
    output_reader.feed("stdout", json.dumps(words.tool).encode()[:-9])
    killed = ExitRecord(-9, "timeout", NOW_MS - 60_000, NOW_MS)
    assert output_reader.outcome(killed, NOW_MS).reason is Reason.TIMEOUT
    assert output_reader.outcome(ExitRecord(0, None, NOW_MS - 60_000, NOW_MS), NOW_MS).status is SUCCEEDED


def test_a_limit_after_the_end_of_a_turn_of_codex_is_one() -> None:
    words = KINDS["codex"]
    outcome = ended("codex", words.begin, words.text, words.end, {"type": "error", "message": LIMIT}, code=1)
    assert (outcome.status, outcome.reason) == (OutcomeStatus.LIMITED, Reason.RATE_LIMITED)


REJECTED = {"status": "rejected", "rateLimitType": "five_hour", "resetsAt": 1_795_304_166}


def rejected(**more: object) -> Event:
    return {"type": "rate_limit_event", "rate_limit_info": {**REJECTED, **more}}


@pytest.mark.parametrize(("code", "by"), [(1, None), (0, None), (-15, "timeout")])
def test_a_request_of_claude_that_was_refused_last_is_a_limit(code: int, by: Any) -> None:
    words = KINDS["claude"]
    before = [words.begin, {**words.end, "num_turns": 0}, words.tool]
    outcome = ended("claude", *before, rejected(), code=code, by=by)
    assert (outcome.status, outcome.limit, outcome.reset_at) == (OutcomeStatus.LIMITED, "five_hour", 1_795_304_166_000)
    went_on = ended("claude", *before, rejected(), words.tool, code=code, by=by)
    paid = ended("claude", *before, rejected(overageStatus="allowed"), code=code, by=by)
    assert went_on.status is paid.status is FAILED
    assert ended("claude", words.begin, words.text, words.end, rejected()).status is SUCCEEDED


@pytest.mark.parametrize(
    ("stop_reason", "status"), [("max_tokens", FAILED), ("end_turn", SUCCEEDED), (None, SUCCEEDED)]
)
def test_of_a_result_of_claude_that_does_not_say_why_it_ended_its_last_message_does(
    stop_reason: str | None, status: OutcomeStatus
) -> None:
    words = KINDS["claude"]
    last = {"type": "assistant", "message": {**words.text["message"], "stop_reason": stop_reason}}
    result = {name: value for name, value in words.end.items() if name != "stop_reason"}
    assert ended("claude", words.begin, last, result).status is status


@pytest.mark.parametrize(
    ("text", "model"), [("(no content)", "claude-opus-5-5"), ("Estimated cost: $0.0000", "<synthetic>")]
)
def test_what_claude_code_puts_into_a_message_itself_is_no_answer(text: str, model: str) -> None:
    words = KINDS["claude"]
    fields = {"type": "assistant", "message": {"model": model, "content": [{"type": "text", "text": text}]}}
    result = {**words.end, "result": text}
    assert ended("claude", words.begin, fields, result).reason is Reason.NO_ANSWER
    assert ended("claude", words.begin, words.tool, fields, result).status is SUCCEEDED


def test_words_of_a_result_of_claude_that_no_message_had_are_an_answer() -> None:
    words = KINDS["claude"]
    assert ended("claude", words.begin, words.thought, {**words.end, "result": "Done."}).status is SUCCEEDED


def test_tokens_of_gemini_without_a_message_are_no_answer() -> None:
    words = KINDS["gemini"]
    stats = {"input_tokens": 30, "output_tokens": 0, "total_tokens": 50}
    assert ended("gemini", words.begin, {**words.end, "stats": stats}).reason is Reason.NO_ANSWER
