"""``schedule``: the list, pausing, ending, and a task now; and files with a schedule in ``submit``."""

import json
from pathlib import Path

from claudomator_py.domain.units import SECOND_MS
from tests.fakes.command import Command
from tests.fakes.prepared import PreparedService

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


def test_a_submitted_file_with_a_schedule_becomes_one_and_no_task(command: Command, prepared: PreparedService) -> None:
    add(command, "nightly", "nightly")
    (line,) = command("schedule", "list").stdout.splitlines()[1:]
    assert line.split()[:7] == ["nightly", "0", "3", "*", "*", "*", "Europe/Berlin"]
    assert prepared.task_ids() == []


def test_tasks_and_schedules_are_told_together_and_only_tasks_are_awaited(
    command: Command, prepared: PreparedService
) -> None:
    path = Path(command.home) / "both.yaml"
    path.write_text(f"name: once\ninstructions: x\n---\nname: nightly\n{NIGHTLY}")
    record = json.loads(command("submit", str(path), "-o", "json").stdout)
    assert [entry["name"] for entry in record] == ["once", "nightly"]
    (Path(command.home) / "nightly.yaml").write_text(NIGHTLY)
    waited = command("submit", "--wait", str(Path(command.home) / "nightly.yaml"))
    assert (waited.returncode, "nightly" in waited.stdout) == (0, True)


def test_one_is_paused_and_resumed(command: Command) -> None:
    add(command, "nightly")
    assert "paused" in command("schedule", "pause", "nightly").stdout
    assert "paused" not in command("schedule", "resume", "nightly").stdout


def test_a_task_is_made_now(command: Command, prepared: PreparedService) -> None:
    add(command, "nightly")
    assert command("schedule", "run", "nightly").stdout.startswith("nightly.20260921t141320z  ")
    (line,) = command("schedule", "list").stdout.splitlines()[1:]
    assert line.endswith("QUEUED")
    assert "nightly.20260921t141320z" in command("schedule", "list", "-o", "wide").stdout
    assert "has not ended" in command("schedule", "run", "nightly").stderr
    prepared.service.cancel("nightly.20260921t141320z")
    prepared.world.now_ms += SECOND_MS
    assert json.loads(command("schedule", "run", "nightly", "-o", "json").stdout)["name"] == "nightly.20260921t141321z"


def test_one_is_ended(command: Command) -> None:
    add(command, "nightly")
    assert command("schedule", "delete", "nightly").returncode == 0
    refused = command("schedule", "delete", "nightly")
    assert (refused.returncode, "There is no schedule 'nightly'." in refused.stderr) == (1, True)
