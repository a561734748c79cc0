"""The end of a run of Claude Code: a result ends a turn, and the program may begin another one by itself.

The events are those that 2.1.330 was seen to print, cut to what is read.
"""

from typing import Any

import pytest

from claudomator_py.agents.claude.events import ClaudeEvents
from claudomator_py.agents.event_reader import EventReader
from claudomator_py.domain.limits import done_text
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason, Tokens
from claudomator_py.domain.report import Stage
from claudomator_py.domain.run import EndedBy, ExitRecord
from tests.unit.agents.test_claude_reader import (
    LIMIT_MESSAGE,
    NOW_MS,
    answer,
    ended,
    error_message,
    lines,
    read,
    result,
)

Event = dict[str, Any]
KILLS: list[tuple[int, EndedBy | None, str]] = [
    (143, "timeout", "timeout"),
    (-9, "stall", "stalled"),
    (-15, "interrupt", "interrupted"),
    (-9, "output_limit", "output_limit"),
    (-15, None, "interrupted"),
    (-9, None, "interrupted"),
]
SUCCEEDED, FAILED, LIMITED = OutcomeStatus.SUCCEEDED, OutcomeStatus.FAILED, OutcomeStatus.LIMITED


def system(subtype: str, **fields: object) -> Event:
    return {"type": "system", "subtype": subtype, **fields}


def call(tool: str, call_id: str = "toolu_1", **given: object) -> Event:
    block = {"type": "tool_use", "id": call_id, "name": tool, "input": given}
    return {"type": "assistant", "message": {"model": "claude", "content": [block]}}


def said_back(call_id: str = "toolu_1", **more: object) -> Event:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": "ok"}
    return {"type": "user", "message": {"content": [block]}, **more}


_NO = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "no", "is_error": True}
REFUSED = {"type": "user", "message": {"content": [_NO]}}
INIT = system("init")
TURN = [INIT, answer("I am at it."), result()]
COMMAND = {"task_id": "b1", "task_type": "local_bash"}
BEGUN = system("task_started", is_backgrounded=True, **COMMAND)
OPEN = system("background_tasks_changed", tasks=[COMMAND])
NONE_OPEN = system("background_tasks_changed", tasks=[])
TOLD = system("task_notification", task_id="b1", status="completed")
IN_BACKGROUND = [INIT, call("Bash", run_in_background=True), OPEN, BEGUN, said_back(), answer("Started."), result()]
DUE_MS = NOW_MS + 60_000
WAKE_UP = [INIT, call("ScheduleWakeup", delaySeconds=60), said_back(tool_use_result={"scheduledFor": DUE_MS}), result()]
OF_NO_TURN = result(result="", num_turns=0, usage={"input_tokens": 0, "output_tokens": 0})


def stage(*events: object) -> Stage:
    reader = EventReader(ClaudeEvents())
    reader.feed("stdout", lines(events))
    return reader.stage


BETWEEN_TURNS = {
    "a background task is open": IN_BACKGROUND,
    "one that an older version names only once": [INIT, call("Bash"), BEGUN, said_back(), result()],
    "a subagent is at work": [*IN_BACKGROUND, system("task_started", task_id="a1", task_type="local_agent")],
    "it has ended": [*IN_BACKGROUND, system("task_updated", task_id="b1", patch={"status": "completed"})],
    "it has ended, and the model is to be told": [*IN_BACKGROUND, TOLD, NONE_OPEN],
    "a wake-up is due": WAKE_UP,
    "a wake-up is due, of which no time is told": [
        INIT,
        call("ScheduleWakeup", delaySeconds=60),
        said_back(),
        result(),
    ],
    "a command, of a version that tells of none": [
        *(INIT, call("Bash"), said_back(tool_use_result={"backgroundTaskId": "b1"}), result()),
    ],
    "a wake-up is due after a turn in between": [*WAKE_UP, TOLD, INIT, answer("Seen."), result()],
    "a message is queued": [*TURN[:-1], result(queued_turn_count=1)],
}
AT_WORK = {
    "a wake-up has come": [*WAKE_UP, {"type": "command_lifecycle", "state": "started", "wakeup_source": "loop_wakeup"}],
    "nothing but a result of no turn": [TOLD, INIT, OF_NO_TURN],
    "a tool after a result of no turn": [INIT, OF_NO_TURN, INIT, call("Bash")],
    "a second turn has begun": [*IN_BACKGROUND, TOLD, NONE_OPEN, INIT],
    "a second turn is at a tool": [*TURN, INIT, call("Bash")],
    "a second turn, of which no beginning is told": [*TURN, call("Bash"), said_back()],
    "it asks its service again": [*TURN, system("api_retry", attempt=1)],
}
DONE = {
    "one turn": TURN,
    "both turns": [*IN_BACKGROUND, TOLD, NONE_OPEN, *TURN],
    "a task that ended within the turn": [INIT, call("Agent"), BEGUN, TOLD, said_back(), answer("x"), result()],
    "a task in the foreground": [
        INIT,
        system("task_started", task_id="a", is_backgrounded=False),
        answer("x"),
        result(),
    ],
    "two results at once": [
        INIT,
        call("Workflow"),
        OPEN,
        said_back(),
        TOLD,
        NONE_OPEN,
        INIT,
        answer("x"),
        *[result()] * 2,
    ],
    "after the wake-up": [
        *WAKE_UP,
        {"type": "command_lifecycle", "state": "started", "wakeup_source": "loop_wakeup"},
        *TURN,
        {"type": "command_lifecycle", "state": "completed"},
    ],
    "after a wake-up that is told by its time alone": [
        *WAKE_UP,
        {**answer("Looked."), "timestamp": "2027-01-01T00:00:00Z"},
        result(),
    ],
    "after a wake-up of which no time was told": [
        *(INIT, call("ScheduleWakeup", delaySeconds=60), said_back(), answer("Later."), result()),
        *TURN,
    ],
    "a wake-up that was taken back": [
        *WAKE_UP[:-1],
        call("ScheduleWakeup", "toolu_2", stop=True),
        said_back("toolu_2", tool_use_result={"scheduledFor": 0, "stopped": True}),
        result(),
    ],
    "a wake-up that was refused": [INIT, call("ScheduleWakeup"), REFUSED, answer("No."), result()],
    "with a leftover told on resume": [TOLD, INIT, OF_NO_TURN, INIT, answer("x"), result()],
    "with what opens nothing": [*TURN, {"type": "rate_limit_event", "rate_limit_info": {}}, NONE_OPEN],
    "with a word of a subagent": [*TURN, {**answer("x"), "parent_tool_use_id": "toolu_1"}],
}


@pytest.mark.parametrize("events", DONE.values(), ids=DONE)
def test_a_run_is_over_when_its_last_turn_has_a_result_and_nothing_is_open(events: list[Event]) -> None:
    assert stage(*events) is Stage.DONE
    for exit_code, ended_by, _ in KILLS:
        assert read(*events, exit_record=ended(exit_code, ended_by)).status is SUCCEEDED
    reader = EventReader(ClaudeEvents())
    reader.feed("stdout", lines(events))
    assert reader.outcome(None, NOW_MS).status is SUCCEEDED, "whether or not its supervisor was lost"


@pytest.mark.parametrize("events", [*BETWEEN_TURNS.values(), *AT_WORK.values()], ids=[*BETWEEN_TURNS, *AT_WORK])
@pytest.mark.parametrize(("exit_code", "ended_by", "reason"), KILLS)
def test_killed_before_that_its_outcome_is_what_killed_it(
    events: list[Event], exit_code: int, ended_by: EndedBy | None, reason: str
) -> None:
    outcome = read(*events, exit_record=ended(exit_code, ended_by))
    assert (outcome.status, outcome.reason) == (FAILED, reason)


@pytest.mark.parametrize("events", [*BETWEEN_TURNS.values(), *AT_WORK.values()], ids=[*BETWEEN_TURNS, *AT_WORK])
def test_lost_before_that_it_is_lost(events: list[Event]) -> None:
    reader = EventReader(ClaudeEvents())
    reader.feed("stdout", lines(events))
    assert reader.outcome(None, NOW_MS).status is OutcomeStatus.LOST


@pytest.mark.parametrize("name", BETWEEN_TURNS)
def test_between_two_turns_its_program_may_end_by_itself(name: str) -> None:
    events = BETWEEN_TURNS[name]
    assert stage(*events) is (
        Stage.BACKGROUND if any(word in name for word in ("open", "older", "command")) else Stage.WAITING
    )
    assert read(*events, exit_record=ended(0)).status is SUCCEEDED
    assert read(*events, exit_record=ended(1)).reason is Reason.AGENT_ERROR


def scheduled(number: int, *, given: object = True, **made: object) -> list[Event]:
    """A job of its scheduler is made. made: what the result says of it."""
    call_id, words = f"toolu_c{number}", f"Scheduled recurring job job{number} (Every 5 minutes). Session-only."
    block = {"type": "tool_result", "tool_use_id": call_id, "content": words}
    result_of_it = {"tool_use_result": {"id": f"job{number}", **made}} if made or given else {}
    return [
        call("CronCreate", call_id, cron="*/5 * * * *", prompt="look", recurring=made.get("recurring", True)),
        {"type": "user", "message": {"content": [block]}, **result_of_it},
    ]


def unscheduled(number: int) -> list[Event]:
    return [call("CronDelete", "toolu_d", id=f"job{number}"), said_back("toolu_d")]


ONCE = {"recurring": False, "durable": False}
_REFUSED_JOB = [call("CronCreate", cron="x", prompt="look"), REFUSED]
BY_SUBAGENT = [{**entry, "parent_tool_use_id": "toolu_9"} for entry in scheduled(1, recurring=True)]
DROPPED = {
    "1 scheduled job": [INIT, *scheduled(1, recurring=True), answer("Will do."), result()],
    "1 scheduled job, of a version that says it in words": [INIT, *scheduled(1, given=False), result()],
    "1 scheduled job, which is durable": [INIT, *scheduled(1, durable=True), answer("Will do."), result()],
    "1 scheduled job, by a subagent": [INIT, call("Agent"), *BY_SUBAGENT, said_back(), answer("x"), result()],
    "1 scheduled job, still to come": [INIT, *scheduled(1, **ONCE, nextFireAt=DUE_MS), answer("x"), result()],
    "2 scheduled jobs": [INIT, *scheduled(1), *scheduled(2), *scheduled(3), *unscheduled(2), result()],
    "1 wake-up": WAKE_UP,
    "1 scheduled job and 1 wake-up": [INIT, *scheduled(1), *WAKE_UP[1:]],
    "1 background task": IN_BACKGROUND,
}
KEPT = {
    "one turn": TURN,
    "a job that was taken back": [INIT, *scheduled(1), *unscheduled(1), answer("x"), result()],
    "one taken back that was told in words": [INIT, *scheduled(1, given=False), *unscheduled(1), answer("x"), result()],
    "a job that was refused": [INIT, *_REFUSED_JOB, answer("x"), result()],
    "a job that has come": [INIT, *scheduled(1, **ONCE, nextFireAt=NOW_MS - 1), answer("x"), result()],
    "the jobs are listed": [INIT, call("CronList"), said_back(), answer("x"), result()],
    "words about a job": [INIT, answer("CronCreate job1"), result()],
    "both turns": [*IN_BACKGROUND, TOLD, NONE_OPEN, *TURN],
}


@pytest.mark.parametrize("name", DROPPED)
def test_what_was_set_up_for_later_and_goes_with_the_program_is_said(name: str) -> None:
    outcome = read(*DROPPED[name], exit_record=ended(0))
    assert outcome.status is SUCCEEDED
    assert f"what it had set up for later: {name.partition(',')[0]}. " in str(outcome.detail)
    assert "`schedule`" in str(outcome.detail)
    assert outcome.dropped == sum(int(word) for word in name.split() if word.isdigit())
    assert done_text(outcome, checked=True) == "done, but what it had set up for later was dropped"


@pytest.mark.parametrize("name", KEPT)
def test_nothing_is_said_where_nothing_was_to_come(name: str) -> None:
    outcome = read(*KEPT[name], exit_record=ended(0))
    assert (outcome.status, outcome.detail, outcome.dropped) == (SUCCEEDED, None, 0)
    assert done_text(outcome, checked=True) is None


def test_of_a_job_beside_denials_both_are_said() -> None:
    denied = result(permission_denials=[{"tool_name": "Bash", "tool_use_id": "t", "tool_input": {}}])
    outcome = read(INIT, *scheduled(1), answer("x"), denied, exit_record=ended(0))
    assert "1 tool call was denied: Bash" in str(outcome.detail)
    assert "1 scheduled job" in str(outcome.detail)
    assert done_text(outcome, checked=False) == "done, with 1 denial; but what it had set up for later was dropped"


def test_a_job_does_not_keep_a_run_and_is_said_of_one_that_was_stopped_after_its_last_word() -> None:
    events = [INIT, *scheduled(1), answer("Will do."), result()]
    assert stage(*events) is Stage.DONE
    stayed = read(*events, exit_record=ended(143, "wind_down"))
    assert "did not exit after its last word" in str(stayed.detail)
    assert "1 scheduled job" in str(stayed.detail)
    assert read(INIT, *scheduled(1), call("Bash"), exit_record=ended(143, "timeout")).dropped == 0


@pytest.mark.parametrize(("after", "left"), [([], True), ([TOLD, NONE_OPEN], True), ([TOLD, *TURN, NONE_OPEN], False)])
def test_one_that_is_stopped_after_its_last_word_keeps_its_success_and_says_why(after: list[Event], left: bool) -> None:
    outcome = read(*IN_BACKGROUND, *after, exit_record=ended(143, "wind_down"))
    assert (outcome.status, outcome.reason) == (SUCCEEDED, None)
    assert ("in the background" in str(outcome.detail)) is left
    assert "was stopped." in str(outcome.detail)


@pytest.mark.parametrize("name", AT_WORK)
def test_in_the_middle_of_a_turn_an_exit_proves_nothing(name: str) -> None:
    events = AT_WORK[name]
    assert stage(*events) is Stage.WORKING
    reason = Reason.NO_ANSWER if name.startswith("nothing") else Reason.AGENT_ERROR
    assert (read(*events, exit_record=ended(0)).status, read(*events, exit_record=ended(0)).reason) == (FAILED, reason)


@pytest.mark.parametrize("exit_record", [ended(1), ended(-15), ended(143, "timeout"), ended(-9, "stall")])
@pytest.mark.parametrize("first", [TURN, IN_BACKGROUND, [INIT, OF_NO_TURN]])
def test_a_limit_after_a_result_is_a_limit(first: list[Event], exit_record: ExitRecord) -> None:
    limit = error_message(LIMIT_MESSAGE, "rate_limit", api_error_status=429)
    assert read(*first, INIT, call("Bash"), limit, exit_record=exit_record).status is LIMITED
    assert read(*first, INIT, limit, answer("It goes on."), exit_record=exit_record).status is FAILED


def used(message_id: str, given: int, made: int, **more: object) -> Event:
    usage = {"input_tokens": given, "output_tokens": made}
    return {"type": "assistant", "message": {"id": message_id, "model": "m", "content": [], "usage": usage}, **more}


def since(given: int, made: int, dollars: float) -> Event:
    return {"model_usage_since_last_result": {"m": {"inputTokens": given, "outputTokens": made, "costUSD": dollars}}}


@pytest.mark.parametrize(
    ("events", "tokens", "cost_usd"),
    [
        ([OF_NO_TURN | since(0, 0, 0), used("a", 100, 5), used("b", 200, 1)], (300, 6), None),
        ([used("a", 100, 1), result(**since(100, 25, 0.5)), used("b", 200, 1)], (300, 26), 0.5),
        ([used("a", 100, 1), result(**since(100, 25, 0.5)), used("b", 9, 1, parent_tool_use_id="t")], (109, 26), 0.5),
        ([used("a", 1, 1), result(**since(1, 2, 0.5)), used("b", 3, 1), result(**since(3, 4, 0.5))], (4, 6), 1.0),
        ([used("a", 1, 1), result(usage={"input_tokens": 1, "output_tokens": 2}), used("b", 3, 1)], (4, 3), None),
    ],
)
def test_tokens_count_as_they_come_whatever_was_printed_before(
    events: list[Event], tokens: tuple[int, int], cost_usd: float | None
) -> None:
    reader = EventReader(ClaudeEvents())
    reader.feed("stdout", lines(events))
    assert reader.used.tokens == Tokens(input=tokens[0], output=tokens[1])
    assert reader.used.cost_usd == cost_usd
    killed = reader.outcome(ended(-15, "cancel"), NOW_MS)
    assert killed.tokens == reader.used.tokens


@pytest.mark.parametrize(
    "stop_reason", ["tool_use", "max_tokens", "pause_turn", "tool_deferred", "length", "unheard_of"]
)
def test_a_model_that_was_cut_off_has_not_finished(stop_reason: str) -> None:
    outcome = read(answer("I begin."), result(stop_reason=stop_reason), exit_record=ended(0))
    assert (outcome.status, outcome.reason) == (FAILED, Reason.UNFINISHED)
    assert stop_reason in str(outcome.detail)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"stop_reason": "end_turn"}, None),
        ({"stop_reason": "stop_sequence"}, None),
        ({"stop_reason": None}, None),
        ({"stop_reason": "tool_use", "structured_output": {"answer": "hi"}}, None),
        ({"stop_reason": "end_turn", "terminal_reason": "background_requested"}, Reason.UNFINISHED),
        ({"stop_reason": "model_context_window_exceeded"}, Reason.CONTEXT_TOO_LONG),
        ({"stop_reason": "tool_use", "terminal_reason": "max_turns"}, Reason.TURN_LIMIT),
        ({"stop_reason": "tool_use", "is_error": True}, Reason.AGENT_ERROR),
    ],
)
def test_what_a_model_stopped_for(fields: Event, reason: Reason | None) -> None:
    assert read(answer("I begin."), result(**fields), exit_record=ended(0)).reason is reason


NOTHING = result(result="", num_turns=1, usage={"input_tokens": 0, "output_tokens": 0})
THOUGHT = {"type": "assistant", "message": {"content": [{"type": "thinking", "thinking": "Hm."}]}}


@pytest.mark.parametrize("events", [[NOTHING], [INIT, NOTHING], [INIT, answer(" "), NOTHING], [INIT, THOUGHT, NOTHING]])
def test_an_answer_of_nothing_is_no_success(events: list[Event]) -> None:
    outcome: Outcome = read(*events, exit_record=ended(0))
    assert (outcome.status, outcome.reason) == (FAILED, Reason.NO_ANSWER)


@pytest.mark.parametrize(
    "events",
    [
        [result(result="Done.")],
        [INIT, answer("Done."), NOTHING],
        [INIT, call("Write"), said_back(), result(result="")],
        [result(result="", usage={"input_tokens": 900, "output_tokens": 40})],
        [result(result="", structured_output={"answer": "hi"})],
    ],
)
def test_work_without_a_last_word_is_a_success(events: list[Event]) -> None:
    assert read(*events, exit_record=ended(0)).status is SUCCEEDED


def test_a_command_that_ends_without_a_model_says_why() -> None:
    why = "Shell command permission check failed: This command requires approval"
    nobody = {"num_turns": 0, "usage": {"input_tokens": 0, "output_tokens": 0}}
    ends = [result(result=why, **nobody, **more) for more in ({"local_command": "custom"}, {})]
    told, untold = (read(INIT, end, exit_record=ended(0)) for end in ends)
    assert told.reason is untold.reason is Reason.NO_ANSWER
    assert told.error == f"{untold.error}; the program says: {why}"


def test_an_answer_without_visible_output_is_none_whatever_it_cost() -> None:
    """As 2.1.330 ends where its model writes an empty text twice: a success, with tokens and nothing else."""
    asked_again = {"type": "user", "message": {"content": [{"type": "text", "text": "[Your previous response had no"}]}}
    usage = {"input_tokens": 2400, "output_tokens": 50}
    outcome = read(INIT, asked_again, result(result="", stop_reason="end_turn", usage=usage), exit_record=ended(0))
    assert (outcome.status, outcome.reason) == (FAILED, Reason.NO_ANSWER)


@pytest.mark.parametrize("typed", [{"api_error": "max_output_tokens"}, {}])
def test_an_answer_over_the_maximum_of_tokens_is_cut_off(typed: dict[str, str]) -> None:
    """As 2.1.330 ends after three more tries: by the field where there is one, else by the last message's category."""
    text = "API Error: Claude's response exceeded the 128000 output token maximum."
    last = error_message(text, "max_output_tokens", **typed)
    ending = result(result=text, is_error=True, terminal_reason="api_error", stop_reason="stop_sequence", **typed)
    outcome = read(INIT, answer("It is"), last, ending, exit_record=ended(1))
    assert (outcome.status, outcome.reason) == (FAILED, Reason.UNFINISHED)
