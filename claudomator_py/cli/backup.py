"""``backup``: a copy of the database, made by the daemon while it works."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli.connect import connected
from claudomator_py.cli.copying import copy_to_new
from claudomator_py.cli.output import Format, FormatOption, fail, out, out_json

if TYPE_CHECKING:
    from claudomator_py.client.http import Client


@connected
def backup(
    client: "Client",
    to: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Put it there, which must not exist; else it stays with the daemon's."),
    ] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Copy the database to a file.

    It is consistent at one moment; tasks go on meanwhile.

    To restore: stop the daemon, put the file in the place of `claudomator.db` in the state folder, and remove
    `claudomator.db-wal` and `claudomator.db-shm`.
    """
    if to is not None and to.exists():
        fail(f"{to} exists already.", "Name a file that does not; a backup never replaces one.")
    made = client.backup()
    if to is not None:
        try:
            # The daemon's own copy goes once the other is whole.
            copy_to_new(Path(made.path), to)
            Path(made.path).unlink()
        except FileExistsError:
            fail(f"{to} exists already.", f"Name a file that does not; the backup is at {made.path}.")
        except OSError as error:
            fail(f"The backup could not be put to {to}: {error.strerror}.", f"It is at {made.path}.")
        made = made.model_copy(update={"path": str(to.absolute())})
    if output is Format.JSON:
        out_json(made)
    else:
        out(made.path)
