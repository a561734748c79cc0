"""``submit`` and ``add``: submit tasks to the daemon exactly once, and optionally wait until they end; ``wait``: wait
for tasks that exist."""

import os
import secrets
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from claudomator_py.cli import ExitCode, completion
from claudomator_py.cli.connect import Client, ConfigOption, EventWatch, StateDirOption, connect, connected
from claudomator_py.cli.output import error, fail, formatted, note, out, table_text, wrote_json
from claudomator_py.cli.task_files import ReadFile, read
from claudomator_py.cli.times import duration_option
from claudomator_py.client import ClientError, ConnectionLost, DaemonNotRunning, ServiceProblem, unless_missing
from claudomator_py.domain.agent import Tier
from claudomator_py.domain.errors import ended
from claudomator_py.domain.fields import name_of_text
from claudomator_py.domain.lifecycle import ENDED, UNENDED
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import format_duration
from claudomator_py.resources.schedules import ScheduleView
from claudomator_py.resources.schedules.cli import write_schedules
from claudomator_py.resources.tasks import TaskView
from claudomator_py.surface.table import Column, Table

if TYPE_CHECKING:
    from tenacity import RetryCallState


V = TypeVar("V")
_TRIES = 8
_FIRST_PAUSE_S = 0.1
_MAX_PAUSE_S = 2.0
_MAX_ASKED_S = 30

WAIT_PATIENCE_S = 600.0
"""How long to wait for a daemon that has gone away; an upgrade takes less."""

SAFETY_S = 15.0
"""Tasks are fetched anyway after this long without an event."""

_UNAVAILABLE = 503

OnChange = Callable[[TaskView, TaskView], None]
"""Called with the previous and the current version of a task."""


class Submitter:
    """Submits tasks, with a new client after the connection was lost. Use it in a ``with`` block."""

    def __init__(self, connect: Callable[[], Client]) -> None:
        self._connect = connect
        self._gone = False
        self.client = connect()

    def __enter__(self) -> "Submitter":
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def submit(self, spec: TaskSpec) -> TaskView:
        """Submit the task. Raises ClientError, and ConnectionLost only after several tries over some seconds."""
        key = secrets.token_urlsafe(18)
        return self._send(spec.name, lambda client: client.submit(spec, idempotency_key=key))

    def add_schedule(self, spec: TaskSpec) -> ScheduleView:
        """Submit a schedule. Raises as ``submit`` does."""
        key = secrets.token_urlsafe(18)
        return self._send(spec.name, lambda client: client.add_schedule(spec, idempotency_key=key))

    def _send(self, name: str, send: "Callable[[Client], V]") -> V:
        import tenacity  # only this command needs it

        request = _Request()
        again = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(_TRIES),
            wait=_pause,
            retry=tenacity.retry_if_exception(request.may_be_repeated),
            before_sleep=lambda _: self._disconnect(),
            reraise=True,
        )
        try:
            return again(lambda: send(self._client()))
        except DaemonNotRunning as error:
            if not request.lost:
                raise
            remedy = "Check with `claudomator status` whether it was accepted before submitting again."
            raise ConnectionLost(f"{error.detail} Cannot tell whether {name} was accepted.", remedy=remedy) from error

    def _client(self) -> Client:
        if self._gone:
            # A restarted daemon may listen elsewhere.
            self.client = self._connect()
            self._gone = False
        return self.client

    def _disconnect(self) -> None:
        self.client.close()
        self._gone = True


class _Request:
    """One submission. lost: it was sent, but no response arrived."""

    def __init__(self) -> None:
        self.lost = False

    def may_be_repeated(self, error: BaseException) -> bool:
        """Whether to send it again. Fails at once if no daemon is running, unless one was there a moment ago."""
        match error:
            case ConnectionLost():
                self.lost = True
                return True
            case DaemonNotRunning():
                return self.lost
            case ServiceProblem(code="idempotency_key_in_use"):
                return self.lost
            case ServiceProblem(retry_after_s=int(seconds)):
                return seconds <= _MAX_ASKED_S
        return False


def _pause(state: "RetryCallState") -> float:
    """Seconds until the next try: as the daemon asks, otherwise with exponential backoff."""
    error = state.outcome.exception() if state.outcome is not None else None
    if isinstance(error, ServiceProblem) and error.retry_after_s is not None:
        return float(error.retry_after_s)
    return float(min(_FIRST_PAUSE_S * 2 ** (state.attempt_number - 1), _MAX_PAUSE_S))


_TASKS = Table[TaskView](
    Column("NAME", lambda task: task.name, flexible=True),
    Column("ID", lambda task: task.id),
    Column("STATE", lambda task: task.state),
    Column("AGENT", lambda task: task.agent),
    Column("REASON", lambda task: task.reason, flexible=True),
)


NoInputOption = Annotated[
    bool,
    typer.Option(
        "--no-input",
        help="Nobody is there to help: stop waiting and exit with 6 once a task cannot continue without a person.",
    ),
]


@formatted
def submit(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", readable=False, help="Task files; - reads stdin."),
    ],
    wait: Annotated[bool, typer.Option("--wait", help="Wait for all tasks to end; exit with 5 if one failed.")] = False,
    timeout: Annotated[
        int | None, duration_option("With --wait: give up after this long, such as 45m, and exit with 124.")
    ] = None,
    no_input: NoInputOption = False,
    config: ConfigOption = None,
    state_dir: StateDirOption = None,
) -> None:
    """Submit the tasks in files.

    All files must be valid, otherwise nothing is submitted. A file means the same as in the inbox: with `schedule` it
    becomes a schedule, and --wait does not wait for it. A file that lies in the inbox is a task already, and becomes
    another one. Interrupting the wait does not affect the tasks.
    """
    if timeout is not None and not wait:
        raise typer.BadParameter("--timeout requires --wait")
    if no_input and not wait:
        raise typer.BadParameter("--no-input requires --wait")
    parsed = read(files)
    if bad := [file for file in parsed if file.problems]:
        for file in bad:
            for problem in file.problems:
                note(problem.render(file.shown))
        fail("Nothing was submitted.", "Fix the problems above and submit again.")
    tasks = [(file, spec) for file in parsed for spec in file.specs]
    _submit(tasks, _Wait(timeout, no_input=no_input) if wait else None, config, state_dir)


@formatted
def add(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to do; - reads it from stdin.")],
    directory: Annotated[
        Path | None,
        typer.Option(
            "-C",
            "--directory",
            metavar="DIR",
            help="Where to work. Default: here, in a git repository; elsewhere a scratch folder.",
            exists=True,
            file_okay=False,
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the task. Default: its first words.")] = None,
    agent: Annotated[str | None, completion.AGENTS.option("Agent or kind to prefer.")] = None,
    tier: Annotated[Tier | None, typer.Option(help="How strong a model it needs.")] = None,
    specialist: Annotated[str | None, completion.SPECIALISTS.option("Specialist to use.", metavar="ID")] = None,
    worktree: Annotated[bool, typer.Option("--worktree", help="Work on its own branch, in its own work tree.")] = False,
    after: Annotated[
        list[str] | None, completion.TASKS.option("Start once this task has completed.", metavar="TASK")
    ] = None,
    tag: Annotated[list[str] | None, completion.TAGS.option("Tag to give it.")] = None,
    priority: Annotated[str | None, typer.Option(help="low, normal, high or urgent.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for it to end; exit with 5 if it failed.")] = False,
    no_input: NoInputOption = False,
    config: ConfigOption = None,
    state_dir: StateDirOption = None,
) -> None:
    """Submit a task without a file.

    All other settings need a task file; see `claudomator submit`.
    """
    if no_input and not wait:
        raise typer.BadParameter("--no-input requires --wait")
    instructions = sys.stdin.read() if text == "-" else text
    place = directory or repository_here()
    choice = {"type": agent, "tier": tier}
    document: dict[str, object] = {
        "name": name or default_name(instructions),
        "instructions": instructions,
        "working_dir": None if place is None else str(place.resolve()),
        "isolation": "worktree" if worktree else None,
        "agent": {key: value for key, value in choice.items() if value is not None},
        "specialist": specialist,
        "depends_on": after,
        "tags": tag,
        "priority": priority,
    }
    task = _parse_or_fail({key: value for key, value in document.items() if value})
    if directory is None and place is not None:
        note(f"It works in {place}; use -C DIR for another directory.")
    _submit([(ReadFile("the command", (), ()), task)], _Wait(no_input=no_input) if wait else None, config, state_dir)


def _parse_or_fail(document: Mapping[str, object]) -> TaskSpec:
    from claudomator_py.schema.taskfile import parse_task

    task = parse_task(document)
    if isinstance(task, list):
        for problem in task:
            note(problem.render())
        fail("Nothing was submitted.", "Fix the problems above and try again.")
    return task


def default_name(instructions: str) -> str:
    """Return the name of a task without one: its first words."""
    return name_of_text(instructions) or f"task-{time.strftime('%H%M%S')}"


def repository_here() -> Path | None:
    """Return the current directory if it is in a git repository."""
    here = Path.cwd()
    return here if any(os.path.lexists(folder / ".git") for folder in (here, *here.parents)) else None


class _Wait:
    """How to wait for tasks. timeout: in milliseconds; None: no limit. no_input: see ``NoInputOption``."""

    def __init__(self, timeout: int | None = None, *, no_input: bool) -> None:
        self.timeout = timeout
        self.no_input = no_input
        self._deadline = None if timeout is None else time.monotonic() + timeout / 1_000

    @property
    def left_s(self) -> float | None:
        """Seconds until the deadline, on the monotonic clock; None if there is none."""
        return None if self._deadline is None else self._deadline - time.monotonic()


def _submit(
    tasks: Sequence[tuple[ReadFile, TaskSpec]], wait: _Wait | None, config: Path | None, state_dir: Path | None
) -> None:
    """Submit the tasks, and wait until they end unless ``wait`` is None."""
    with Submitter(lambda: connect(config, state_dir)) as submitter:
        once = [(file, spec) for file, spec in tasks if spec.schedule is None]
        schedules = [(file, spec) for file, spec in tasks if spec.schedule is not None]
        accepted = _submit_each(submitter, once)
        added = [_located(file, spec, submitter.add_schedule) for file, spec in schedules]
        if wait is None:
            _write(accepted, added)
            return
        latest, stuck = _waited(submitter.client, accepted, wait)
    _write(latest, added)
    _exit_by(latest, stuck, wait)


@connected
def wait(
    client: Client,
    tasks: Annotated[list[str], completion.TASKS.argument("TASK", "Task ids, id prefixes or names.")],
    timeout: Annotated[int | None, duration_option("Give up after this long, such as 45m, and exit with 124.")] = None,
    no_input: NoInputOption = False,
) -> None:
    """Wait for tasks to end; exit with 5 unless all completed.

    A task that has ended already is not waited for. One that needs you is, with a message, unless --no-input is given.
    Interrupting the wait does not affect the tasks.
    """
    how = _Wait(timeout, no_input=no_input)
    named = {task.id: task for task in map(client.task, tasks)}
    for task in named.values():
        _note_need(task)
    latest, stuck = _waited(client, [*named.values()], how)
    _write(latest)
    _exit_by(latest, stuck, how)


def _exit_by(tasks: Sequence[TaskView], stuck: TaskView | None, how: _Wait) -> None:
    """Raise Exit unless all tasks have completed. stuck: see ``wait_for_end``."""
    if stuck is not None:
        error(
            ended(f"{stuck.name} needs a person: {stuck.reason_text or stuck.reason}"),
            f"See `claudomator why {stuck.name}`. Tasks that have not ended continue once they can.",
        )
        raise typer.Exit(ExitCode.NEEDS_PERSON)
    if any(task.state not in ENDED for task in tasks):
        error(
            f"Not all had ended after {format_duration(how.timeout or 0)}.", "They continue; see `claudomator status`."
        )
        raise typer.Exit(ExitCode.TIMED_OUT)
    if any(task.state != "COMPLETED" for task in tasks):
        raise typer.Exit(ExitCode.RUN_FAILED)


def _submit_each(submitter: Submitter, tasks: Sequence[tuple[ReadFile, TaskSpec]]) -> list[TaskView]:
    """Submit every task; if one is refused, print those that were accepted."""
    accepted: list[TaskView] = []
    try:
        for file, spec in tasks:
            # In a loop, so that a refusal leaves the earlier ones in the list.
            accepted.append(_located(file, spec, submitter.submit))
            for warning in accepted[-1].warnings:
                note(f"{f'{file.shown}: ' if file.parsed else ''}warning: {spec.name}: {warning}")
    except BaseException:
        if accepted:
            _write(accepted)
            error("Only the tasks above were submitted.")
        raise
    return accepted


def _located(file: ReadFile, spec: TaskSpec, send: Callable[[TaskSpec], V]) -> V:
    """Submit it; print the daemon's problems with file and line."""
    try:
        return send(spec)
    except ServiceProblem as refusal:
        if refusal.details.problems:
            problems = [file.located(spec, problem) for problem in refusal.details.problems]
            for problem in problems:
                note(problem.render(file.shown) if file.parsed else problem.render())
            refusal.details = refusal.details.model_copy(update={"problems": ()})
            refusal.detail = f"{spec.name} was refused."  # its problems were just printed
        raise


def _waited(client: Client, tasks: Sequence[TaskView], how: _Wait) -> tuple[list[TaskView], TaskView | None]:
    """The tasks, and the one that needs a person, as ``wait_for_end`` returns. Reports changes on stderr."""
    latest = {task.id: task for task in tasks}
    try:
        stuck = wait_for_end(client, latest, how, _note_change)
    except KeyboardInterrupt:
        _write(list(latest.values()))
        note("No longer waiting. The tasks continue; see `claudomator status`.")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    except ClientError:
        _write(list(latest.values()))
        raise
    return list(latest.values()), stuck


def _note_change(before: TaskView, now: TaskView) -> None:
    if (before.state, before.reason, before.agent) != (now.state, now.reason, now.agent):
        words = [f"{now.name}: {now.state}", f"on {now.agent}" if now.state == "RUNNING" and now.agent else ""]
        reason = f"({now.reason})" if now.reason else ""
        note(" ".join(word for word in (*words, reason) if word))
        _note_need(now)


def _note_need(task: TaskView) -> None:
    if task.state == "NEEDS_INPUT":
        note(f"{task.name} waits for you: {task.reason_text or task.reason}; see `claudomator why {task.name}`.")


def _write(tasks: Sequence[TaskView], schedules: Sequence[ScheduleView] = ()) -> None:
    if wrote_json([*tasks, *schedules]):
        return
    if schedules:
        write_schedules(schedules)
    if tasks or not schedules:
        out(table_text(_TASKS, tasks))


def wait_for_end(client: Client, tasks: dict[str, TaskView], how: _Wait, on_change: OnChange) -> TaskView | None:
    """Return once all these tasks, by id, have ended, or at the deadline; with ``no_input``, also once one of them
    needs a person to continue: that one, or the one that it waits for.

    tasks: updated in place. Raises ClientError if the daemon is gone for good.
    """
    there = True
    with EventWatch(client, patience_s=WAIT_PATIENCE_S) as changes:
        while pending := [task for task in tasks.values() if task.state not in ENDED]:
            left = SAFETY_S if how.left_s is None else min(SAFETY_S, how.left_s)
            if left <= 0:
                return None
            changed = changes.tasks() if changes.wait(left) else None
            try:
                for task in pending:
                    if changed is None or task.id in changed:
                        # Why a task waits may change without a new version of it.
                        whole = how.no_input and task.state in _UNSTARTED
                        now = client.task(task.id) if whole else client.task_unless(task.id, task.version)
                        if now is not None:
                            tasks[task.id] = now
                            on_change(task, now)
                        if how.no_input and (stuck := _stuck(client, tasks[task.id], set())) is not None:
                            return stuck
            except (DaemonNotRunning, ServiceProblem) as error:
                if isinstance(error, ServiceProblem) and error.details.status != _UNAVAILABLE:
                    raise
                # Once it is back, the stream restarts, and all tasks are fetched.
                if there:
                    note("The daemon does not answer; waiting for it. Running tasks continue.")
                there = False
            else:
                there = True
    return None


_UNSTARTED = ("WAITING", "QUEUED")


def _stuck(client: Client, task: TaskView, seen: set[str]) -> TaskView | None:
    """Return the task if it needs a person, or else the one it waits for that does. seen: ids of those looked at."""
    seen.add(task.id)
    if task.state == "NEEDS_INPUT":
        return task
    if task.state not in _UNSTARTED or task.blocked is None:
        return None
    if task.blocked.needs_person:
        return task
    if task.blocked.until is not None:
        return None
    named = [(needed.task_id, needed.state) for needed in task.depends_on]
    refs = [(ref.id, ref.state) for ref in task.blocked.params.tasks]
    others = (ref for ref, state in (*named, *refs) if ref is not None and state in UNENDED and ref not in seen)
    views = (unless_missing(client.task, other) for other in others)
    return next((stuck for view in views if view and (stuck := _stuck(client, view, seen)) is not None), None)
