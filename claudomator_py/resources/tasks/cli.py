"""``list``, and tables of tasks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from textwrap import wrap
from typing import Annotated

import typer

from claudomator_py.cli import completion
from claudomator_py.cli.connect import Client, connected
from claudomator_py.cli.output import is_wide, json_text, note, out, table_text, width, write
from claudomator_py.cli.times import clock, now_ms, time_option, why_words
from claudomator_py.domain.blocked_words import brief_of, sentence
from claudomator_py.domain.budget import cost_text
from claudomator_py.domain.lifecycle import StateName
from claudomator_py.domain.requests import TaskFilter
from claudomator_py.domain.units import parse_instant
from claudomator_py.domain.wording import worded
from claudomator_py.resources.tasks import TaskView, said_together, wider_reason
from claudomator_py.surface import table
from claudomator_py.surface.table import Column, Fold, Table, folded
from claudomator_py.texts import one_line

_INDENT = 2
_NAMED = 2
"""How many tasks a folded line names."""
NARROWEST = 80
"""Width of wrapped text, in columns, if the terminal's width is unknown."""
TaskArgument = Annotated[str, completion.TASKS.argument("TASK", "A task id, id prefix or name.")]


@connected
def tasks(
    client: Client,
    state: Annotated[StateName | None, typer.Option(help="Only tasks in this state.", case_sensitive=False)] = None,
    repo: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Only tasks that work in this directory, or below it.")
    ] = None,
    since: Annotated[int | None, time_option("Only tasks changed since, such as 22:00, 12h or 2026-11-27.")] = None,
    tag: Annotated[str | None, completion.TAGS.option("Only tasks with this tag.")] = None,
    agent: Annotated[str | None, completion.AGENTS.option("Only tasks that ran on this agent.")] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="List this many at most.")] = 50,
    json_fields: Annotated[
        str | None,
        typer.Option("--json", metavar="FIELDS", help="Print these fields as JSON, such as name,state,cost_usd."),
    ] = None,
) -> None:
    """List tasks, newest first, one line each."""
    wanted = json_fields.replace(" ", "").split(",") if json_fields is not None else []
    if unknown := [field for field in wanted if field not in TaskView.model_fields]:
        raise typer.BadParameter(f"a task has no {', '.join(unknown)}; it has {', '.join(TaskView.model_fields)}")
    listed = _listed(client, TaskFilter(state=state, tag=tag, agent=agent), repo, since)
    views = list(islice(listed, limit))
    if wanted:
        out(json_text([view.model_dump(mode="json", include=set(wanted)) for view in views]))
    else:
        write(views, lambda: list_text(views), "No task matches.")
    if views and next(listed, None) is not None:
        note(f"There are more than {limit}: narrow the list, or ask for more with --limit.")


def _listed(client: Client, wanted: TaskFilter, repo: Path | None, since: int | None) -> Iterator[TaskView]:
    place = None if repo is None else repo.expanduser().resolve()
    for view in client.all_tasks(wanted):
        if since is not None and parse_instant(view.updated_at) < since:
            continue
        if place is None or (view.working_dir is not None and _is_below(Path(view.working_dir), place)):
            yield view


def _is_below(folder: Path, place: Path) -> bool:
    try:
        return folder.expanduser().resolve().is_relative_to(place)
    except (OSError, RuntimeError):  # a loop of links
        return False


def list_text(views: Sequence[TaskView]) -> str:
    """Return one line per task."""
    now = now_ms()
    columns = Table[TaskView](
        Column("STATE", lambda view: view.state),
        Column("NAME", lambda view: view.name, flexible=True, least=40),
        Column("ID", lambda view: view.id or None, wide=True),
        Column("REPO", lambda view: view.working_dir and Path(view.working_dir).name, flexible=True, spare=4),
        Column("BRANCH", lambda view: view.branch, flexible=True, wide=True),
        Column("AGENT", lambda view: view.agent, spare=2),
        Column("AGE", lambda view: table.age(view.created_at), spare=1),
        Column("CHANGES", lambda view: view.changes, wide=True),
        Column("COST", lambda view: cost_text(view.cost_usd, view.unpriced), right=True, spare=3),
        Column("DETAIL", lambda view: _detail(view, now, with_changes=not is_wide()), flexible=True, least=44),
    )
    return table_text(columns, views)


def _detail(view: TaskView, now: int, *, with_changes: bool) -> str:
    """The changes of a completed task; otherwise the reason for its state."""
    detail = _why(view, now, whole=False)
    if with_changes and view.state == "COMPLETED" and view.changes is not None:
        return f"{view.changes}: {detail}" if detail else view.changes
    waits = view.waiting_until if view.state in ("WAITING", "QUEUED") else None
    at = "" if waits is None else clock(waits, now)
    return detail if at in detail else f"{detail} until {at}"


def tasks_table(tasks: Sequence[TaskView], *, ids: Mapping[str, str] | None = None, known_state: bool = False) -> str:
    """Return a table of tasks, with times relative to now.

    ids: the short form of each id; in full if absent. known_state: show the state only when wide, as it is printed
    elsewhere.
    """
    now, short, wide = now_ms(), ids or {}, is_wide()
    columns = Table[TaskView](
        Column("NAME", lambda task: task.name, flexible=True, least=40),
        Column("ID", lambda task: task.id if wide else short.get(task.id, task.id)),
        Column("STATE", lambda task: None if known_state and not wide else task.state),
        Column("AGENT", lambda task: task.agent_hint if _undecided(task) else task.agent, spare=2),
        Column("MODEL", lambda task: None if _undecided(task) else task.model, wide=True),
        Column("PRIORITY", lambda task: task.priority, wide=True),
        Column("TAGS", lambda task: ",".join(task.tags), wide=True),
        Column("WHY", lambda task: _why(task, now, whole=wide), flexible=True, least=40),
        Column("UNTIL", lambda task: table.until(task.waiting_until)),
        Column("CHANGED", lambda task: table.ago(task.updated_at), spare=1),
        Column("DIRECTORY", lambda task: task.working_dir, wide=True),
    )
    return table_text(columns, tasks, indent=_INDENT)


def folds_text(folds: Iterable[Fold[TaskView]]) -> list[str]:
    """Return a line for each group of similar tasks: ``58 wait: claude is limited (a, b and 56 more)``."""
    lines: list[str] = []
    for fold in folds:
        named = [task.name for task in fold.rows[:_NAMED]]
        names = f"{', '.join(named)} and {fold.size - len(named):,} more"
        line = one_line(f"{fold.size:,} {fold.key} ({names})")
        lines += wrapped(line, width() or NARROWEST)
    return lines


def wrapped(line: str, columns: int) -> list[str]:
    """Return the line in as many as are needed for that width, indented below a heading."""
    first, others = " " * _INDENT, " " * 2 * _INDENT
    return wrap(
        line, columns, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    )


def folded_tasks(tasks: Sequence[TaskView], unlisted: Mapping[str, int], now: int) -> tuple[Fold[TaskView], ...]:
    """Return the tasks grouped by reason. unlisted: task id to the number of similar tasks that are not listed. now:
    epoch milliseconds."""

    def line(task: TaskView, reason: str | None) -> str | None:
        verb = said_together(task)
        return f"{verb}: {reason}" if verb and reason else None

    def wider(task: TaskView) -> str | None:
        reason = wider_reason(task)
        return line(task, reason and f"{task.reason}: {reason[:-1]}")

    return folded(tasks, lambda task: line(task, _reason(task, now)), lambda task: task.id, unlisted, wider)


def _reason(task: TaskView, now: int) -> str:
    """Why it is in its state, if no column shows until when."""
    if task.blocked is not None:
        text = brief_of(task.blocked, None) or sentence(task.blocked)
        return worded(text, lambda instant: clock(instant, now))
    return _why(task, now, whole=False)


def _undecided(task: TaskView) -> bool:
    """Whether its next agent is still to be decided, wherever it ran before."""
    return task.state in ("QUEUED", "WAITING") and task.runs > 0


def _why(task: TaskView, now: int, *, whole: bool) -> str:
    """Why it is in its state: in a clause, or in full."""
    if task.state == "RUNNING":
        if task.reason_text is not None:
            return task.reason_text
        return task.phase or "" if task.progress is None else task.progress.line
    if task.state == "NEEDS_INPUT":
        # The question comes first, and shows its kind by itself.
        return task.reason_text or task.reason or ""
    if task.state == "COMPLETED":
        return (task.reason_text if whole else task.reason_short) or ""
    wordy = task.state in ("WAITING", "QUEUED", "FAILED") and task.reason != "ready"
    return why_words(task, now, whole=whole) if wordy else task.reason or ""
