"""``log``: what was done, when, and by whom. What an agent printed is told by ``logs``."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli.connect import connected
from claudomator_py.cli.output import Format, FormatOption, note, out, out_json_line
from claudomator_py.cli.table import Column, render
from claudomator_py.domain.views import EventView

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

_MOST = 500
_TASK = 8
"""Characters of a task's id that are enough for people."""
_COLUMNS = (
    Column("AT"),
    Column("BY", flexible=True),
    Column("WHAT"),
    Column("TASK"),
    Column("DETAIL", flexible=True),
    Column("ID", wide=True, right=True),
)


@connected
def log(
    client: "Client",
    by: Annotated[str | None, typer.Option(metavar="NAME", help="Only what this one did.")] = None,
    task: Annotated[str | None, typer.Option(metavar="TASK", help="Only what happened to this task.")] = None,
    last: Annotated[int, typer.Option("-n", "--last", min=1, max=_MOST, help="How many, the newest.")] = 50,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show what happened, newest last, and who did it.

    BY is the name of a token, `operator`, or `inbox` for a file; it is empty where the daemon acted by itself. What an
    agent printed is shown by `claudomator logs TASK`.
    """
    found = client.last_events(last, task=task, by=by)
    if output is Format.JSON:
        for event in found:
            out_json_line(event)
    elif not found:
        note("There is nothing.")
    else:
        out(_table(found, wide=output is Format.WIDE))


def _table(found: Sequence[EventView], *, wide: bool) -> str:
    rows = [
        (
            event.at[:19].replace("T", " "),
            event.by or "",
            event.kind.replace("_", " "),
            (event.task_id or "")[:_TASK],
            _detail(event.data),
            str(event.id),
        )
        for event in found
    ]
    return render(_COLUMNS, rows, wide=wide)


def _detail(data: Mapping[str, object]) -> str:
    told = {key: value for key, value in data.items() if key != "by" and value not in (None, "", [], {})}
    return ", ".join(f"{key} {value}" for key, value in told.items())
