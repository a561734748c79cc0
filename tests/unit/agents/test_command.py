"""Any program as an agent."""

import re
from pathlib import Path
from typing import Literal

import pytest

from claudomator_py.agents.command.kind import Command
from claudomator_py.domain.agent import AgentSpec, ModelChoice
from claudomator_py.domain.outcome import Outcome, OutcomeStatus
from claudomator_py.domain.run import ExitRecord, Launch, LaunchRequest
from claudomator_py.domain.task import TaskSpec


def agent(*command: str) -> AgentSpec:
    return AgentSpec(name="lint", kind="command", command=command)


def launch(*command: str, model: str | None = None) -> Launch:
    task = TaskSpec(name="tidy", instructions="Tidy up.")
    choice = ModelChoice(model=model) if model is not None else None
    return Command().launch(LaunchRequest("run", agent(*command), task, "Tidy up.\n", choice, "id"))


def read(stdout: bytes, stderr: bytes, exit_code: int | None, ended_by: Literal["timeout"] | None = None) -> Outcome:
    reader = Command().reader()
    reader.feed("stdout", stdout)
    reader.feed("stderr", stderr)
    return reader.outcome(ExitRecord(exit_code, ended_by, 0, 1, error="no such file" if exit_code is None else None), 1)


def test_placeholders_are_filled_in_within_their_words() -> None:
    built = launch("run", "--task={task}", "{prompt_file}", "{model}", "{{task}}", "a b", model="gpt-6.1-sol")
    assert built.argv == ("run", "--task=tidy", "/dev/stdin", "gpt-6.1-sol", "{task}", "a b")
    assert built.stdin == "Tidy up.\n"


@pytest.mark.parametrize(
    ("command", "model", "remedy"),
    [
        ((), None, "write the program and its arguments"),
        (("run", "{prompt}"), None, "there are {prompt_file}, {task}, {model}; write {{ and }} for plain braces"),
        (("run", "{model}"), None, "give agents.lint.models, or leave {model} out"),
        (("sh", "-c", "run {model}"), "x; rm -rf ~", "is not a model's name"),
        (("run", "{model}"), "--evil", "is not a model's name"),
    ],
)
def test_a_template_that_cannot_be_filled_in_says_what_to_write(
    command: tuple[str, ...], model: str | None, remedy: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(remedy)):
        launch(*command, model=model)


def test_exit_0_is_success_and_its_text_is_what_it_printed() -> None:
    outcome = read(b"\x1b[32mall good\x1b[0m\n", b"a warning\n", 0)
    assert (outcome.status, outcome.text, outcome.detail) == (OutcomeStatus.SUCCEEDED, "all good", None)


@pytest.mark.parametrize(
    ("exit_code", "reason"),
    [(1, "agent_error"), (-15, "interrupted"), (137, "interrupted"), (127, "setup_failed"), (None, "setup_failed")],
)
def test_each_other_exit(exit_code: int | None, reason: str) -> None:
    outcome = read(b"", b"main.c:3: error\n", exit_code)
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, reason)
    assert outcome.detail
    if reason == "agent_error":
        assert outcome.detail == "main.c:3: error"


def test_exit_0_after_the_timeout_is_no_success() -> None:
    assert read(b"", b"", 0, "timeout").reason == "timeout"


def test_of_much_output_the_end_is_kept() -> None:
    outcome = read(b"x" * 1_000_000 + b"\nthe end", b"", 0)
    assert outcome.text is not None
    assert outcome.text.endswith("the end")
    assert len(outcome.text) < 100_000


def test_what_a_plain_program_cannot_keep_to_is_said() -> None:
    asked = {"max_turns": 3, "add_dirs": ("/x",), "permissions": {"mode": "plan", "disallowed_tools": ("Bash",)}}
    task = TaskSpec.model_validate(
        {"name": "t", "instructions": "x", "agent": {"type": "lint", "model": "opus"}, **asked}
    )
    (problem,) = Command().unsupported(task, agent("make"))
    named = "permissions.mode, permissions.disallowed_tools, max_turns, add_dirs, agent.model"
    assert problem == f"lint is a plain command, which cannot keep to {named}"
    with_model = TaskSpec.model_validate({"name": "t", "instructions": "x", "agent": {"type": "lint", "model": "opus"}})
    assert Command().unsupported(with_model, agent("run", "{model}")) == []


def test_it_is_looked_for_and_never_run(tmp_path: Path) -> None:
    program = tmp_path / "deploy"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    health = Command().health(agent("deploy"), str(tmp_path))
    assert (health.installed, health.program, health.problem) == (True, str(program), None)
    assert not (tmp_path / "ran").exists()
    assert "agents.lint.command" in (Command().health(agent("absent"), str(tmp_path)).problem or "")
    assert "unknown placeholder" in (Command().health(agent("deploy", "{x}"), str(tmp_path)).problem or "")
