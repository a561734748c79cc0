"""The single writer: a thread that commits queued writes in groups and resolves their futures once they are durable.
Another thread may take its place for a while, see ``Writer.together``."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, event

from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.units import Histogram
from claudomator_py.store import CLOSED, GIVEN_UP, StoreUnavailable, explain
from claudomator_py.store.connections import Transactions, driver_of, is_whole, raise_translated
from claudomator_py.store.stored_json import Clean, clean_with
from claudomator_py.values import dataclass

T = TypeVar("T")

log = logging.getLogger(__name__)

MAX_BATCH = 500
"""Items per transaction at most, so that in a flood the first writes need not wait for the last."""

WRITE_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


@dataclass(frozen=True, slots=True)
class _Item:
    """A write. quiet: its commit notifies no listener. planned: the planner knows of it and needs no notification."""

    fn: Callable[[Connection], Any]
    future: Future[Any]
    submitted_s: float
    quiet: bool = False
    planned: bool = False


@dataclass(frozen=True, slots=True)
class _Result:
    """The result of an item, for its future once the group is durable."""

    item: _Item
    value: Any = None
    error: BaseException | None = None

    def resolve(self) -> None:
        if self.error is not None:
            self.item.future.set_exception(self.error)
        else:
            self.item.future.set_result(self.value)


class Writer:
    """Runs writes one at a time, in order, in groups that share a commit: on its own thread, or on a thread that writes
    ``together``.

    A write that raises is undone alone. A write must not end the transaction; an SQLAlchemy session in it must use a
    savepoint.
    """

    def __init__(self, engine: Engine) -> None:
        self._connections = Transactions(engine, 1)
        self._queue: deque[_Item] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._due = False
        """Whether queued items are waited for, as opposed to lazy ones."""
        self._listeners: tuple[tuple[Callable[[], None], bool], ...] = ()
        self._turn = threading.Lock()
        """Held from the beginning to the end of a transaction."""
        self._local = threading.local()
        """``group``: what this thread writes together."""
        self._inside_item = False
        """Whether an item is running."""
        self.clean: Clean | None = None
        """Redacts known secrets from values that people may see (see ``stored_json``); None to redact only by pattern.
        It must be fast."""
        self.commits = 0
        """Number of groups that were committed, or may have been. Increased before futures resolve and before another
        thread can write."""
        self.trouble: StoreUnavailable | None = None
        """Why the last group failed; None once a group has succeeded again."""
        self._logged: str | None = None
        self.written = Histogram.empty(WRITE_BOUNDS_S)
        """Seconds from submitting a write until it was durable, including the wait in the queue."""
        event.listen(engine, "commit", self._refuse_early_commit)
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def submit(
        self, fn: Callable[[Connection], T], *, quiet: bool = False, planned: bool = False, lazily: bool = False
    ) -> Future[T]:
        """Queue fn. The future resolves as ``Database.write`` returns or raises, when its commit is durable; order is
        kept. Raises StoreUnavailable after ``close``.

        fn runs on the writer's thread, or here in ``together``, and holds up every other write: no waiting and no I/O
        in it. quiet: do not notify listeners, unless another write in the same commit does. planned: do not notify
        listeners that opted out of planned commits, see ``on_commit``. lazily: commit with the next write, or on
        ``flush``.
        """
        return self.submit_together([fn], quiet=quiet, planned=planned, lazily=lazily)[0]

    def submit_together(
        self,
        fns: Sequence[Callable[[Connection], T]],
        *,
        quiet: bool = False,
        planned: bool = False,
        lazily: bool = False,
    ) -> list[Future[T]]:
        """Queue the functions consecutively, so that they share a commit if a group can hold them. Otherwise like
        ``submit`` for each of them."""
        now_s = time.monotonic()
        if (group := self._group) is not None and not group.is_busy:
            items = [_Item(fn, _OnDemand(group), now_s, quiet, planned) for fn in fns]
            for item in items:
                group.add(item)
            return [item.future for item in items]
        items = [_Item(fn, Future(), now_s, quiet, planned) for fn in fns]
        with self._changed:
            if self._closed:
                raise StoreUnavailable(*CLOSED)
            self._queue.extend(items)
            if not lazily:
                self._due = True
                self._changed.notify()
        return [item.future for item in items]

    @contextmanager
    def together(self, *, with_lazy: bool = False) -> Iterator[None]:
        """Run all writes that this thread submits in the block at once, in a transaction that only this thread sees.

        Futures resolve once it is durable: at the end of the block, after ``flush``, or when this thread asks for a
        result; listeners are notified after the block. From the first write until then, no other thread can write, so
        the block must not wait for anything that may take long. Raises StoreUnavailable if the transaction was lost,
        with all writes in it.

        with_lazy: begin with what other threads have queued lazily, as planned writes. Their futures resolve at the end
        of the block.
        """
        group = self._local.group = _Group(self)
        try:
            for item in self._take_lazy_items() if with_lazy else ():
                group.add(item)
            yield
            group.commit()
        except Exception:
            # Keep the earlier writes, as if each had been a transaction.
            with suppress(StoreUnavailable):
                group.commit()
            raise
        except BaseException:  # as if this process had ended here
            group.discard()
            raise
        finally:
            self._local.group = None
            # Last, because threads that it wakes compete for the interpreter with the work after a commit, such as
            # starting a shim.
            group.notify()

    def _take_lazy_items(self) -> list[_Item]:
        """Take all queued items, if nobody waits for any of them."""
        if not self._queue:
            return []
        with self._changed:
            if self._due:
                return []
            items = list(self._queue)
            self._queue.clear()
        return [replace(item, planned=True) for item in items if item.future.set_running_or_notify_cancel()]

    @property
    def is_together(self) -> bool:
        """Whether this thread is in a block of ``together``."""
        return self._group is not None

    @property
    def _group(self) -> "_Group | None":
        group: _Group | None = getattr(self._local, "group", None)
        return group

    @property
    def uncommitted(self) -> Connection | None:
        """The connection that sees what this thread has written ``together``; None if all of that is durable. Raises
        StoreUnavailable if it was lost."""
        if (group := self._group) is None:
            return None
        group.check()
        return group.connection

    def _read_failed(self, error: Exception) -> None:
        """Note the error of a read in what this thread writes ``together``."""
        if (group := self._group) is not None:
            group.note_failed_read(error)

    def flush(self) -> None:
        """Commit lazily queued writes soon. If this thread writes ``together``, commit that before returning, and raise
        StoreUnavailable if it was lost."""
        if (group := self._group) is not None:
            group.commit()
            return
        with self._changed:
            if self._queue:
                self._due = True
                self._changed.notify()

    def sees_as_of(self, commits: int) -> bool:
        """Return whether the first write of ``together``, which calls this, sees what was read when there were so many
        ``commits``."""
        group = self._group
        return group is not None and group.is_new and self.commits == commits

    def is_current_thread(self) -> bool:
        """Return whether the caller runs inside a write, where waiting for another write would deadlock."""
        group = self._group
        return threading.current_thread() is self._thread or (group is not None and group.is_busy)

    def on_commit(self, callback: Callable[[], None], *, planned: bool = True) -> None:
        """Call callback after each commit with changes, on the committing thread. It must be quick and must not wait.

        planned: also after commits that contain only planned writes, whose author handles the consequences itself, as a
        tick does.
        """
        with self._changed:
            self._listeners = (*self._listeners, (callback, planned))

    def close(self) -> None:
        """Refuse further writes, finish the queued ones, and end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()
        self._connections.close()

    def _run(self) -> None:
        while batch := self._next_batch():
            group = _Group(self)
            for item in batch:
                group.add(item)
            with suppress(StoreUnavailable):  # the futures have the error; the thread must go on
                group.commit()
            group.notify()

    def _begin(self) -> Connection:
        """Wait until no other thread writes, and return a connection with a new transaction. Raises the database's
        errors."""
        self._turn.acquire()
        try:
            return self._connections.take()
        except BaseException:
            self._turn.release()
            raise

    def _end(self, connection: Connection) -> None:
        """Let other threads write, after the transaction has ended or its connection was invalidated."""
        try:
            self._connections.give_back(connection)
        finally:
            self._turn.release()

    def _succeed(self, results: Sequence[_Result]) -> list[_Item]:
        """Note that a group is durable. Return the items that listeners have to be notified of."""
        self.commits += 1
        self.trouble = None
        self._measure(results)
        news = [result.item for result in results if result.error is None and not result.item.quiet]
        if news:
            self._log_recovery()
        return news

    def _fail(self, items: Sequence[_Item], error: BaseException) -> None:
        """Fail the futures of a lost group. Whether a lost commit took effect is unknown."""
        self.commits += 1
        self.trouble = group_error(error)
        self._log_trouble(self.trouble)
        for item in items:
            item.future.set_exception(group_error(error))

    def _log_trouble(self, trouble: StoreUnavailable) -> None:
        """Log each cause once: on a full disk every write fails, and the log needs space too."""
        if trouble.reason != self._logged:
            self._logged = trouble.reason
            log.warning("writing to the database fails: %s", trouble)

    def _log_recovery(self) -> None:
        if self._logged is not None:
            self._logged = None
            log.info("writing to the database works again")

    @property
    def pending(self) -> int:
        """Number of writes that wait for the current group."""
        return len(self._queue)

    def _measure(self, results: Sequence[_Result]) -> None:
        now_s = time.monotonic()
        written = self.written
        for result in results:
            if result.error is None:
                written = written.plus(now_s - result.item.submitted_s)
        self.written = written

    def _next_batch(self) -> list[_Item]:
        """Wait for queued items and return them; an empty list once closed and drained."""
        batch: list[_Item] = []
        while not batch:
            with self._changed:
                while not ((self._queue and self._due) or self._closed):
                    self._changed.wait()
                if not self._queue:
                    return []
                taken = [self._queue.popleft() for _ in range(min(len(self._queue), MAX_BATCH))]
                self._due = bool(self._queue)
            batch = [item for item in taken if item.future.set_running_or_notify_cancel()]
        return batch

    def _refuse_early_commit(self, _connection: Connection) -> None:
        if self._inside_item:
            raise RuntimeError("only the writer commits: a commit in a write would make half of its group durable")

    def _notify(self, *, planned: bool) -> None:
        """Call the listeners after a commit. planned: whether it contained only planned writes."""
        for callback, also_planned in self._listeners:
            try:
                if also_planned or not planned:
                    callback()
            except Exception:
                log.exception("a commit listener failed")


class _Group:
    """Items that share a commit. The first one begins the transaction; the first after a commit begins another."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._results: list[_Result] = []
        self._lost: BaseException | None = None
        self.connection: Connection | None = None
        """Connection of the transaction, if one is open."""
        self.is_busy = False
        """Whether an item is running."""
        self._stop_cleaning: Callable[[], None] = lambda: None
        self._news: list[list[_Item]] = []
        """For each commit, the items that listeners have to be notified of."""
        self._awaited: list[_Result] = []
        """Durable results that other threads wait for."""

    def add(self, item: _Item) -> None:
        """Run the item. If it raises, only its own changes are undone, unless the whole transaction is lost."""
        if self._lost is not None:
            item.future.set_exception(group_error(self._lost))
            return
        try:
            if self.connection is None:
                self.connection = self._writer._begin()
                self._stop_cleaning = clean_with(self._writer.clean)
                crashpoint("store-begin")
            self._results.append(result := self._run_isolated(self.connection, item))
            if result.error is not None and isinstance(item.future, _OnDemand):
                result.resolve()  # the thread that writes need not commit to see that
        except BaseException as error:
            self._lose(error, item)

    def commit(self) -> None:
        """Commit, and resolve the futures. Raises StoreUnavailable if the transaction was lost."""
        connection = self.connection
        if connection is not None:
            results = self._results
            try:
                if not is_whole(connection):
                    raise StoreUnavailable(*GIVEN_UP)
                driver = driver_of(connection)
                if all(result.error is not None for result in results):
                    driver.rollback()
                else:
                    crashpoint("store-before-commit")
                    driver.commit()
                    crashpoint("store-after-commit")
            except BaseException as error:
                self._lose(error)
            else:
                self._news.append(self._writer._succeed(results))
                self._close()
                for result in results:
                    if isinstance(result.item.future, _OnDemand):
                        result.resolve()
                    else:
                        self._awaited.append(result)
        self.check()

    def notify(self) -> None:
        """Resolve the futures of other threads, and notify the listeners of each commit."""
        awaited, self._awaited = self._awaited, []
        for result in awaited:
            result.resolve()
        news, self._news = self._news, []
        for items in filter(None, news):
            self._writer._notify(planned=all(item.planned for item in items))

    def check(self) -> None:
        """Raise StoreUnavailable if the transaction was lost."""
        if self._lost is not None:
            raise group_error(self._lost)

    @property
    def is_new(self) -> bool:
        """Whether no item has been run since the last commit."""
        return not self._results

    def note_failed_read(self, error: Exception) -> None:
        """Note that a read has raised: the transaction, with all that was written before, may be lost."""
        if not self.is_busy and self.connection is not None and not is_whole(self.connection):
            self._lose(error)

    def discard(self) -> None:
        """Undo uncommitted writes without resolving their futures."""
        if (connection := self.connection) is not None:
            connection.invalidate()
            self._close()

    def _run_isolated(self, connection: Connection, item: _Item) -> _Result:
        """Run the item in a savepoint. Raises only if the whole transaction is lost."""
        driver = driver_of(connection)
        # All savepoints share a name, so that the statement is prepared only once. The first item needs none: before it
        # there is nothing to keep.
        is_first = not self._results
        if not is_first:
            driver.execute("SAVEPOINT item")
        result = self._run(connection, item)
        if not is_first:
            if result.error is not None:
                driver.execute("ROLLBACK TO SAVEPOINT item")
            driver.execute("RELEASE SAVEPOINT item")
        elif result.error is not None:
            driver.rollback()
            connection.dialect.do_begin(driver)
        return result

    def _run(self, connection: Connection, item: _Item) -> _Result:
        self.is_busy = self._writer._inside_item = True
        try:
            value = item.fn(connection)
        except BaseException as error:
            if explain(error) is not None or not connection.in_transaction():
                raise
            return _Result(item, error=error)
        finally:
            self.is_busy = self._writer._inside_item = False
        if not connection.in_transaction():
            raise RuntimeError("only the writer rolls back: a rollback in a write would undo the rest of its group")
        return _Result(item, value=value)

    def _lose(self, error: BaseException, *items: _Item) -> None:
        if (connection := self.connection) is not None:
            try:
                raise_translated(connection, error)
            except BaseException as translated:
                error = translated
            # The state of the connection is unknown. Closing it undoes what was not committed.
            connection.invalidate()
        self._lost, lost = error, [*(result.item for result in self._results), *items]
        self._writer._fail(lost, error)
        self._close()

    def _close(self) -> None:
        connection, self.connection, self._results = self.connection, None, []
        if connection is not None:
            self._stop_cleaning()
            self._writer._end(connection)


class _OnDemand(Future[Any]):
    """The future of a write in ``together``, for the thread that writes: it can only be asked for its result."""

    def __init__(self, group: _Group) -> None:
        # Without the base's lock, whose creation takes longer than all else here: no other thread has this future.
        self._group = group
        self._is_done = False
        self._value: Any = None
        self._error: BaseException | None = None

    def done(self) -> bool:
        """Return whether the write is durable, or has failed."""
        return self._is_done

    def result(self, timeout: float | None = None) -> Any:
        """Return the result like any future, after committing the group if necessary. A failure needs no commit."""
        if not self._is_done:
            with suppress(StoreUnavailable):
                self._group.commit()
        if self._error is not None:
            raise self._error
        return self._value

    def set_result(self, result: Any) -> None:
        """Make the write durable with this result."""
        self._value, self._is_done = result, True

    def set_exception(self, exception: BaseException | None) -> None:
        """Make the write failed with this exception."""
        self._error, self._is_done = exception, True


def group_error(error: BaseException) -> StoreUnavailable:
    """Return the error for an item of a failed group: a new one for each, because each is raised on another thread."""
    unavailable = explain(error) or StoreUnavailable(f"a group of writes failed ({error!r})", "try again")
    fresh = StoreUnavailable(unavailable.reason, unavailable.remedy)
    fresh.__cause__ = error
    return fresh
