"""Setting up: a configuration and a first task to begin with."""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from claudomator_py.schema.agent_settings import parse_agents
from claudomator_py.schema.configfile import load_config
from claudomator_py.schema.taskfile import parse_task_file
from tests.fakes.command import Command


def test_init_writes_what_the_daemon_accepts(offline: Command) -> None:
    done = offline("init", "new")
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["new/claudomator.yaml", "new/tasks/hello.yaml"]
    assert "claudomator serve" in done.stderr
    folder = offline.home / "new"
    assert load_config(folder / "claudomator.yaml").settings.inbox.paths == (str(folder / "tasks"),)
    parsed = parse_task_file((folder / "tasks/hello.yaml").read_bytes(), "hello.yaml")
    assert (parsed.problems, [spec.name for spec in parsed.items]) == ((), ["hello"])


def test_what_the_configuration_only_suggests_is_valid_too(offline: Command) -> None:
    offline("init")
    path = offline.home / "claudomator.yaml"
    lines = path.read_text().splitlines()
    keys = ("workdir_roots", "http", "concurrency", "agents", "balancing", "limits")
    shown = [
        line.removeprefix("# ") if line.startswith(("#  ", *(f"# {key}:" for key in keys))) else line for line in lines
    ]
    path.write_text("\n".join(shown) + "\n")
    settings = load_config(path).settings
    assert set(settings.agents) == {"claude", "lint"}
    plain = load_config(None).settings
    assert (settings.http, settings.concurrency, settings.limits) == (plain.http, plain.concurrency, plain.limits)


def programs(home: Path, *names: str) -> dict[str, str]:
    """A PATH with programs of these names, and nothing else of agents."""
    (home / "bin").mkdir()
    for name in names:
        (home / "bin" / name).write_text("#!/bin/sh\n")
        (home / "bin" / name).chmod(0o755)
    return {"PATH": f"{home / 'bin'}:/usr/bin:/bin"}


def test_what_is_found_is_listed_and_can_be_added_as_it_says(offline: Command) -> None:
    path = programs(offline.home, "claude", "vibe-acp", "codex-acp", "unknown-agent")
    done = offline("agents", "--found", "--output=json", **path)
    assert done.returncode == 0, done
    entries = {load["name"]: load["entry"] for load in json.loads(done.stdout)}
    assert entries == {
        "claude": "",
        "codex-acp": "codex-acp: {kind: acp, command: [codex-acp]}",
        "vibe": "vibe: {kind: acp}",
    }
    agents = parse_agents(yaml.safe_load("\n".join(filter(None, entries.values()))), {})
    assert isinstance(agents, dict)
    assert {name: agent.command for name, agent in agents.items()} == {
        "codex-acp": ("codex-acp",),
        "vibe": ("vibe-acp",),
    }
    shown = offline("agents", "--found", **path)
    assert "vibe --setup" in shown.stdout
    assert "below `agents:`" in shown.stderr


def test_what_is_found_is_listed_as_the_configuration_leaves_it(offline: Command) -> None:
    path = programs(offline.home, "claude", "gemini", "goose", "vibe-acp")
    config = offline.home / "other.yaml"
    config.write_text("agents:\n  work: {kind: claude}\n  home: {kind: claude}\n  vibe: {kind: acp}\n")
    done = offline("agents", "--found", "--output=json", "--config=other.yaml", **path)
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert {name: row["configured"] for name, row in rows.items()} == {
        "claude": ["work", "home"],
        "gemini": [],
        "goose": [],
        "vibe": ["vibe"],
    }
    assert rows["gemini"]["entry"] == "gemini: {}", "agents that are configured are the only ones"
    config.write_text(f"{config.read_text()}  {rows['gemini']['entry']}\n  {rows['goose']['entry']}\n")
    shown = offline("agents", "--found", "--config=other.yaml", **path)
    assert "(configured: work, home)" in shown.stdout
    assert ("used as it is" in shown.stdout, shown.stderr) == (False, "")
    config.write_text("agents: 3\n")
    assert "agents" in offline("agents", "--found", "--config=other.yaml", **path).stderr


def test_init_suggests_what_is_found(offline: Command) -> None:
    offline("init", **programs(offline.home, "goose"))
    assert "#   goose: {kind: acp}    # goose, found on PATH\n" in (offline.home / "claudomator.yaml").read_text()


def test_init_never_overwrites(offline: Command) -> None:
    (offline.home / "claudomator.yaml").write_text("# mine\n")
    (offline.home / "tasks").mkdir()
    done = offline("init")
    assert (done.returncode, done.stdout) == (0, "")
    assert (offline.home / "claudomator.yaml").read_text() == "# mine\n"
    assert list((offline.home / "tasks").iterdir()) == []
    assert done.stderr.count("already exists; not changed") == 2


def test_init_where_nothing_can_be_written(offline: Command) -> None:
    (offline.home / "file").write_text("")
    for place in ("file/below", "file", "x" * 300):
        done = offline("init", place)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"Error: {place}/claudomator.yaml cannot be written: ")


@contextmanager
def umask(mask: int) -> Iterator[None]:
    former = os.umask(mask)
    try:
        yield
    finally:
        os.umask(former)


def modes(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): f"{stat.S_IMODE(path.stat().st_mode):04o}" for path in folder.rglob("*")}


@pytest.mark.parametrize("mask", [0, 0o002, 0o077])
def test_what_init_makes_is_the_users_alone(offline: Command, mask: int) -> None:
    with umask(mask):
        assert offline("init", "a/b").returncode == 0
    assert modes(offline.home / "a") == {
        "b": "0700",
        "b/claudomator.yaml": "0600",
        "b/tasks": "0700",
        "b/tasks/hello.yaml": "0600",
    }
    assert stat.S_IMODE((offline.home / "a").stat().st_mode) == 0o700
    with umask(mask):
        assert offline("init", "--systemd", "user").returncode == 0
    assert set(modes(offline.home / ".config").values()) == {"0700", "0600"}


@pytest.mark.parametrize("mask", [0, 0o077])
def test_the_service_of_the_machine_can_be_read_by_its_user_and_written_by_none(offline: Command, mask: int) -> None:
    with umask(mask):
        offline("init", "--systemd", "system", "--root", "image", "--drop-in", "drain")
    assert set(modes(offline.home / "image").values()) == {"0755", "0644"}


def test_init_says_that_a_folder_which_was_there_before_is_not_read(offline: Command) -> None:
    tasks = offline.home / "tasks"
    tasks.mkdir()
    tasks.chmod(0o777)
    assert f"will not read tasks: every user can write to it (mode 0777); run `chmod go-w {tasks}`" in (
        offline("init").stderr
    )
    tasks.chmod(0o755)
    assert "will not read" not in offline("init").stderr


def test_who_begins_in_a_repository_is_told_that_tasks_cannot_work_there(offline: Command) -> None:
    assert "this repository" not in offline("init", "apart").stderr
    (offline.home / "shop/.git").mkdir(parents=True)
    assert "Tasks cannot work in this repository" in offline("init", "shop").stderr


def test_a_message_shows_what_nobody_would_see_of_a_name(offline: Command) -> None:
    (offline.home / "file").write_text("")
    stderr = offline("init", "file/\u202e\x1b[31m").stderr
    assert "file/\\u202e\\u001b[31m/claudomator.yaml cannot be written" in stderr
