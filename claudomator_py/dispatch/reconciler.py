"""The tick: read what happened, ready what is due, plan, and start. Whatever a crash left behind is repaired by it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from sqlalchemy import Connection

from claudomator_py.dispatch.apply_report import Ending
from claudomator_py.dispatch.classify import TierAsker
from claudomator_py.dispatch.collect import Collector
from claudomator_py.dispatch.observe import Observation, Observer
from claudomator_py.dispatch.routing import SpecialistRouter
from claudomator_py.dispatch.start import Starter
from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.host import LOCAL
from claudomator_py.domain.lifecycle import ENDED
from claudomator_py.domain.run import RunConflict
from claudomator_py.domain.units import format_instant
from claudomator_py.faults import Activity, Faults, Item, item_of
from claudomator_py.log import get_logger
from claudomator_py.ports import Clock, RunHost
from claudomator_py.scheduler.tiers import AskTier
from claudomator_py.store import queue, run_rows, task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Run, Task
from claudomator_py.tasks.inputs import expire
from claudomator_py.tasks.readiness import ready
from claudomator_py.tasks.renewal import cancel_now
from claudomator_py.values import dataclass

log = get_logger("claudomator.tick")

DUE_BATCH_SIZE = 500
TOGETHER = 8
"""Ends that share a commit at most, so that nobody who writes waits for all of them."""
SOON_MS = 200
ELSEWHERE_MS = 1_000
ARRIVING_MS = 20
"""How soon is looked again whether files are still arriving. As a rule whoever takes them wakes the next tick."""
COUNT_MS = 1_000
"""How often is looked at what live runs have used, if a budget depends on it, and at checks that wait for a slot."""
ALL_RUNS = "*"
_RUN = 8
"""Characters of a run's id that are enough for people."""
_FOR_TASKS = (Activity.START, Activity.ROUTE, Activity.CLASSIFY, Activity.READY, Activity.CANCEL)
_LEFT = {
    "cancelled": "its run was alive, and has been asked to end",
    "unkillable": "processes of its run cannot be ended",
    "stuck": "it cannot be removed",
}


@dataclass(frozen=True, slots=True)
class LiveStep:
    """A process to watch: the agent's run (step 0) or a check."""

    run_id: str
    step: int


@dataclass(frozen=True, slots=True)
class OverdueRequest:
    """A task that is to be cancelled or restarted, since then (epoch milliseconds), and that no tick has got to."""

    name: str
    since_ms: int

    @property
    def since(self) -> str:
        """The time, as it is said to people."""
        return format_instant(self.since_ms)


@dataclass(frozen=True, slots=True)
class TickReport:
    """What a tick did. wake_ms: when the next one is due at the latest by what is known (epoch milliseconds).

    unserved: the oldest request that it left untouched. One that it tried to serve, and could not, is a fault instead.
    """

    started: int
    live: tuple[LiveStep, ...]
    wake_ms: int | None
    unserved: OverdueRequest | None = None


class Reconciler:
    """Runs ticks, one at a time, on one thread."""

    def __init__(
        self,
        database: Database,
        host: RunHost,
        *,
        observer: Observer,
        starter: Starter,
        collector: Collector,
        clock: Clock,
        faults: Faults,
        asker: Callable[[], TierAsker | None] = lambda: None,
        router: Callable[[], SpecialistRouter | None] = lambda: None,
    ) -> None:
        """faults: those of a tick's items. asker, router: the one in use at present, if any."""
        self._database = database
        self._host = host
        self._observer = observer
        self._starter = starter
        self._collector = collector
        collector.check_obstacle = observer.check_obstacle
        self._clock = clock
        self._faults = faults
        self._asker = asker
        self._router = router
        self.arriving: Callable[[], bool] = lambda: False
        """Whether tasks are arriving that may be more urgent than those that are here: nothing starts meanwhile."""
        self._seen: set[str] = set()
        self._none_stale = False
        self._ending: list[tuple[Item, Ending]] = []
        """What ended in this tick, and is to be told of once it is durable."""

    def sweep(self) -> list[str]:
        """Remove run directories that no row knows; the names of those that are gone.

        Only between ticks: a start makes its directory before its row. One that cannot be removed is tried again by
        later ticks. Raises StoreUnavailable.
        """
        known = frozenset(self._database.read(run_rows.ids))
        swept = self._faults.attempt(Item(Activity.SWEEP, ALL_RUNS, "of a run"), lambda: self._host.sweep(known))
        if swept is None:
            return []
        left = [each for each in swept if each.action != "removed"]
        self._faults.forget_others(Activity.SWEEP, {each.name for each in left})
        for each in left:
            self._faults.note(Item(Activity.SWEEP, each.name), each.error or RunConflict(_LEFT[each.action]))
        removed = [each.name for each in swept if each.action == "removed"]
        if removed:
            log.info("runs_swept", number=len(removed), note="directories without a row")
        return removed

    def tick(self, *, starting: bool = True) -> TickReport:
        """Return one round; without ``starting`` nothing new begins.

        What is done for one task or run may fail without the others: see ``Faults``. Raises StoreUnavailable; the next
        tick carries on from there.
        """
        now_ms = self._clock()
        self._seen.clear()
        crashpoint("tick-begin")
        if self._database.trouble is not None:
            # Whether writing works again is known only by trying; nobody else may write for long.
            self._database.probe()
        if any(fault.item.doing is Activity.SWEEP and fault.again_ms <= now_ms for fault in self._faults.all()):
            self.sweep()
        present = self._database.read(partial(self._present, now_ms=now_ms))
        # The end of a run and the start that takes its slot are durable together.
        with self._database.together():
            self._collect(present, now_ms)
            self._serve(present, now_ms)
            self._route()
            held_back = starting and self.arriving()
            try:
                started, again_ms = self._start() if starting and not held_back else (0, None)
            finally:
                self._settle()
        self._forget_ended()
        crashpoint("tick-end")
        return self._report(started, present.wanted, now_ms, again_ms, held_back=held_back)

    def _present(self, connection: Connection, now_ms: int) -> "_Present":
        live = run_rows.live(connection)
        looking = partial(self._collector.look_only_at, connection, live, now_ms)
        self._faults.attempt(Item(Activity.LIMITS, ALL_RUNS), looking)
        running = queue.running(connection) if live else ()
        due = [*queue.due(connection, now_ms, DUE_BATCH_SIZE), *self._stale(connection)]
        return _Present(live, {task.id: task for task in running}, queue.with_intent(connection), due)

    def _collect(self, present: "_Present", now_ms: int) -> None:
        ids = {run.id for run in present.live}
        self._observer.check_slots.look_only_at(present.live)
        self._faults.forget_others(Activity.COLLECT, ids)
        self._faults.forget_others(Activity.STOP, ids)
        for run in present.live:
            self._take_further(run, present.running.get(run.task_id), now_ms)
            if len(self._ending) == TOGETHER:
                self._settle()

    def _settle(self) -> None:
        """Make durable what was written, and tell of it."""
        ending, self._ending = self._ending, []
        self._database.flush()
        for item, ended in ending:
            self._faults.attempt(item, ended.applied)
        for subject, begun in self._collector.begun():
            self._faults.attempt(_collecting(subject.run, subject.task), begun.result, whole=False)

    def _take_further(self, run: Run, task: Task | None, now_ms: int) -> None:
        """That it is to be stopped does not wait for the end of a pause after a fault."""
        self._seen.add(run.task_id)
        collecting = _collecting(run, task)
        stopping = task is not None and (task.cancel_requested_ms is not None or task.restart_requested is not None)
        item = replace(collecting, doing=Activity.STOP) if stopping else collecting
        lives = self._faults.attempt(item, lambda: self._collector.collect(run, now_ms, task), whole=False)
        if isinstance(lives, Ending):
            self._ending.append((item, lives))
        elif lives is not None:
            self._faults.over(item)
        if lives is False or isinstance(lives, Ending):
            self._observer.check_slots.over(run)
        if lives is not None and stopping:
            self._faults.over(collecting)

    def _serve(self, present: "_Present", now_ms: int) -> None:
        """Do what is due and what was asked for: a task whose run ended just before its cancellation was asked for has
        nothing left to stop. What was asked for since the tick began wakes the next one."""
        for task in present.wanted:
            self._seen.update([task.id] if task.state != "RUNNING" else [])
            if task.state in ("WAITING", "QUEUED", "NEEDS_INPUT") and task.cancel_requested_ms is not None:
                self._change(Activity.CANCEL, task, partial(cancel_now, task=task, now_ms=now_ms))
        for task in present.due:
            self._change(Activity.READY, task, partial(_ready, task=task, now_ms=now_ms))

    def _stale(self, connection: Connection) -> Sequence[Task]:
        """What an older version left waiting for nothing. Until there is none: this version leaves none behind, and
        each look costs as much as there are tasks that wait for others.
        """
        if self._none_stale:
            return ()
        stale = queue.waiting_on_ended(connection, DUE_BATCH_SIZE)
        self._none_stale = not stale
        return stale

    def _change(self, doing: Activity, task: Task, change: Callable[[Connection], object]) -> None:
        self._faults.attempt(item_of(doing, task), lambda: self._database.write(change))

    def _route(self) -> None:
        router = self._router()
        if router is not None:
            self._faults.attempt(Item(Activity.ROUTE, ALL_RUNS, "all tasks"), router.route)

    def _start(self) -> tuple[int, int | None]:
        """How many were started, and when there may be more to start, though nothing happens meanwhile."""
        observed = self._still_allowed(self._database.read(self._observer.observe))
        self._ask(observed.questions)
        begun = self._starter.start(observed, self._settle)
        self._collector.expect(begun.contents)
        if begun.conflicts:
            # As after an older copy of the database was put back: what it does not know is ended and removed.
            log.warning("run_conflict", number=len(begun.conflicts), note="their directories are of unknown runs")
            if self.sweep():
                self._faults.forget(begun.conflicts)
        return begun.number, observed.again_ms

    def _still_allowed(self, observed: Observation) -> Observation:
        """What is planned, without what may have waited too long for what the policy said of it."""
        router = self._router()
        if router is None or not router.rejudges:
            return observed
        tasks = [observed.tasks[start.head.task_id].task for start in observed.starts]
        # One about which that cannot be said does not start either.
        allowed = {
            task.id
            for task in tasks
            if self._faults.attempt(item_of(Activity.ROUTE, task), partial(router.judged_again, task)) is False
        }
        return observed.without({task.id for task in tasks} - allowed)

    def _ask(self, asks: Sequence[AskTier]) -> None:
        asker = self._asker()
        if asker is None:
            return
        now_ms = self._clock()
        items = [(ask, Item(Activity.CLASSIFY, ask.head.task_id, ask.head.name, ask.head.task_id)) for ask in asks]
        wanted = [(ask, item) for ask, item in items if not self._faults.is_paused(item, now_ms)]
        asking = partial(asker.ask, [ask for ask, _ in wanted])
        failed = self._faults.attempt(Item(Activity.CLASSIFY, ALL_RUNS, "all tasks"), asking)
        if failed is None:
            return
        for ask, item in wanted:
            if (error := failed.get(ask.head.task_id)) is not None:
                self._faults.note(item, error)
            else:
                self._faults.over(item)

    def _forget_ended(self) -> None:
        """Nothing is tried any more for a task that has ended."""
        items = [fault.item for fault in self._faults.all() if fault.item.doing in _FOR_TASKS]
        task_ids = {item: item.task_id for item in items if item.task_id is not None}
        if not task_ids:
            return
        ids = set(task_ids.values())
        found = self._database.read(lambda connection: [task_rows.find(connection, task_id) for task_id in ids])
        there = {task.id for task in found if task is not None and task.state not in ENDED}
        self._faults.forget(item for item, task_id in task_ids.items() if task_id not in there)

    def _report(
        self, started: int, wanted: Sequence[Task], begun_ms: int, again_ms: int | None, *, held_back: bool
    ) -> TickReport:
        """wanted: what is to be cancelled or restarted. begun_ms: when the tick began; what fell due since it may not
        have seen. again_ms: see ``_start``. held_back: whether it has started nothing as tasks were arriving."""
        left = self._database.read(partial(_left, begun_ms=begun_ms))
        now_ms, live = self._clock(), left.live
        times = [
            *left.times,
            now_ms + SOON_MS if self._collector.watches else None,
            self._starting_again(live, now_ms),
            now_ms + COUNT_MS if self._collector.counts or self._collector.checks_wait else None,
            self._collector.stays_ms,
            now_ms + ARRIVING_MS if held_back else None,
            again_ms,
            self._observer.day_end(begun_ms),
            self._faults.next_ms(begun_ms),
        ]
        known = [time for time in times if time is not None]
        steps = tuple(LiveStep(run_id, check) for run_id, _, check in live)
        return TickReport(started, steps, min(known) if known else None, self._unserved(wanted, begun_ms))

    def _starting_again(self, live: Sequence[tuple[str, str, int]], now_ms: int) -> int | None:
        """Return when to look at runs again that have not begun; None: at no time. An engine takes its time."""
        hosts = {self._host.host_of(run_id) for run_id, state, _ in live if state == "starting"}
        pauses = [SOON_MS if host == LOCAL else ELSEWHERE_MS for host in hosts]
        return now_ms + min(pauses) if pauses else None

    def _unserved(self, wanted: Sequence[Task], begun_ms: int) -> OverdueRequest | None:
        """Of what was asked for before the tick began, what it did not look at."""
        left = [
            OverdueRequest(task.name, task.cancel_requested_ms or task.updated_ms)
            for task in wanted
            if task.id not in self._seen
        ]
        return min((one for one in left if one.since_ms < begun_ms), key=lambda one: one.since_ms, default=None)


@dataclass(frozen=True, slots=True)
class _Present:
    """What a tick begins with."""

    live: Sequence[Run]
    running: Mapping[str, Task]
    """The tasks of live runs, by id."""
    wanted: Sequence[Task]
    """Those that are to be cancelled or restarted, running ones too."""
    due: Sequence[Task]
    """Those whose time has come."""


@dataclass(frozen=True, slots=True)
class _Left:
    """What a tick leaves behind."""

    live: Sequence[tuple[str, str, int]]
    """Of each live run its id, state and check."""
    times: queue.NextTimes


def _left(connection: Connection, begun_ms: int) -> _Left:
    return _Left(run_rows.live_steps(connection), queue.next_times(connection, begun_ms))


def _collecting(run: Run, task: Task | None) -> Item:
    """task: the run's, if it was read."""
    return Item(
        Activity.COLLECT, run.id, f"{run.task_id if task is None else task.name} (run {run.id[:_RUN]})", run.task_id
    )


def _ready(connection: Connection, task: Task, now_ms: int) -> None:
    if task.state == "NEEDS_INPUT":
        expire(connection, task, now_ms)
        return
    ready(connection, task, task_rows.spec_of(connection, task.id, task.revision), now_ms)
