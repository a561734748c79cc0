"""Gemini CLI itself, under a shim, against a fake of its service."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.agents.event_reader import EventReader
from claudomator_py.agents.gemini.events import GeminiEvents
from claudomator_py.domain.agent import ModelChoice
from claudomator_py.domain.outcome import OutcomeStatus, Provenance, Reason
from claudomator_py.domain.units import HOUR_MS
from claudomator_py.hosts.local.output import output_path
from tests.fakes.gemini_api import (
    GeminiApi,
    capacity_used_up,
    daily_quota_used_up,
    overloaded,
    throttled,
    unauthorized,
)
from tests.fakes.http_api import INPUT_TOKENS, OUTPUT_TOKENS, Text, ToolCall
from tests.integration.hosts.rig import Rig
from tests.real_clis.bench import CONVERSATION, Bench, bench_for, task
from tests.real_clis.clis import GEMINI, NOBODY

pytestmark = GEMINI.marks

EDITS = {"mode": "acceptEdits"}


@pytest.fixture
def api() -> Iterator[GeminiApi]:
    with GeminiApi() as opened:
        yield opened


@pytest.fixture
def bench(api: GeminiApi, rig: Rig, tmp_path: Path) -> Bench:
    return bench_for(GEMINI, api, rig, tmp_path, ModelChoice(model="flash"))


def test_it_edits_a_file_and_says_what_it_used(bench: Bench, api: GeminiApi) -> None:
    api.script(GEMINI.writes(bench.repository / "hello.txt"), Text("I wrote it."))
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
    api.script(GEMINI.writes(bench.repository / "hello.txt"), Text("I could not."))
    outcome = bench.run(task())

    assert outcome.status is OutcomeStatus.SUCCEEDED, outcome
    assert (outcome.detail or "").startswith("1 tool call was denied: write_file.")
    assert not (bench.repository / "hello.txt").exists()


def test_allowed_tools_and_further_folders(bench: Bench, api: GeminiApi, tmp_path: Path) -> None:
    further = tmp_path / "further"
    further.mkdir()
    note = GEMINI.writes(further / "note.txt", "note\n")
    api.script(GEMINI.shell("touch touched"), note, Text())
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


def test_a_sleep_that_a_failed_tool_prints_is_repeated_on_stderr_and_is_none(bench: Bench, api: GeminiApi) -> None:
    """A tool of the project's own, as settings can name them: its stderr is repeated word for word."""
    declared = json.dumps([{"name": "mirror", "description": "asks it", "parameters": {"type": "object"}}])
    faked = "Attempt 1 failed: You have exhausted your capacity on this model.. Retrying after 9999999999999ms..."
    # It is asked for by its name, which a shell takes for a script. The CLI has to get rid of what it writes to it.
    fails = f"cat >/dev/null; echo 'failed:\n{faked}\n429 from mirror' >&2; exit 1\n"
    (bench.repository / "mirror").write_text(fails)
    settings = bench.home / ".gemini" / "settings.json"
    tools = {"discoveryCommand": f"echo {shlex.quote(declared)}", "callCommand": "/bin/sh"}
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "tools": tools}))
    api.script(ToolCall("discovered_tool_mirror", {}), Text("It is busy."))
    running = bench.start(task(permissions={"mode": "bypassPermissions"}))
    running.shim.wait()

    stderr = Path(output_path(running.path, "stderr")).read_bytes()
    text = "Error executing tool discovered_tool_mirror: Stdout: (empty)\nStderr: failed:"
    assert f"{text}\n{faked}\n" in stderr.decode()
    reader = EventReader(GeminiEvents())
    for stdout in Path(output_path(running.path, "stdout")).read_bytes().splitlines(keepends=True):
        reader.feed("stdout", stdout)
        reader.feed("stderr", stderr)
        stderr = b""
        assert (reader.stuck_until, reader.stuck_since) == (None, None), "at no time"
    assert running.outcome().status is OutcomeStatus.SUCCEEDED


def test_an_outage(bench: Bench, api: GeminiApi) -> None:
    api.script(overloaded())
    outcome = bench.run(task())
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.OVERLOADED), outcome


def test_a_service_that_cannot_be_reached(bench: Bench) -> None:
    bench.env["GOOGLE_GEMINI_BASE_URL"] = NOBODY
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


def test_an_answer_that_quotes_a_limit_is_an_answer(bench: Bench, api: GeminiApi) -> None:
    quote = "The log says: Attempt 1 failed: quota. Retrying after 26248223ms..."
    api.script(Text(quote))
    outcome = bench.run(task())
    assert (outcome.status, outcome.text) == (OutcomeStatus.SUCCEEDED, quote)


def test_a_model_that_goes_in_circles_and_is_stopped_for_it_has_not_succeeded(bench: Bench, api: GeminiApi) -> None:
    """It calls that a success, after a warning."""
    api.script(*[GEMINI.shell("true")] * 30, Text("Done."))
    outcome = bench.run(task(permissions={"allowed_tools": ["run_shell_command"]}))
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.UNFINISHED), outcome
    assert "Loop detected" in str(outcome.detail)
