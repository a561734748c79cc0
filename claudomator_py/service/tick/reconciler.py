"""The tick: read what happened, ready what is due, plan, and start. Whatever a crash left behind is repaired by it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from sqlalchemy import Connection

from claudomator_py.core.crashpoint import crashpoint
from claudomator_py.core.run import RunConflict
from claudomator_py.planning.plan import StartRun, plan
from claudomator_py.planning.tiers import AskTier
from claudomator_py.service.changes.tasks import cancel_now, ready
from claudomator_py.service.daemon_log import get_logger
from claudomator_py.service.ports import Clock, RunHost
from claudomator_py.service.tick.collecting import Collector
from claudomator_py.service.tick.observe import Observer
from claudomator_py.service.tick.starting import Starter
from claudomator_py.store import classification_rows, hold_rows, queue, run_rows, task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Run, Task
from claudomator_py.store.task_rows import VersionConflict

log = get_logger("claudomator.tick")

DUE_AT_ONCE = 500
SOON_MS = 200
COUNT_MS = 1_000
"""How often is looked at what live runs have used, if a budget depends on it."""


@dataclass(frozen=True, slots=True)
class LiveStep:
    """A process to watch: the agent's run (step 0) or a check."""

    run_id: str
    step: int


@dataclass(frozen=True, slots=True)
class TickReport:
    """What a tick did. wake_ms: when the next one is due at the latest by what is known (epoch milliseconds)."""

    started: int
    live: tuple[LiveStep, ...]
    wake_ms: int | None


class Asker(Protocol):
    """Puts questions for tiers to a model, beside everything else."""

    def ask(self, asks: Sequence[AskTier]) -> None:
        """Commit the questions, and return before the answers come."""


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
        asker: Callable[[], Asker | None] = lambda: None,
    ) -> None:
        """asker: the one in use at present, if any."""
        self._database = database
        self._host = host
        self._observer = observer
        self._starter = starter
        self._collector = collector
        self._clock = clock
        self._asker = asker

    def sweep(self) -> list[str]:
        """Remove run directories that no row knows. Only between ticks: a start makes its directory before its row."""
        known = frozenset(self._database.read(run_rows.ids))
        swept = self._host.sweep(known)
        if swept:
            log.info("runs_swept", number=len(swept), note="directories without a row")
        return swept

    def tick(self, *, starting: bool = True) -> TickReport:
        """One round; without ``starting`` nothing new begins.

        Raises StoreUnavailable, or OSError from a run directory; the next tick goes on from there.
        """
        now_ms = self._clock()
        crashpoint("tick-begin")
        if self._database.trouble is not None:
            # Whether writing works again is known only by trying; nobody else may write for long.
            self._database.probe()
        self._collect(now_ms)
        self._act_on_intents(now_ms)
        self._ready_due(now_ms)
        started = self._start() if starting else 0
        crashpoint("tick-end")
        return self._report(started, now_ms)

    def _collect(self, now_ms: int) -> None:
        live = self._database.read(run_rows.live)
        self._collector.look_only_at(live, now_ms)
        for run in live:
            try:
                self._collector.collect(run, now_ms)
            except VersionConflict:
                log.debug("task_changed_meanwhile", task_id=run.task_id, run_id=run.id)
            except OSError as error:
                # One unreadable directory must not keep the others from being read.
                log.error("run_unreadable", task_id=run.task_id, run_id=run.id, problem=str(error))

    def _act_on_intents(self, now_ms: int) -> None:
        """A task whose run ended just before its cancellation was asked for has nothing left to stop."""
        for task in self._database.read(queue.with_intent):
            if task.state in ("WAITING", "QUEUED", "NEEDS_INPUT") and task.cancel_requested_ms is not None:
                self._change(task, partial(cancel_now, task=task, now_ms=now_ms))

    def _ready_due(self, now_ms: int) -> None:
        due = self._database.read(lambda connection: queue.due(connection, now_ms, DUE_AT_ONCE))
        stale = self._database.read(lambda connection: queue.waiting_on_ended(connection, DUE_AT_ONCE))
        for task in (*due, *stale):
            self._change(task, partial(_ready, task=task, now_ms=now_ms))

    def _change(self, task: Task, change: Callable[[Connection], object]) -> None:
        try:
            self._database.write(change)
        except VersionConflict:
            log.debug("task_changed_meanwhile", task_id=task.id)

    def _start(self) -> int:
        snapshot = self._database.read(self._observer.snapshot)
        actions = plan(snapshot)
        starts = [action for action in actions if isinstance(action, StartRun)]
        asks = [action for action in actions if isinstance(action, AskTier)]
        asker = self._asker()
        if asks and asker is not None:
            asker.ask(asks)
        try:
            return self._starter.start(snapshot, starts) if starts else 0
        except RunConflict as conflict:
            # As after an older copy of the database was put back: what it does not know is ended and removed.
            log.warning("run_conflict", problem=str(conflict))
            self.sweep()
            return 0

    def _report(self, started: int, begun_ms: int) -> TickReport:
        """begun_ms: when the tick began; what fell due since it may not have seen."""
        live: Sequence[Run] = self._database.read(run_rows.live)
        now_ms = self._clock()
        times = [
            self._database.read(queue.next_due),
            self._database.read(lambda connection: queue.next_kept_end(connection, begun_ms)),
            self._database.read(lambda connection: hold_rows.next_end(connection, begun_ms)),
            self._database.read(lambda connection: classification_rows.next_deadline(connection, begun_ms)),
            now_ms + SOON_MS if self._collector.watches or any(run.state == "starting" for run in live) else None,
        ]
        times += [
            now_ms + COUNT_MS if self._collector.counts else None,
            self._observer.day_end(begun_ms),
        ]
        known = [time for time in times if time is not None]
        steps = tuple(LiveStep(run.id, run.check_seq if run.state == "checking" else 0) for run in live)
        return TickReport(started, steps, min(known) if known else None)


def _ready(connection: Connection, task: Task, now_ms: int) -> None:
    ready(connection, task, task_rows.spec_of(connection, task.id, task.revision), now_ms)
