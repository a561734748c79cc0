"""``status``: everything at a glance, what needs a person first; ``inbox``: the refused files."""

import sys
import time
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from claudomator_py.cli import completion
from claudomator_py.cli.connect import Client, EventWatch, connected
from claudomator_py.cli.output import (
    heading,
    is_wide,
    note,
    out,
    out_json,
    out_json_line,
    section,
    short_ids,
    table_section,
    wants_json,
    write,
)
from claudomator_py.cli.times import clock, localized, now_ms, until
from claudomator_py.client import unless_missing
from claudomator_py.domain.health import CheckView
from claudomator_py.domain.lifecycle import ENDED, StateName
from claudomator_py.domain.requests import TaskFilter
from claudomator_py.resources.agents.cli import AGENTS, hold_tables
from claudomator_py.resources.daemon import HOSTS
from claudomator_py.resources.overview import FileProblemView, ListName, StatusView
from claudomator_py.resources.schedules.cli import SCHEDULES
from claudomator_py.resources.tasks import TaskView
from claudomator_py.resources.tasks.cli import NARROWEST, folded_tasks, folds_text, tasks_table, wrapped
from claudomator_py.surface.table import Fold
from claudomator_py.texts import one_line

_INDENT = 2
_RECENT = 10
"""Tasks that have ended, which nobody has to do anything about: what needs somebody stays in sight."""
_NO_MATCH = "No task matches."

_LEAST_S = 0.5
"""The shortest time between two drawings."""

_MAX_S = 10.0
"""The longest: drawn text says how long ago things were."""


@connected
def status(
    client: Client,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Keep updating; in a pipe, print a line per change.")
    ] = False,
    state: Annotated[StateName | None, typer.Option(help="List tasks in this state.", case_sensitive=False)] = None,
    tag: Annotated[str | None, completion.TAGS.option("List tasks with this tag.")] = None,
    agent: Annotated[str | None, completion.AGENTS.option("List tasks that ran on this agent.")] = None,
    specialist: Annotated[
        str | None, completion.SPECIALISTS.option("List tasks for this specialist.", metavar="ID")
    ] = None,
    creator: Annotated[str | None, typer.Option(metavar="NAME", help="List tasks submitted by this principal.")] = None,
) -> None:
    """Show everything at a glance.

    Tasks that need you come first. With a filter, all matching tasks are listed instead.
    """
    wanted = TaskFilter(state=state, tag=tag, agent=agent, specialist=specialist, creator=creator)
    if watch and wants_json():
        json_lines(client)
    elif watch and not sys.stdout.isatty():
        lines(client, wanted)
    elif watch:
        draw(client, lambda: _text(_ask(client, wanted)) or _NO_MATCH)
    elif wants_json():
        out_json(_ask(client, wanted))
    elif text := _text(_ask(client, wanted)):
        out(text)
    else:
        note(_NO_MATCH)


@connected
def inbox(client: Client) -> None:
    """List refused files of the inbox, with all their problems."""
    files = client.inbox_problems()
    lines = (one_line(problem.render(file.path)) for file in files for problem in file.problems)
    write(files, lambda: "\n".join(lines), "No file is refused.")


def _ask(client: Client, wanted: TaskFilter) -> StatusView | list[TaskView]:
    return list(client.all_tasks(wanted)) if wanted != TaskFilter() else client.status()


def _text(status: StatusView | list[TaskView]) -> str:
    if not isinstance(status, list):
        return overview(status)
    return tasks_table(status, ids=short_ids([task.id for task in status])) if status else ""


def overview(status: StatusView) -> str:
    """Return the whole status as text: counts in one line, then the sections that are not empty. With all columns,
    every task is listed rather than folded with others like it."""
    now, wide = now_ms(), is_wide()
    sections: list[tuple[str, str, ListName, Sequence[TaskView]]] = [
        ("NEEDS YOU", "NEEDS_INPUT", "needs_you", status.needs_you),
        ("PROBLEMS", "FAILED", "problems", status.problems),
        ("RUNNING", "RUNNING", "running", status.running),
        ("QUEUED", "", "queued", status.queued),
        ("RECENT", "", "recent", status.recent if wide else status.recent[:_RECENT]),
    ]
    ids = short_ids([task.id for _, _, _, tasks in sections for task in tasks])
    parts = ["\n".join([_counts(status), *_standstill(status)])]
    parts += section("DAEMON", _trouble(status.trouble), "FAILED")
    for title, state, name, tasks in sections:
        if tasks:
            folds = [Fold((task,)) for task in tasks] if wide else folded_tasks(tasks, status.unlisted, now)
            alone = [task for fold in folds if fold.key is None for task in fold.rows]
            known = {task.state for task in tasks} == {state}
            lines = [tasks_table(alone, ids=ids, known_state=known)] if alone else []
            lines += folds_text(fold for fold in folds if fold.key is not None)
            more = _more(status.total(name) - sum(fold.size for fold in folds))
            parts.append("\n".join([heading(title, state), *lines, *more]))
        if name == "problems" and status.inbox:
            more = _more(status.total("inbox") - len(status.inbox), "claudomator inbox")
            parts.append("\n".join([heading("INBOX", "FAILED"), _inbox(status.inbox), *more]))
    if not any(status.counts.values()):
        parts.append("No tasks yet. Submit one with `claudomator submit FILE`, or put a file into the inbox.")
    parts += table_section("SCHEDULES", SCHEDULES, status.schedules, indent=_INDENT)
    parts += table_section("AGENTS", AGENTS, status.agents, indent=_INDENT)
    parts += hold_tables(status.agents, indent=_INDENT)
    parts += table_section("HOSTS", HOSTS, status.hosts, indent=_INDENT)
    return "\n\n".join(parts)


def _counts(status: StatusView) -> str:
    """Return the counts, and what is known of today's cost:
    ``1 needs you, 3 running, 12 queued; today 14 runs, $4.20``."""
    needs, files, failed = status.total("needs_you"), status.total("inbox"), status.total("problems")
    numbers = [
        (needs, "needs you" if needs == 1 else "need you"),
        (failed, "failed"),
        (files, "refused file" if files == 1 else "refused files"),
        (status.total("running"), "running"),
        (status.counts.get("QUEUED", 0), "queued"),
        (status.total("queued") - status.counts.get("QUEUED", 0), "waiting"),
    ]
    words = [f"{number:,} {name}" for number, name in numbers if number > 0]
    return f"{', '.join(words) or 'Nothing is running or waiting'}; today {_today(status)}"


def _today(status: StatusView) -> str:
    spent, budget = status.spent_today, status.budget
    if budget is not None:
        over = f", and nothing starts until {clock(budget.until, now_ms())}" if budget.reached is not None else ""
        return f"{budget.text}{over}"
    return spent.words


def _standstill(status: StatusView) -> list[str]:
    """Return that no agent starts anything, once instead of in every row."""
    first = status.first_to_reset
    if first is None:
        return []
    if first.limited_until is None:
        return [f"{status.standstill}, and start nothing until one is released: claudomator release {first.name}"]
    now = now_ms()
    at = f"{clock(first.limited_until, now)} ({until(first.limited_until, now)})"
    return [f"{status.standstill}. The next to be available is {first.name}, at {at}."]


def _more(number: int, command: str | None = None) -> list[str]:
    where = "" if command is None else f"; `{command}` lists all"
    return [f"{' ' * _INDENT}... and {number:,} more{where}"] if number > 0 else []


def _inbox(files: Sequence[FileProblemView]) -> str:
    """Return the first problem of each file; ``inbox`` shows all of them."""
    return "\n".join(" " * _INDENT + file.line for file in files if file.problems)


def _trouble(checks: Sequence[CheckView]) -> str:
    """Return sentences rather than a table, so they are wrapped for the narrowest terminal."""
    lines: list[str] = []
    for check in checks:
        # The PATH without any agent is left to `doctor`: it may be longer than everything else here.
        detail = check.detail.partition(":")[0] if check.name == "agents" else check.detail
        detail = localized(detail, now_ms())
        line = one_line("; ".join(part for part in (f"{check.name}: {detail}", check.remedy) if part))
        lines += wrapped(line, NARROWEST)
    return "\n".join(lines)


def draw(client: Client, text: Callable[[], str]) -> None:
    """Show the text on the whole terminal, and again after each change, until interrupted."""
    from rich.live import Live
    from rich.text import Text

    with EventWatch(client) as changes, Live(screen=True, auto_refresh=False) as live:
        while True:
            live.update(Text.from_ansi(text()), refresh=True)
            time.sleep(_LEAST_S)
            changes.wait(_MAX_S - _LEAST_S)


def lines(client: Client, wanted: TaskFilter) -> None:
    """Write a line for each matching task that has not ended, then one for each change of a matching task."""
    names: dict[str, str] = {}
    by_task = wanted != TaskFilter(state=wanted.state)

    def present() -> None:
        if not names:
            for task in reversed(list(client.all_tasks(wanted))):
                names[task.id] = task.name
                if task.state == wanted.state or task.state not in ENDED:
                    out(_words(task.updated_at, task.name, task.state, task.phase, task.reason))

    # Written once the stream has begun, so no change is missed in between.
    for event in client.events(kinds=("state",), on_connect=present):
        if event.task_id is None or wanted.state not in (None, event.data.get("state")):
            continue
        task = None
        if by_task or event.task_id not in names:
            task = unless_missing(client.task, event.task_id)
            names[event.task_id] = task.name if task is not None else event.task_id
        if by_task and (task is None or not _matches(task, wanted)):
            continue
        out(_words(event.at, names[event.task_id], *(event.data.get(key) for key in ("state", "phase", "reason"))))


def json_lines(client: Client) -> None:
    """Write each new event as a line of JSON."""
    for event in client.events():
        out_json_line(event)


def _words(*words: object) -> str:
    return " ".join(one_line(str(part)) for part in words if part)


def _matches(task: TaskView, wanted: TaskFilter) -> bool:
    pairs = ((wanted.agent, task.agent), (wanted.specialist, task.specialist), (wanted.creator, task.creator))
    return (wanted.tag is None or wanted.tag in task.tags) and all(value in (None, is_so) for value, is_so in pairs)
