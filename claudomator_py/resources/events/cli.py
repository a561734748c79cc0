"""``log``: what was done, when, and by whom."""

from typing import Annotated

import typer

from claudomator_py.cli import completion
from claudomator_py.cli.connect import Client, connected
from claudomator_py.cli.output import out_json_line, wants_json, write_table
from claudomator_py.cli.times import clock, now_ms
from claudomator_py.domain.units import format_instant, short_id
from claudomator_py.resources.events import MAX_EVENTS, EventView, event_detail, event_title
from claudomator_py.surface.table import Column, Table, at


def event_words(event: EventView) -> str:
    """Return what else there is to say about an event, next to its title."""
    until = event.data.get("until")
    due = [f"until {clock(format_instant(until), now_ms())}"] if isinstance(until, int) else []
    return ", ".join([part for part in (event_detail(event.data), *due) if part])


_EVENTS = Table[EventView](
    Column("AT", lambda event: at(event.at)),
    Column("BY", lambda event: event.by, flexible=True),
    Column("WHAT", lambda event: event_title(event.kind, event.data)),
    Column("TASK", lambda event: event.task_name or short_id(event.task_id or ""), flexible=True),
    Column("DETAIL", event_words, flexible=True),
    Column("ID", lambda event: event.id, wide=True, right=True),
)
EVENTS_OF_TASK = Table[EventView](
    Column("WHEN", lambda event: at(event.at)),
    Column("WHAT", lambda event: event_title(event.kind, event.data)),
    Column("RUN", lambda event: short_id(event.run_id or "")),
    Column("DETAIL", event_words),
)


@connected
def log(
    client: Client,
    name: Annotated[str | None, completion.TASKS.argument("[TASK]", "Only events of this task.")] = None,
    by: Annotated[str | None, typer.Option(metavar="NAME", help="Only actions of this principal.")] = None,
    task: Annotated[str | None, completion.TASKS.option("The same as TASK.", metavar="TASK")] = None,
    last: Annotated[
        int, typer.Option("-n", "--last", min=1, max=MAX_EVENTS, help="How many of the newest to show.")
    ] = 50,
) -> None:
    """Show what happened, newest last, and who did it.

    BY is the name of a token, `operator`, or `inbox` for a file; it is empty if the daemon acted by itself. To see what
    an agent printed, use `claudomator logs TASK`.
    """
    events = client.last_events(last, task=name or task, by=by)
    if wants_json():
        for event in events:
            out_json_line(event)
    else:
        write_table(_EVENTS, events, "No events.")
