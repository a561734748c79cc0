"""Removes ended things once their retention has passed, a few rows at a time, outside the loop.

Each step is its own transaction and can be repeated, so a crash between two steps costs only time.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection

from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.retention import Retention
from claudomator_py.faults import Activity, Faults, Item
from claudomator_py.log import get_logger
from claudomator_py.ports import Clock, RunHost, Trees
from claudomator_py.store import outbox_rows, pruning
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.workers import Worker
from claudomator_py.workers.cleanup import Cleaner

log = get_logger("claudomator.retention")

FIRST_S = 1.0
EVERY_S = 600.0
BATCH = 200
TASKS_AT_ONCE = 20
DIRECTORIES_AT_ONCE = 500
PAUSE_S = 0.05

T = TypeVar("T")


class Retainer(Worker):
    """Applies the retention policy every ten minutes. policy: returns the one in force. targets: returns the
    notification targets that must have seen an event before it is removed.

    faults: those of this worker's thread alone.
    """

    def __init__(
        self,
        database: Database,
        policy: Callable[[], Retention],
        targets: Callable[[], Collection[str]],
        cleaner: Cleaner,
        host: RunHost,
        trees: Trees,
        clock: Clock,
        faults: Faults,
    ) -> None:
        super().__init__("retention", clock)
        self._database = database
        self._policy = policy
        self._targets = targets
        self._cleaner = cleaner
        self._host = host
        self._trees = trees
        self._faults = faults

    def run_once(self) -> dict[str, int]:
        """Remove everything past its retention; return the numbers removed, by step. Raises StoreUnavailable.

        What cannot be removed blocks nothing else and is retried in a later round.
        """
        removed: dict[str, int] = {}
        for name, step in self._steps(self._policy(), self._clock()).items():
            number = self._faults.attempt(Item(Activity.PRUNE, name, name.replace("_", " ")), step)
            if number:
                removed[name] = number
        if removed:
            log.bind(**removed).info("pruned")
        return removed

    def _steps(self, policy: Retention, now_ms: int) -> dict[str, Callable[[], int]]:
        """The steps to carry out, by name, in order."""
        steps: dict[str, Callable[[], int]] = {}
        if policy.runs is not None:
            clean = partial(self._cleaner.remove_old_runs, now_ms - policy.runs, DIRECTORIES_AT_ONCE, self._faults)
            steps["run_directories"] = partial(self._repeat, clean)
        if policy.decisions is not None:
            steps["decisions"] = self._in_batches(pruning.old_decisions, now_ms - policy.decisions, pruning.decisions)
        if policy.snapshots is not None:
            before_ms = now_ms - policy.snapshots
            remove_snapshots = partial(pruning.snapshots, before_ms=before_ms)
            steps["snapshots"] = self._in_batches(pruning.old_snapshots, before_ms, remove_snapshots)
        if policy.messages is not None:
            steps["messages"] = self._in_batches(pruning.old_messages, now_ms - policy.messages, pruning.messages)
        if policy.events is not None:
            before_ms = now_ms - policy.events
            steps["events"] = partial(self._old_events, before_ms)
            steps["schedule_times"] = self._in_batches(pruning.old_fires, before_ms, pruning.fires)
            steps["holds"] = self._in_batches(pruning.old_holds, before_ms, pruning.holds)
            steps["notices"] = partial(self._old_notices, now_ms)
        if policy.tasks is not None:
            steps["tasks"] = partial(self._old_tasks, now_ms - policy.tasks)
        return steps

    def pause_s(self) -> float:
        """Return the seconds until the next round."""
        return EVERY_S

    def _first_pause_s(self) -> float:
        return FIRST_S

    def _old_events(self, before_ms: int) -> int:
        targets = tuple(self._targets())
        end = self._database.read(lambda connection: pruning.events_end(connection, before_ms, targets))
        return self._in_batches(pruning.old_events, end, pruning.events)()

    def _old_notices(self, now_ms: int) -> int:
        """Remove notices that were delivered or given up. They are not counted."""
        if self._database.read(lambda connection: outbox_rows.has_old(connection, now_ms)):
            self._database.write(lambda connection: outbox_rows.forget_old(connection, now_ms))
        return 0

    def _in_batches(
        self,
        find: Callable[[Connection, int, int], Collection[T]],
        before: int,
        remove: Callable[[Connection, Collection[T]], int],
    ) -> Callable[[], int]:
        """Return the step that removes, ``BATCH`` at a time, all rows that ``find`` returns for that time or id."""

        def batch() -> int:
            rows = self._database.read(lambda connection: find(connection, before, BATCH))
            number = self._database.write(lambda connection: remove(connection, rows)) if rows else 0
            if number:
                crashpoint("rows-pruned")
            return number

        return lambda: self._repeat(batch)

    def _repeat(self, step: Callable[[], int]) -> int:
        """Repeat the step until nothing is left to do, pausing so that other work gets its turn."""
        total = 0
        while not self._stopped.is_set() and (number := step()):
            total += number
            self._stopped.wait(PAUSE_S)
        return total

    def _old_tasks(self, before_ms: int) -> int:
        """Remove old tasks, except those whose run directory or work tree still exists."""
        there = set(self._host.run_ids())
        worked_in = {tree.task_id for tree in self._trees.all()}
        total, after = 0, ""
        while not self._stopped.is_set():
            page = self._page(before_ms, after)
            if not page:
                break
            after = page[-1][0]
            going = [task_id for task_id, runs in page if task_id not in worked_in and there.isdisjoint(runs)]
            if going:
                total += self._remove_tasks(going, before_ms)
                crashpoint("rows-pruned")
            self._stopped.wait(PAUSE_S)
        return total

    def _remove_tasks(self, task_ids: Sequence[str], before_ms: int) -> int:
        """Remove the tasks together; if that fails, one by one, so that a task that cannot be removed blocks no
        other."""
        try:
            return self._database.write(partial(pruning.tasks, task_ids=task_ids, before_ms=before_ms))
        except StoreUnavailable:
            raise
        except Exception as error:
            if len(task_ids) == 1:
                self._faults.note(Item(Activity.CLEAN, task_ids[0], f"task {task_ids[0]}", task_ids[0]), error)
                return 0
            return sum(self._remove_tasks([task_id], before_ms) for task_id in task_ids)

    def _page(self, before_ms: int, after: str) -> Sequence[tuple[str, Sequence[str]]]:
        return self._database.read(partial(pruning.old_tasks, before_ms=before_ms, after=after, limit=TASKS_AT_ONCE))
