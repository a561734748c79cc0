"""Pools of open connections. Checking one out of SQLAlchemy's own pool costs more than most reads."""

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, Final, NoReturn, TypeVar, cast

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from claudomator_py.store import CLOSED, StoreUnavailable

WAIT_S = 30.0
"""How long a caller waits for a free connection."""


class Connections:
    """A pool of at most ``most`` connections of an engine, each opened when it is first needed. Thread-safe. A
    connection must be given back outside of any transaction."""

    def __init__(self, engine: Engine, most: int) -> None:
        self._engine = engine
        self._closed = False
        # Used as a stack: the last used connection has its pages and statements cached. The locks of queue.LifoQueue
        # take longer than a read.
        self._free: deque[Connection | None] = deque([None] * most)
        self._waiting = 0
        self._returned = threading.Condition()
        # Connections to a server are pinged when taken, so that no statement fails because the server was restarted.
        self._is_local = engine.dialect.name == "sqlite"

    def take(self) -> Connection:
        """Take a connection, waiting for a free one. Raises StoreUnavailable, and what opening one raises."""
        try:
            connection = self._free.pop()
        except IndexError:
            connection = self._wait()
        try:
            if connection is not None and not self._is_local and not _answers(connection):
                _discard(connection)
                connection = None
            return self._engine.connect() if connection is None else connection
        except BaseException:
            self._put(None)
            raise

    def give_back(self, connection: Connection) -> None:
        """Return a connection to the pool."""
        kept = not (self._closed or connection.invalidated or connection.in_transaction())
        if not kept:
            connection.close()
        self._put(connection if kept else None)

    def close(self) -> None:
        """Close the free connections now and the others once they are given back. Waiting callers are refused."""
        self._closed = True
        self._close_free()
        with self._returned:
            self._returned.notify_all()

    def _forget(self, connection: Connection) -> None:
        _discard(connection)
        self._put(None)

    def _close_free(self) -> None:
        while self._free:
            if (connection := self._free.pop()) is not None:
                connection.close()

    def _put(self, connection: Connection | None) -> None:
        self._free.append(connection)
        if self._closed:
            self._close_free()
        # A caller increments `_waiting` before its last look at the free connections, so none is missed here.
        elif self._waiting:
            with self._returned:
                self._returned.notify()

    def _wait(self) -> Connection | None:
        """Wait for a free connection. Raises StoreUnavailable."""
        until_s = time.monotonic() + WAIT_S
        with self._returned:
            self._waiting += 1
            try:
                while (left_s := until_s - time.monotonic()) > 0:
                    if self._closed:
                        raise StoreUnavailable(*CLOSED)
                    # Another thread may take it before this one is awake.
                    if self._free:
                        try:
                            return self._free.pop()
                        except IndexError:
                            continue
                    self._returned.wait(left_s)
            finally:
                self._waiting -= 1
        raise StoreUnavailable("all connections to the database are in use", "try again in a moment")


class Transactions(Connections):
    """A pool whose connections are in a transaction while they are taken.

    For SQLAlchemy a connection is in a single transaction as long as it is open, so it begins and ends none itself.
    The real transactions are the driver's: one call per step, where SQLAlchemy needs twenty.
    """

    def take(self) -> Connection:
        """Take a connection and begin its transaction. Raises as ``Connections.take``."""
        connection = super().take()
        try:
            if connection.in_transaction():
                connection.dialect.do_begin(driver_of(connection))
            else:
                connection.begin()
        except BaseException as error:
            self._forget(connection)
            raise_translated(connection, error)
        return connection

    def give_back(self, connection: Connection) -> None:
        if self._closed or connection.invalidated or not connection.in_transaction():
            self._forget(connection)
        else:
            self._put(connection)


class Snapshots(Connections):
    """A pool whose connections see one snapshot while they are taken. Transactions as in ``Transactions``."""

    def take(self) -> Connection:
        """Take a connection with a new snapshot. Raises as ``Connections.take``."""
        connection = super().take()
        try:
            if not connection.in_transaction():
                connection.begin()
                driver_of(connection).rollback()
            if self._is_local:
                # PostgreSQL's driver begins the transaction with the first statement.
                driver_of(connection).execute("BEGIN")
        except BaseException as error:
            self._forget(connection)
            raise_translated(connection, error)
        return connection

    def give_back(self, connection: Connection) -> None:
        try:
            if self._closed or connection.invalidated or not connection.in_transaction():
                self._forget(connection)
                return
            driver_of(connection).rollback()
        except connection.dialect.loaded_dbapi.Error:
            self._forget(connection)
            return
        self._put(connection)


def driver_of(connection: Connection) -> Any:
    """Return the driver's connection."""
    return connection.connection.dbapi_connection


def is_whole(connection: Connection) -> bool:
    """Return whether a commit would keep what the connection's transaction has written. After some errors the database
    has given the transaction up, and a commit that keeps nothing still succeeds."""
    if connection.invalidated:
        return False
    driver = driver_of(connection)
    if connection.dialect.name == "sqlite":
        return bool(driver.in_transaction)
    return driver.info.transaction_status.name in ("IDLE", "ACTIVE", "INTRANS")


def raise_translated(connection: Connection, error: BaseException) -> NoReturn:
    """Raise a driver's error as SQLAlchemy would, and any other unchanged."""
    dialect = connection.dialect
    base = dialect.loaded_dbapi.Error
    if isinstance(error, base):
        raise DBAPIError.instance(None, None, error, base, dialect=dialect) from error
    raise error


def _answers(connection: Connection) -> bool:
    try:
        return connection.dialect.do_ping(driver_of(connection))
    except connection.dialect.loaded_dbapi.Error:
        return False


def _discard(connection: Connection) -> None:
    connection.invalidate()
    connection.close()


T = TypeVar("T")

COMMITS: Final = "commits"
"""Of a snapshot: how often something had been written before it was taken. It has at least that, so what it says holds
for as long as the number stays the same."""


class Unchanged:
    """What was read last for each of some keys, until something is written. Safe to use from any thread. A key says all
    that the answer depends on besides the rows, and whose rows they are above all."""

    def __init__(self, most: int = 64) -> None:
        """most: so many keys are kept."""
        self._most = most
        self._kept: tuple[int, dict[Hashable, Any]] = 0, {}

    def read(
        self, connection: Connection, key: Hashable, read: Callable[[], T], keeps: Callable[[T], bool] = lambda _: True
    ) -> T:
        """Return what was read last under that key, if nothing has been written since, and what is read now otherwise.

        connection: the snapshot that is read, see ``Database.read``; any other keeps nothing. keeps: whether that is
        kept, and not too much.
        """
        commits = connection.info.get(COMMITS)
        if commits is None:
            return read()
        kept = self._kept
        if kept[0] == commits and key in kept[1]:
            return cast(T, kept[1][key])
        if kept[0] != commits or len(kept[1]) >= self._most:
            # A new one, and both in one step: whoever has the old one at hand goes on with that.
            kept = self._kept = commits, {}
        result = read()
        if keeps(result):
            kept[1][key] = result
        return result
