"""``schedule``: list recurring tasks, pause, resume, run and end them; ``preview`` needs no daemon."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from claudomator_py.cli import completion
from claudomator_py.cli.connect import Client, connected, with_client
from claudomator_py.cli.output import formatted, json_text, note, out, table_text, wants_json, write, write_table
from claudomator_py.cli.times import now_ms
from claudomator_py.domain.cron import BadCron
from claudomator_py.domain.schedule import Recurrence
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import format_instant, parse_instant
from claudomator_py.resources.schedules import FireView, ScheduleView
from claudomator_py.surface.table import Column, Table, ago, at, until

MAX_TIMES = 2_000


@formatted
def preview(
    cron: Annotated[str, typer.Argument(metavar="CRON", help='The expression, in quotes: "0 3 * * 1-5".')],
    timezone: Annotated[
        str | None,
        typer.Option("--timezone", metavar="ZONE", help="Time zone, such as Europe/Berlin. Default: this machine's."),
    ] = None,
    begin: Annotated[
        str | None, typer.Option("--from", metavar="RFC3339", help="Show times after this one. Default: now.")
    ] = None,
    count: Annotated[int, typer.Option("--count", min=1, max=MAX_TIMES, help="Number of times to show.")] = 10,
) -> None:
    """Show when a cron expression fires. Needs no daemon."""
    zone = _zone(timezone)
    try:
        recurrence = Recurrence(cron, zone)
    except BadCron as bad:
        raise typer.BadParameter(f"{bad}; {bad.remedy}") from None
    now = now_ms()
    times = fires(recurrence, now if begin is None else _instant(begin), count)
    if wants_json():
        out(json_text({"fires": [format_instant(at) for at in times]}))
        return
    if not times:
        note("It never fires again.")
        return
    table = Table[int](
        Column("LOCAL TIME", lambda at_ms: local_time(at_ms, zone)),
        Column("UTC", format_instant),
        Column("", lambda at_ms: until(format_instant(at_ms)) if at_ms >= now else None),
    )
    out(table_text(table, times))


def next_fires(spec: TaskSpec) -> list[int]:
    """Return the next three times of a schedule that was checked before, in epoch milliseconds; none without a
    schedule."""
    if spec.schedule is None:
        return []
    return fires(Recurrence(spec.schedule, zone_of(spec)), now_ms(), 3)


def zone_of(spec: TaskSpec) -> ZoneInfo:
    """Return the zone of its schedule: the one it names, else this machine's."""
    return ZoneInfo(spec.timezone) if spec.timezone is not None else _local()


def fires(recurrence: Recurrence, begin_ms: int, count: int) -> list[int]:
    """Return so many times from that one on, itself included; fewer if there are no more. All in epoch milliseconds."""
    times: list[int] = []
    at = recurrence.next_after(begin_ms - 1)
    while at is not None and len(times) < count:
        times.append(at)
        at = recurrence.next_after(at)
    return times


def local_time(at_ms: int, zone: ZoneInfo) -> str:
    """Write it as a clock in the zone shows it. The abbreviation tells apart the two times that look alike."""
    return f"{datetime.fromtimestamp(at_ms / 1_000, zone):%a %Y-%m-%d %H:%M %Z}"


def _zone(name: str | None) -> ZoneInfo:
    from claudomator_py.schema.zones import zone_problem

    if name is None:
        return _local()
    problem = zone_problem(name, {}, ())
    if problem is not None:
        raise typer.BadParameter(f"{problem.message}; {problem.remedy}")
    return ZoneInfo(name)


def _local() -> ZoneInfo:
    from claudomator_py.schema.zones import local_zone

    return ZoneInfo(local_zone())


def _instant(text: str) -> int:
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is None:
            raise ValueError
        return parse_instant(text)
    except (ValueError, OverflowError):
        remedy = "write such as 2026-03-28T12:00:00+01:00 or 2026-03-28T11:00:00Z"
        raise typer.BadParameter(f"--from {text!r} is not a time with an offset; {remedy}") from None


SCHEDULES = Table[ScheduleView](
    Column("NAME", lambda schedule: schedule.name, flexible=True),
    Column("SCHEDULE", lambda schedule: schedule.schedule),
    Column("ZONE", lambda schedule: schedule.timezone, flexible=True),
    Column("NEXT", lambda schedule: until(schedule.next_at) if schedule.paused_since is None else "paused"),
    Column("AT", lambda schedule: at(schedule.next_at), wide=True),
    Column("LAST", lambda schedule: None if schedule.last is None else ago(schedule.last.due_at)),
    Column("RESULT", lambda schedule: None if schedule.last is None else _result(schedule.last), flexible=True),
    Column("TASK", lambda schedule: None if schedule.last is None else schedule.last.task_name, wide=True),
    Column("OVERLAP", lambda schedule: schedule.overlap, wide=True),
    Column("CATCH_UP", lambda schedule: schedule.catch_up, wide=True),
    Column("FILE", lambda schedule: schedule.file_path, wide=True),
)
NameArgument = Annotated[str, completion.SCHEDULES.argument("NAME", "The schedule's name.")]


@connected
def list_schedules(client: Client) -> None:
    """List the schedules, with their next times."""
    write_schedules(client.schedules())


@connected
def pause(client: Client, name: NameArgument) -> None:
    """Pause it: it creates no tasks until `schedule resume`."""
    write_schedules([client.pause_schedule(name)])


@connected
def resume(client: Client, name: NameArgument) -> None:
    """Resume it, starting with its next scheduled time.

    Times that passed while it was paused are not caught up.
    """
    write_schedules([client.resume_schedule(name)])


@connected
def run(client: Client, name: NameArgument) -> None:
    """Create a task now, in addition to the scheduled ones.

    Refused while its last task has not ended, unless it has `overlap: queue`.
    """
    task = client.run_schedule(name)
    write(task, lambda: f"{task.name}  {task.id}  {task.state}")


@with_client
def delete(client: Client, name: NameArgument) -> None:
    """Delete a schedule that was created through the API.

    Its tasks stay. To delete a schedule that a file defines, delete the file.
    """
    client.delete_schedule(name)
    note(f"{name} was deleted; its tasks stay.")


COMMANDS = {"list": list_schedules, "preview": preview, "pause": pause, "resume": resume, "run": run, "delete": delete}


def write_schedules(schedules: Sequence[ScheduleView]) -> None:
    """Write schedules."""
    nothing = "There are no schedules. A task with `schedule` becomes one."
    write_table(SCHEDULES, schedules, nothing)


def _result(last: FireView) -> str:
    return f"skipped: {last.skipped}" if last.skipped is not None else last.task_state or ""
