"""How opencode is started."""

import json
from collections.abc import Mapping

import pytest

from claudomator_py.agents.opencode.kind import Opencode
from claudomator_py.domain.agent import AgentSpec, ModelChoice
from claudomator_py.domain.run import Launch, LaunchRequest
from claudomator_py.domain.task import TaskSpec

SESSION = "ses_dff94c428ffeG77cg0o0mzTc2u"
LEAST = ("opencode", "run", "--format=json", "--print-logs", "--log-level=ERROR")


def task(**fields: object) -> TaskSpec:
    return TaskSpec.model_validate({"name": "t", "instructions": "Do it.", **fields})


def launch(
    spec: TaskSpec | None = None,
    agent: Mapping[str, object] | None = None,
    model: ModelChoice | None = None,
    resume: bool = False,
) -> Launch:
    configured = AgentSpec.model_validate({"name": "opencode", "kind": "opencode", **(agent or {})})
    return Opencode().launch(LaunchRequest("run", configured, spec or task(), "--auto\n", model, SESSION, resume))


def permission(**fields: object) -> object:
    return json.loads(launch(task(**fields)).env["OPENCODE_PERMISSION"])


def unsupported(own_env: dict[str, str] | None = None, /, **fields: object) -> list[str]:
    return Opencode().unsupported(task(**fields), AgentSpec(name="opencode", kind="opencode", env=own_env or {}))


def test_the_least_command_line() -> None:
    assert launch().argv == LEAST
    assert launch().stdin == "--auto\n"
    assert "OPENCODE_PERMISSION" not in launch().env, "its own configuration decides"


def test_a_resumed_session() -> None:
    assert launch(resume=True).argv == (*LEAST, f"--session={SESSION}")


def test_model_effort_and_arguments() -> None:
    model = ModelChoice(model="anthropic/claude", effort="high")
    argv = launch(agent={"extra_args": ("--pure",)}, model=model).argv
    assert argv == (*LEAST, "--model=anthropic/claude", "--variant=high", "--pure")


@pytest.mark.parametrize(
    ("mode", "flags", "granted"),
    [
        ("acceptEdits", (), {"edit": "allow", "bash": "deny"}),
        ("plan", ("--agent=plan",), {"edit": "deny", "bash": "deny"}),
        ("bypassPermissions", ("--auto",), None),
    ],
)
def test_permission_modes(mode: str, flags: tuple[str, ...], granted: object) -> None:
    built = launch(task(permissions={"mode": mode}))
    assert built.argv == (*LEAST, *flags)
    assert json.loads(built.env.get("OPENCODE_PERMISSION", "null")) == granted


def test_a_folder_that_would_be_a_pattern_is_not_handed_over() -> None:
    """A link that a task names may lead to it."""
    with pytest.raises(ValueError, match="for a pattern"):
        launch(task(permissions={"mode": "acceptEdits"}, add_dirs=["/srv/sta*"]))


def test_tools_and_folders_become_permissions() -> None:
    permissions = {"mode": "acceptEdits", "allowed_tools": ["bash"], "disallowed_tools": ["write", "webfetch"]}
    granted = permission(permissions=permissions, add_dirs=["/data"])
    assert granted == {
        "edit": "deny",
        "bash": "allow",
        "webfetch": "deny",
        "external_directory": {"/data/**": "allow"},
    }
    assert unsupported(permissions=permissions, add_dirs=["/data"]) == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"max_turns": 3}, "max_turns"),
        ({"permissions": {"allowed_tools": ["bash(git *)"]}}, "'bash(git *)'"),
        ({"add_dirs": ["/srv/sta*"]}, "'/srv/sta*' in add_dirs for a pattern"),
        ({"permissions": {"mode": "plan"}, "env": {"OPENCODE_PERMISSION": "{}"}}, "OPENCODE_PERMISSION"),
    ],
)
def test_what_it_cannot_enforce(fields: dict[str, object], words: str) -> None:
    (sentence,) = unsupported(**fields)
    assert words in sentence


def test_permissions_of_the_agent_stand_against_those_of_a_task() -> None:
    (sentence,) = unsupported({"OPENCODE_PERMISSION": "{}"}, permissions={"mode": "plan"})
    assert "OPENCODE_PERMISSION" in sentence
    assert unsupported({"OPENCODE_PERMISSION": "{}"}) == []
