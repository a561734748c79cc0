"""How opencode is started."""

import json
from functools import partial

import pytest

from claudomator_py.agents.opencode.kind import Opencode
from claudomator_py.domain.agent import ModelChoice
from tests.unit.agents.starting import launched, task, unsupported_by

SESSION = "ses_dff94c428ffeG77cg0o0mzTc2u"
LEAST = ("opencode", "run", "--format=json", "--print-logs", "--log-level=ERROR")
launch = partial(launched, Opencode(), "--auto\n", SESSION)
unsupported = partial(unsupported_by, Opencode())


def permission(**fields: object) -> object:
    return json.loads(launch(task(**fields)).env["OPENCODE_PERMISSION"])


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
        ({"permissions": {"tools": ["read"]}}, "permissions.tools"),
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
