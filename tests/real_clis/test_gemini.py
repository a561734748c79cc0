"""Gemini CLI itself, under a shim, against a fake of its service."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from claudomator_py.agents.gemini import Gemini
from claudomator_py.core.agent import AgentSpec, ModelChoice
from claudomator_py.core.outcome import OutcomeStatus, Provenance, Reason
from claudomator_py.core.units import HOUR_MS
from tests.fakes.gemini_api import (
    GeminiApi,
    capacity_used_up,
    daily_quota_used_up,
    overloaded,
    throttled,
    unauthorized,
)
from tests.fakes.http_api import INPUT_TOKENS, OUTPUT_TOKENS, Hang, Text, ToolCall
from tests.integration.runs.rig import Rig
from tests.real_clis.bench import CONVERSATION, LIMITS, Bench, left_in, marks, program, repository, task

pytestmark = marks("gemini", "@google/gemini-cli")

EDITS = {"mode": "acceptEdits"}


@pytest.fixture
def api() -> Iterator[GeminiApi]:
    with GeminiApi() as opened:
        yield opened


@pytest.fixture
def bench(api: GeminiApi, rig: Rig, tmp_path: Path, home: Path) -> Bench:
    """Logged in with a key; two attempts at a request, where it would make ten."""
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": {"maxAttempts": 2}}
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    env = {"GEMINI_API_KEY": "fake", "GOOGLE_GEMINI_BASE_URL": api.origin}
    place = repository(tmp_path / "repository", home)
    return Bench("gemini", rig, place, home, env=env, model=ModelChoice(model="flash"))


def writes(bench: Bench, text: str = "hello\n") -> ToolCall:
    return ToolCall("write_file", {"file_path": str(bench.repository / "hello.txt"), "content": text})


def shell(command: str) -> ToolCall:
    return ToolCall("run_shell_command", {"command": command, "description": "as asked"})


def test_it_edits_a_file_and_says_what_it_used(bench: Bench, api: GeminiApi) -> None:
    api.script(writes(bench), Text("I wrote it."))
    outcome = bench.run(task(permissions=EDITS))

    assert outcome.status is OutcomeStatus.SUCCEEDED, outcome
    assert (bench.repository / "hello.txt").read_text() == "hello\n"
    assert (outcome.text, outcome.conversation_id) == ("I wrote it.", CONVERSATION)
    assert (outcome.tokens.input, outcome.tokens.output) == (2 * INPUT_TOKENS, 2 * OUTPUT_TOKENS)
    assert "Write a greeting." in str(api.requests[0].body["contents"])
    assert "flash" in api.requests[0].path


def test_a_resumed_conversation_counts_its_own_share_only(bench: Bench, api: GeminiApi) -> None:
    bench.run(task())
    outcome = bench.run(task(instructions="Go on."), resume=CONVERSATION)

    assert outcome.status is OutcomeStatus.SUCCEEDED, outcome
    assert outcome.conversation_id == CONVERSATION
    assert (outcome.tokens.input, outcome.tokens.output) == (INPUT_TOKENS, OUTPUT_TOKENS)
    assert "Write a greeting." in str(api.requests[-1].body["contents"]), "it remembers the first run"


def test_a_tool_that_was_not_allowed_is_said(bench: Bench, api: GeminiApi) -> None:
    api.script(writes(bench), Text("I could not."))
    outcome = bench.run(task())

    assert outcome.status is OutcomeStatus.SUCCEEDED, outcome
    assert (outcome.detail or "").startswith("1 tool call was denied: write_file.")
    assert not (bench.repository / "hello.txt").exists()


def test_allowed_tools_and_further_folders(bench: Bench, api: GeminiApi, tmp_path: Path) -> None:
    further = tmp_path / "further"
    further.mkdir()
    note = ToolCall("write_file", {"file_path": str(further / "note.txt"), "content": "note\n"})
    api.script(shell("touch touched"), note, Text())
    permissions = {"allowed_tools": ["run_shell_command(touch)", "write_file"]}
    outcome = bench.run(task(permissions=permissions, add_dirs=[str(further)]))

    assert (outcome.status, outcome.detail) == (OutcomeStatus.SUCCEEDED, None), outcome
    assert (bench.repository / "touched").exists()
    assert (further / "note.txt").read_text() == "note\n"


def test_the_quota_of_the_day(bench: Bench, api: GeminiApi) -> None:
    api.script(daily_quota_used_up())
    outcome = bench.run(task())

    assert (outcome.status, outcome.reason) == (OutcomeStatus.LIMITED, Reason.RATE_LIMITED), outcome
    assert (outcome.reset_at, outcome.provenance, outcome.limit) == (None, Provenance.ESTIMATED, "daily")


def test_too_many_requests(bench: Bench, api: GeminiApi) -> None:
    api.script(throttled())
    outcome = bench.run(task())

    assert (outcome.status, outcome.provenance) == (OutcomeStatus.LIMITED, Provenance.ESTIMATED), outcome


def test_a_sleep_of_hours_is_seen_and_ends_as_the_limit_that_it_is(bench: Bench, api: GeminiApi) -> None:
    api.script(capacity_used_up(5 * 3600, "5h"))
    running = bench.start(task())
    running.until_stuck()
    running.cancel()
    outcome = running.outcome()

    assert (outcome.status, outcome.reason) == (OutcomeStatus.LIMITED, Reason.RATE_LIMITED), outcome
    assert outcome.provenance is Provenance.REPORTED
    assert outcome.reset_at is not None
    left_ms = outcome.reset_at - running.ended().exit.ended_ms
    assert 4.9 * HOUR_MS < left_ms <= 6 * HOUR_MS, "it adds up to a fifth"


def test_an_outage(bench: Bench, api: GeminiApi) -> None:
    api.script(overloaded())
    outcome = bench.run(task())
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.OVERLOADED), outcome


def test_a_service_that_cannot_be_reached(bench: Bench) -> None:
    bench.env["GOOGLE_GEMINI_BASE_URL"] = "http://127.0.0.1:9"
    outcome = bench.run(task())
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.NETWORK), outcome


def test_a_refused_key(bench: Bench, api: GeminiApi) -> None:
    api.script(unauthorized())
    outcome = bench.run(task())
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.AUTH), outcome


def test_no_login(bench: Bench, api: GeminiApi) -> None:
    del bench.env["GEMINI_API_KEY"]
    outcome = bench.run(task())
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.AUTH), outcome
    assert api.requests == []


def test_a_conversation_that_is_not_there(bench: Bench) -> None:
    outcome = bench.run(task(), resume=CONVERSATION)
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.BAD_INVOCATION), outcome


def test_cancelled_in_the_middle_of_a_tool_nothing_is_left(bench: Bench, api: GeminiApi) -> None:
    api.script(shell("touch started; sleep 4242"), Text())
    running = bench.start(task(permissions={"mode": "bypassPermissions"}))
    running.until_made(bench.repository / "started")
    running.cancel()

    assert running.outcome().status is OutcomeStatus.CANCELLED
    assert left_in(bench.repository) == []


def test_its_timeout(bench: Bench, api: GeminiApi) -> None:
    api.script(Hang())
    running = bench.start(task(), limits=replace(LIMITS, timeout_ms=10_000))
    running.shim.wait()

    assert (running.outcome().status, running.outcome().reason) == (OutcomeStatus.FAILED, Reason.TIMEOUT)
    assert left_in(bench.repository) == []


def test_an_answer_that_quotes_a_limit_is_an_answer(bench: Bench, api: GeminiApi) -> None:
    quote = "The log says: Attempt 1 failed: quota. Retrying after 26248223ms..."
    api.script(Text(quote))
    outcome = bench.run(task())
    assert (outcome.status, outcome.text) == (OutcomeStatus.SUCCEEDED, quote)


def test_its_version_is_found() -> None:
    agent = AgentSpec(name="gemini", kind="gemini", command=(str(program("gemini")),))
    health = Gemini().health(agent, "/usr/bin:/bin")
    assert health.problem is None
    assert (health.version or "")[0].isdigit()
