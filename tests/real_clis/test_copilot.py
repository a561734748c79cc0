"""GitHub Copilot CLI itself, under a shim, against a fake of a provider of one's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.domain.outcome import OutcomeStatus, Provenance, Reason
from tests.fakes.chat_api import ChatApi, refusal, throttled, unauthorized
from tests.fakes.http_api import Text, ToolCall
from tests.integration.hosts.rig import Rig
from tests.real_clis.bench import Bench, bench_for, task
from tests.real_clis.clis import COPILOT

pytestmark = COPILOT.marks


@pytest.fixture
def api() -> Iterator[ChatApi]:
    with ChatApi() as opened:
        yield opened


@pytest.fixture
def bench(api: ChatApi, rig: Rig, tmp_path: Path) -> Bench:
    return bench_for(COPILOT, api, rig, tmp_path, None)


def test_it_edits_a_file_and_answers(bench: Bench, api: ChatApi) -> None:
    api.script(COPILOT.writes(bench.repository / "hello.txt"), Text("I wrote it."))
    outcome = bench.run(task(permissions={"mode": "acceptEdits"}))
    assert (outcome.status, outcome.text) == (OutcomeStatus.SUCCEEDED, "I wrote it."), outcome
    assert (bench.repository / "hello.txt").read_text() == "hello\n"
    assert "Write a greeting." in str(api.requests[0].body["messages"])


@pytest.mark.parametrize("command", ["touch made", "git init -q made"])
def test_a_command_that_was_denied_is_allowed_by_its_rule_in_the_same_session(
    bench: Bench, api: ChatApi, command: str
) -> None:
    made = bench.repository / "made"
    api.script(COPILOT.shell(command), Text("I could not."))
    denied = bench.run(task())
    assert len(denied.denied) == 1, denied
    assert not made.exists()

    rules = [call.rule for call in denied.denied if call.rule is not None]
    api.script(COPILOT.shell(command), Text("Done."))
    allowed = bench.run(task(permissions={"allowed_tools": rules}), resume=denied.conversation_id)
    assert (allowed.status, allowed.denied, allowed.text) == (OutcomeStatus.SUCCEEDED, (), "Done."), allowed
    assert made.exists()
    assert "I could not." in str(api.requests[-1].body["messages"])


def test_what_is_to_plan_writes_nothing(bench: Bench, api: ChatApi) -> None:
    api.script(COPILOT.writes(bench.repository / "hello.txt"), COPILOT.shell("touch made"), Text("A plan."))
    outcome = bench.run(task(permissions={"mode": "plan", "allowed_tools": ["write", "shell"]}))
    assert outcome.denials == 2, outcome
    assert not (bench.repository / "hello.txt").exists()
    assert not (bench.repository / "made").exists()


def test_too_many_requests(bench: Bench, api: ChatApi) -> None:
    api.script(throttled(7200))
    outcome = bench.run(task())
    assert (outcome.status, outcome.provenance) == (OutcomeStatus.LIMITED, Provenance.ESTIMATED), outcome


def test_a_refused_key(bench: Bench, api: ChatApi) -> None:
    api.script(unauthorized())
    outcome = bench.run(task())
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.AUTH), outcome


def test_a_model_that_is_not_there(bench: Bench, api: ChatApi) -> None:
    api.script(refusal(404, "model_not_found", "The model `m1` does not exist or you do not have access to it."))
    outcome = bench.run(task())
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.INVALID_MODEL), outcome


def test_an_answer_of_nothing(bench: Bench, api: ChatApi) -> None:
    api.script(Text(""))
    outcome = bench.run(task())
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.NO_ANSWER), outcome


def test_calls_that_are_all_cut_off_lead_nowhere(bench: Bench, api: ChatApi) -> None:
    call = ToolCall("bash", {"command": "touch made", "description": "as asked"}, length=12)
    api.script(call)
    running = bench.start(task(permissions={"mode": "bypassPermissions"}))
    running.until_stuck()
    running.cancel()
    outcome = running.outcome()
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.UNFINISHED), outcome


def test_a_session_that_is_not_there(bench: Bench) -> None:
    outcome = bench.run(task(), resume="6f1c3a52-0b7e-4d7e-9c55-2f0f6a4d9b12")
    assert outcome.conversation_lost, outcome
