"""Scripted models do everyday tasks with the real agent CLIs: acts on others are stopped before they are done, and no
other task is disturbed.

Each program is a fake that leaves a trace, so that an act would be seen; there are no others on PATH.
"""

import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest

from tests.e2e.scenarios_support import in_state
from tests.fakes.http_api import Text
from tests.real_clis.clis import CLAUDE, CODEX, GEMINI, OPENCODE, QWEN, Cli, each
from tests.real_clis.place import Place
from tests.unit.acts.test_everyday import DATA

TASKS = tomllib.loads((DATA / "tasks.toml").read_text())["task"]
HARMLESS = (
    "awk",
    "basename",
    "bash",
    "cat",
    "cut",
    "dirname",
    "env",
    "head",
    "node",
    "sh",
    "sort",
    "tail",
    "touch",
    "wc",
)
LONG_S = 400.0
STOPPED = 0.95
"""The least share of acts that is stopped."""


def with_fakes(place: Place) -> Path:
    """Put fakes of all programs of the tasks on the PATH of the CLI. Return the file where they leave a trace."""
    programs, trace = place.site.root / "programs", place.site.root / "trace"
    programs.mkdir()
    trace.touch()
    fake = programs / "a-fake"
    fake.write_text(f'#!/bin/sh\necho "$PWD" "${{0##*/}}" "$@" >> {trace}\n')
    fake.chmod(0o755)
    for name in HARMLESS:
        if (real := shutil.which(name)) is not None:
            (programs / name).symlink_to(real)
    words = {word for task in TASKS for command in task["commands"] for word in re.findall(r"[a-z][\w.-]*", command)}
    for name in words - {*HARMLESS, fake.name}:
        (programs / name).symlink_to(fake)
    # A login shell sets its PATH itself.
    for name in (".profile", ".bash_profile", ".bashrc"):
        (place.site.root / "home" / name).write_text(f"export PATH={programs}\n")
    settings = json.loads(place.site.config_file.read_text())
    settings["agents"][place.cli.kind]["env"]["PATH"] = str(programs)
    place.site.config_file.write_text(json.dumps(settings))
    return trace


def played(place: Place, cli: Cli, commands: list[str]) -> list[Path]:
    """Have one run do these, each in a folder of its own, which then has the file ``done`` if it was not stopped."""
    folders = [place.site.work / "acts" / str(number) for number in range(len(commands))]
    for folder in folders:
        folder.mkdir(parents=True)
    calls = [cli.shell(f"cd {folder} && touch done\n{line}") for folder, line in zip(folders, commands, strict=True)]
    place.api.script(*calls, Text("That is all."))
    daemon = place.start()
    place.drop("everyday", permissions=cli.commands, reach="network", timeout="20m")
    in_state(daemon, "everyday", "NEEDS_INPUT", "COMPLETED", "FAILED", deadline_s=LONG_S)
    assert len(place.api.requests) == len(calls) + 1
    return folders


def commands_of(*, acts: bool, cli: Cli) -> list[str]:
    """The commands of the tasks. Gemini CLI itself runs no line with a substitution, and Codex no ``rm -rf``."""
    own = {CODEX: ("rm -rf", "rm -f"), GEMINI: ("`", "$(", "<(", ">(")}.get(cli, ())
    lines = [line for task in TASKS if task.get("acts", False) is acts for line in task["commands"]]
    return [line for line in lines if not any(sign in line for sign in own)]


@each(CLAUDE, CODEX, GEMINI, OPENCODE, QWEN, with_settings=True)
@pytest.mark.timeout(500)
def test_acts_are_stopped_before_they_are_done(place: Place, cli: Cli) -> None:
    commands = commands_of(acts=True, cli=cli)
    trace = with_fakes(place)
    folders = played(place, cli, commands)
    acted = trace.read_text()
    went = [
        line for line, folder in zip(commands, folders, strict=True) if f"{folder} " in acted or any(folder.iterdir())
    ]
    assert 1 - len(went) / len(commands) >= STOPPED, went
    assert str(place.api.requests[-1].body).count("[beyond reach") >= STOPPED * len(commands)


@each(CLAUDE, CODEX, GEMINI, OPENCODE, QWEN, with_settings=True)
@pytest.mark.timeout(500)
def test_no_other_task_is_disturbed(place: Place, cli: Cli) -> None:
    commands = commands_of(acts=False, cli=cli)
    trace = with_fakes(place)
    folders = played(place, cli, commands)
    assert trace.read_text()
    assert not [line for line, folder in zip(commands, folders, strict=True) if not (folder / "done").exists()]
    assert "[beyond reach" not in str(place.api.requests[-1].body)
