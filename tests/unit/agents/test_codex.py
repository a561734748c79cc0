"""How Codex is started."""

from functools import partial
from pathlib import Path

import pytest

from claudomator_py.agents.codex.kind import Codex
from claudomator_py.domain.agent import ModelChoice
from tests.unit.agents.starting import launched, task, unsupported_by

THREAD = "01a1ffd5-6378-7872-b1e0-348ec1720a85"
LEAST = ("codex", "exec", "--json", "--skip-git-repo-check", "--config", "analytics.enabled=false")
launch = partial(launched, Codex(), "resume\n", THREAD)
unsupported = partial(unsupported_by, Codex())


def test_the_least_command_line() -> None:
    assert launch().argv == (*LEAST, "-")
    assert launch().stdin == "resume\n"


def test_it_logs_when_a_limit_resets_and_nothing_else_but_errors() -> None:
    assert launch().env == {"RUST_LOG": "error,codex_http_client::client=debug"}


def test_a_new_thread_takes_no_id() -> None:
    assert THREAD not in launch().argv


def test_a_resumed_thread_gets_the_same_options() -> None:
    spec = task(permissions={"mode": "acceptEdits"})
    first, second = launch(spec).argv, launch(spec, resume=True).argv
    assert second == (*first[:-1], "resume", THREAD, "-")


def test_all_that_a_task_can_ask_for() -> None:
    spec = task(permissions={"mode": "acceptEdits"}, add_dirs=["~/shared", "/data"])
    agent = {"command": ("npx", "codex"), "extra_args": ("--profile", "work")}
    argv = launch(spec, agent, ModelChoice(model="gpt-6-sol", effort="high")).argv

    assert argv == (
        *("npx", *LEAST),
        *("--model", "gpt-6-sol", "--config", 'model_reasoning_effort="high"', "--sandbox", "workspace-write"),
        *("--add-dir", str(Path("~/shared").expanduser()), "--add-dir", "/data", "--profile", "work", "-"),
    )
    assert unsupported(permissions={"mode": "acceptEdits"}, add_dirs=["/data"]) == []


@pytest.mark.parametrize(
    ("mode", "flags"),
    [
        ("default", ()),
        ("plan", ("--sandbox", "read-only")),
        ("bypassPermissions", ("--dangerously-bypass-approvals-and-sandbox",)),
    ],
)
def test_permission_modes(mode: str, flags: tuple[str, ...]) -> None:
    assert launch(task(permissions={"mode": mode})).argv == (*LEAST, *flags, "-")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"permissions": {"tools": ["shell"]}}, "permissions.tools"),
        ({"permissions": {"allowed_tools": ["shell"]}}, "permissions.allowed_tools"),
        ({"permissions": {"disallowed_tools": ["shell"]}}, "permissions.disallowed_tools"),
        ({"max_turns": 3}, "max_turns"),
        ({"permissions": {"mode": "plan"}, "add_dirs": ["/data"]}, "add_dirs"),
    ],
)
def test_what_it_cannot_enforce(fields: dict[str, object], words: str) -> None:
    (sentence,) = unsupported(**fields)
    assert words in sentence
