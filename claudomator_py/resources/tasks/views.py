"""Builds views of tasks: their state, why they are in it, until when, and what would change that."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path

from sqlalchemy import Connection

from claudomator_py.dispatch.observe import Observer
from claudomator_py.domain.blocked import BlockCode, Blocked, Why, blocked
from claudomator_py.domain.blocked_words import blocked_text, in_brief
from claudomator_py.domain.lifecycle import WaitReason, available_actions
from claudomator_py.domain.limits import done_text
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.routing import Constraints, ReachOrigin
from claudomator_py.domain.task import Priority, TaskSpec
from claudomator_py.domain.units import parse_instant
from claudomator_py.domain.wording import TaskRef, due_clock, worded
from claudomator_py.domain.worktree import TreeStanding, TreeState
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.worktrees import branch_of
from claudomator_py.faults import Activity, Faults
from claudomator_py.ports import Clock, Trees
from claudomator_py.resources.agents import HoldView
from claudomator_py.resources.agents.service import failed_by_budget, hold_views, task_budget, used_up
from claudomator_py.resources.concealment import concealed, without_hidden
from claudomator_py.resources.runs import InputView
from claudomator_py.resources.session import Bound, each_shown
from claudomator_py.resources.tasks import DependencyView, TaskView, WorktreeView
from claudomator_py.resources.tasks.of_rows import MAX_KEPT, EndedViews, TaskRows, Wait, run_fields, unreadable_view
from claudomator_py.resources.tasks.sentences import (
    expiry,
    failure_clause,
    failure_text,
    not_ready,
    rejection,
    with_bound,
)
from claudomator_py.scheduler.admission import admit
from claudomator_py.scheduler.load import Load, load_of
from claudomator_py.scheduler.snapshot import QueueHead, Snapshot
from claudomator_py.schema.taskfile import shown_document
from claudomator_py.store import dependency_rows, reads, run_rows, specialist_rows, task_rows, tick_rows
from claudomator_py.store.connections import Unchanged
from claudomator_py.store.reads import TaskRuns
from claudomator_py.store.stored_json import readable
from claudomator_py.store.tables import Run, Task
from claudomator_py.store.task_rows import state_of
from claudomator_py.tasks.feasibility import acceptance_warnings
from claudomator_py.tasks.inputs import current_request, request_of_older_version
from claudomator_py.values import dataclass

NEXT_CONTENT = "its content has changed meanwhile, and the new one runs once this run has ended"


@dataclass(frozen=True, slots=True)
class _Planned:
    """The planner's inputs."""

    present: Snapshot
    load: Load
    """Resources in use in the snapshot."""
    heads: Mapping[str, QueueHead]
    """Readable queued tasks, by id."""
    holds: Mapping[str, Sequence[HoldView]]
    """Holds, by agent name."""


@dataclass(eq=False, repr=False)
class TaskViews(Bound):
    """Builds views of tasks for a principal."""

    registry: AgentRegistry
    observer: Observer
    faults: Faults
    """Of single tasks."""
    clock: Clock
    obstacle: Callable[[str], str | None] = lambda _: None
    """Returns why a live run has not begun; see ``RunHost``."""
    _ended: EndedViews = field(default_factory=EndedViews, init=False)
    _unchanged: Unchanged = field(default_factory=lambda: Unchanged(most=4), init=False)

    def changed(self, connection: Connection, task_id: str) -> TaskView:
        """Return a task with its content after a change. The planner is not asked why it is queued: a later request
        shows that."""
        tasks = [task_rows.get(connection, task_id)]
        specs = task_rows.specs_shown(connection, tasks)
        return self._of(connection, tasks, specs, _runs(connection, tasks), None, with_spec=True)[0]

    def of(self, connection: Connection, tasks: Sequence[Task], *, with_spec: bool = False) -> list[TaskView]:
        """Return the tasks, with the reason and the end of each wait."""
        return each_shown(tasks, partial(self._readable, connection, with_spec=with_spec), unreadable_view)

    def _readable(self, connection: Connection, tasks: Sequence[Task], *, with_spec: bool) -> list[TaskView]:
        specs, runs = self._unchanged.read(
            connection,
            tuple((task.id, task.version) for task in tasks),
            lambda: (task_rows.specs_shown(connection, tasks), _runs(connection, tasks)),
            lambda _: len(tasks) <= MAX_KEPT,
        )
        return self._of(connection, tasks, specs, runs, self._planned(connection, tasks, specs), with_spec=with_spec)

    def _planned(
        self, connection: Connection, tasks: Sequence[Task], specs: Mapping[str, TaskSpec]
    ) -> "_Planned | None":
        """Return the planner's inputs; None if no task is queued."""
        queued = [(task, specs[task.id]) for task in tasks if task.state == "QUEUED"]
        if not queued:
            return None
        present = self.observer.present(connection)
        limited = any(agent.holds for agent in present.agents)
        holds = hold_views(connection, self.registry.agents, present.now, self._by) if limited else {}
        return _Planned(present, load_of(present), self.observer.reader.heads(connection, queued), holds)

    def _of(
        self,
        connection: Connection,
        tasks: Sequence[Task],
        specs: Mapping[str, TaskSpec],
        summaries: Mapping[str, TaskRuns],
        planned: "_Planned | None",
        *,
        with_spec: bool,
    ) -> list[TaskView]:
        runs = {
            task_id: replace(summary, shown=tuple(without_hidden(connection, summary.shown, self._by)))
            for task_id, summary in summaries.items()
        }
        tasks = without_hidden(connection, tasks, self._by)
        now_ms = self.clock()
        hidden = specialist_rows.hidden(connection, [task.specialist for task in tasks], self._by)
        shapes = []
        for task in tasks:
            spec, of_task = specs[task.id], runs.get(task.id, TaskRuns())
            # A specialist that the task itself names is not concealed.
            conceals = task.specialist in hidden and task.specialist != spec.specialist
            rows = TaskRows(task, spec, of_task, self._reach_origin(task, spec, of_task.last), conceals)
            make = partial(self._made, connection, rows, planned, now_ms, with_spec=with_spec)
            shapes.append(make() if with_spec else self._ended.of(rows, make))
        return list(concealed(connection, shapes, self._by))

    def _made(
        self, connection: Connection, rows: TaskRows, planned: "_Planned | None", now_ms: int, *, with_spec: bool
    ) -> TaskView:
        task, spec, origin, last = rows.task, rows.spec, rows.origin, rows.runs.last
        outcome = None if last is None else readable(Outcome, last.outcome)
        why, asks = self._wait(connection, rows, outcome, planned, now_ms), input_view(task, now_ms)
        needs = tuple(
            DependencyView.model_validate({"name": name, "task_id": bound, "state": state})
            for name, bound, state in (dependency_rows.bound(connection, task.id) if spec.prerequisites else ())
        )
        return TaskView.of(
            task,
            reason=why.reason,
            reason_text=why.text,
            reason_short=why.short,
            blocked=why.blocked,
            waiting_until=why.until_ms,
            asks=asks,
            holds=why.holds,
            budget=task_budget(connection, task, spec) if spec.budget.units else None,
            priority=Priority(task.priority).label,
            working_dir=spec.working_dir,
            reach=None if origin is None else origin.reach,
            reach_source=None if origin is None else origin.source,
            reach_rule=None if origin is None else origin.rule,
            branch=branch_of(connection, task, last),
            agent_hint=spec.agent.type,
            attempts=task.attempt,
            available_actions=available_actions(state_of(task), begun=asks is None or asks.run_id is not None),
            depends_on=needs,
            continues=next((dependency for dependency in needs if dependency.name == spec.continues), None),
            spec=shown_document(spec) if with_spec else None,
            warnings=tuple(self._warnings(task, spec)),
            **run_fields(rows.runs, outcome, spec),
            **({"specialist": None} if rows.conceals else {}),
        )

    def _reach_origin(self, task: Task, spec: TaskSpec, last: Run | None) -> ReachOrigin | None:
        """Return the reach of its runs; None if there is none, or if it does not bind the last run's agent."""
        origin = Constraints.shown(task.constraints).reach_of(spec.reach)
        if origin is None or not origin.leaves_unfenced or last is None:
            return origin
        agent = self.registry.find(last.agent)
        return origin if agent is None or self.registry.unfenced(agent) is None else None

    def _warnings(self, task: Task, spec: TaskSpec) -> list[str]:
        if task.state not in ("WAITING", "QUEUED", "NEEDS_INPUT"):
            return []
        return [warning.render() for warning in acceptance_warnings(spec, self.registry)]

    def _wait(
        self,
        connection: Connection,
        rows: TaskRows,
        outcome: Outcome | None,
        planned: "_Planned | None",
        now_ms: int,
    ) -> Wait:
        """Return why the task is in its state. The reason of a queued task is not stored but computed by the planner,
        so it is never stale."""
        task, spec, runs = rows.task, rows.spec, rows.runs
        if (fault := self.faults.of_task(task)) is not None:
            return _blocked(fault.blocked, now_ms)
        if task.state == "QUEUED":
            return Wait() if planned is None else self._queued(connection, task, planned)
        if task.state == "RUNNING":
            last = runs.last
            obstacle = self.obstacle(last.id) if last is not None and last.live else None
            if obstacle is not None:
                return Wait(Why.HOST, obstacle, obstacle)
            return Wait() if task.next_revision is None else Wait(text=NEXT_CONTENT)
        if task.state == "WAITING" and task.reason == WaitReason.BUDGET:
            return _blocked(used_up(connection, task, spec), now_ms)
        if task.state == "WAITING":
            return _blocked(not_ready(task, dependency_rows.states(connection, task.id)), now_ms)
        if task.state == "FAILED" and task.reason is not None:
            states = dependency_rows.states(connection, task.id)
            failed = with_bound(failure_text(task.reason, outcome, states), task, spec)
            obstacle = rejection(task) if task.reason == Reason.REJECTED else None
            if task.reason == Reason.EXPIRED and (expired := expiry(task, now_ms)) is not None:
                return Wait(task.reason, expired, expired)
            if task.reason == Reason.BUDGET:
                has_figures = outcome is not None and outcome.reason is Reason.BUDGET
                failed = failed_by_budget(connection, task, spec, failed, has_figures=has_figures)
            short = obstacle or failure_clause(task.reason, outcome, states)
            # The message shows whether a rule or a person rejected it.
            return Wait(task.reason, f"Rejected. {obstacle[:1].upper()}{obstacle[1:]}" if obstacle else failed, short)
        if task.state == "COMPLETED":
            done = _success(runs.shown, outcome)
            if done is None:
                return Wait()
            checked = bool(spec.check)
            return Wait(None, done_text(done, checked=checked), done_text(done, checked=checked, whole=False))
        if task.state == "NEEDS_INPUT":
            asked = input_view(task, now_ms)
            question = asked.text if asked is not None else None
            until = None if asked is None or asked.until is None else parse_instant(asked.until)
            return Wait(task.reason, question, question, until)
        return Wait()

    def _queued(self, connection: Connection, task: Task, planned: "_Planned") -> Wait:
        """Return why a queued task does not start, with details that the planner does not need."""
        present, holds = planned.present, planned.holds
        if (head := planned.heads.get(task.id)) is None:
            unread = "the stored decision on it cannot be read"
            return _blocked(
                blocked(BlockCode.FAULT, doing=Activity.START.value, task=task.name, text=unread), present.now
            )
        verdict = admit(head, present.agents, present.rules, planned.load)
        if not isinstance(verdict, Blocked):
            return Wait(Why.READY, f"is about to start on {verdict.agent}")
        match verdict.code:
            case BlockCode.WORKDIR:
                verdict = verdict.having(tasks=_running_in(connection, head.dir_key, self._by))
            case BlockCode.KEPT:
                verdict = verdict.having(tasks=_visible(connection, verdict.params.tasks, self._by))
            case BlockCode.CONVERSATION:
                verdict = verdict.having(tasks=_in_turn(connection, head))
        views = [_hold_of(agent, holds) for agent in verdict.params.agents]
        whole = [
            item if view is None else view.blocked for item, view in zip(verdict.params.agents, views, strict=True)
        ]
        verdict = verdict.having(agents=tuple(item for item in whole if item is not None))
        return _blocked(verdict, present.now, tuple(view for view in views if view is not None))


def _runs(connection: Connection, tasks: Sequence[Task]) -> Mapping[str, TaskRuns]:
    return reads.run_summaries(connection, [task.id for task in tasks])


def with_tree(view: TaskView, trees: Trees, read: Callable[[Callable[[Connection], str]], str]) -> TaskView:
    """Return the view with the state of the task's work tree after its last run or the last cleanup, unless it runs.

    The state is the stored one: showing a task does not call git.
    """
    if view.branch is None or view.state == "RUNNING":
        return view

    def folder(connection: Connection) -> str:
        runs = run_rows.of_task(connection, view.id)
        return runs[-1].dir_key if runs else ""

    tree = trees.find(Path(read(folder)).name)
    if tree is None:
        return view
    state = trees.seen(tree.name) or TreeState(TreeStanding.UNKNOWN, words="it has not been examined yet")
    worktree = WorktreeView.of(state, path=tree.path, detail=state.words, seen_at=state.seen_ms or None)
    return view.model_copy(update={"worktree": worktree})


def _success(runs: Sequence[Run], outcome: Outcome | None) -> Outcome | None:
    """Return the outcome of the last run that succeeded. runs: see ``TaskRuns.shown``. outcome: of the last run."""
    done = next((run for run in runs if run.ended_as == OutcomeStatus.SUCCEEDED), None)
    if done is None:
        return None
    return outcome if done is runs[-1] else readable(Outcome, done.outcome)


def _blocked(what: Blocked, now_ms: int, holds: tuple[HoldView, ...] = ()) -> Wait:
    clock, short = due_clock(now_ms), in_brief(what)
    return Wait(
        what.why,
        blocked_text(what, clock),
        None if short is None else worded(short, clock),
        what.until,
        holds,
        what,
    )


def _hold_of(what: Blocked, holds: Mapping[str, Sequence[HoldView]]) -> HoldView | None:
    """Return the hold that the obstacle is about, if any."""
    bucket, views = what.params.bucket, holds.get(what.params.agent or "", ())
    return None if bucket is None else next((view for view in views if view.bucket == bucket), None)


def _in_turn(connection: Connection, head: QueueHead) -> tuple[TaskRef, ...]:
    """Return the task of its thread whose turn it is."""
    live = [run.task_id for run in run_rows.live(connection) if (run.thread or run.task_id) == head.exclusive]
    task_id = live[0] if live else tick_rows.in_turn(connection).get(head.exclusive)
    task = None if task_id is None else task_rows.find(connection, task_id)
    return () if task is None else (ref_of(task),)


def _running_in(connection: Connection, dir_key: str, by: Principal) -> tuple[TaskRef, ...]:
    """Return the visible tasks that run in the directory."""
    there = [task_rows.get(connection, run.task_id) for run in run_rows.live(connection) if run.dir_key == dir_key]
    return tuple(ref_of(task) for task in there if by.sees(task.organisation))


def _visible(connection: Connection, refs: Sequence[TaskRef], by: Principal) -> tuple[TaskRef, ...]:
    """Return the visible ones of the tasks."""
    tasks = [task_rows.find(connection, ref.id) for ref in refs if ref.id is not None]
    return tuple(ref_of(task) for task in tasks if task is not None and by.sees(task.organisation))


def ref_of(task: Task | TaskView) -> TaskRef:
    """Return the task as what another refers to."""
    return TaskRef(name=task.name, id=task.id, state=task.state)


def input_view(task: Task, now_ms: int) -> InputView | None:
    """Return the request for a person's input; None unless the task needs any."""
    if task.state != "NEEDS_INPUT":
        return None
    asked = current_request(task) or request_of_older_version(task)
    kept = task.kept_until_ms if task.kept_until_ms is not None and task.kept_until_ms > now_ms else None
    return InputView.of(asked, text=asked.words, since=asked.since_ms, kept_until=kept, until=asked.until_ms)
