"""``schedule``: the list, pausing, ending, and a task now; and files with a schedule in ``submit``."""

import json
from pathlib import Path

import pytest
from freezegun import freeze_time

from claudomator_py.cli.schedule import schedules_table
from claudomator_py.cli.status import overview
from claudomator_py.core.schedule_view import FireView
from claudomator_py.core.task import TaskSpec
from tests.fakes.command import Command
from tests.fakes.desk import FakeDesk

NIGHTLY = 'instructions: x\nschedule: "0 3 * * *"\ntimezone: Europe/Berlin\n'


def add(command: Command, *names: str) -> None:
    for name in names:
        path = Path(command.home) / f"{name}.yaml"
        path.write_text(NIGHTLY)
        assert command("submit", str(path)).returncode == 0


def test_an_empty_list_says_how_to_fill_it(command: Command) -> None:
    done = command("schedule", "list")
    assert (done.returncode, done.stdout) == (0, "")
    assert "`schedule`" in done.stderr
    assert json.loads(command("schedule", "list", "-o", "json").stdout) == []


def test_a_submitted_file_with_a_schedule_becomes_one_and_no_task(command: Command, desk: FakeDesk) -> None:
    add(command, "nightly", "nightly")
    (line,) = command("schedule", "list").stdout.splitlines()[1:]
    assert line.split()[:7] == ["nightly", "0", "3", "*", "*", "*", "Europe/Berlin"]
    assert desk.jobs == {}


def test_tasks_and_schedules_are_told_together_and_only_tasks_are_awaited(command: Command, desk: FakeDesk) -> None:
    path = Path(command.home) / "both.yaml"
    path.write_text(f"name: once\ninstructions: x\n---\nname: nightly\n{NIGHTLY}")
    told = json.loads(command("submit", str(path), "-o", "json").stdout)
    assert [one["name"] for one in told] == ["once", "nightly"]
    (Path(command.home) / "nightly.yaml").write_text(NIGHTLY)
    waited = command("submit", "--wait", str(Path(command.home) / "nightly.yaml"))
    assert (waited.returncode, "nightly" in waited.stdout) == (0, True)


def test_one_is_paused_and_resumed(command: Command) -> None:
    add(command, "nightly")
    assert "paused" in command("schedule", "pause", "nightly").stdout
    assert "paused" not in command("schedule", "resume", "nightly").stdout


def test_a_task_is_made_now(command: Command, desk: FakeDesk) -> None:
    add(command, "nightly")
    assert command("schedule", "run", "nightly").stdout.startswith("nightly.20261122t0200z  ")
    (line,) = command("schedule", "list").stdout.splitlines()[1:]
    assert line.endswith("QUEUED")
    assert "nightly.20261122t0200z" in command("schedule", "list", "-o", "wide").stdout
    assert json.loads(command("schedule", "run", "nightly", "-o", "json").stdout)["name"] == "nightly.20261122t0200z"


def test_one_is_ended(command: Command) -> None:
    add(command, "nightly")
    assert command("schedule", "delete", "nightly").returncode == 0
    refused = command("schedule", "delete", "nightly")
    assert (refused.returncode, "There is no schedule 'nightly'." in refused.stderr) == (1, True)


def test_the_list_fits_a_terminal_and_says_what_became_of_the_last_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    desk = FakeDesk()
    for name, zone in (("nightly-triage-of-everything", "America/Argentina/Buenos_Aires"), ("weekly", "UTC")):
        desk.schedules.add(TaskSpec(name=name, instructions="x", schedule="0 3 * * 1-5", timezone=zone))
    desk.schedules.run("nightly-triage-of-everything")
    why = "nightly.20261122t0200z has not ended (RUNNING)"
    skipped = FireView(due_at="2026-11-22T02:00:00.000Z", by="clock", skipped=why)
    weekly = desk.schedules.pause("weekly").model_copy(update={"last": skipped})
    desk.schedules.known["weekly"] = weekly
    with freeze_time("2026-11-22T05:00:00Z"):
        lines = schedules_table(desk.schedules.all()).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["NAME", "SCHEDULE", "ZONE", "NEXT", "LAST", "BECAME"]
    assert lines[1].endswith("now     3h ago  QUEUED")
    assert "paused  3h ago  skipped: nigh" in lines[2]
    sections = overview(desk.status()).splitlines()
    assert "SCHEDULES" in sections
