"""The tick: collects ended runs, readies due tasks, plans and starts. It also repairs what a crash left behind."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from sqlalchemy import Connection

from claudomator_py.dispatch.apply_report import PendingEnd
from claudomator_py.dispatch.classify import TierAsker
from claudomator_py.dispatch.collect import Collector
from claudomator_py.dispatch.observe import Observation, Observer
from claudomator_py.dispatch.routing import SpecialistRouter
from claudomator_py.dispatch.start import Starter
from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.host import LOCAL
from claudomator_py.domain.lifecycle import ENDED
from claudomator_py.domain.run import RunConflict
from claudomator_py.domain.units import SECOND_MS, format_duration, format_instant, short_id
from claudomator_py.faults import Activity, Faults, Item, item_of
from claudomator_py.log import get_logger
from claudomator_py.ports import Clock, RunHost
from claudomator_py.scheduler.tiers import AskTier
from claudomator_py.store import hold_rows, run_rows, task_rows, tick_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Run, Task
from claudomator_py.tasks.inputs import expire
from claudomator_py.tasks.readiness import clock_set_back, ready
from claudomator_py.tasks.renewal import cancel_now
from claudomator_py.values import dataclass

log = get_logger("claudomator.tick")

DUE_BATCH_SIZE = 500
MAX_ENDS_PER_COMMIT = 8
"""So that other writers need not wait for all of them."""
SOON_MS = 200
REMOTE_POLL_MS = 1_000
ARRIVING_MS = 20
"""Pause before the next tick while files are arriving. Usually the inbox wakes it earlier."""
COUNT_MS = 1_000
"""Interval for the usage of live runs, if a budget depends on it, and for checks that wait for a slot."""
SET_BACK_MS = 10 * SECOND_MS
"""By more than this the machine's clock is set back at once; less is what time servers correct."""
ALL_RUNS = "*"
_FOR_TASKS = (Activity.START, Activity.ROUTE, Activity.CLASSIFY, Activity.READY, Activity.CANCEL)
_LEFT = {
    "cancelled": "its run was alive and has been asked to end",
    "unkillable": "some processes of its run cannot be ended",
    "stuck": "it cannot be removed",
}


@dataclass(frozen=True, slots=True)
class LiveStep:
    """A process to watch: the agent's run (step 0) or a check."""

    run_id: str
    step: int


@dataclass(frozen=True, slots=True)
class OverdueRequest:
    """A requested cancellation or restart that no tick has handled yet."""

    name: str
    """The task's."""
    since_ms: int
    """When it was requested, in epoch milliseconds."""

    @property
    def since(self) -> str:
        """The time as text."""
        return format_instant(self.since_ms)


@dataclass(frozen=True, slots=True)
class TickReport:
    """The result of a tick."""

    started: int
    live: tuple[LiveStep, ...]
    wake_ms: int | None
    """Latest time of the next tick, in epoch milliseconds; None if only an event can require one."""
    overdue: OverdueRequest | None = None
    """The oldest request that the tick did not try to handle. A failed attempt is a fault instead."""


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
        """faults: of a tick's items. asker, router: return the current one, if any."""
        self._database = database
        self._host = host
        self._observer = observer
        self._starter = starter
        self._collector = collector
        collector.check_obstacle = observer.check_slots.obstacle
        self._clock = clock
        self._faults = faults
        self._asker = asker
        self._router = router
        self.arriving: Callable[[], bool] = lambda: False
        """Returns whether tasks are arriving, some of which may be more urgent: nothing starts meanwhile."""
        self._seen: set[str] = set()
        self._none_stale = False
        self._latest_ms = 0
        """The time of the last tick."""
        self._ending: list[tuple[Item, PendingEnd]] = []
        """Ends of this tick that are not durable yet."""

    def sweep(self) -> list[str]:
        """Remove run directories without a row, and return their names.

        Call it only between ticks, because a start creates its directory before its row. Later ticks try again to
        remove what is left. Raises StoreUnavailable.
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
        """Run a tick and return its report. starting: whether it may start runs.

        A failure for one task or run does not affect the others, see ``Faults``. Raises StoreUnavailable; the next
        tick continues from there.
        """
        now_ms = self._clock()
        self._seen.clear()
        crashpoint("tick-begin")
        if self._database.trouble is not None:
            # Only a write shows whether the store works again, and there may be no other write for a long time.
            self._database.probe()
        sweeps = (fault.item for fault in self._faults.all() if fault.item.activity is Activity.SWEEP)
        if not all(self._faults.is_paused(item, now_ms) for item in sweeps):
            self.sweep()
        self._notice_clock(now_ms)
        present = self._database.read(partial(self._present, now_ms=now_ms, commits=self._database.commits))
        # The end of a run and the start that takes its slot are one commit; so are acceptance and start of a file.
        with self._database.together(with_lazy=True):
            self._collect(present, now_ms)
            self._apply_requests(present, now_ms)
            self._route()
            held_back = starting and self.arriving()
            try:
                started, again_ms = self._start() if starting and not held_back else (0, None)
            finally:
                self._flush()
        self._forget_ended()
        crashpoint("tick-end")
        return self._report(started, present.wanted, now_ms, again_ms, held_back=held_back)

    def _notice_clock(self, now_ms: int) -> None:
        """Keep the pauses that this program has chosen as long as they were meant to be, if the machine's clock was set
        back since the last tick. A time that somebody has named, such as an agent's reset, stays."""
        by_ms, self._latest_ms = self._latest_ms - now_ms, now_ms
        if by_ms <= SET_BACK_MS:
            return
        log.warning("clock_set_back", by=format_duration(by_ms), note="pauses last no longer than they were meant to")
        self._database.write(partial(hold_rows.clock_set_back, by_ms=by_ms))
        for task in self._database.read(partial(tick_rows.pausing, now_ms=now_ms)):
            self._change(Activity.READY, task, partial(clock_set_back, task=task, by_ms=by_ms, now_ms=now_ms))

    def _present(self, connection: Connection, now_ms: int, commits: int) -> "_Present":
        live, rare = run_rows.live(connection), tick_rows.present(connection, now_ms)
        looking = partial(self._collector.keep_only, connection, live, now_ms, held=rare.holds)
        self._faults.attempt(Item(Activity.LIMITS, ALL_RUNS), looking)
        running = tick_rows.running(connection) if live else ()
        due = tick_rows.due(connection, now_ms, DUE_BATCH_SIZE) if rare.due else ()
        wanted = tick_rows.with_intent(connection) if rare.intent else ()
        return _Present(commits, live, {task.id: task for task in running}, wanted, [*due, *self._stale(connection)])

    def _collect(self, present: "_Present", now_ms: int) -> None:
        ids = {run.id for run in present.live}
        self._observer.check_slots.replace_live(present.live)
        self._faults.forget_others(Activity.COLLECT, ids)
        self._faults.forget_others(Activity.STOP, ids)
        for run in present.live:
            self._advance_run(run, present.running.get(run.task_id), now_ms, present.commits)
            if len(self._ending) == MAX_ENDS_PER_COMMIT:
                self._flush()

    def _flush(self) -> None:
        """Make pending writes durable, and report them."""
        ending, self._ending = self._ending, []
        self._database.flush()
        for item, ended in ending:
            self._faults.attempt(item, ended.applied)
        for subject, begun in self._collector.begun():
            self._faults.attempt(_collecting(subject.run, subject.task), begun.result, whole=False)

    def _advance_run(self, run: Run, task: Task | None, now_ms: int, as_of: int) -> None:
        """Advance the run. A run that is to stop does not wait for the end of a pause after a fault."""
        self._seen.add(run.task_id)
        collecting = _collecting(run, task)
        stopping = task is not None and (task.cancel_requested_ms is not None or task.restart_requested is not None)
        item = replace(collecting, activity=Activity.STOP) if stopping else collecting
        advancing = partial(self._collector.collect, run, now_ms, task, as_of)
        result = self._faults.attempt(item, advancing, whole=False)
        if isinstance(result, PendingEnd):
            self._ending.append((item, result))
        elif result is not None:
            self._faults.clear(item)
        if result is False or isinstance(result, PendingEnd):
            self._observer.check_slots.release(run)
        if result is not None and stopping:
            self._faults.clear(collecting)

    def _apply_requests(self, present: "_Present", now_ms: int) -> None:
        """Handle due tasks, and requested cancellations of tasks without a run. A request that comes during the tick
        wakes the next one."""
        for task in present.wanted:
            self._seen.update([task.id] if task.state != "RUNNING" else [])
            if task.state in ("WAITING", "QUEUED", "NEEDS_INPUT") and task.cancel_requested_ms is not None:
                self._change(Activity.CANCEL, task, partial(cancel_now, task=task, now_ms=now_ms))
        for task in present.due:
            self._change(Activity.READY, task, partial(_ready, task=task, now_ms=now_ms))

    def _stale(self, connection: Connection) -> Sequence[Task]:
        """Return tasks that an older version left waiting for nothing. Once there are none, the query is skipped: this
        version leaves none behind, and the cost grows with the number of waiting tasks."""
        if self._none_stale:
            return ()
        stale = tick_rows.waiting_on_ended(connection, DUE_BATCH_SIZE)
        self._none_stale = not stale
        return stale

    def _change(self, activity: Activity, task: Task, change: Callable[[Connection], object]) -> None:
        self._faults.attempt(item_of(activity, task), lambda: self._database.write(change))

    def _route(self) -> None:
        router = self._router()
        if router is not None:
            self._faults.attempt(Item(Activity.ROUTE, ALL_RUNS, "all tasks"), router.route)

    def _start(self) -> tuple[int, int | None]:
        """Start runs. Return how many, and when more may start without any event."""
        observed = self._database.read(self._observer.observe)
        if observed is None:
            return 0, None
        observed = self._still_allowed(observed)
        self._ask(observed.questions)
        begun = self._starter.start(observed, self._flush)
        self._collector.expect(begun.contents)
        if begun.conflicts:
            # An older copy of the database was restored: end and remove the runs that it does not know.
            log.warning("run_conflict", number=len(begun.conflicts), note="their directories belong to unknown runs")
            if self.sweep():
                self._faults.forget(begun.conflicts)
        return begun.number, observed.again_ms

    def _still_allowed(self, observed: Observation) -> Observation:
        """Return the plan without tasks that are routed again first, because the policy's verdict is out of date or the
        specialist is gone."""
        router = self._router()
        if router is None:
            return observed
        queued = [observed.tasks[start.head.task_id] for start in observed.starts]
        checks = [
            (each.task, partial(router.reroute, each) if each.is_deserted else partial(router.reroute_stale, each.task))
            for each in queued
            if each.is_deserted or router.rejudges
        ]
        # One that is rerouted does not start, and neither does one for which this fails.
        held = {
            task.id for task, check in checks if self._faults.attempt(item_of(Activity.ROUTE, task), check) is not False
        }
        return observed.without(held) if held else observed

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
                self._faults.clear(item)

    def _forget_ended(self) -> None:
        """Forget the faults of tasks that have ended."""
        items = [fault.item for fault in self._faults.all() if fault.item.activity in _FOR_TASKS]
        task_ids = {item: item.task_id for item in items if item.task_id is not None}
        if not task_ids:
            return
        ids = set(task_ids.values())
        tasks = self._database.read(lambda connection: [task_rows.find(connection, task_id) for task_id in ids])
        there = {task.id for task in tasks if task is not None and task.state not in ENDED}
        self._faults.forget(item for item, task_id in task_ids.items() if task_id not in there)

    def _report(
        self, started: int, wanted: Sequence[Task], begun_ms: int, again_ms: int | None, *, held_back: bool
    ) -> TickReport:
        """Return the tick's report. wanted: tasks to cancel or restart. begun_ms: when the tick began, which may have
        missed what became due since. again_ms: see ``_start``. held_back: whether nothing was started because tasks
        were arriving."""
        live, next_times = self._database.read(partial(_left, begun_ms=begun_ms))
        now_ms = self._clock()
        times = [
            *next_times,
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
        return TickReport(started, steps, min(known) if known else None, self._oldest_overdue(wanted, begun_ms))

    def _starting_again(self, live: Sequence[tuple[str, str, int]], now_ms: int) -> int | None:
        """Return when to check starting runs again, or None if there are none. A cluster is polled less often."""
        hosts = {self._host.host_of(run_id) for run_id, state, _ in live if state == "starting"}
        pauses = [SOON_MS if host == LOCAL else REMOTE_POLL_MS for host in hosts]
        return now_ms + min(pauses) if pauses else None

    def _oldest_overdue(self, wanted: Sequence[Task], begun_ms: int) -> OverdueRequest | None:
        """Return the oldest request from before the tick that the tick did not examine."""
        left = [
            OverdueRequest(task.name, task.cancel_requested_ms or task.updated_ms)
            for task in wanted
            if task.id not in self._seen
        ]
        return min((task for task in left if task.since_ms < begun_ms), key=lambda task: task.since_ms, default=None)


@dataclass(frozen=True, slots=True)
class _Present:
    """The state at the beginning of a tick."""

    commits: int
    """At least so many commits are in it."""
    live: Sequence[Run]
    running: Mapping[str, Task]
    """The tasks of live runs, by id."""
    wanted: Sequence[Task]
    """Tasks to cancel or restart, including running ones."""
    due: Sequence[Task]
    """Tasks whose time has come."""


def _left(connection: Connection, begun_ms: int) -> tuple[Sequence[tuple[str, str, int]], tick_rows.NextTimes]:
    """Return id, state and check of each live run, and when to look again."""
    return run_rows.live_steps(connection), tick_rows.next_times(connection, begun_ms)


def _collecting(run: Run, task: Task | None) -> Item:
    """Return the item under which faults of the run are noted. task: the run's, if read."""
    return Item(
        Activity.COLLECT, run.id, f"{run.task_id if task is None else task.name} (run {short_id(run.id)})", run.task_id
    )


def _ready(connection: Connection, task: Task, now_ms: int) -> None:
    if task.state == "NEEDS_INPUT":
        expire(connection, task, now_ms)
        return
    ready(connection, task, task_rows.spec_of(connection, task.id, task.revision), now_ms)
