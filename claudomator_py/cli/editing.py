"""Read a task's new content from a file or an editor."""

from pathlib import Path

import typer

from claudomator_py.cli.editor import in_editor
from claudomator_py.cli.output import note
from claudomator_py.cli.task_files import TaskFileContent, parsed_as_tasks, read
from claudomator_py.domain.task import TaskSpec
from claudomator_py.resources.tasks import TaskView
from claudomator_py.schema.cardfile import card_text
from claudomator_py.schema.taskfile import to_document


def only_task(file: Path) -> TaskSpec:
    """Return the one task of a file. Raises BadParameter."""
    (found,) = read([file])
    if found.problems or len(found.specs) != 1:
        said = [problem.render(found.shown) for problem in found.problems]
        raise typer.BadParameter("; ".join(said) or f"{file} has {len(found.specs)} tasks, not one")
    return found.specs[0]


def edited_task(before: TaskView) -> TaskSpec | None:
    """Return the task as edited in the user's editor; None: unchanged. Problems can be fixed in the editor again."""
    usual = to_document(TaskSpec(name="x", instructions="x"))
    text = card_text({key: value for key, value in (before.spec or {}).items() if value != usual.get(key)})
    while True:
        changed = in_editor(text, "task.yaml")
        if changed == text:
            return None
        text = changed
        found = parsed_as_tasks(Path("task.yaml"), TaskFileContent("task.yaml", text.encode()))
        if not found.problems and len(found.specs) == 1:
            return found.specs[0]
        for problem in found.problems:
            note(problem.render(found.shown))
        typer.confirm("Edit it again?", default=True, abort=True, err=True)
