"""Calls of Copilot's model that were cut off in their arguments: it asks again, and nothing ends that."""

import json

from claudomator_py.agents.copilot.events import CopilotEvents
from claudomator_py.agents.event_reader import EventReader
from claudomator_py.domain.outcome import OutcomeStatus, Reason
from claudomator_py.domain.run import EndedBy, ExitRecord

NOW_MS = 1_796_102_760_000


def called(number: int, *, cut: bool, error: str | None = "Unexpected end of JSON input") -> bytes:
    """A call and its result, a second after the last. cut: whether its arguments were cut off."""
    request = {"toolCallId": f"c{number}", "name": "bash", "arguments": {}}
    result = {
        "toolCallId": f"c{number}",
        "success": error is None,
        **({} if error is None else {"error": {"message": error, "code": "failure"}}),
        "toolTelemetry": {"properties": {"wasSyntaxError": "true"} if cut else {}},
    }
    events = [
        {"type": "assistant.message", "data": {"content": "", "toolRequests": [request]}},
        {"type": "tool.execution_start", "data": {"toolCallId": f"c{number}", "toolName": "bash", "arguments": {}}},
        {"type": "tool.execution_complete", "data": result, "timestamp": NOW_MS + number * 1_000},
    ]
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def stopped(ended_by: EndedBy) -> ExitRecord:
    return ExitRecord(-15, ended_by, NOW_MS, NOW_MS + 60_000)


def test_calls_that_are_all_cut_off_lead_nowhere() -> None:
    reader = EventReader(CopilotEvents())
    for number in range(2):
        reader.feed("stdout", called(number, cut=True))
        assert reader.stuck_since is None, "it may be an accident"
    reader.feed("stdout", called(2, cut=True))
    assert reader.stuck_since == NOW_MS
    for ended_by in ("cancel", "timeout", "stall"):
        outcome = reader.outcome(stopped(ended_by), NOW_MS)
        assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.UNFINISHED)
        assert outcome.detail == "the arguments of its model's last 3 tool calls were cut off"


def test_a_call_between_them_that_was_whole_is_progress() -> None:
    reader = EventReader(CopilotEvents())
    for number, cut in enumerate((True, True, False, True, True)):
        reader.feed("stdout", called(number, cut=cut, error="no such file"))
    assert reader.stuck_since is None
    assert reader.outcome(stopped("timeout"), NOW_MS).reason is Reason.TIMEOUT


def test_that_it_was_told_to_stop_is_no_other_end_of_them() -> None:
    """Such a turn has a result, with exit code 0, if the program has the time to write one."""
    reader = EventReader(CopilotEvents())
    for number in range(3):
        reader.feed("stdout", called(number, cut=True))
    ending = [
        {"type": "abort", "data": {"reason": "user_initiated"}},
        {"type": "assistant.turn_end", "data": {"turnId": "2"}},
        {"type": "assistant.idle", "data": {"aborted": True}},
        {"type": "result", "sessionId": "s", "exitCode": 0},
    ]
    reader.feed("stdout", b"".join(json.dumps(event).encode() + b"\n" for event in ending))
    outcome = reader.outcome(stopped("cancel"), NOW_MS)
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.UNFINISHED)


def test_a_turn_that_was_told_to_stop_is_no_success() -> None:
    reader = EventReader(CopilotEvents())
    events = [
        {"type": "assistant.message", "data": {"content": "I look."}},
        {"type": "abort", "data": {"reason": "user_initiated"}},
        {"type": "assistant.turn_end", "data": {"turnId": "0"}},
        {"type": "assistant.idle", "data": {"aborted": True}},
        {"type": "result", "sessionId": "s", "exitCode": 0},
    ]
    reader.feed("stdout", b"".join(json.dumps(event).encode() + b"\n" for event in events))
    outcome = reader.outcome(ExitRecord(0, None, NOW_MS, NOW_MS + 1_000), NOW_MS)
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.INTERRUPTED)
