"""``status``: everything at a glance, what needs a person first."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli.agents import agents_table
from claudomator_py.cli.connect import connected
from claudomator_py.cli.holds import hold_tables
from claudomator_py.cli.output import Format, FormatOption, note, out, out_json
from claudomator_py.cli.schedule import schedules_table
from claudomator_py.cli.table import Column, heading, render, short_ids
from claudomator_py.cli.times import ago, now_ms, until
from claudomator_py.cli.waits import why_words
from claudomator_py.cli.watch import draw, json_lines, lines
from claudomator_py.core.plaintext import one_line
from claudomator_py.core.view import StateName
from claudomator_py.core.views import BudgetView, CheckView, FileProblemView, StatusView, TaskFilter, TaskView

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

_INDENT = 2
_NO_MATCH = "No task matches."
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
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show it anew as it changes; in a pipe, a line a change.")
    ] = False,
    state: Annotated[StateName | None, typer.Option(help="List tasks in this state.", case_sensitive=False)] = None,
    tag: Annotated[str | None, typer.Option(help="List tasks with this tag.")] = None,
    agent: Annotated[str | None, typer.Option(help="List tasks that ran on this agent.")] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show everything at a glance.

    What needs you comes first. With a filter, all tasks that match are listed instead.
    """
    wanted = TaskFilter(state=state, tag=tag, agent=agent)
    if watch and output is Format.JSON:
        json_lines(client)
    elif watch and not sys.stdout.isatty():
        lines(client, wanted)
    elif watch:
        draw(client, lambda: _text(_ask(client, wanted), output) or _NO_MATCH)
    elif output is Format.JSON:
        out_json(_ask(client, wanted))
    elif text := _text(_ask(client, wanted), output):
        out(text)
    else:
        note(_NO_MATCH)


def _ask(client: "Client", wanted: TaskFilter) -> StatusView | list[TaskView]:
    return list(client.all_tasks(wanted)) if wanted != TaskFilter() else client.status()


def _text(found: StatusView | list[TaskView], output: Format) -> str:
    return _list(found, output) if isinstance(found, list) else overview(found, wide=output is Format.WIDE)


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
    if found.schedules:
        parts.append(f"{heading('SCHEDULES')}\n{schedules_table(found.schedules, wide=wide, indent=_INDENT)}")
    if found.budget is not None:
        parts.append(f"{heading('TODAY')}\n{_today(found.budget)}")
    if found.agents:
        parts.append(f"{heading('AGENTS')}\n{agents_table(found.agents, wide=wide, indent=_INDENT)}")
        parts += hold_tables(found.agents, wide=wide, indent=_INDENT)
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
            _why(task, now),
            until(task.waiting_until, now),
            ago(task.updated_at, now),
            task.working_dir or "",
        )
        for task in tasks
    ]
    return render(_COLUMNS, rows, wide=wide, indent=_INDENT)


def _why(task: TaskView, now: int) -> str:
    if task.state == "RUNNING":
        return task.phase or ""
    if task.state == "NEEDS_INPUT":
        # What is asked says its kind by itself, and comes first.
        return task.reason_text or task.reason or ""
    wordy = task.state in ("WAITING", "QUEUED", "FAILED") and task.reason != "ready"
    return why_words(task, now) if wordy else task.reason or ""


def _today(budget: BudgetView) -> str:
    over = f": nothing starts until {until(budget.until, now_ms())}" if budget.reached is not None else ""
    return " " * _INDENT + f"all agents together have spent {budget.text}{over}"


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
        return ""
    return tasks_table(tasks, wide=output is Format.WIDE, ids=short_ids([task.id for task in tasks]))
