"""Acting on a plan: directory, committed intent, shim, in this order, so that a crash anywhere starts nothing twice."""

import errno
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from sqlalchemy import Connection
from structlog.stdlib import BoundLogger

from claudomator_py.dispatch.handoff import HandoffRefused, HandoffSubject, handoff_of
from claudomator_py.dispatch.launch import LaunchRules, Prepared, agent_run, launch_request
from claudomator_py.dispatch.observe import Observation, QueuedTask
from claudomator_py.dispatch.spending import Budgets
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.budget import Spending
from claudomator_py.domain.card import Card
from claudomator_py.domain.conversation import Conversations
from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.handoff import Handoff
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.redaction import without_secrets
from claudomator_py.domain.routing import Constraints
from claudomator_py.domain.run import RunConflict
from claudomator_py.domain.task import OnInput, TaskSpec
from claudomator_py.domain.units import MINUTE_MS
from claudomator_py.domain.worktree import Tree, TreeFault, WorktreeRequest
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.secrets import Secrets
from claudomator_py.environment.workdirs import further_folders
from claudomator_py.environment.worktrees import WorktreeManager, folder_in_tree, isolated, tell_tree, tree_wanted
from claudomator_py.faults import Doing, Fault, Faults, HostFault, Item, item_of
from claudomator_py.log import get_logger
from claudomator_py.ports import RunHost, Transcript
from claudomator_py.prompts.conversations import ResumePolicy, resumption_of, scratch_of
from claudomator_py.prompts.prompt import (
    compose,
    compose_answer,
    compose_further,
    compose_next,
    follow_note,
    handoff_note,
    left_by,
    role_of,
)
from claudomator_py.routing.role import done_by
from claudomator_py.scheduler.decision import HandoffRecord
from claudomator_py.scheduler.plan import StartRun
from claudomator_py.store import decision_rows, run_rows, spending_rows, task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.decision_rows import PackedSnapshot
from claudomator_py.store.tables import Decision, Run, Task
from claudomator_py.store.task_rows import VersionConflict
from claudomator_py.tasks.handing_on import hops
from claudomator_py.tasks.inputs import with_granted_tools
from claudomator_py.tasks.runs import commit_start, finish_run, planned_run

log = get_logger("claudomator.start")

MOST_STARTS = 7
"""So often in a row is a start tried that its own task keeps from succeeding: for some ten minutes, with the pauses."""


@dataclass(frozen=True, slots=True)
class _Subject:
    """A task to start. earlier: the run whose conversation it continues in; told: the content that this knows.

    before: the runs of its generation so far, oldest first. hops: how it was handed on in that. obstacle: why it cannot
    continue after all. left: the run whose work it takes over in a new conversation. follows: the run of the task that
    it continues. tree: the work tree that it needs, if it does. card: of the specialist who does it. decisions: about
    the task, oldest first. spending: what it has used, if it has a budget.
    """

    task: Task
    spec: TaskSpec
    earlier: Run | None
    told: TaskSpec
    obstacle: str | None
    tree: WorktreeRequest | None = None
    left: Run | None = None
    follows: Run | None = None
    card: Card | None = None
    before: tuple[Run, ...] = ()
    hops: tuple[HandoffRecord, ...] = ()
    decisions: tuple[Decision, ...] = ()
    spending: Spending = field(default_factory=Spending)

    @property
    def timeout_ms(self) -> int:
        """For its next run: what those that handed the task on have left of its timeout, or a minute."""
        handed = {hop.run_id for hop in self.hops}
        used_ms = sum((run.ended_ms or 0) - run.started_ms for run in self.before if run.id in handed)
        whole_ms = self.spec.timeout
        return max(whole_ms - used_ms, min(whole_ms, MINUTE_MS))

    def prompt(self, handoff: str | None, *, converses: bool) -> str:
        """What the agent is told. handoff: what an earlier run left, if it takes over from one.

        converses: whether it can be answered.
        """
        resumption = resumption_of(self.task)
        words = None if resumption is None else resumption.words
        if self.earlier is None:
            heard = () if resumption is None else resumption.heard
            may_ask = converses and self.spec.on_input is OnInput.WAIT
            role = "" if self.card is None else role_of(self.card, self.task.skill)
            return compose(self.spec, words, handoff, role=role, heard=heard, may_ask=may_ask)
        if resumption is not None and resumption.answering:
            return compose_answer(resumption.heard[-1])
        if resumption is not None and resumption.follows is not None:
            return compose_next(self.spec, words, again=resumption.run_id != resumption.follows)
        return compose_further(self.spec, self.told, words)


@dataclass(frozen=True, slots=True)
class _Ready:
    """A run whose directory is there. commit: what makes it a fact; see ``commit_start``."""

    run: Run
    prepared: Prepared
    commit: Callable[[Connection], None]


@dataclass(frozen=True, slots=True)
class Begun:
    """How many runs were started. conflicts: starts for which there is a directory of a run that no row knows.

    contents: what the runs are of, by their ids.
    """

    number: int
    conflicts: tuple[Item, ...] = ()
    contents: Mapping[str, TaskSpec] = field(default_factory=dict)


class Starter:
    """Starts the runs of a plan. rules: those in force. faults: of starts. budgets: what may be spent; None: all.

    secrets: what no note and no refusal may hold; None: nothing but what is one by its shape.
    """

    def __init__(
        self,
        database: Database,
        registry: AgentRegistry,
        host: RunHost,
        rules: Callable[[], LaunchRules],
        isolating: WorktreeManager,
        faults: Faults,
        budgets: Budgets | None = None,
        secrets: Secrets | None = None,
    ) -> None:
        self._secrets = secrets or Secrets()
        self._database = database
        self._registry = registry
        self._host = host
        self._rules = rules
        self._isolating = isolating
        self._faults = faults
        self._budgets = budgets or Budgets()
        self._resuming = ResumePolicy(registry, host)

    def start(self, observation: Observation) -> Begun:
        """Start what is planned, each by itself: what one raises keeps no other from starting.

        One whose task has changed meanwhile is left for the next plan. Raises StoreUnavailable; what was committed
        before is started anyway.
        """
        starts = observation.starts
        if not starts:
            return Begun(0)
        observed, now_ms = PackedSnapshot.of(observation.snapshot.model_dump(mode="json")), observation.snapshot.now
        committing: list[tuple[Item, _Ready, Future[None]]] = []
        conflicts: list[Item] = []
        contents: dict[str, TaskSpec] = {}
        started = 0
        try:
            for start in starts:
                queued = observation.tasks[start.head.task_id]
                item = item_of(Doing.START, queued.task)
                preparing = partial(self._begin, item, start, queued, now_ms, observed, conflicts)
                begun = self._faults.attempt(item, preparing, whole=False)
                if begun is not None:
                    committing.append((item, *begun))
                    contents[begun[0].run.id] = queued.content
        finally:
            for item, ready, future in committing:
                spawned = self._faults.attempt(item, partial(self._spawn, item.name, ready, future))
                started += 1 if spawned else 0
        return Begun(started, tuple(conflicts), contents)

    def _begin(
        self,
        item: Item,
        start: StartRun,
        queued: QueuedTask,
        now_ms: int,
        observed: PackedSnapshot,
        conflicts: list[Item],
    ) -> "tuple[_Ready, Future[None]] | None":
        """The run whose commit is under way; None: it is not to start now."""
        fault = self._faults.find(item)
        if fault is not None and fault.own and fault.times >= MOST_STARTS:
            self._give_up(item, fault, start, queued.task, now_ms, observed)
            return None
        try:
            ready = self._prepare(start, queued, now_ms, observed)
        except RunConflict:
            conflicts.append(item)
            raise
        if ready is None:
            return None
        crashpoint("start-prepared")
        return ready, self._database.submit(ready.commit, planned=True)

    def _give_up(
        self, item: Item, fault: Fault, start: StartRun, task: Task, now_ms: int, observed: PackedSnapshot
    ) -> None:
        """It cannot be started, and that is recorded as the end of a run which never was."""
        agent = self._registry.find(start.decision.agent)
        if agent is None:
            return
        run = planned_run(task, start, self._registry.kind_of(agent), agent.quota_account, now_ms)
        commit = partial(commit_start, start=start, run=run, observed=observed, obstacle="it cannot be started")
        self._refuse(commit, run, f"it could not be started {fault.times} times in a row: {fault.text}", now_ms, {})
        self._faults.forget([item])

    def _prepare(self, start: StartRun, queued: QueuedTask, now_ms: int, observed: PackedSnapshot) -> _Ready | None:
        agent = self._registry.find(start.decision.agent)
        if agent is None:
            return None
        subject = self._database.read(lambda connection: self._subject(connection, queued, agent.name))
        kind, spec = self._registry.kind_of(agent), subject.spec
        scratch, note = self._scratch(subject), self._note(subject, agent)
        run = planned_run(subject.task, start, kind, agent.quota_account, now_ms, subject.earlier, scratch)
        starting = partial(
            commit_start, start=start, run=run, observed=observed, obstacle=subject.obstacle, left=subject.left
        )
        commit = partial(self._budgets.telling, change=starting, run=run, agent=agent, now_ms=now_ms)
        if subject.tree is not None:
            try:
                tree = self._tree(subject.tree)
            except TreeFault as fault:
                if (there := self._isolating.trees.find(subject.tree.name)) is not None:
                    run.dir_key = there.path
                self._refuse(commit, run, str(fault), now_ms, spec.env)
                return None
            if tree is None:
                return None
            run.dir_key = tree.path
            in_tree = partial(_commit_in_tree, commit=starting, run=run, tree=tree)
            commit = partial(self._budgets.telling, change=in_tree, run=run, agent=agent, now_ms=now_ms)
        prompt = subject.prompt(note, converses=kind.conversations is not Conversations.NONE)
        allowed = with_granted_tools(subject.task, spec, kind.kind)
        try:
            # As real paths: the shim sees that none of them has become a link.
            folders = further_folders(allowed.add_dirs)
            allowed = allowed.model_copy(update={"add_dirs": folders, "timeout": subject.timeout_ms})
        except (OSError, RuntimeError) as error:
            self._refuse(commit, run, f"one of its add_dirs cannot be examined: {error}", now_ms, spec.env)
            return None
        request = launch_request(
            run,
            allowed,
            agent,
            prompt=prompt,
            effort=start.decision.effort,
            usd_left=self._usd_left(run, spec, agent),
            mcp_command=self._rules().mcp_command if agent.mcp.enabled else (),
            skill=subject.task.skill,
        )
        try:
            launch = kind.launch(request)
        except ValueError as error:
            self._refuse(commit, run, str(error), now_ms, spec.env)
            return None
        try:
            handoff = self._handoff(subject, run, allowed, agent)
        except HandoffRefused as refused:
            reason = Reason.HANDOFF_REFUSED if subject.hops else Reason.SETUP_FAILED
            self._refuse(commit, run, str(refused), now_ms, spec.env, reason)
            return None
        prepared = agent_run(run, allowed, agent, launch, self._rules(), handoff=handoff.text, note=note)
        try:
            self._host.prepare(prepared.order)
        except OSError as error:
            raise HostFault(str(error)) from error
        return _Ready(run, prepared, commit)

    def _usd_left(self, run: Run, spec: TaskSpec, agent: AgentSpec) -> float | None:
        if not self._budgets.watches(spec, agent):
            return None
        return self._database.read(lambda connection: self._budgets.usd_left(connection, run, spec, agent))

    def _scratch(self, subject: _Subject) -> str | None:
        """The run whose scratch folder is taken over with its work."""
        before = subject.left or subject.follows
        if before is None or subject.spec.working_dir is not None:
            return None
        scratch = scratch_of(before)
        return scratch if self._host.has_scratch(scratch) else None

    def _handoff(self, subject: _Subject, run: Run, spec: TaskSpec, agent: AgentSpec) -> Handoff:
        """Raises HandoffRefused."""
        branch = None if subject.tree is None else subject.tree.branch
        about = HandoffSubject(
            run,
            spec,
            agent,
            subject.card,
            subject.before,
            branch,
            subject.hops,
            self._rules().max_handoffs,
            subject.decisions,
            subject.spending,
        )
        return handoff_of(about, self._registry, self._secrets.redactor(spec.env, None))

    def _note(self, subject: _Subject, agent: AgentSpec) -> str | None:
        """What a fresh conversation is told about the task that this one continues, and of the runs before."""
        if subject.earlier is not None:
            return None
        left = subject.left or subject.follows
        redactor = self._secrets.redactor(subject.spec.env, None if left is None else left.id)
        notes = []
        if subject.follows is not None:
            transcript = self._transcript(subject.follows)
            notes.append(follow_note(subject.follows, subject.told, self._host, transcript, redactor))
        if subject.left is not None:
            transcript = self._transcript(subject.left)
            notes.append(handoff_note(subject.left, agent.name, self._host, transcript, redactor))
        return "\n\n".join(notes) or None

    def _transcript(self, run: Run) -> Transcript | None:
        kind = self._registry.kinds.get(run.kind)
        return None if kind is None else kind.transcript("stdout")

    def _tree(self, order: WorktreeRequest) -> Tree | None:
        """The work tree, with the folder that the run works in; None: not yet. Raises TreeFault."""
        tree = self._isolating.tree(order)
        if tree is not None:
            folder = Path(folder_in_tree(order.folder, tree.path))
            try:
                if not folder.resolve().is_relative_to(tree.path):
                    leads = f"{folder} leads out of its work tree, to {folder.resolve()}"
                    raise TreeFault(f"{leads}; choose another folder of the repository")
                # What the repository has in no commit is not in the tree, be it the working directory itself.
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise TreeFault(f"{folder} cannot be made ({error.strerror}); see what is in its place") from error
        return tree

    def _subject(self, connection: Connection, queued: QueuedTask, agent: str) -> _Subject:
        """What is started, on that agent. Whether the task has changed since it was read shows at the commit."""
        task = queued.task
        subject = self._going_on(connection, task, queued.spec, agent)
        resumption = resumption_of(task)
        if resumption is not None and resumption.follows is not None:
            subject = _following(connection, subject, resumption.follows)
        runs = run_rows.of_task(connection, task.id) if task.seq > 0 else ()
        before = [run for run in runs if run.generation == task.generation]
        working_dir, earlier = isolated(subject.spec), subject.earlier or subject.follows
        return replace(
            subject,
            told=done_by(subject.told, queued.card, Constraints.parse(task.constraints)),
            tree=None if working_dir is None else tree_wanted(connection, task, working_dir, earlier),
            left=left_by(before, agent) if subject.earlier is None else None,
            card=queued.card,
            before=tuple(before),
            hops=tuple(hops(connection, task.id, task.generation)) if task.seq > 0 else (),
            decisions=tuple(decision_rows.of_task(connection, task.id)),
            spending=spending_rows.of_task(connection, task.id) if subject.spec.budget.units else Spending(),
        )

    def _going_on(self, connection: Connection, task: Task, spec: TaskSpec, agent: str) -> _Subject:
        resumption = resumption_of(task)
        if resumption is None or resumption.given_up or (resumption.optional and resumption.agent != agent):
            return _Subject(task, spec, None, spec, None)
        earlier = run_rows.find(connection, resumption.run_id)
        obstacle = self._resuming.obstacle(earlier, spec, agent)
        if earlier is None or obstacle is not None:
            return _Subject(task, spec, None, spec, obstacle)
        earlier = run_rows.newest_in_conversation(connection, earlier)
        return _Subject(task, spec, earlier, task_rows.spec_of(connection, task.id, resumption.revision), None)

    def _spawn(self, name: str, ready: _Ready, committing: "Future[None]") -> bool:
        run = ready.run
        try:
            committing.result()
        except VersionConflict:
            self._discard(name, run)
            return False
        crashpoint("start-committed")
        try:
            self._host.spawn(run.id, ready.prepared.environment)
        except OSError as error:
            if error.errno == errno.E2BIG:
                raise
            # The next look at the run finds that nobody holds it, revokes it and queues the task again, with a pause
            # from the second time on.
            _log_of(name, run).error("run_not_started", problem=str(error))
            return False
        crashpoint("start-spawned")
        _log_of(name, run).info("run_started", model=run.model, tier=run.tier)
        return True

    def _discard(self, name: str, run: Run) -> None:
        """The directory of a run that is not to be; what cannot be removed now is replaced, or swept."""
        try:
            self._host.remove(run.id)
        except (OSError, RunConflict) as error:
            _log_of(name, run).warning("run_not_discarded", problem=str(error))

    def _refuse(
        self,
        commit: Callable[[Connection], None],
        run: Run,
        why: str,
        now_ms: int,
        env: Mapping[str, str],
        reason: Reason = Reason.SETUP_FAILED,
    ) -> None:
        """The agent cannot be started as configured: the run is recorded, and ends at once."""
        outcome = Outcome(status=OutcomeStatus.FAILED, reason=reason, detail=why)
        outcome = without_secrets(outcome, self._secrets.redactor(env))

        def transaction(connection: Connection) -> None:
            commit(connection)
            finish_run(connection, run, outcome, None, now_ms)

        try:
            self._database.write(transaction)
        except VersionConflict:
            log.debug("task_changed_meanwhile", task_id=run.task_id)


def _following(connection: Connection, subject: _Subject, run_id: str) -> _Subject:
    """With the run of the task that it continues, and what that was told, if it begins afresh."""
    run = run_rows.find(connection, run_id)
    if run is None or subject.earlier is not None:
        return replace(subject, follows=run)
    return replace(subject, follows=run, told=task_rows.spec_of(connection, run.task_id, run.revision))


def _commit_in_tree(connection: Connection, commit: Callable[[Connection], None], run: Run, tree: Tree) -> None:
    commit(connection)
    tell_tree(connection, run, tree)


def _log_of(name: str, run: Run) -> BoundLogger:
    return log.bind(task=name, task_id=run.task_id, run_id=run.id, agent=run.agent, attempt=run.attempt)
