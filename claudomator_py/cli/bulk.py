"""Several tasks at once: which ones are meant, whether that is wanted, and what became of each."""

import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli import exits
from claudomator_py.cli.output import Format, fail, json_text, note, out
from claudomator_py.cli.status import tasks_table
from claudomator_py.cli.table import Column, render
from claudomator_py.client.errors import ClientError, ServiceProblem
from claudomator_py.domain.views import TaskFilter, TaskView
from claudomator_py.domain.views.base import StateName

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

TasksArgument = Annotated[
    list[str] | None, typer.Argument(metavar="TASK", help="Ids of tasks, their beginnings, or names.")
]
StateOption = Annotated[
    StateName | None, typer.Option(help="All that match: tasks in this state.", case_sensitive=False)
]
TagOption = Annotated[str | None, typer.Option(help="All that match: tasks with this tag.")]
OnOption = Annotated[str | None, typer.Option("--on", metavar="AGENT", help="All that match: tasks that ran there.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only list the tasks that it would be done to.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether that many are meant.")]

Act = Callable[[TaskView, str], TaskView]
"""Does it to a task as it was seen, under that idempotency key. Raises ClientError."""

_TRIES = 5
_LONGEST_PAUSE_S = 10
_COLUMNS = (
    Column("NAME", flexible=True),
    Column("ID"),
    Column("STATE"),
    Column("DONE"),
    Column("WHY", flexible=True),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one: the task as it is by now, and why nothing was done, if so."""

    task: TaskView
    refusal: ClientError | None = None


def chosen(client: "Client", refs: Sequence[str], wanted: TaskFilter, actions: Sequence[str]) -> list[TaskView]:
    """The tasks that are named, else all that match and allow one of these actions. Raises BadParameter, ClientError.

    Each comes once, those that were named in that order.
    """
    filtered = wanted != TaskFilter()
    if bool(refs) == filtered:
        both = ", not both" if refs else ""
        raise typer.BadParameter(f"name tasks, or say which with --state, --tag or --on{both}")
    if refs:
        return list({task.id: task for task in map(client.task, refs)}.values())
    matching = [task for task in client.all_tasks(wanted) if set(actions) & set(task.available_actions)]
    return matching[::-1]


def agreed(tasks: Sequence[TaskView], verb: str, *, dry_run: bool, yes: bool, output: Format) -> bool:
    """Whether to go on; asks on a terminal where there are several. Raises Exit for who does not agree."""
    if not tasks:
        note(f"There is nothing to {verb}.")
    elif dry_run:
        if not _write_json(output, [Outcome(task) for task in tasks], done=False):
            out(tasks_table(tasks))
        note(f"{verb.capitalize()} would be asked for {_counted(tasks)}; nothing was done.")
    elif len(tasks) > 1 and not yes and sys.stdin.isatty() and sys.stderr.isatty():
        if not typer.confirm(f"{verb.capitalize()} {_counted(tasks)}?", err=True):
            fail("Nothing was done.")
        return True
    return bool(tasks) and not dry_run


def do_to_each(client: "Client", tasks: Sequence[TaskView], act: Act, output: Format) -> None:
    """One request for each task, bound to what was seen of it; then a line for each. Raises Exit if one was refused."""
    done = [_do(client, task, act) for task in tasks]
    if not _write_json(output, done, done=True):
        rows = [
            (one.task.name, one.task.id, one.task.state, "yes" if one.refusal is None else "no", _why(one))
            for one in done
        ]
        out(render(_COLUMNS, rows, wide=output is Format.WIDE))
    if any(one.refusal is not None for one in done):
        raise typer.Exit(exits.FAILURE)


def _do(client: "Client", task: TaskView, act: Act) -> Outcome:
    """Tried again when the daemon asks for patience, or when only the version of the task is another by now."""
    key, seen = secrets.token_urlsafe(18), task
    for tries_left in reversed(range(_TRIES)):
        try:
            return Outcome(act(seen, key))
        except ServiceProblem as refusal:
            pause_s = refusal.retry_after_s
            if tries_left and pause_s is not None and pause_s <= _LONGEST_PAUSE_S:
                time.sleep(pause_s)
                continue
            if refusal.code != "stale_version":
                return Outcome(seen, refusal)
            now = client.task(task.id)
            if not tries_left or (now.state, now.generation) != (task.state, task.generation):
                return Outcome(now, refusal)
            key, seen = secrets.token_urlsafe(18), now
    raise AssertionError("the last try returns")


def _why(one: Outcome) -> str:
    return "" if one.refusal is None else f"{one.refusal.detail} {one.refusal.remedy}"


def _counted(tasks: Sequence[TaskView]) -> str:
    states = Counter(task.state for task in tasks)
    parts = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    return f"{len(tasks)} task{'s' if len(tasks) > 1 else ''} ({parts})"


def _write_json(output: Format, outcomes: Sequence[Outcome], *, done: bool) -> bool:
    """Whether it was wanted."""
    if output is not Format.JSON:
        return False
    told = [
        {"done": done and one.refusal is None, "problem": _why(one) or None, "task": one.task.model_dump(mode="json")}
        for one in outcomes
    ]
    out(json_text(told))
    return True
