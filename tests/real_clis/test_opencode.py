"""opencode itself, under a shim, against a fake of its service."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.domain.agent import ModelChoice
from claudomator_py.domain.outcome import OutcomeStatus, Provenance, Reason
from tests.fakes.chat_api import ChatApi, overloaded, throttled, unauthorized
from tests.fakes.http_api import INPUT_TOKENS, OUTPUT_TOKENS, Answer, Exchange, Hang, Request, Text, ToolCall
from tests.integration.hosts.rig import Rig
from tests.real_clis.bench import Bench, bench_for, task
from tests.real_clis.clis import OPENCODE, OPENCODE_STEP_USD

pytestmark = OPENCODE.marks


@pytest.fixture
def api() -> Iterator[ChatApi]:
    with ChatApi() as opened:
        yield opened


@pytest.fixture
def bench(api: ChatApi, rig: Rig, tmp_path: Path) -> Bench:
    return bench_for(OPENCODE, api, rig, tmp_path, ModelChoice(model="fake/m1"))


def test_it_edits_a_file_and_says_what_it_used(bench: Bench, api: ChatApi, tmp_path: Path) -> None:
    further = tmp_path / "further"
    further.mkdir()
    api.script(
        OPENCODE.writes(bench.repository / "hello.txt"), OPENCODE.writes(further / "note.txt"), Text("I wrote it.")
    )
    outcome = bench.run(task(permissions={"mode": "acceptEdits"}, add_dirs=[str(further)]))

    assert outcome.status is OutcomeStatus.SUCCEEDED, outcome
    assert (bench.repository / "hello.txt").read_text() == "hello\n"
    assert (further / "note.txt").read_text() == "hello\n"
    assert outcome.text == "I wrote it."
    assert (outcome.tokens.input, outcome.tokens.output) == (3 * INPUT_TOKENS, 3 * OUTPUT_TOKENS)
    assert outcome.cost_usd == pytest.approx(3 * OPENCODE_STEP_USD)
    assert "Write a greeting." in str(api.requests[0].body["messages"])
    assert "bash" not in {tool["function"]["name"] for tool in api.requests[0].body["tools"]}


def test_a_resumed_session_counts_its_own_share_only(bench: Bench, api: ChatApi) -> None:
    first = bench.run(task())
    second = bench.run(task(instructions="Go on."), resume=first.conversation_id)

    assert second.status is OutcomeStatus.SUCCEEDED, second
    assert second.conversation_id == first.conversation_id
    assert second.tokens == first.tokens
    assert second.cost_usd == pytest.approx(first.cost_usd)
    assert "Write a greeting." in str(api.requests[-1].body["messages"]), "it remembers the first run"


def test_a_tool_that_was_not_allowed_ends_the_run(bench: Bench, api: ChatApi, tmp_path: Path) -> None:
    api.script(OPENCODE.writes(tmp_path / "elsewhere.txt"), Text("I could not."))
    outcome = bench.run(task())

    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.PERMISSION_DENIED), outcome
    assert not (tmp_path / "elsewhere.txt").exists()


def test_too_many_requests(bench: Bench, api: ChatApi) -> None:
    api.script(throttled())
    outcome = bench.run(task())

    assert (outcome.status, outcome.provenance) == (OutcomeStatus.LIMITED, Provenance.REPORTED), outcome
    assert outcome.reset_at is not None


def test_a_limit_that_it_waits_out_in_silence(bench: Bench, api: ChatApi) -> None:
    api.script(throttled(3600))
    running = bench.start(task())
    running.until_stuck()
    running.cancel()
    outcome = running.outcome()

    assert (outcome.status, outcome.reason) == (OutcomeStatus.LIMITED, Reason.RATE_LIMITED), outcome
    assert outcome.provenance is Provenance.ESTIMATED


def test_an_outage_that_it_waits_out_in_silence(bench: Bench, api: ChatApi) -> None:
    api.script(overloaded())
    running = bench.start(task())
    running.until(lambda: len(api.requests) > 1)
    running.cancel()
    outcome = running.outcome(ended_by="timeout")
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.OVERLOADED), outcome


class CutApi(ChatApi):
    """A service each of whose answers is cut off in a call."""

    def answer(self, exchange: Exchange, request: Request, step: Answer) -> None:
        function = {"name": "bash", "arguments": '{"command": "touch ha'}
        delta = {"role": "assistant", "tool_calls": [{"index": 0, "id": "call_1", "function": function}]}
        exchange.start_stream()
        exchange.send_event({"id": "cut", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        exchange.end_stream()


def test_answers_that_are_all_broken_off(rig: Rig, tmp_path: Path) -> None:
    """It asks again and again."""
    with CutApi() as api:
        running = bench_for(OPENCODE, api, rig, tmp_path, ModelChoice(model="fake/m1")).start(task())
        running.until_stuck()
        running.cancel()
    outcome = running.outcome()
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.NETWORK), outcome


def test_a_service_that_never_answers(bench: Bench, api: ChatApi) -> None:
    """It is never idle for a processor."""
    api.script(Hang())
    bench.stall_ms = 60_000
    outcome = bench.run(task())
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.STALLED), outcome


def test_a_refused_key(bench: Bench, api: ChatApi) -> None:
    api.script(unauthorized())
    outcome = bench.run(task())
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.AUTH), outcome


def test_a_model_that_is_not_there(bench: Bench) -> None:
    bench.model = ModelChoice(model="fake/nope")
    outcome = bench.run(task())
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.INVALID_MODEL), outcome


def test_a_session_that_is_not_there(bench: Bench) -> None:
    outcome = bench.run(task(), resume="ses_nope")
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.BAD_INVOCATION), outcome


class FullApi(ChatApi):
    """A model whose conversation is full once it has called a tool. stays: it then does not answer."""

    def __init__(self, *, stays: bool) -> None:
        super().__init__()
        self.was_full = False
        self.held = threading.Event()
        self._stays = stays

    def answer(self, exchange: Exchange, request: Request, step: Answer) -> None:
        self.input_tokens = 99_000 if isinstance(step, ToolCall) else INPUT_TOKENS
        if self._stays and self.was_full and request.body.get("tools"):
            self.held.set()
            self.closing.wait()
        self.was_full = self.was_full or isinstance(step, ToolCall)
        super().answer(exchange, request, step)


@pytest.mark.parametrize("stays", [False, True])
def test_it_goes_on_after_it_has_made_its_conversation_shorter(rig: Rig, tmp_path: Path, stays: bool) -> None:
    """It says of the step with the summary that it has stopped, and then puts a text before its model."""
    with FullApi(stays=stays) as api:
        bench = bench_for(OPENCODE, api, rig, tmp_path, ModelChoice(model="fake/m1"))
        api.script(OPENCODE.writes(bench.repository / "hello.txt"), Text("I wrote it."))
        running = bench.start(task(permissions={"mode": "acceptEdits"}))
        if stays:
            running.until(api.held.is_set)
            running.cancel()
        running.shim.wait()
    outcome = running.outcome(**{"ended_by": "timeout"} if stays else {})
    assert (bench.repository / "hello.txt").exists(), outcome
    if stays:
        assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.TIMEOUT), outcome
    else:
        assert (outcome.status, outcome.text) == (OutcomeStatus.SUCCEEDED, "I wrote it."), outcome
