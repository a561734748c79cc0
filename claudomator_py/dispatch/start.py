"""Starts planned runs: directory, committed row, shim, in this order, so that no crash makes a run start twice."""

import errno
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import field, replace
from functools import partial
from pathlib import Path

from sqlalchemy import Connection

from claudomator_py.acts import Reach
from claudomator_py.dispatch.heads import QueuedTask
from claudomator_py.dispatch.launch import LaunchRules, Prepared, agent_run, folder_of, runs_its_input
from claudomator_py.dispatch.observe import Observation
from claudomator_py.dispatch.run_context import ContextReader, HandoffRefused, HandoffSubject, RunContext, handoff_of
from claudomator_py.dispatch.spending import Budgets
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.handoff import Handoff
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.redaction import without_secrets
from claudomator_py.domain.run import Conversations, LaunchRequest, RunConflict
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.worktree import Tree, TreeFault, WorktreeRequest
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.secrets import Secrets, environment
from claudomator_py.environment.workdirs import resolve
from claudomator_py.environment.worktrees import WorktreeManager, folder_in_tree, record_tree
from claudomator_py.faults import Activity, Faults, HostFault, Item, item_of
from claudomator_py.log import FieldLogger, get_logger
from claudomator_py.ports import RunHost
from claudomator_py.prompts import as_command
from claudomator_py.prompts.slash import SlashPlace
from claudomator_py.scheduler.plan import StartRun
from claudomator_py.scheduler.records import DecisionRecord
from claudomator_py.store import run_rows
from claudomator_py.store.database import Database
from claudomator_py.store.decision_rows import PackedSnapshot
from claudomator_py.store.tables import Run
from claudomator_py.store.task_rows import VersionConflict
from claudomator_py.tasks.inputs import granted_acts, granted_commands, with_granted_tools
from claudomator_py.tasks.run_ends import RunEnd, finish_run
from claudomator_py.tasks.runs import commit_start, planned_run
from claudomator_py.values import dataclass

log = get_logger("claudomator.start")

MAX_STARTS_PER_COMMIT = 4
"""No other write happens while their directories are created."""
MAX_STARTS = 7
"""Attempts in a row to start a task that fails by a fault of its own: about ten minutes with the pauses."""


@dataclass(frozen=True, slots=True)
class _Ready:
    """A run whose directory exists, but has no durable name yet. commit: writes its row, see ``commit_start``."""

    run: Run
    prepared: Prepared
    commit: Callable[[Connection], None]


@dataclass(frozen=True, slots=True)
class Begun:
    """The result of starting runs.

    number: how many were started. conflicts: starts that found the directory of an unknown run in their place.
    contents: the runs' contents, by run id.
    """

    number: int
    conflicts: tuple[Item, ...] = ()
    contents: Mapping[str, TaskSpec] = field(default_factory=dict)


class Starter:
    """Starts the runs of a plan.

    rules: returns those in force. faults: of starts. budgets: None for no limits. secrets: to redact from notes and
    refusals; None to redact only by pattern.
    """

    def __init__(
        self,
        database: Database,
        registry: AgentRegistry,
        host: RunHost,
        rules: Callable[[], LaunchRules],
        worktrees: WorktreeManager,
        faults: Faults,
        budgets: Budgets | None = None,
        secrets: Secrets | None = None,
    ) -> None:
        self._secrets = secrets or Secrets()
        self._database = database
        self._registry = registry
        self._host = host
        self._rules = rules
        self._worktrees = worktrees
        self._faults = faults
        self._budgets = budgets or Budgets()
        self._contexts = ContextReader(database, registry, host, self._secrets)

    def start(self, observation: Observation, flush: Callable[[], None] = lambda: None) -> Begun:
        """Start the planned runs. A failure of one does not affect the others. flush: makes pending rows durable,
        before any shim starts.

        A run whose task has changed meanwhile is left for the next plan. Raises StoreUnavailable; runs that were
        committed before are started anyway.
        """
        starts = observation.starts
        if not starts:
            return Begun(0)
        observed, now_ms = PackedSnapshot.of(observation.snapshot.model_dump_json()), observation.snapshot.now
        prepared: list[tuple[Item, _Ready]] = []
        conflicts: list[Item] = []
        contents: dict[str, TaskSpec] = {}
        started = 0
        try:
            for start in starts:
                queued = observation.tasks[start.head.task_id]
                item = item_of(Activity.START, queued.task)
                preparing = partial(self._begin, item, start, queued, now_ms, observed, conflicts)
                ready = self._faults.attempt(item, preparing, whole=False)
                if ready is not None:
                    prepared.append((item, ready))
                    contents[ready.run.id] = queued.content
                if len(prepared) == MAX_STARTS_PER_COMMIT:
                    batch, prepared = prepared, []
                    started += self._spawn_all(batch, flush)
        finally:
            started += self._spawn_all(prepared, flush)
        return Begun(started, tuple(conflicts), contents)

    def _spawn_all(self, prepared: Sequence[tuple[Item, _Ready]], flush: Callable[[], None]) -> int:
        """Commit and start these runs, and return how many were started."""
        started = 0
        committing = [
            (item, ready, self._faults.attempt(item, partial(self._submit, ready), whole=False))
            for item, ready in prepared
        ]
        try:
            flush()
        finally:
            for item, ready, future in committing:
                if future is not None:
                    spawned = self._faults.attempt(item, partial(self._spawn, item.name, ready, future))
                    started += 1 if spawned else 0
        return started

    def _submit(self, ready: _Ready) -> "Future[None]":
        """Submit the commit of the run, after making its directory's name durable with those of all others."""
        try:
            self._host.flush_prepared()
        except OSError as error:
            raise HostFault(str(error)) from error
        return self._database.submit(ready.commit, planned=True)

    def _begin(
        self,
        item: Item,
        start: StartRun,
        queued: QueuedTask,
        now_ms: int,
        observed: PackedSnapshot,
        conflicts: list[Item],
    ) -> _Ready | None:
        """Prepare the run; None if it does not start now."""
        fault = self._faults.find(item)
        if fault is not None and fault.own and fault.times >= MAX_STARTS:
            why = f"it could not be started {fault.times} times in a row: {fault.text}"
            self._give_up(item, why, start, queued, now_ms, observed)
            return None
        try:
            ready = self._prepare(start, queued, now_ms, observed)
        except TreeFault as broken:
            self._give_up(item, str(broken), start, queued, now_ms, observed)
            return None
        except RunConflict:
            conflicts.append(item)
            raise
        if ready is not None:
            crashpoint("start-prepared")
        return ready

    def _give_up(
        self, item: Item, why: str, start: StartRun, queued: QueuedTask, now_ms: int, observed: PackedSnapshot
    ) -> None:
        """Record that the task cannot be started, as the end of a run that never ran."""
        agent = self._registry.find(start.decision.agent)
        if agent is None:
            return
        run = planned_run(queued.task, start, self._registry.kind_of(agent), agent.quota_account, now_ms)
        commit = partial(
            commit_start, task=queued.task, start=start, run=run, observed=observed, obstacle="it cannot be started"
        )
        self._refuse(commit, run, why, now_ms, queued.spec.env)
        self._faults.forget([item])

    def _prepare(self, start: StartRun, queued: QueuedTask, now_ms: int, observed: PackedSnapshot) -> _Ready | None:
        agent = self._registry.find(start.decision.agent)
        if agent is None:
            return None
        context = self._contexts.read(queued, agent.name)
        kind, spec = self._registry.kind_of(agent), context.spec
        scratch, note = self._contexts.scratch(context), self._contexts.note(context, agent)
        runs_task = runs_its_input(agent.command)
        run = planned_run(context.task, start, kind, agent.quota_account, now_ms, context.earlier, scratch)
        starting = partial(commit_start, task=context.task, start=start, run=run, observed=observed)
        starting = partial(starting, obstacle=context.obstacle, left=None if runs_task else context.left)
        tree, commit = None, self._committing(starting, run, agent, now_ms)
        if context.tree is not None:
            try:
                tree = self._tree(context.tree)
            except TreeFault as fault:
                if (there := self._worktrees.trees.find(context.tree.name)) is not None:
                    run.dir_key = there.path
                self._refuse(commit, run, str(fault), now_ms, spec.env)
                return None
            if tree is None:
                return None
            run.dir_key = tree.path
            commit = self._committing(starting, run, agent, now_ms, tree)
        try:
            allowed = _on_real_paths(with_granted_tools(context.task, spec, kind.kind), context.timeout_ms)
        except (OSError, RuntimeError) as error:
            self._refuse(commit, run, f"one of its add_dirs cannot be examined: {error}", now_ms, spec.env)
            return None
        reach = allowed.reach or _default_reach(start.decision)
        slash = context.slash(note, partial(self._slash_place, run, allowed, agent, reach))
        converses = kind.conversations is not Conversations.NONE
        # A shell would run whatever is added to the task.
        prompt = as_command(spec) if runs_task else context.prompt(note, converses=converses, slash=slash)
        try:
            launch = kind.launch(self._request(start, context, run, allowed, agent, prompt, reach))
        except ValueError as error:
            self._refuse(commit, run, str(error), now_ms, spec.env)
            return None
        try:
            handoff = self._handoff(context, run, allowed, agent)
        except HandoffRefused as refused:
            reason = Reason.HANDOFF_REFUSED if context.hops else Reason.SETUP_FAILED
            self._refuse(commit, run, str(refused), now_ms, spec.env, reason)
            return None
        hosts, rules = self._registry.hosts(spec, agent, start.decision.constraints), self._rules()
        prepared = agent_run(run, allowed, agent, launch, rules, handoff=handoff.text, note=note, hosts=hosts)
        try:
            self._host.prepare(prepared.order)
        except OSError as error:
            raise HostFault(str(error)) from error
        starting = partial(starting, given=handoff.given(slash))
        return _Ready(run, prepared, self._committing(starting, run, agent, now_ms, tree))

    def _slash_place(self, run: Run, spec: TaskSpec, agent: AgentSpec, reach: Reach | None) -> SlashPlace:
        """Return where the agent looks for the command with which a text begins."""
        variables = environment(self._rules().environ, agent, spec, {}, {})
        return SlashPlace(agent.info, folder_of(run, spec), variables, fenced=reach not in (None, Reach.ANY))

    def _request(
        self,
        start: StartRun,
        context: RunContext,
        run: Run,
        allowed: TaskSpec,
        agent: AgentSpec,
        prompt: str,
        reach: Reach | None,
    ) -> LaunchRequest:
        """Return the launch request for the agent's kind."""
        kind = self._registry.kind_of(agent).kind
        return replace(
            run_rows.launch_request(run, allowed, agent, start.decision.effort),
            prompt=prompt,
            usd_left=self._usd_left(run, context.spec, agent),
            mcp_command=self._rules().mcp_command if agent.mcp.enabled else (),
            skill=context.task.skill,
            reach=reach,
            granted_acts=granted_acts(context.task, kind),
            granted_commands=granted_commands(context.task),
        )

    def _committing(
        self, starting: Callable[[Connection], None], run: Run, agent: AgentSpec, now_ms: int, tree: Tree | None = None
    ) -> Callable[[Connection], None]:
        """Return the commit of the start, which also records used-up budgets. tree: its work tree, if any."""
        change = starting if tree is None else partial(_commit_in_tree, commit=starting, run=run, tree=tree)
        return partial(self._budgets.change_and_record, change=change, run=run, agent=agent, now_ms=now_ms)

    def _usd_left(self, run: Run, spec: TaskSpec, agent: AgentSpec) -> float | None:
        if not self._budgets.watches(spec, agent):
            return None
        return self._database.read(lambda connection: self._budgets.usd_left(connection, run, spec, agent))

    def _handoff(self, context: RunContext, run: Run, spec: TaskSpec, agent: AgentSpec) -> Handoff:
        """Return the handoff document. Raises HandoffRefused."""
        subject = HandoffSubject(run, spec, agent, context, self._rules().max_handoffs)
        return handoff_of(subject, self._registry, self._secrets.redactor(spec.env, None))

    def _tree(self, order: WorktreeRequest) -> Tree | None:
        """Return the work tree, with the run's folder created in it; None if it is not ready yet. Raises TreeFault."""
        tree = self._worktrees.tree(order)
        if tree is not None:
            folder = Path(folder_in_tree(order.folder, tree.path))
            try:
                if not folder.resolve().is_relative_to(tree.path):
                    leads = f"{folder} leads out of its work tree, to {folder.resolve()}"
                    raise TreeFault(f"{leads}; choose another folder of the repository")
                # An uncommitted folder is not in the tree, not even if it is the working directory itself.
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise TreeFault(f"{folder} cannot be created ({error.strerror}); check what is in its place") from error
        return tree

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
            # The next tick finds that no process holds the run, revokes it and queues the task again, with a pause from
            # the second time on.
            raise HostFault(str(error)) from error
        crashpoint("start-spawned")
        _log_of(name, run).info("run_started", model=run.model, tier=run.tier)
        return True

    def _discard(self, name: str, run: Run) -> None:
        """Remove the directory of a run that is not committed. If that fails, it is replaced or swept later."""
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
        """Record a run that ends at once, because its agent cannot be started as configured."""
        outcome = Outcome(status=OutcomeStatus.FAILED, reason=reason, detail=why)
        outcome = without_secrets(outcome, self._secrets.redactor(env))

        def transaction(connection: Connection) -> None:
            commit(connection)
            finish_run(connection, run, RunEnd(outcome=outcome, now_ms=now_ms))

        try:
            self._database.write(transaction)
        except VersionConflict:
            log.debug("task_changed_meanwhile", task_id=run.task_id)


def _default_reach(decision: DecisionRecord) -> Reach | None:
    """Return the default reach, if it can be enforced on the agent."""
    return decision.constraints.default_reach if decision.unfenced is None else None


def _on_real_paths(spec: TaskSpec, timeout_ms: int) -> TaskSpec:
    """Return the spec with this timeout and with ``add_dirs`` as real paths, so that no link in them can be redirected
    later, and the shim can check that none has become a link. Raises OSError, or RuntimeError for circular links."""
    folders = tuple(dict.fromkeys(str(resolve(folder)) for folder in spec.add_dirs))
    if (folders, timeout_ms) == (spec.add_dirs, spec.timeout):
        return spec
    return spec.model_copy(update={"add_dirs": folders, "timeout": timeout_ms})


def _commit_in_tree(connection: Connection, commit: Callable[[Connection], None], run: Run, tree: Tree) -> None:
    commit(connection)
    record_tree(connection, run, tree)


def _log_of(name: str, run: Run) -> FieldLogger:
    return log.bind(task=name, task_id=run.task_id, run_id=run.id, agent=run.agent, attempt=run.attempt)
