"""Codex itself, under a shim, against a fake of its service."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.domain.agent import ModelChoice
from claudomator_py.domain.outcome import OutcomeStatus, Provenance, Reason
from claudomator_py.domain.units import MINUTE_MS
from tests.fakes.http_api import INPUT_TOKENS, OUTPUT_TOKENS, Text
from tests.fakes.responses_api import ResponsesApi, no_credit, overloaded, throttled, unauthorized, used_up
from tests.integration.hosts.rig import Rig
from tests.real_clis.bench import Bench, bench_for, task
from tests.real_clis.clis import CODEX

pytestmark = CODEX.marks

EDITS = {"mode": "acceptEdits"}
ZONES = ("UTC", "America/New_York", "Asia/Tokyo")


@pytest.fixture
def api() -> Iterator[ResponsesApi]:
    with ResponsesApi() as opened:
        yield opened


@pytest.fixture
def bench(api: ResponsesApi, rig: Rig, tmp_path: Path) -> Bench:
    return bench_for(CODEX, api, rig, tmp_path, ModelChoice(model="gpt-6-sol", effort="high"))


def test_it_edits_a_file_and_says_what_it_used(bench: Bench, api: ResponsesApi) -> None:
    api.script(CODEX.shell("echo hello > hello.txt"), Text("I wrote it."))
    outcome = bench.run(task(permissions=EDITS))

    assert outcome.status is OutcomeStatus.SUCCEEDED, outcome
    assert (bench.repository / "hello.txt").read_text() == "hello\n"
    assert outcome.text == "I wrote it."
    assert outcome.conversation_id
    assert (outcome.tokens.input, outcome.tokens.output) == (2 * INPUT_TOKENS, 2 * OUTPUT_TOKENS)
    assert outcome.cost_usd is None
    body = api.requests[0].body
    assert "Write a greeting." in str(body["input"])
    assert (body["model"], body["reasoning"]["effort"]) == ("gpt-6-sol", "high")


def test_without_leave_to_write_it_only_reads(bench: Bench, api: ResponsesApi) -> None:
    api.script(CODEX.shell("echo hello > hello.txt"), Text("I could not."))
    assert bench.run(task(permissions={"mode": "plan"})).status is OutcomeStatus.SUCCEEDED
    assert not (bench.repository / "hello.txt").exists()


def test_a_resumed_thread_keeps_its_leave_and_counts_its_own_share(
    bench: Bench, api: ResponsesApi, tmp_path: Path
) -> None:
    first = bench.run(task())
    api.script(CODEX.shell("echo hello > hello.txt"), Text("Two."))
    spec = task(instructions="Go on.", permissions=EDITS, add_dirs=[str(tmp_path)])
    second = bench.run(spec, resume=first.conversation_id, prior=first.tokens)

    assert second.status is OutcomeStatus.SUCCEEDED, second
    assert second.conversation_id == first.conversation_id
    assert (second.tokens.input, second.tokens.output) == (2 * INPUT_TOKENS, 2 * OUTPUT_TOKENS)
    assert "Write a greeting." in str(api.requests[-1].body["input"]), "it remembers the first run"
    assert (bench.repository / "hello.txt").read_text() == "hello\n"


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("hours", [2, 50])
def test_a_subscription_limit_has_its_reset_time(bench: Bench, api: ResponsesApi, zone: str, hours: int) -> None:
    resets_at_s = int(time.time()) + hours * 3600
    api.script(used_up(resets_at_s))
    outcome = bench.run(task(env={"TZ": zone}))

    assert (outcome.status, outcome.reason) == (OutcomeStatus.LIMITED, Reason.RATE_LIMITED), outcome
    assert outcome.provenance is Provenance.REPORTED
    assert outcome.reset_at is not None
    assert 0 <= resets_at_s * 1000 - outcome.reset_at < MINUTE_MS, "it says the minute"


def test_too_many_requests(bench: Bench, api: ResponsesApi) -> None:
    api.script(throttled())
    outcome = bench.run(task())
    assert (outcome.status, outcome.provenance) == (OutcomeStatus.LIMITED, Provenance.ESTIMATED), outcome


def test_no_credit_left(bench: Bench, api: ResponsesApi) -> None:
    api.script(no_credit())
    outcome = bench.run(task())
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.NO_CREDIT), outcome


def test_an_outage(bench: Bench, api: ResponsesApi) -> None:
    api.script(overloaded())
    outcome = bench.run(task())
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.OVERLOADED), outcome


def test_a_refused_key(bench: Bench, api: ResponsesApi) -> None:
    api.script(unauthorized())
    outcome = bench.run(task())
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.AUTH), outcome


def test_no_login(bench: Bench, api: ResponsesApi) -> None:
    bench.env.clear()
    outcome = bench.run(task())
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.AUTH), outcome
    assert api.requests == []


def test_a_thread_that_is_not_there(bench: Bench) -> None:
    outcome = bench.run(task(), resume="99999999-2222-4333-8444-555555555555")
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.BAD_INVOCATION), outcome


def test_an_answer_that_quotes_a_limit_is_an_answer(bench: Bench, api: ResponsesApi) -> None:
    quote = "The log says: You've hit your usage limit, try again at 5:38 PM."
    api.script(Text(quote))
    outcome = bench.run(task())
    assert (outcome.status, outcome.text) == (OutcomeStatus.SUCCEEDED, quote)
