"""The one writer: a thread that runs everything queued in one transaction and answers once it is durable. Another
thread may take its turn, see ``Writer.together``."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
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
    """Runs writes one after the other, in the order they came, in groups that share a commit: on a thread of its own,
    and those of a thread that writes ``together`` on that.

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
        self._turn = threading.Lock()
        """Of whoever has begun a transaction and not ended it."""
        self._here = threading.local()
        """Its group: what this thread writes together."""
        self.inside_item = False
        """Whether an item is being done."""
        self.clean: Clean | None = None
        """What takes the known secrets out of values that may be shown; None: those of well-known shapes are."""
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
    def together(self) -> Iterator[None]:
        """Have all that this thread submits in the block be done at once, in a transaction that it alone sees.

        No future resolves until it is durable: at the end of the block, after ``flush``, or once the result of one is
        asked for here. Nobody else writes from the first item on until then. Raises StoreUnavailable where the
        transaction was lost, with all that was in it.
        """
        group = self._here.group = _Group(self)
        try:
            yield
            group.commit()
        except Exception:
            # What was done before stands, as it would if each had been a transaction.
            with suppress(StoreUnavailable):
                group.commit()
            raise
        except BaseException:  # as if this process had ended here
            group.forget()
            raise
        finally:
            self._here.group = None
            # Not before: whoever is woken by it would take the interpreter from what follows a commit, such as a shim.
            group.tell_listeners()

    @property
    def _group(self) -> "_Group | None":
        group: _Group | None = getattr(self._here, "group", None)
        return group

    @property
    def uncommitted(self) -> Connection | None:
        """The connection that sees what this thread has written ``together``; None: all of that is durable. Raises
        StoreUnavailable where it was lost."""
        group = self._group
        if group is None:
            return None
        group.check()
        return group.connection

    def flush(self) -> None:
        """Commit what was queued lazily, without waiting for more. Returns before that is done, but where this thread
        writes ``together``: that is durable then. Raises as that does."""
        if (group := self._group) is not None:
            group.commit()
            return
        with self._changed:
            if self._queue:
                self._due = True
                self._changed.notify()

    def is_current_thread(self) -> bool:
        """Return whether the caller runs inside a write, where waiting for another one would never end."""
        group = self._group
        return threading.current_thread() is self._thread or (group is not None and group.is_busy)

    def on_commit(self, callback: Callable[[], None], *, planned: bool = True) -> None:
        """Call callback after each commit that changed something, on the thread that made it. It must be quick.

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
            group = _Group(self)
            for item in batch:
                group.add(item)
            with suppress(StoreUnavailable):  # the thread outlives every fault; those who wait are told
                group.commit()
            group.tell_listeners()

    def begin(self) -> Connection:
        """Return the connection once nobody else writes, in a transaction. Raises what the database does."""
        self._turn.acquire()
        try:
            return self._connections.take()
        except BaseException:
            self._turn.release()
            raise

    def end(self, connection: Connection) -> None:
        """Let others write: its transaction has ended, or it was invalidated."""
        self._connections.give_back(connection)
        self._turn.release()

    def tell(self, answers: Sequence[_Answer]) -> list[_Item]:
        """Tell those who wait of what is durable now; what is news to those who listen."""
        self.commits += 1
        self.trouble = None
        self._measure(answers)
        for answer in answers:
            answer.give()
        news = [answer.item for answer in answers if answer.error is None and not answer.item.quiet]
        if news:
            self._log_recovery()
        return news

    def tell_lost(self, items: Sequence[_Item], error: BaseException) -> None:
        """Tell those who wait that nothing was written, as far as is known."""
        self.commits += 1
        self.trouble = group_error(error)
        self._log_trouble(self.trouble)
        for item in items:
            item.future.set_exception(group_error(error))

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

    def _measure(self, answers: Sequence[_Answer]) -> None:
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

    def _refuse_early_commit(self, _connection: Connection) -> None:
        if self.inside_item:
            raise RuntimeError("only the writer commits; a write that does would make half of its group durable")

    def tell_listeners(self, *, planned: bool) -> None:
        """Tell whoever listens of a commit."""
        for callback, also_planned in self._listeners:
            try:
                if also_planned or not planned:
                    callback()
            except Exception:
                log.exception("a commit listener failed")


class _Group:
    """Items that share a commit. Its transaction begins with the first of them; what follows a commit is in another."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._answers: list[_Answer] = []
        self._lost: BaseException | None = None
        self.connection: Connection | None = None
        """That of its transaction; None: there is none now."""
        self.is_busy = False
        """Whether one of the items is being done."""
        self._stop_cleaning: Callable[[], None] = lambda: None
        self._news: list[list[_Item]] = []
        """By commit, of what those who listen are to be told."""

    def add(self, item: _Item) -> None:
        """Do it. What it has written is undone if it raises, and no more, unless the whole transaction is lost."""
        if self._lost is not None:
            item.future.set_exception(group_error(self._lost))
            return
        try:
            if self.connection is None:
                self.connection = self._writer.begin()
                self._stop_cleaning = clean_with(self._writer.clean)
                crashpoint("store-begin")
            self._answers.append(self._done(self.connection, item))
        except BaseException as error:
            self._lose(error, item)

    def commit(self) -> None:
        """Make durable what there is, and tell of it. Raises StoreUnavailable where it was lost."""
        connection = self.connection
        if connection is not None:
            driver, answers = driver_of(connection), self._answers
            try:
                if all(answer.error is not None for answer in answers):
                    driver.rollback()
                else:
                    crashpoint("store-before-commit")
                    driver.commit()
                    crashpoint("store-after-commit")
            except BaseException as error:
                self._lose(error)
            else:
                self._over()
                self._news.append(self._writer.tell(answers))
        self.check()

    def tell_listeners(self) -> None:
        """Tell those who listen of each commit."""
        news, self._news = self._news, []
        for items in filter(None, news):
            self._writer.tell_listeners(planned=all(item.planned for item in items))

    def check(self) -> None:
        """Raise StoreUnavailable where it was lost."""
        if self._lost is not None:
            raise group_error(self._lost)

    def forget(self) -> None:
        """Undo what is not durable, and tell nobody."""
        if (connection := self.connection) is not None:
            connection.invalidate()
            self._over()

    def _done(self, connection: Connection, item: _Item) -> _Answer:
        """Raises only if the whole transaction is lost."""
        driver = driver_of(connection)
        # All savepoints have one name, of which the last is meant: with a number in it each would be prepared anew.
        # Before the first there is nothing that would be kept.
        is_first = not self._answers
        if not is_first:
            driver.execute("SAVEPOINT item")
        answer = self._answer(connection, item)
        if not is_first:
            if answer.error is not None:
                driver.execute("ROLLBACK TO SAVEPOINT item")
            driver.execute("RELEASE SAVEPOINT item")
        elif answer.error is not None:
            driver.rollback()
            connection.dialect.do_begin(driver)
        return answer

    def _answer(self, connection: Connection, item: _Item) -> _Answer:
        self.is_busy = self._writer.inside_item = True
        try:
            value = item.fn(connection)
        except BaseException as error:
            if explain(error) is not None or not connection.in_transaction():
                raise
            return _Answer(item, error=error)
        finally:
            self.is_busy = self._writer.inside_item = False
        if not connection.in_transaction():
            raise RuntimeError("only the writer rolls back; a write that does would undo the rest of its group")
        return _Answer(item, value=value)

    def _lose(self, error: BaseException, *items: _Item) -> None:
        if (connection := self.connection) is not None:
            try:
                raise_translated(connection, error)
            except BaseException as translated:
                error = translated
            # Nothing is known about it any more; its end undoes what was not committed.
            connection.invalidate()
        self._lost, lost = error, [*(answer.item for answer in self._answers), *items]
        self._over()
        self._writer.tell_lost(lost, error)

    def _over(self) -> None:
        connection, self.connection, self._answers = self.connection, None, []
        if connection is not None:
            self._stop_cleaning()
            self._writer.end(connection)


class _OnDemand(Future[Any]):
    """Of a thread that writes ``together``, which does not wait for itself."""

    def __init__(self, group: _Group) -> None:
        super().__init__()
        self._group = group
        self._of = threading.get_ident()

    def result(self, timeout: float | None = None) -> Any:
        """Make it durable, if it is not, and return as any future does."""
        if not self.done() and threading.get_ident() == self._of:
            with suppress(StoreUnavailable):
                self._group.commit()
        return super().result(timeout)


def group_error(error: BaseException) -> StoreUnavailable:
    """Return the error for one item of a failed group. Each gets its own, as each is raised on another thread."""
    unavailable = explain(error) or StoreUnavailable(f"a group of writes failed ({error!r})", "try again")
    mine = StoreUnavailable(unavailable.reason, unavailable.remedy)
    mine.__cause__ = error
    return mine
