"""The one writer: a thread that runs everything queued in one transaction and answers once it is durable."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, event

from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.histogram import Histogram
from claudomator_py.store.connections import Transactions, driver_of, raise_translated
from claudomator_py.store.errors import CLOSED, StoreUnavailable, explain
from claudomator_py.store.stored_json import Clean, clean_with
from claudomator_py.values import dataclass

T = TypeVar("T")

log = logging.getLogger(__name__)

MAX_BATCH = 500
"""Items of one transaction at most, so that the first of a flood is not kept waiting by the last."""

WRITE_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


@dataclass(frozen=True, slots=True)
class _Item:
    """quiet: nobody else is told about its commit. planned: whoever plans knows of it, and sees to what follows."""

    fn: Callable[[Connection], Any]
    future: Future[Any]
    asked_s: float
    quiet: bool = False
    planned: bool = False


@dataclass(frozen=True, slots=True)
class _Answer:
    """What an item gets once its batch is durable."""

    item: _Item
    value: Any = None
    error: BaseException | None = None

    def give(self) -> None:
        if self.error is not None:
            self.item.future.set_exception(self.error)
        else:
            self.item.future.set_result(self.value)


class Writer:
    """Runs writes one after the other on one thread, in the order they came, in groups that share a commit.

    One that raises is undone alone. An item must not end the transaction; a session of SQLAlchemy's in it has to be
    one that makes a savepoint of its own.
    """

    def __init__(self, engine: Engine) -> None:
        self._connections = Transactions(engine, 1)
        self._queue: deque[_Item] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._due = False
        """Whether somebody waits for what is queued."""
        self._listeners: tuple[tuple[Callable[[], None], bool], ...] = ()
        self._inside_item = False
        self.clean: Clean | None = None
        """What takes the known secrets out of values that may be shown; None: those of well-known shapes are."""
        self._cleans: Clean | None = None
        """What this thread cleans with at present, see ``clean_with``."""
        self.commits = 0
        """How many groups were committed, or may have been: counted before anybody is told of it."""
        self.trouble: StoreUnavailable | None = None
        """Why the last group of writes failed; None once one went well again."""
        self._logged: str | None = None
        self.written = Histogram.empty(WRITE_BOUNDS_S)
        """Seconds from asking for a write until it was durable, the wait in the queue included."""
        event.listen(engine, "commit", self._refuse_early_commit)
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def submit(
        self, fn: Callable[[Connection], T], *, quiet: bool = False, planned: bool = False, lazily: bool = False
    ) -> Future[T]:
        """Queue fn. The future resolves when its commit is durable; raises StoreUnavailable after ``close``.

        quiet: no listener hears of it, unless something else was committed with it. planned: those do not that have
        said so, see ``on_commit``. lazily: with whatever is written next, or once ``flush`` is called.
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
        """Queue them with nothing in between, so that they share a commit unless they are more than a group takes.

        As ``submit`` otherwise, for each of them.
        """
        now_s = time.monotonic()
        items = [_Item(fn, Future(), now_s, quiet, planned) for fn in fns]
        with self._changed:
            if self._closed:
                raise StoreUnavailable(*CLOSED)
            self._queue.extend(items)
            if not lazily:
                self._due = True
                self._changed.notify()
        return [item.future for item in items]

    def flush(self) -> None:
        """Commit what was queued lazily, without waiting for more. Returns before that is done."""
        with self._changed:
            if self._queue:
                self._due = True
                self._changed.notify()

    def is_current_thread(self) -> bool:
        """Return whether the caller runs on the writer's own thread, where waiting for a write would never end."""
        return threading.current_thread() is self._thread

    def on_commit(self, callback: Callable[[], None], *, planned: bool = True) -> None:
        """Call callback on the writer's thread after each commit that changed something. It must be quick.

        planned: also after those in which all was planned.
        """
        with self._changed:
            self._listeners = (*self._listeners, (callback, planned))

    def close(self) -> None:
        """Take no more items, finish those queued, and end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()
        self._connections.close()

    def _run(self) -> None:
        while batch := self._next_batch():
            try:
                answers = self._commit(batch)
            except BaseException as error:  # the thread outlives every fault; those who wait are told
                self.commits += 1
                self.trouble = _group_error(error)
                self._log_trouble(self.trouble)
                for item in batch:
                    item.future.set_exception(_group_error(error))
                continue
            self.commits += 1
            self.trouble = None
            self._measure(answers)
            for answer in answers:
                answer.give()
            news = [answer.item for answer in answers if answer.error is None and not answer.item.quiet]
            if news:
                self._log_recovery()
                self._tell_listeners(planned=all(item.planned for item in news))

    def _log_trouble(self, trouble: StoreUnavailable) -> None:
        """Once for each cause: while a disk is full every write fails, and what says so takes room of its own."""
        if trouble.reason != self._logged:
            self._logged = trouble.reason
            log.warning("writing to the database fails: %s", trouble)

    def _log_recovery(self) -> None:
        if self._logged is not None:
            self._logged = None
            log.info("writing to the database works again")

    @property
    def pending(self) -> int:
        """Writes that wait for the present group to be done."""
        return len(self._queue)

    def _measure(self, answers: list[_Answer]) -> None:
        now_s = time.monotonic()
        written = self.written
        for answer in answers:
            if answer.error is None:
                written = written.plus(now_s - answer.item.asked_s)
        self.written = written

    def _next_batch(self) -> list[_Item]:
        """What is queued, at least one item; nothing once closed and drained."""
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

    def _commit(self, batch: list[_Item]) -> list[_Answer]:
        connection = self._connections.take()
        try:
            crashpoint("store-begin")
            if self.clean is not self._cleans:
                self._cleans = self.clean
                clean_with(self.clean)
            if len(batch) == 1:
                answers = [self._answer(connection, batch[0])]
            else:
                answers = [self._answer_within(connection, item) for item in batch]
            driver = driver_of(connection)
            if all(answer.error is not None for answer in answers):
                driver.rollback()
                return answers
            crashpoint("store-before-commit")
            driver.commit()
        except BaseException as error:
            # Nothing is known about the connection any more; its end undoes what was not committed.
            connection.invalidate()
            raise_translated(connection, error)
        finally:
            self._connections.give_back(connection)
        crashpoint("store-after-commit")
        return answers

    def _answer_within(self, connection: Connection, item: _Item) -> _Answer:
        """As ``_answer``, for one of several: what it has written is undone if it raises, and no more."""
        # All savepoints have one name, of which the last is meant: with a number in it each would be prepared anew.
        driver = driver_of(connection)
        driver.execute("SAVEPOINT item")
        answer = self._answer(connection, item)
        if answer.error is not None:
            driver.execute("ROLLBACK TO SAVEPOINT item")
        driver.execute("RELEASE SAVEPOINT item")
        return answer

    def _answer(self, connection: Connection, item: _Item) -> _Answer:
        """Run one item. Raises only if the whole transaction is lost."""
        self._inside_item = True
        try:
            value = item.fn(connection)
        except BaseException as error:
            if explain(error) is not None or not connection.in_transaction():
                raise
            return _Answer(item, error=error)
        finally:
            self._inside_item = False
        if not connection.in_transaction():
            raise RuntimeError("only the writer rolls back; a write that does would undo the rest of its group")
        return _Answer(item, value=value)

    def _refuse_early_commit(self, _connection: Connection) -> None:
        if self._inside_item:
            raise RuntimeError("only the writer commits; a write that does would make half of its group durable")

    def _tell_listeners(self, *, planned: bool) -> None:
        for callback, also_planned in self._listeners:
            try:
                if also_planned or not planned:
                    callback()
            except Exception:
                log.exception("a commit listener failed")


def _group_error(error: BaseException) -> StoreUnavailable:
    """What an item hears when its group failed: an error of its own, as each is raised on another thread."""
    unavailable = explain(error) or StoreUnavailable(f"a group of writes failed ({error!r})", "try again")
    mine = StoreUnavailable(unavailable.reason, unavailable.remedy)
    mine.__cause__ = error
    return mine
