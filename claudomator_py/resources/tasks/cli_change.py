"""``cancel``, ``edit``, ``restart``, ``answer``, ``approve``, ``reject``: commands that change tasks."""

import functools
import inspect
import re
import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from claudomator_py.cli import ExitCode, completion
from claudomator_py.cli.connect import Client, connected
from claudomator_py.cli.output import (
    checked,
    confirm,
    fail,
    json_text,
    note,
    option,
    out,
    table_text,
    wants_json,
    with_parameters,
    write,
)
from claudomator_py.client import ClientError, ServiceProblem
from claudomator_py.domain.agent import Tier
from claudomator_py.domain.budget import LEAST_USD, Budget
from claudomator_py.domain.fields import NAME_PATTERN
from claudomator_py.domain.inputs import call_text
from claudomator_py.domain.lifecycle import StateName
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.requests import RestartRequest, TaskFilter
from claudomator_py.domain.units import counted
from claudomator_py.resources.tasks import AnswerRequest, ApproveRequest, RejectRequest, TaskView, editing_refused
from claudomator_py.resources.tasks.cli import TaskArgument, tasks_table
from claudomator_py.surface.table import Column, Table
from claudomator_py.texts import plain
from claudomator_py.values import dataclass

TasksArgument = Annotated[list[str] | None, completion.TASKS.argument("TASK", "Task ids, id prefixes or names.")]
StateOption = Annotated[StateName | None, typer.Option(help="Select tasks in this state.", case_sensitive=False)]
TagOption = Annotated[str | None, completion.TAGS.option("Select tasks with this tag.")]
OnOption = Annotated[
    str | None, completion.AGENTS.option("Select tasks whose last run was on this agent.", "--on", metavar="AGENT")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="List the affected tasks without changing them.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]

_TRIES = 5
_MAX_PAUSE_S = 10


@dataclass(frozen=True, slots=True)
class ChangeOutcome:
    """The outcome for one task: its current state, and the refusal if nothing was done."""

    task: TaskView
    refusal: ClientError | None = None


@dataclass(frozen=True, slots=True)
class TaskSelection:
    """What the options of a command say about which tasks it changes, and how."""

    wanted: TaskFilter
    dry_run: bool
    yes: bool

    def is_single(self, refs: Sequence[str]) -> bool:
        """Return whether one task is named, to be changed without further questions."""
        return len(refs) == 1 and self.wanted == TaskFilter() and not self.dry_run

    def change(
        self, client: Client, refs: Sequence[str], verb: str, act: Callable[..., TaskView], *actions: str
    ) -> None:
        """Change the named tasks, or else all that match, and print the outcome. Raises Exit if any was refused.

        act: a method of the client, called with a task's reference. actions: a task must allow at least one of them;
        by default, the verb. If there are several tasks, a person at a terminal is asked first.
        """
        if self.is_single(refs):
            _write_task(act(refs[0]))
            return
        actions = actions or (verb,)
        tasks = self._chosen(client, refs, actions)
        if not tasks:
            note(f"There is nothing to {verb}.")
        elif self.dry_run:
            _try(tasks, verb, actions)
        else:
            if len(tasks) > 1 and not self.yes:
                confirm(f"{verb.capitalize()} {_counted(tasks)}?")
            _do_to_each(client, tasks, act)

    def _chosen(self, client: Client, refs: Sequence[str], actions: Sequence[str]) -> list[TaskView]:
        """Return each task once; named tasks keep their order. Raises BadParameter, ClientError."""
        if bool(refs) == (self.wanted != TaskFilter()):
            both = ", not both" if refs else ""
            raise typer.BadParameter(f"name tasks, or select them with --state, --tag or --on{both}")
        if refs:
            return list({task.id: task for task in map(client.task, refs)}.values())
        matching = [task for task in client.all_tasks(self.wanted) if set(actions) & set(task.available_actions)]
        return matching[::-1]


def _selecting(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the options of a selection in place of ``selection``."""

    @functools.wraps(command)
    def run(
        *args: object, state: StateName | None, tag: str | None, on: str | None, dry_run: bool, yes: bool, **own: object
    ) -> None:
        selection = TaskSelection(TaskFilter(state=state, tag=tag, agent=on), dry_run, yes)
        command(*args, selection=selection, **own)

    which = [option("state", StateOption), option("tag", TagOption), option("on", OnOption)]
    how = [option("dry_run", DryRunOption, default=False), option("yes", YesOption, default=False)]
    own = inspect.signature(command).parameters.values()
    all_of_it = [given for parameter in own for given in (which if parameter.name == "selection" else [parameter])]
    return with_parameters(run, [*all_of_it, *how])


def _try(tasks: Sequence[TaskView], verb: str, actions: Sequence[str]) -> None:
    able = [task for task in tasks if set(actions) & set(task.available_actions)]
    refused = [task for task in tasks if task not in able]
    refusal = ClientError(f"Its state does not allow to {verb} it.", remedy="See `claudomator show TASK`.")
    outcomes = [ChangeOutcome(task, refusal if task in refused else None) for task in tasks]
    if not _write_json(outcomes, done=False) and able:
        out(tasks_table(able))
    if able:
        note(f"Would {verb} {_counted(able)}; nothing was done.")
    if refused:
        names = ", ".join(f"{task.name} ({task.state})" for task in refused)
        fail(f"Could not {verb} {names}.")


def _do_to_each(client: Client, tasks: Sequence[TaskView], act: Callable[..., TaskView]) -> None:
    """Send one request per task, bound to the version that was read, and print a line for each. Raises Exit if any was
    refused."""
    outcomes = [_do(client, task, act) for task in tasks]
    if not _write_json(outcomes, done=True):
        out(table_text(_DONE, outcomes))
    if any(outcome.refusal is not None for outcome in outcomes):
        raise typer.Exit(ExitCode.FAILURE)


def _do(client: Client, task: TaskView, act: Callable[..., TaskView]) -> ChangeOutcome:
    """Retries if the daemon says when to, or if only the version of the task has changed."""
    key, seen = secrets.token_urlsafe(18), task
    for tries_left in reversed(range(_TRIES)):
        try:
            return ChangeOutcome(act(seen.id, if_version=seen.version, idempotency_key=key))
        except ServiceProblem as refusal:
            pause_s = refusal.retry_after_s
            if tries_left and pause_s is not None and pause_s <= _MAX_PAUSE_S:
                time.sleep(pause_s)
                continue
            if refusal.code != "stale_version":
                return ChangeOutcome(seen, refusal)
            now = client.task(task.id)
            if task.reason == Reason.DEPENDENCY_FAILED and now.generation != task.generation:
                return ChangeOutcome(now)  # it was revived by the restart of one before it
            if not tries_left or (now.state, now.generation) != (task.state, task.generation):
                return ChangeOutcome(now, refusal)
            key, seen = secrets.token_urlsafe(18), now
    raise AssertionError("the last try returns")


def _why(outcome: ChangeOutcome) -> str:
    return "" if outcome.refusal is None else f"{outcome.refusal.detail} {outcome.refusal.remedy}"


def _counted(tasks: Sequence[TaskView]) -> str:
    states = Counter(task.state for task in tasks)
    parts = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    return f"{counted(len(tasks), 'task')} ({parts})"


def _write_json(outcomes: Sequence[ChangeOutcome], *, done: bool) -> bool:
    """Whether JSON was asked for."""
    if not wants_json():
        return False
    written = [
        {
            "done": done and outcome.refusal is None,
            "problem": _why(outcome) or None,
            "task": outcome.task.model_dump(mode="json"),
        }
        for outcome in outcomes
    ]
    out(json_text(written))
    return True


_DONE = Table[ChangeOutcome](
    Column("NAME", lambda outcome: outcome.task.name, flexible=True),
    Column("ID", lambda outcome: outcome.task.id),
    Column("STATE", lambda outcome: outcome.task.state),
    Column("DONE", lambda outcome: "yes" if outcome.refusal is None else "no"),
    Column("WHY", _why, flexible=True),
)


@connected
@_selecting
def cancel(client: Client, tasks: TasksArgument = None, *, selection: TaskSelection) -> None:
    """Cancel tasks. A running one ends a little later.

    With --state, --tag or --on, all matching tasks that have not ended are cancelled.
    """
    selection.change(client, tasks or (), "cancel", client.cancel)


@connected
def edit(
    client: Client,
    task: TaskArgument,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A file with the edited task. Default: open an editor.")
    ] = None,
) -> None:
    """Edit a waiting task.

    Without a file, $VISUAL or $EDITOR opens it. The edit is checked like a new task, and refused if the task is
    running, has ended, or was changed in the meantime.
    """
    from claudomator_py.cli.task_files import edited_task, only_task

    before = client.task(task)
    if file is None and (refused := editing_refused(before.name, before.state)) is not None:
        fail(*refused)  # before anybody spends time in the editor
    spec = edited_task(before) if file is None else only_task(file)
    if spec is None:
        note("Nothing was changed.")
        return
    _write_task(client.edit(before.id, spec, if_version=before.version))


@connected
@_selecting
def restart(
    client: Client,
    tasks: TasksArgument = None,
    *,
    selection: TaskSelection,
    agent: Annotated[str | None, completion.AGENTS.option("Run the task on this agent.")] = None,
    tier: Annotated[Tier | None, typer.Option(help="Model strength.")] = None,
    model: Annotated[str | None, typer.Option(help="Use this model of the agent.")] = None,
    specialist: Annotated[str | None, completion.SPECIALISTS.option("Give the task to this specialist.")] = None,
    budget_usd: Annotated[float | None, typer.Option(min=LEAST_USD, help="Total budget in US dollars.")] = None,
    budget_tokens: Annotated[int | None, typer.Option(min=1, help="Total budget in tokens.")] = None,
    budget_runs: Annotated[int | None, typer.Option(min=1, help="Total number of runs allowed.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Cancel the current run first, if any.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the last conversation, on the same agent.")
    ] = False,
    reason: Annotated[
        str | None, typer.Option(help="Reason to store with the task. With --resume the agent receives it as well.")
    ] = None,
) -> None:
    """Run tasks again.

    The agent, directory and tier are chosen again, except for what the task or an option pins. The conversation
    is new unless --resume is given. With --state, --tag or --on, all matching tasks that can be are restarted.
    """
    budget = Budget(usd=budget_usd, tokens=budget_tokens, runs=budget_runs)
    request = RestartRequest(
        agent=agent,
        tier=tier,
        model=model,
        specialist=specialist,
        budget=budget if budget.units else None,
        force=force,
        resume=resume,
        reason=reason,
    )
    actions = ("restart", "restart_force") if force else ("restart",)
    act = functools.partial(client.restart, wanted=request)
    selection.change(client, tasks or (), "restart", act, *actions)


@connected
@_selecting
def answer(
    client: Client,
    words: Annotated[
        list[str] | None,
        completion.TASKS.argument("TASK... TEXT", "Task ids, id prefixes or names; then the answer, in quotes."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Read the answer from this file; - reads stdin.")
    ] = None,
    *,
    selection: TaskSelection,
) -> None:
    """Answer the question of a task's agent.

    The agent continues the same conversation, and no attempt is used up. If it asked to use a tool, the answer tells it
    to do without. With --state, --tag or --on, all matching tasks with a question get this answer.
    """
    refs = list(words or ())
    if file is None and len(refs) <= (selection.wanted == TaskFilter()):
        raise typer.BadParameter("give the answer as TEXT, or name a file with --file")
    text = refs.pop() if file is None else None
    if str(file) == "-" and selection.is_single(refs):
        before = client.task(refs[0])
        if "answer" not in before.available_actions:  # let the daemon refuse it before anything is typed
            client.answer(before.id, AnswerRequest(text="-"), if_version=before.version)
    request = checked(AnswerRequest, {"text": text if file is None else _read(file)})
    selection.change(client, refs, "answer", functools.partial(client.answer, wanted=request))


@connected
@_selecting
def approve(
    client: Client,
    tasks: TasksArgument = None,
    *,
    selection: TaskSelection,
    tool: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE", help="Allow this instead of what was denied, in the agent's own syntax. Repeatable."
        ),
    ] = None,
    reason: Annotated[str | None, typer.Option(metavar="REASON", help="Reason to store with the task.")] = None,
    specialist: Annotated[
        str | None,
        completion.SPECIALISTS.option("Give the task to this specialist, if it has not started.", metavar="ID"),
    ] = None,
) -> None:
    """Allow what a task asks for: its first run, or a tool.

    The approval applies to this content of the task, until it is restarted. With --state, --tag or --on, all
    matching tasks that ask for approval are approved.
    """
    request = checked(ApproveRequest, {"tools": tool or [], "reason": reason, "specialist": specialist})
    if tasks is None or not selection.is_single(tasks):
        selection.change(client, tasks or (), "approve", functools.partial(client.approve, wanted=request))
        return
    before = client.task(tasks[0])
    after = client.approve(before.id, request, if_version=before.version)
    _write_task(after)
    if not wants_json() and before.asks is not None and not tool:
        for call in before.asks.tools:
            note(f"Allowed: {plain(call_text(call) if call.beyond else call.rule or call.tool)}")
        for command in before.asks.commands:
            note(f"Allowed: {plain(command)}")


@connected
@_selecting
def reject(
    client: Client,
    tasks: Annotated[
        list[str] | None,
        completion.TASKS.argument(
            "TASK... [REASON]",
            "Task ids, id prefixes or names; then, if it cannot be a name, the reason to store with them.",
        ),
    ] = None,
    reason: Annotated[
        str | None, typer.Option(metavar="REASON", help="The reason, even one that could be a name.")
    ] = None,
    *,
    selection: TaskSelection,
) -> None:
    """Reject a task that needs input. It fails, and so do the tasks that depend on it.

    With --state, --tag or --on, all matching tasks that need input are rejected.
    """
    refs, last = list(tasks or ()), (tasks or [""])[-1]
    if last and re.fullmatch(NAME_PATTERN, last) is None:
        if reason is not None:
            raise typer.BadParameter("give the reason once")
        reason = refs.pop()
    request = RejectRequest(reason=reason)
    selection.change(client, refs, "reject", functools.partial(client.reject, wanted=request))


def _read(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError:
        raise typer.BadParameter(f"{file} is not text in UTF-8") from None


def _write_task(task: TaskView) -> None:
    write(task, lambda: tasks_table([task]))
