"""``schedule``: what is made again and again, and when; pausing it, ending it, and having one made now."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli.connect import connected
from claudomator_py.cli.fires import preview
from claudomator_py.cli.output import Format, FormatOption, note, out, out_json
from claudomator_py.cli.table import Column, render
from claudomator_py.cli.times import ago, now_ms, until
from claudomator_py.domain.views.schedules import FireView, ScheduleView

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

_COLUMNS = (
    Column("NAME", flexible=True),
    Column("SCHEDULE"),
    Column("ZONE", flexible=True),
    Column("NEXT"),
    Column("AT", wide=True),
    Column("LAST"),
    Column("BECAME", flexible=True),
    Column("TASK", wide=True),
    Column("OVERLAP", wide=True),
    Column("CATCH_UP", wide=True),
    Column("FILE", wide=True),
)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")]


@connected
def list_schedules(client: "Client", output: FormatOption = Format.TABLE) -> None:
    """List the schedules, with their next times."""
    found = client.schedules()
    if not found and output is not Format.JSON:
        note("There are none. A task with `schedule` becomes one.")
    else:
        write_schedules(found, output)


@connected
def pause(client: "Client", name: NameArgument, output: FormatOption = Format.TABLE) -> None:
    """Have it make no more tasks until `schedule resume`."""
    write_schedules([client.pause_schedule(name)], output)


@connected
def resume(client: "Client", name: NameArgument, output: FormatOption = Format.TABLE) -> None:
    """Have it go on with its next time.

    Times that passed meanwhile are not caught up.
    """
    write_schedules([client.resume_schedule(name)], output)


@connected
def run(client: "Client", name: NameArgument, output: FormatOption = Format.TABLE) -> None:
    """Have it make a task now, besides its times.

    Refused while its last task has not ended, unless it has `overlap: queue`.
    """
    task = client.run_schedule(name)
    if output is Format.JSON:
        out_json(task)
    else:
        out(f"{task.name}  {task.id}  {task.state}")


@connected
def delete(client: "Client", name: NameArgument) -> None:
    """End a schedule that was made through the API.

    Its tasks stay. One that follows a file ends with its file.
    """
    client.delete_schedule(name)
    note(f"{name} has ended; its tasks stay.")


def group() -> typer.Typer:
    """The commands under ``schedule``."""
    app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    app.command("list")(list_schedules)
    for command in (preview, pause, resume, run, delete):
        app.command()(command)
    return app


def write_schedules(found: Sequence[ScheduleView], output: Format) -> None:
    """Write schedules."""
    if output is Format.JSON:
        out_json(found)
        return
    out(schedules_table(found, wide=output is Format.WIDE))


def schedules_table(found: Sequence[ScheduleView], *, wide: bool = False, indent: int = 0) -> str:
    """Schedules below each other, with times relative to now."""
    now = now_ms()
    rows = [
        (
            one.name,
            one.schedule,
            one.timezone,
            "paused" if one.paused_since is not None else until(one.next_at, now),
            one.next_at or "",
            "" if one.last is None else ago(one.last.due_at, now),
            "" if one.last is None else _became(one.last),
            "" if one.last is None else one.last.task_name or "",
            one.overlap.value,
            one.catch_up.value,
            one.file_path or "",
        )
        for one in found
    ]
    return render(_COLUMNS, rows, wide=wide, indent=indent)


def _became(last: FireView) -> str:
    return f"skipped: {last.skipped}" if last.skipped is not None else last.task_state or ""
