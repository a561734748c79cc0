"""``init``: a configuration and a first task to begin with. Never overwrites anything."""

from pathlib import Path
from typing import Annotated

import typer

from claudomator_py.cli.output import fail, note, out
from claudomator_py.cli.templates import CONFIG, FIRST_TASK

_TASKS = "tasks"


def init(
    directory: Annotated[Path, typer.Argument(metavar="[DIR]", help="Where; made if missing.")] = Path(),
) -> None:
    """Write a configuration and a first task.

    These are claudomator.yaml and tasks/hello.yaml; what is there already stays as it is.
    """
    written = [
        path
        for path, content in (
            (directory / "claudomator.yaml", CONFIG),
            (directory / _TASKS / "hello.yaml", FIRST_TASK),
        )
        if _write_new(path, content)
    ]
    for path in written:
        out(str(path))
    if written:
        place = "" if directory == Path() else f"cd {directory} && "
        note(f"Look through them, then start with: {place}claudomator serve")


def _write_new(path: Path, content: str) -> bool:
    """Write the file unless there is one; whether it was written."""
    try:
        if path.parent.name == _TASKS and path.parent.is_dir():
            note(f"{path.parent} is there already; left as it is.")
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
    except FileExistsError:
        note(f"{path} is there already; left as it is.")
        return False
    except OSError as error:
        fail(f"{path} cannot be written: {error.strerror}.", "Choose another folder, or mend its permissions.")
    return True
