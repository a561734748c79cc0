"""How Claude Code is started."""

import os
from functools import partial
from pathlib import Path

import pytest

from claudomator_py.agents.claude.kind import BACKGROUND_TOOLS, NO_BACKGROUND, Claude
from claudomator_py.domain.agent import AgentSpec, ModelChoice
from claudomator_py.domain.run import LaunchRequest
from claudomator_py.domain.task import PermissionMode, Permissions, TaskSpec
from tests.unit.agents.starting import launched, task

CONVERSATION = "6f1c3a52-0b7e-5d7e-9c55-2f0f6a4d9b11"
DISALLOWED = tuple(word for tool in BACKGROUND_TOOLS for word in ("--disallowedTools", tool))
launch = partial(launched, Claude(), "--help me\n", CONVERSATION)


def test_the_least_command_line() -> None:
    assert launch().argv == (
        *("claude", "-p", "--output-format", "stream-json", "--verbose"),
        *("--session-id", CONVERSATION),
        *DISALLOWED,
    )


def test_the_prompt_is_on_stdin_and_nowhere_else() -> None:
    built = launch()
    assert built.stdin == "--help me\n"
    assert not any("help" in word for word in built.argv)


def test_a_resumed_conversation() -> None:
    argv = launch(resume=True).argv
    assert argv[argv.index("--resume") + 1] == CONVERSATION
    assert "--session-id" not in argv


def test_all_that_a_task_can_ask_for() -> None:
    permissions = Permissions(
        mode=PermissionMode.ACCEPT_EDITS, allowed_tools=("Bash(git *)", "-p"), disallowed_tools=("WebFetch",)
    )
    spec = task(max_turns=7, permissions=permissions, add_dirs=("~/shared", "/data"))
    agent = {"command": ("npx", "claude"), "extra_args": ("--mcp-config", "a.json", "b.json")}
    argv = launch(spec, agent, ModelChoice(model="opus", effort="high")).argv

    assert argv[:3] == ("npx", "claude", "-p")
    assert argv[8:] == (
        *("--model", "opus", "--effort", "high"),
        *("--permission-mode", "acceptEdits", "--max-turns", "7"),
        *("--mcp-config", "a.json", "b.json"),
        *("--allowedTools", "Bash(git *)", "--allowedTools", "-p", "--disallowedTools", "WebFetch"),
        *DISALLOWED,
        *("--add-dir", str(Path.home() / "shared"), "--add-dir", "/data"),
    )


@pytest.mark.parametrize(
    ("tools", "names", "with_own_servers"),
    [
        (("Read", "Grep"), "Read,Grep", False),
        ((), "", False),
        (("Bash(git diff:*, git log:*)", "Bash", "Agent(worker, researcher)"), "Bash,Agent", False),
        (("Read", "mcp__github__search"), "Read,mcp__github__search", True),
    ],
)
def test_it_has_only_the_tools_that_are_named(tools: tuple[str, ...], names: str, with_own_servers: bool) -> None:
    argv = launch(task(permissions=Permissions(tools=tools))).argv
    assert argv[argv.index("--tools") + 1] == names
    assert ("--strict-mcp-config" not in argv) is with_own_servers
    assert "--allowedTools" not in argv
    assert "--tools" not in launch().argv


@pytest.mark.parametrize(("left", "text"), [(2.5, "2.500000"), (0.0, "0.000001")])
def test_it_keeps_to_the_dollars_that_are_left_by_itself(left: float, text: str) -> None:
    agent = AgentSpec(name="claude", kind="claude")
    request = LaunchRequest(
        "run", agent, task(), "", None, CONVERSATION, resume=True, prior_cost_usd=9.0, usd_left=left
    )
    argv = Claude().launch(request).argv
    assert argv[argv.index("--max-budget-usd") + 1] == text, "what the conversation had cost before does not count"


def test_it_gives_up_soon_unless_the_user_says_otherwise() -> None:
    name = "CLAUDE_CODE_MAX_RETRIES"
    assert int(launch().env[name]) < 10
    assert name not in launch(agent={"env": {name: "10"}}).env
    assert name not in launch(agent={"pass_env": (name,)}).env


@pytest.mark.parametrize(
    ("agent", "of_task", "allowed"),
    [
        ({}, None, False),
        ({"background": True}, None, True),
        ({"background": True}, False, False),
        ({}, True, True),
    ],
)
def test_it_leaves_nothing_in_the_background_unless_agent_or_task_allow_it(
    agent: dict[str, object], of_task: bool | None, allowed: bool
) -> None:
    built = launch(task(background=of_task), agent)
    assert (built.env.items() >= NO_BACKGROUND.items()) is not allowed
    assert ("ScheduleWakeup" in built.argv) is not allowed


@pytest.mark.parametrize("name", NO_BACKGROUND)
def test_what_the_user_has_set_about_the_background_wins(name: str) -> None:
    assert name not in launch(agent={"env": {name: "0"}}).env
    assert name not in launch(agent={"pass_env": (name,)}).env
    assert name not in launch(task(env={name: "0"})).env


def test_it_never_claims_a_sandbox_by_itself() -> None:
    assert "IS_SANDBOX" not in launch(task(permissions={"mode": "bypassPermissions"})).env


@pytest.mark.parametrize(
    ("user", "agent", "refused"),
    [
        (0, {}, True),
        (0, {"env": {"IS_SANDBOX": "1"}}, False),
        (0, {"pass_env": ("IS_SANDBOX",)}, False),
        (1000, {}, False),
    ],
)
def test_bypassing_permissions_as_root(
    user: int, agent: dict[str, object], refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    spec = AgentSpec.model_validate({"name": "claude", "kind": "claude", **agent})
    bypass = TaskSpec(name="t", instructions="Do it.", permissions=Permissions(mode=PermissionMode.BYPASS))
    harmless = TaskSpec(name="t", instructions="Do it.")

    problems = Claude().unsupported(bypass, spec)
    assert bool(problems) is refused
    assert all("IS_SANDBOX" in problem for problem in problems), "it says the remedy"
    assert Claude().unsupported(harmless, spec) == []


def program(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def test_an_installed_program_tells_its_version(tmp_path: Path) -> None:
    program(tmp_path, "claude", 'echo "2.1.330 (Claude Code)"')
    health = Claude().health(AgentSpec(name="claude", kind="claude"), str(tmp_path))
    assert (health.installed, health.version, health.problem) == (True, "2.1.330", None)
    assert health.program == str(tmp_path / "claude")


def test_it_is_asked_with_a_bare_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    program(tmp_path, "claude", 'test -z "$ANTHROPIC_API_KEY" && echo 1.0')
    assert Claude().health(AgentSpec(name="claude", kind="claude"), str(tmp_path)).version == "1.0"


def test_a_missing_program_says_how_to_get_it(tmp_path: Path) -> None:
    health = Claude().health(AgentSpec(name="claude", kind="claude"), str(tmp_path))
    assert not health.installed
    assert "npm install -g @anthropic-ai/claude-code" in (health.problem or "")


def test_a_broken_program_says_what_it_said(tmp_path: Path) -> None:
    program(tmp_path, "claude", "echo 'needs Node 22' >&2; exit 3")
    health = Claude().health(AgentSpec(name="claude", kind="claude"), str(tmp_path))
    assert health.installed
    assert "exited with 3: needs Node 22" in (health.problem or "")
