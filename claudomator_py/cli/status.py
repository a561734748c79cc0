"""``status``: everything at a glance, what needs a person first."""

import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli.agents import agents_table
from claudomator_py.cli.connect import connected
from claudomator_py.cli.output import Format, FormatOption, note, out, out_json, out_part
from claudomator_py.cli.plain import one_line
from claudomator_py.cli.table import Column, heading, render, short_ids
from claudomator_py.cli.times import ago, now_ms, until
from claudomator_py.core.views import CheckView, FileProblemView, StateName, StatusView, TaskFilter, TaskView

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

_WATCH_S = 2.0
_CLEAR = "\x1b[H\x1b[2J"
_INDENT = 2
_COLUMNS = (
    Column("NAME", flexible=True),
    Column("ID"),
    Column("STATE"),
    Column("AGENT"),
    Column("MODEL", wide=True),
    Column("PRIORITY", wide=True),
    Column("TAGS", wide=True),
    Column("WHY", flexible=True),
    Column("UNTIL"),
    Column("CHANGED"),
    Column("DIRECTORY", wide=True),
)


@connected
def status(
    client: "Client",
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show it anew every two seconds.")] = False,
    state: Annotated[StateName | None, typer.Option(help="List tasks in this state.", case_sensitive=False)] = None,
    tag: Annotated[str | None, typer.Option(help="List tasks with this tag.")] = None,
    agent: Annotated[str | None, typer.Option(help="List tasks that ran on this agent.")] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show everything at a glance.

    What needs you comes first. With a filter, all tasks that match are listed instead.
    """
    wanted = TaskFilter(state=state, tag=tag, agent=agent)
    filtered = wanted != TaskFilter()
    shown = ""
    while True:
        found: StatusView | list[TaskView] = list(client.all_tasks(wanted)) if filtered else client.status()
        if output is Format.JSON:
            out_json(found)
        else:
            text = _list(found, output) if isinstance(found, list) else overview(found, wide=output is Format.WIDE)
            if watch and sys.stdout.isatty():
                out_part(_CLEAR + text + "\n")
            elif text != shown:
                out(text)
            shown = text
        if not watch:
            return
        time.sleep(_WATCH_S)


def overview(found: StatusView, *, wide: bool = False) -> str:
    """The whole status as text, section by section, without the empty ones."""
    sections = [
        ("NEEDS YOU", "NEEDS_INPUT", found.needs_you),
        ("PROBLEMS", "FAILED", found.problems),
        ("RUNNING", "RUNNING", found.running),
        ("QUEUED", "", found.queued),
        ("RECENT", "", found.recent),
    ]
    ids = short_ids([task.id for _, _, tasks in sections for task in tasks])
    parts = [
        f"{heading(title, state)}\n{tasks_table(tasks, wide=wide, ids=ids, known_state=bool(state))}"
        for title, state, tasks in sections
        if tasks
    ]
    if found.inbox:
        attention = bool(found.needs_you) + bool(found.problems)
        parts.insert(attention, f"{heading('INBOX', 'FAILED')}\n{_inbox(found.inbox)}")
    if found.trouble:
        parts.insert(0, f"{heading('DAEMON', 'FAILED')}\n{_trouble(found.trouble)}")
    if not any(found.counts.values()):
        parts.append("No tasks yet. Submit one with `claudomator submit FILE`, or put a file into the inbox.")
    if found.agents:
        parts.append(f"{heading('AGENTS')}\n{agents_table(found.agents, wide=wide, indent=_INDENT)}")
    return "\n\n".join(parts)


def tasks_table(
    tasks: Sequence[TaskView], *, wide: bool = False, ids: Mapping[str, str] | None = None, known_state: bool = False
) -> str:
    """Tasks below each other, with times relative to now.

    ids: how to show them; whole if not given. known_state: it is said elsewhere, and shown only when wide.
    """
    now = now_ms()
    short = ids or {}
    rows = [
        (
            task.name,
            task.id if wide else short.get(task.id, task.id),
            "" if known_state and not wide else task.state,
            task.agent or "",
            task.model or "",
            task.priority,
            ",".join(task.tags),
            _why(task),
            until(task.waiting_until, now),
            ago(task.updated_at, now),
            task.working_dir or "",
        )
        for task in tasks
    ]
    return render(_COLUMNS, rows, wide=wide, indent=_INDENT)


def _why(task: TaskView) -> str:
    if task.state == "RUNNING":
        return task.phase or ""
    if task.state == "FAILED" and task.reason_text:
        return f"{task.reason}: {task.reason_text}"
    return task.reason or ""


def _inbox(files: Sequence[FileProblemView]) -> str:
    lines = [one_line(problem.render(file.path)) for file in files for problem in file.problems]
    return "\n".join(" " * _INDENT + line for line in lines)


def _trouble(checks: Sequence[CheckView]) -> str:
    lines = [
        one_line(". ".join(part for part in (f"{check.name}: {check.detail}", check.remedy) if part))
        for check in checks
    ]
    return "\n".join(" " * _INDENT + line for line in lines)


def _list(tasks: Sequence[TaskView], output: Format) -> str:
    if not tasks:
        note("No task matches.")
        return ""
    return tasks_table(tasks, wide=output is Format.WIDE, ids=short_ids([task.id for task in tasks]))
