"""The real agent CLIs over the Agent Client Protocol, each under a shim, against a fake of its service."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.domain.agent import ModelChoice
from claudomator_py.domain.outcome import OutcomeStatus, Reason
from claudomator_py.hosts.local.sweep import kill_survivors
from tests.fakes import chat_api
from tests.fakes.http_api import Hang, Refusal, ScriptedApi, Step, Text
from tests.integration.hosts.rig import Rig
from tests.real_clis.acp_clis import ACP_CLIS, OverAcp
from tests.real_clis.bench import Bench, bench_for, task

pytestmark = pytest.mark.parametrize("cli", [pytest.param(cli, id=cli.kind, marks=cli.marks) for cli in ACP_CLIS])
SILENCE = "20s"


@pytest.fixture
def api(cli: OverAcp) -> Iterator[ScriptedApi]:
    with cli.api() as opened:
        yield opened


@pytest.fixture
def bench(cli: OverAcp, api: ScriptedApi, rig: Rig, tmp_path: Path) -> Bench:
    return bench_for(cli, api, rig, tmp_path, ModelChoice(model=cli.model) if cli.model else None)


def test_it_answers_and_says_what_it_used(cli: OverAcp, bench: Bench, api: ScriptedApi) -> None:
    api.script(Text("I wrote it."))
    running = bench.start(task())
    running.shim.wait()
    outcome = running.outcome()

    assert (outcome.status, outcome.text) == (OutcomeStatus.SUCCEEDED, "I wrote it."), outcome
    assert bool(outcome.tokens.input) is cli.counts, outcome
    assert (outcome.cost_usd is not None) is cli.tells_dollars
    assert "Write a greeting." in str([request.body for request in api.requests])


def test_a_command_is_denied_and_the_same_one_is_allowed_in_its_session(
    cli: OverAcp, bench: Bench, api: ScriptedApi
) -> None:
    if not cli.asks:
        pytest.skip("it acts unasked")
    api.script(cli.asking_shell("touch made"), Text("I could not."))
    denied = bench.run(task())
    assert denied.denials == 1, denied
    assert denied.status is OutcomeStatus.SUCCEEDED or denied.reason is Reason.PERMISSION_DENIED
    assert not (bench.repository / "made").exists()

    rules = [call.rule for call in denied.denied if call.rule is not None]
    api.script(cli.asking_shell("touch made"), Text("Done."))
    allowed = bench.run(task(permissions={"allowed_tools": rules}), resume=denied.conversation_id, prior=denied.tokens)
    assert (allowed.status, allowed.denials, allowed.text) == (OutcomeStatus.SUCCEEDED, 0, "Done."), allowed
    assert (bench.repository / "made").exists()
    assert "Write a greeting." in str(api.requests[-1].body)


def test_a_refused_key(cli: OverAcp, bench: Bench, api: ScriptedApi) -> None:
    api.script(cli.unauthorized())
    outcome = bench.run(task())
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.AUTH), outcome


@pytest.mark.parametrize("what", ["limit", "outage", "silence"])
def test_what_keeps_a_service_from_answering_is_no_success(
    cli: OverAcp, bench: Bench, api: ScriptedApi, what: str
) -> None:
    steps: dict[str, Step] = {
        "limit": Refusal(429, cli.limited(), {"retry-after": "7200"}),
        "outage": cli.overloaded(),
        "silence": Hang(),
    }
    api.script(steps[what])
    outcome = bench.run(task(stall_timeout=SILENCE))

    waits = (Reason.RATE_LIMITED, Reason.OVERLOADED, Reason.NETWORK)
    assert outcome.status in (OutcomeStatus.LIMITED, OutcomeStatus.FAILED), outcome
    assert outcome.reason in waits, outcome
    assert outcome.reset_at is None, "nobody said when"
    assert what == "limit" or outcome.status is OutcomeStatus.FAILED, outcome


def test_an_answer_of_nothing(cli: OverAcp, bench: Bench, api: ScriptedApi) -> None:
    api.script(Text(""))
    outcome = bench.run(task())
    assert outcome.status is OutcomeStatus.FAILED, outcome


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (Text("Half an ans", stop="length"), Reason.UNFINISHED),
        (chat_api.refusal(429, "insufficient_quota", "You exceeded your current quota"), Reason.NO_CREDIT),
        (chat_api.refusal(404, "model_not_found", "The model m1 does not exist"), Reason.INVALID_MODEL),
    ],
    ids=["cut-off", "quota", "model"],
)
def test_what_stands_in_its_journal_alone(
    cli: OverAcp, bench: Bench, api: ScriptedApi, step: Step, reason: Reason
) -> None:
    if not cli.has_journal:
        pytest.skip("it has none that is read")
    api.script(step)
    outcome = bench.run(task())
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, reason), outcome


def test_a_cancel_in_a_tool_leaves_nothing(cli: OverAcp, bench: Bench, api: ScriptedApi) -> None:
    begun = bench.repository / "begun"
    api.script(cli.shell(f"touch {begun}; sleep 600"), Text("Done."))
    running = bench.start(task(permissions={"mode": "bypassPermissions"}))
    running.until_made(begun)
    running.cancel()
    assert running.outcome().status is OutcomeStatus.CANCELLED
    assert kill_survivors(running.path.name, grace_ms=0).ended == 0


def test_what_was_killed_in_a_tool_is_continued(cli: OverAcp, bench: Bench, api: ScriptedApi) -> None:
    begun = bench.repository / "begun"
    api.script(cli.shell(f"touch {begun}; sleep 600"), Text("Done."))
    running = bench.start(task(permissions={"mode": "bypassPermissions"}))
    running.until_made(begun)
    os.kill(running.shim.process.pid, signal.SIGKILL)
    running.shim.wait()
    kill_survivors(running.path.name, grace_ms=0)
    conversation = running.conversation()

    api.script(Text("I went on."))
    outcome = bench.run(task(instructions="Go on."), resume=conversation)
    assert (outcome.status, outcome.text) == (OutcomeStatus.SUCCEEDED, "I went on."), outcome
    assert "Write a greeting." in str(api.requests[-1].body)


def test_a_session_that_is_not_there(cli: OverAcp, bench: Bench) -> None:
    outcome = bench.run(task(), resume="6f1c3a52-0b7e-4d7e-9c55-2f0f6a4d9b12")
    assert outcome.conversation_lost, outcome
