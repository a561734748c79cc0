"""``claudomator edit``: a task that waits is written anew, in an editor or by a file."""

import pytest

from claudomator_py.domain.lifecycle import Completed, Queued, Running
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.tasks import specialists as changes
from tests.fakes.cards import card
from tests.fakes.command import Command
from tests.fakes.prepared import PreparedService


def instructions(prepared: PreparedService, task_id: str) -> str:
    spec = prepared.service.get(task_id).spec
    assert spec is not None
    return str(spec["instructions"]).strip()


def test_a_task_is_edited_in_an_editor(command: Command, prepared: PreparedService) -> None:
    task_id = prepared.add("paint", Queued())
    before = instructions(prepared, task_id)
    done = command("edit", "paint", EDITOR=f"sed -i 's/{before}/Paint it blue./'")
    assert done.returncode == 0, done.stderr
    assert instructions(prepared, task_id) == "Paint it blue."
    done = command("edit", "paint", EDITOR="true")
    assert "Nothing was changed" in done.stderr


def test_a_task_is_edited_by_a_file_and_checked_as_a_new_one(command: Command, prepared: PreparedService) -> None:
    task_id = prepared.add("paint", Queued())
    file = command.home / "paint.yaml"
    file.write_text("name: paint\ninstructions: Paint it green.\n")
    assert command("edit", "paint", str(file)).returncode == 0
    assert instructions(prepared, task_id) == "Paint it green."
    file.write_text("name: other\ninstructions: Paint it red.\n")
    refused = command("edit", "paint", str(file))
    assert refused.returncode == 1
    assert "Leave it as it is: paint" in refused.stderr
    file.write_text("name: paint\ninstructions: Paint it red.\ntimeout: soon\n")
    refused = command("edit", "paint", str(file))
    assert refused.returncode == 2
    assert "is not a duration" in refused.stderr
    assert instructions(prepared, task_id) == "Paint it green."


@pytest.mark.parametrize(
    ("state", "text"), [(Running(), "paint is running."), (Completed(), "paint is COMPLETED already.")]
)
def test_a_task_that_runs_or_has_ended_is_not_edited(
    command: Command, prepared: PreparedService, state: Running | Completed, text: str
) -> None:
    task_id = prepared.add("paint", state)
    before = instructions(prepared, task_id)
    file = command.home / "paint.yaml"
    file.write_text("name: paint\ninstructions: Paint it green.\n")
    opened = command.home / "opened"
    for refused in (command("edit", "paint", str(file)), command("edit", "paint", EDITOR=f"cp -t {opened}")):
        assert refused.returncode == 1
        assert text in refused.stderr
    assert "the editor" not in refused.stderr.lower(), "it is refused before somebody writes in vain"
    assert instructions(prepared, task_id) == before


def test_the_card_of_a_file_is_refused_before_an_editor_is_opened(command: Command, prepared: PreparedService) -> None:
    prepared.database.write(
        lambda connection: changes.register(
            connection, card("plumber"), OPERATOR, prepared.world.now_ms, source="file", file_path="cards/plumber.yaml"
        )
    )
    refused = command("specialists", "edit", "plumber", EDITOR="false")
    assert refused.returncode == 1
    assert "follows the file cards/plumber.yaml" in refused.stderr
    assert "the editor" not in refused.stderr.lower()


def test_an_answer_that_nobody_asks_for_is_refused_before_it_is_read(
    command: Command, prepared: PreparedService
) -> None:
    prepared.add("paint", Completed())
    refused = command("answer", "paint", "--file", "-", stdin=b"\xff")  # which is no text
    assert refused.returncode == 1
    assert "nothing waits to be answered" in refused.stderr
