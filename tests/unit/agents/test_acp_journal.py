"""What a turn over ACP came to, where its agent says ``end_turn`` whatever happens and writes the truth into a file."""

from pathlib import Path
from typing import Any

import pytest

from claudomator_py.agents.acp.profiles import profiles
from claudomator_py.agents.acp_client.journal import Journal
from claudomator_py.domain.outcome import OutcomeStatus, Reason, Tokens
from tests.fakes.acp import SESSION
from tests.unit.agents.acp_runs import Runs, task

WIRE = ".kimi-code/sessions/wd_w_1/{}/agents/{}/wire.jsonl"


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path, program="kimi")


def wrote(*lines: object, by: str = "main", session: str = SESSION, below: str = "") -> dict[str, Any]:
    return {"write": (below or "") + WIRE.format(session, by), "lines": list(lines)}


def ended(finish: str) -> dict[str, Any]:
    return {"type": "context.append_loop_event", "event": {"type": "step.end", "finishReason": finish}}


def used(given: int, made: int) -> dict[str, Any]:
    usage = {"inputOther": given, "output": made, "inputCacheRead": 0, "inputCacheCreation": 0}
    return {"type": "usage.record", "usage": usage}


def failed(code: str, message: str, **details: object) -> dict[str, Any]:
    return {"type": "turn.ended", "reason": "failed", "error": {"code": code, "message": message, "details": details}}


def again(message: str, status: int | None = None) -> dict[str, Any]:
    return {"type": "turn.step.retrying", "errorMessage": message, "statusCode": status}


END: dict[str, Any] = {"end": {}}


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([failed("provider.connection_error", "terminated")], Reason.NETWORK),
        ([failed("provider.overloaded", "503 overloaded", statusCode=503)], Reason.OVERLOADED),
        ([failed("provider.api_error", "402 Pay first", statusCode=402)], Reason.NO_CREDIT),
        ([failed("loop.max_steps_exceeded", "Turn exceeded maxSteps=2.")], Reason.TURN_LIMIT),
        ([ended("max_tokens")], Reason.UNFINISHED),
        ([again("503 overloaded", 503), ended("error"), failed("new.code", "It broke.")], Reason.AGENT_ERROR),
    ],
)
def test_a_failure_that_stands_in_the_journal_alone_is_one(runs: Runs, lines: list[object], reason: Reason) -> None:
    outcome = runs.run({"turn": [{"say": "Half an ans"}, wrote(used(7, 2), *lines), END]}).outcome
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, reason), outcome
    assert outcome.tokens == Tokens(input=7, output=2)


def test_a_request_that_was_sent_again_and_answered_is_a_success(runs: Runs) -> None:
    lines = (ended("error"), again("503 overloaded", 503), used(7, 2), ended("end_turn"))
    outcome = runs.run({"turn": [wrote(*lines), {"say": "Done."}, END]}).outcome
    assert (outcome.status, outcome.text) == (OutcomeStatus.SUCCEEDED, "Done."), outcome


def said(text: str) -> dict[str, Any]:
    part = {"type": "text", "text": text}
    return {"type": "context.append_loop_event", "event": {"type": "content.part", "part": part}}


def test_what_attempts_that_broke_off_had_said_is_no_part_of_the_answer(runs: Runs) -> None:
    broken = (said("The tests "), ended("error"), again("terminated"))
    script = {
        "turn": [{"say": "The tests "}, {"say": "All pass."}, wrote(*broken, said("All pass."), ended("end_turn")), END]
    }
    assert runs.run(script).outcome.text == "All pass."


def test_tools_without_a_last_word_are_a_success_once_the_end_was_written(runs: Runs) -> None:
    call = {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed", "kind": "edit"}}
    done = runs.run({"turn": [call, wrote(used(7, 2), ended("tool_use"), ended("end_turn")), END]}).outcome
    assert done.status is OutcomeStatus.SUCCEEDED, done
    cut = runs.run({"turn": [call, wrote(used(7, 2), ended("tool_use")), END]}).outcome
    assert cut.status is OutcomeStatus.FAILED, cut


def test_why_a_silent_agent_waits_is_known(runs: Runs) -> None:
    turn = [wrote(again("429 Rate limit reached", 429)), {"until_cancelled": True}]
    ran = runs.run({"turn": turn}, task=task(stall_timeout="1s"))
    assert (ran.outcome.status, ran.outcome.reason) == (OutcomeStatus.LIMITED, Reason.RATE_LIMITED), ran.outcome
    assert [event["text"] for event in ran.events if event["type"] == "retry"] == ["429 Rate limit reached"]


def test_only_what_this_turn_wrote_counts(runs: Runs) -> None:
    before = wrote(used(1000, 100), failed("provider.overloaded", "503", statusCode=503))
    script = {
        "before": {"session/resume": [before]},
        "turn": [wrote(used(7, 2), ended("end_turn")), {"say": "Two."}, END],
    }
    outcome = runs.run(script, resume=True, conversation=SESSION, prior_tokens=Tokens(input=1000, output=100)).outcome
    assert (outcome.status, outcome.tokens) == (OutcomeStatus.SUCCEEDED, Tokens(input=7, output=2)), outcome


def test_of_a_subagent_only_the_tokens_count(runs: Runs) -> None:
    helper = wrote(used(7, 2), failed("provider.overloaded", "503", statusCode=503), by="agent-0")
    turn = [helper, wrote(used(10, 3), ended("end_turn")), {"say": "Done."}, END]
    outcome = runs.run({"turn": turn}).outcome
    assert (outcome.status, outcome.tokens) == (OutcomeStatus.SUCCEEDED, Tokens(input=17, output=5)), outcome


def test_its_folder_may_be_moved(runs: Runs) -> None:
    moved = {
        "write": WIRE.format(SESSION, "main").replace(".kimi-code", "else"),
        "lines": [used(7, 2), ended("end_turn")],
    }
    outcome = runs.run(
        {"turn": [moved, {"say": "Done."}, END]}, env={"KIMI_CODE_HOME": str(runs.place / "else")}
    ).outcome
    assert outcome.tokens == Tokens(input=7, output=2)


def test_without_a_journal_the_agent_is_believed_as_far_as_it_speaks(runs: Runs) -> None:
    spoke = runs.run({"turn": [{"say": "Done."}, END]}).outcome
    assert (spoke.status, spoke.tokens) == (OutcomeStatus.SUCCEEDED, Tokens())
    mute = runs.run({"turn": [END]}).outcome
    assert (mute.status, mute.reason) == (OutcomeStatus.FAILED, Reason.OVERLOADED)


@pytest.mark.parametrize(
    "line",
    [
        *("", "{", "[]", "null", '"x"', "[" * 100_000, '{"type": 3}', "\0"),
        '{"type": "usage.record", "usage": []}',
        '{"type": "usage.record", "usage": {"inputOther": -1, "output": true}}',
        '{"type": "turn.ended", "error": 0}',
        '{"type": "turn.step.retrying", "errorMessage": {}}',
        '{"type": "context.append_loop_event", "event": "x"}',
    ],
)
def test_no_line_raises(tmp_path: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / WIRE.format("s", "main")
    path.parent.mkdir(parents=True)
    path.write_text("")
    journal = Journal(profiles()["kimi"].journal, "s")
    path.write_text(f'{line}\n{{"type": "usage.record", "usage": {{"output": 3}}}}\n{{"type": "usage.rec')
    journal.read()
    assert journal.counts == (0, 3)
    assert not journal.is_over
    with path.open("a") as file:
        file.write('ord", "usage": {"output": 4}}\n')
    journal.read()
    assert journal.counts == (0, 7), "half a line is taken once it is whole"


@pytest.mark.parametrize("session", ["../s", "s/../s", "*", "", ".", "[s]"])
def test_an_id_names_no_other_journal(tmp_path: Path, session: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    journal = Journal(profiles()["kimi"].journal, session)
    path = tmp_path / WIRE.format("s", "main")
    path.parent.mkdir(parents=True)
    path.write_text('{"type": "usage.record", "usage": {"output": 3}}\n')
    journal.read()
    assert journal.counts is None


BASH = '{"command": "touch made", "description": "as asked"}'


def pending(text: str) -> dict[str, Any]:
    content = [{"type": "content", "content": {"type": "text", "text": text}}]
    call = {"toolCallId": "0:1", "title": "Bash", "kind": "execute", "status": "pending", "content": content}
    return {"update": {"sessionUpdate": "tool_call", **call}}


def test_a_command_that_stands_in_the_text_of_its_call_is_asked_about_by_itself(runs: Runs) -> None:
    about = [{"type": "content", "content": {"type": "text", "text": "Requesting approval to Running: touch made"}}]
    ask = {"ask": {"toolCallId": "0:1", "title": "Bash", "content": about}}
    turn = [pending(BASH[:20]), pending(BASH), ask, {"say": "No."}, END]
    (denied,) = runs.run({"turn": turn}).outcome.denied
    assert (denied.tool, denied.input, denied.rule) == ("execute", "touch made", "execute(touch made)")


def test_what_a_tool_prints_is_not_what_it_was_given(runs: Runs) -> None:
    printed = pending('{"command": "rm -r ."}')
    printed["update"]["status"] = "in_progress"
    ask = {"ask": {"toolCallId": "0:1", "title": "Bash"}}
    (denied,) = runs.run({"turn": [pending(BASH), printed, ask, {"say": "No."}, END]}).outcome.denied
    assert denied.input == "touch made"
