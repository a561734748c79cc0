"""Real agent CLIs use the tools that they are given over MCP, for their run alone, beside the user's own."""

import json
from pathlib import Path

import pytest

from claudomator_py.environment.secrets import RunTokens
from claudomator_py.resources.tasks import AnswerRequest
from tests.e2e.scenarios_support import ended, in_state, last_run, why
from tests.fakes.http_api import Text, ToolCall
from tests.real_clis.clis import CLAUDE, CODEX, GEMINI, Cli, each
from tests.real_clis.place import END_S, Place

PREFIXES = {
    "claude": "mcp__claudomator__",
    "codex": "mcp__claudomator/",
    "gemini": "mcp_claudomator_",
    "opencode": "claudomator_",
}
QUESTION = "Shall it be formal?"


def call(cli: Cli, tool: str, **arguments: object) -> ToolCall:
    """The model calls one of the tools, by the name that this CLI gives it."""
    return ToolCall(f"{PREFIXES[cli.kind]}{tool}", arguments)


def heard(place: Place) -> str:
    """All that the last request told the service."""
    return json.dumps(place.api.requests[-1].body)


@each(with_settings=True)
def test_a_question_by_tool_is_answered_in_the_same_conversation(place: Place, cli: Cli) -> None:
    place.api.script(
        call(cli, "report_progress", text="Looking around.", percent=10),
        call(cli, "ask_operator", question=QUESTION, choices=["yes", "no"]),
        Text("I have asked."),
    )
    daemon = place.start()
    place.drop("greet")
    task = in_state(daemon, "greet", "NEEDS_INPUT", deadline_s=END_S)
    first = last_run(daemon, "greet")
    assert (task.reason, task.reason_text) == ("question", f"{QUESTION}\n- yes\n- no"), why(daemon, "greet")
    assert first.progress is not None
    assert (first.progress.text, first.progress.percent) == ("Looking around.", 10)
    place.api.script(Text("Dear all."))

    daemon.client.answer("greet", AnswerRequest(text="Yes, very."))

    task = ended(daemon, "greet", END_S)
    assert (task.state, task.result_text) == ("COMPLETED", "Dear all."), why(daemon, "greet")
    assert last_run(daemon, "greet").resumes == first.id
    assert "Yes, very." in heard(place)


@each(with_settings=True)
def test_it_reads_what_was_decided_and_has_something_else_done(place: Place, cli: Cli) -> None:
    place.api.script(
        call(cli, "read_handoff"),
        call(cli, "create_subtask", name="other", instructions="Write of something else."),
        Text("Done."),
    )
    daemon = place.start()
    place.drop("greet", tags=["letters"])

    task = ended(daemon, "greet", END_S)

    assert task.state == "COMPLETED", why(daemon, "greet")
    assert "escalation" in heard(place), "the handoff document"
    other = ended(daemon, "other", END_S)
    run = next(run for run in daemon.client.runs("greet"))
    assert (other.parent_run, other.source, other.tags) == (run.id, "run", ("letters",))


@each(with_settings=True)
def test_the_token_is_in_no_argument_and_in_no_file(place: Place, cli: Cli) -> None:
    place.api.script(call(cli, "report_progress", text="Here."), place.sleeps(), Text("Done."))
    daemon = place.start()
    place.drop("greet", permissions=cli.commands)
    place.until_begun()
    run = last_run(daemon, "greet")
    assert run.progress is not None
    secret = run_token(place, run.id)

    assert not place.running(secret)
    results = [path for path in place.site.root.rglob("*") if path.is_file() and secret.encode() in read(path)]
    # Codex itself writes its whole environment, keys and all, into a file for the shells that it starts.
    assert not [path for path in results if path.parent.name != "shell_snapshots"]
    daemon.client.cancel("greet")
    ended(daemon, "greet", END_S)


@each(CLAUDE, GEMINI, with_settings=True)
@pytest.mark.parametrize("own", ["keep", "none"])
def test_the_users_own_servers_are_left_as_the_configuration_says(place: Place, cli: Cli, own: str) -> None:
    started = place.site.root / "own-server"
    name = {"claude": ".claude.json", "gemini": ".gemini/settings.json"}[cli.kind]
    settings = place.site.root / "home" / name
    document = json.loads(settings.read_text()) if settings.exists() else {}
    document["mcpServers"] = {"own": {"command": "sh", "args": ["-c", f"touch '{started}'"]}}
    settings.write_text(json.dumps(document))
    place.configure(mcp={"own_servers": own})
    place.api.script(call(cli, "report_progress", text="Here."), Text("Done."))
    daemon = place.start()
    place.drop("greet")

    assert ended(daemon, "greet", END_S).state == "COMPLETED"

    assert last_run(daemon, "greet").progress is not None
    assert started.exists() == (own == "keep")


@each(CLAUDE, CODEX)
def test_it_reports_and_asks_where_it_may_change_nothing(place: Place, cli: Cli) -> None:
    place.api.script(
        call(cli, "report_progress", text="Here."), call(cli, "ask_operator", question=QUESTION), Text("I have asked.")
    )
    daemon = place.start()
    place.drop("greet", permissions={"mode": "plan"})

    task = in_state(daemon, "greet", "NEEDS_INPUT", deadline_s=END_S)

    assert task.reason_text == QUESTION
    assert last_run(daemon, "greet").progress is not None


@each(with_settings=True)
def test_without_them_it_has_none(place: Place, cli: Cli) -> None:
    place.configure(mcp={"enabled": False})
    place.api.script(Text("Done."))
    daemon = place.start()
    place.drop("greet")

    assert ended(daemon, "greet", END_S).state == "COMPLETED"

    assert "ask_operator" not in heard(place)


def run_token(place: Place, run_id: str) -> str:
    """The run's token, as its processes have it."""
    return RunTokens((place.site.state / "token").read_text().strip()).of(run_id)


def read(path: Path) -> bytes:
    """What is in it; nothing where it has gone meanwhile."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
