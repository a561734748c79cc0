"""How Qwen Code is started."""

from collections.abc import Mapping
from functools import partial

import pytest

from claudomator_py.agents.qwen.kind import DEFAULTS, Qwen
from claudomator_py.domain.agent import ModelChoice
from tests.unit.agents.starting import launched, task, unsupported_by

SESSION = "6f1c3a52-0b7e-5d7e-9c55-2f0f6a4d9b11"
LEAST = ("qwen", "--output-format=stream-json", f"--session-id={SESSION}")
launch = partial(launched, Qwen(), "--yolo\n", SESSION)
unsupported = partial(unsupported_by, Qwen())

DEFAULTS_NAME = "QWEN_CODE_SYSTEM_DEFAULTS_PATH"


def test_the_least_command_line() -> None:
    """By itself a model would approve, and what may start anything, such as ``make``, would not be allowed."""
    assert launch().argv == (*LEAST, "--approval-mode=default")
    assert launch().stdin == "--yolo\n"


def test_a_resumed_session() -> None:
    assert launch(resume=True).argv == (*LEAST[:2], f"--resume={SESSION}", "--approval-mode=default")


def test_what_a_task_asks_for() -> None:
    permissions = {"mode": "acceptEdits", "allowed_tools": ["run_shell_command"], "disallowed_tools": ["web_fetch"]}
    spec = task(permissions=permissions, add_dirs=["/data"], max_turns=3)
    assert launch(spec, {"extra_args": ("--bare",)}, ModelChoice(model="qwen3-coder")).argv == (
        *LEAST,
        "--model=qwen3-coder",
        "--approval-mode=auto-edit",
        "--max-session-turns=3",
        "--exclude-tools=web_fetch",
        "--bare",
        "--allowed-tools=run_shell_command",
        "--include-directories=/data",
    )
    assert unsupported(permissions=permissions, add_dirs=["/data"], max_turns=3) == []


@pytest.mark.parametrize(("mode", "flag"), [("plan", "plan"), ("bypassPermissions", "yolo")])
def test_permission_modes(mode: str, flag: str) -> None:
    assert launch(task(permissions={"mode": mode})).argv == (*LEAST, f"--approval-mode={flag}")


@pytest.mark.parametrize("agent", [{"env": {DEFAULTS_NAME: "/etc/mine.json"}}, {"pass_env": (DEFAULTS_NAME,)}])
def test_its_retries_are_cut_unless_the_user_says_otherwise(agent: Mapping[str, object]) -> None:
    assert launch().env[DEFAULTS_NAME] == str(DEFAULTS)
    assert DEFAULTS_NAME not in launch(agent=agent).env


def test_a_folder_that_would_be_several_is_not_handed_over() -> None:
    with pytest.raises(ValueError, match="for several"):
        launch(task(add_dirs=["/srv/a,b"]))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"permissions": {"allowed_tools": ["run_shell_command(echo a,b)"]}}, "'run_shell_command(echo a,b)' in perm"),
        ({"permissions": {"disallowed_tools": ["edit(a)"]}}, "'edit(a)'"),
        ({"permissions": {"tools": []}}, "permissions.tools"),
        ({"add_dirs": ["/srv/a,b"]}, "'/srv/a,b' in add_dirs for several"),
    ],
)
def test_what_it_cannot_enforce(fields: dict[str, object], words: str) -> None:
    (sentence,) = unsupported(**fields)
    assert words in sentence
