"""Qwen Code itself, under a shim, against a fake of a service."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.agents.qwen.kind import DEFAULTS
from claudomator_py.domain.agent import ModelChoice
from claudomator_py.domain.outcome import OutcomeStatus, Provenance, Reason
from tests.fakes.chat_api import ChatApi, overloaded, refusal, throttled, unauthorized
from tests.fakes.http_api import Text
from tests.integration.hosts.rig import Rig
from tests.real_clis.bench import Bench, bench_for, task
from tests.real_clis.clis import QWEN

pytestmark = QWEN.marks


@pytest.fixture
def api() -> Iterator[ChatApi]:
    with ChatApi() as opened:
        yield opened


@pytest.fixture
def bench(api: ChatApi, rig: Rig, tmp_path: Path) -> Bench:
    return bench_for(QWEN, api, rig, tmp_path, ModelChoice(model="m1"))


def test_it_edits_a_file_and_says_what_it_used(bench: Bench, api: ChatApi) -> None:
    api.script(QWEN.writes(bench.repository / "hello.txt"), Text("I wrote it."))
    outcome = bench.run(task(permissions={"mode": "acceptEdits"}))

    assert outcome.status is OutcomeStatus.SUCCEEDED, outcome
    assert (bench.repository / "hello.txt").read_text() == "hello\n"
    assert outcome.text == "I wrote it."
    assert outcome.tokens.input
    assert "Write a greeting." in str(api.requests[0].body["messages"])


def test_a_resumed_session_counts_its_own_share_only(bench: Bench, api: ChatApi) -> None:
    first = bench.run(task())
    second = bench.run(task(instructions="Go on."), resume=first.conversation_id, prior=first.tokens)

    assert second.status is OutcomeStatus.SUCCEEDED, second
    assert (second.conversation_id, second.tokens) == (first.conversation_id, first.tokens)
    assert any("Write a greeting." in str(request.body["messages"]) for request in api.requests[-2:])


def test_a_tool_that_was_not_allowed_and_one_that_was(bench: Bench, api: ChatApi) -> None:
    making = """python3 -c "open('made', 'w')\""""
    api.script(QWEN.shell(making), Text("I could not."))
    denied = bench.run(task())
    assert [call.rule for call in denied.denied] == ["run_shell_command"], denied
    assert not (bench.repository / "made").exists()

    api.script(QWEN.shell(making), Text("Done."))
    allowed = bench.run(task(permissions={"allowed_tools": ["run_shell_command"]}), resume=denied.conversation_id)
    assert allowed.denied == (), allowed
    assert (bench.repository / "made").exists()


def test_too_many_requests(bench: Bench, api: ChatApi) -> None:
    api.script(throttled())
    outcome = bench.run(task())
    assert (outcome.status, outcome.provenance) == (OutcomeStatus.LIMITED, Provenance.ESTIMATED), outcome


def test_an_overloaded_service_and_defaults_that_it_leaves_alone(bench: Bench, api: ChatApi) -> None:
    before = DEFAULTS.read_bytes()
    api.script(overloaded())
    outcome = bench.run(task())
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.OVERLOADED), outcome
    assert DEFAULTS.read_bytes() == before


def test_a_refused_key(bench: Bench, api: ChatApi) -> None:
    api.script(unauthorized())
    outcome = bench.run(task())
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.AUTH), outcome


def test_a_model_that_is_not_there(bench: Bench, api: ChatApi) -> None:
    api.script(refusal(404, "model_not_found", "The model `m1` does not exist or you do not have access to it."))
    outcome = bench.run(task())
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.INVALID_MODEL), outcome


def test_an_answer_that_was_cut_off_and_each_time_it_went_on(bench: Bench, api: ChatApi) -> None:
    api.script(Text("First I will", stop="length"))
    outcome = bench.run(task())
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.UNFINISHED), outcome


def test_an_answer_that_was_cut_off_once(bench: Bench, api: ChatApi) -> None:
    half = Text("First I will", stop="length")
    api.script(half, half, half, Text(" greet. All done."))
    outcome = bench.run(task())
    assert outcome.status is OutcomeStatus.SUCCEEDED, outcome


def test_the_most_turns(bench: Bench, api: ChatApi) -> None:
    api.script(QWEN.shell("true"))
    outcome = bench.run(task(max_turns=2, permissions={"mode": "bypassPermissions"}))
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.TURN_LIMIT), outcome


def test_a_session_that_is_not_there(bench: Bench) -> None:
    outcome = bench.run(task(), resume="6f1c3a52-0b7e-4d7e-9c55-2f0f6a4d9b12")
    assert outcome.conversation_lost, outcome
