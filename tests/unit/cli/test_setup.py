"""Setting up, and finding out what keeps it from working."""

import json
import os
from pathlib import Path

import pytest

from claudomator_py.cli import doctor
from claudomator_py.documents.configfile import load_config
from claudomator_py.documents.taskfiles import parse_task_file
from tests.fakes.command import Command
from tests.fakes.desk import FakeDesk


def _checks(command: Command, *arguments: str, **environ: str) -> dict[str, dict[str, object]]:
    found = json.loads(command("doctor", "-o", "json", *arguments, **environ).stdout)
    return {check["name"]: check for check in found}


def test_init_writes_what_the_daemon_accepts(offline: Command) -> None:
    done = offline("init", "new")
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["new/claudomator.yaml", "new/tasks/hello.yaml"]
    assert "claudomator serve" in done.stderr
    folder = offline.home / "new"
    assert load_config(folder / "claudomator.yaml").settings.inbox.paths == (str(folder / "tasks"),)
    parsed = parse_task_file((folder / "tasks/hello.yaml").read_bytes(), "hello.yaml")
    assert (parsed.problems, [spec.name for spec in parsed.specs]) == ((), ["hello"])


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


def test_init_never_overwrites(offline: Command) -> None:
    (offline.home / "claudomator.yaml").write_text("# mine\n")
    (offline.home / "tasks").mkdir()
    done = offline("init")
    assert (done.returncode, done.stdout) == (0, "")
    assert (offline.home / "claudomator.yaml").read_text() == "# mine\n"
    assert list((offline.home / "tasks").iterdir()) == []
    assert done.stderr.count("left as it is") == 2


def test_init_where_nothing_can_be_written(offline: Command) -> None:
    (offline.home / "file").write_text("")
    done = offline("init", "file/below")
    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot be written" in done.stderr


def test_doctor_where_all_is_well(command: Command, desk: FakeDesk) -> None:
    desk.add_agent("claude")
    done = command("doctor")
    assert (done.returncode, done.stderr) == (0, "")
    checks = _checks(command)
    expected = {"configuration", "state folder", "disk space", "inbox", "daemon", "daemon: database", "agent claude"}
    assert set(checks) == expected | {"git", "clock"}


def test_doctor_asks_the_daemon_about_agents(command: Command, desk: FakeDesk) -> None:
    desk.add_agent("codex", installed=False, problem="codex is not on the daemon's PATH")
    desk.ready = False
    checks = _checks(command)
    assert checks["agent codex"]["detail"] == "codex is not on the daemon's PATH"
    assert (checks["daemon"]["ok"], checks["daemon: database"]["remedy"]) == (False, "Stop the other process.")


def test_doctor_where_nothing_is_there(offline: Command, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    done = offline("doctor", PATH=str(tmp_path / "bin"))
    assert done.returncode == 1
    for name in ("daemon", "agents", "git"):
        assert f"{name}: " in done.stderr
    checks = _checks(offline, PATH=str(tmp_path / "bin"))
    assert [name for name, check in checks.items() if not check["ok"]] == ["daemon", "agents", "git"]
    assert all(check["remedy"] for check in checks.values() if not check["ok"])


def test_doctor_finds_agents_on_the_path(offline: Command, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    assert _checks(offline, PATH=path)["agent claude"]["detail"] == str(program)
    (tmp_path / "claudomator.yaml").write_text("agents: {lint: {kind: command, command: [no-such-program]}}\n")
    lint = _checks(offline, PATH=path)["agent lint"]
    assert (lint["ok"], lint["detail"]) == (False, "no-such-program is not on PATH")


def test_doctor_tells_of_a_broken_configuration(offline: Command) -> None:
    (offline.home / "claudomator.yaml").write_text("inbox: {pathes: [x]}\n")
    found = _checks(offline)["configuration"]
    assert found["ok"] is False
    assert "did you mean `paths`?" in str(found["detail"])


def test_doctor_tells_of_a_state_folder_that_is_open_or_none(offline: Command) -> None:
    (offline.home / "claudomator.yaml").write_text("state_dir: state\n")
    state = offline.home / "state"
    state.mkdir(mode=0o755)
    assert f"chmod 700 {state}" in str(_checks(offline)["state folder"]["remedy"])
    state.rmdir()
    state.write_text("")
    assert "not a folder" in str(_checks(offline)["state folder"]["detail"])


def test_doctor_tells_of_a_full_disk(offline: Command) -> None:
    (offline.home / "claudomator.yaml").write_text("limits: {min_free: 1TiB}\n")
    found = _checks(offline)["disk space"]
    assert found["ok"] is False
    assert "limits.min_free (1TiB)" in str(found["remedy"])


def test_doctor_tells_of_a_clock_that_cannot_be_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 0.0)
    found = doctor._clock()
    assert (found.ok, found.detail[:4]) == (False, "1970")
