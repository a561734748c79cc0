"""Connections that stay open: to take one out of SQLAlchemy's pool and put it back costs more than most reads do."""

import threading
import time
from collections import deque
from typing import Any, NoReturn

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from claudomator_py.store.errors import CLOSED, StoreUnavailable

WAIT_S = 30.0
"""How long somebody waits for one of them to be free."""


class Connections:
    """As many connections of an engine as there may be, each opened when it is first needed. Safe to use from any
    thread; whoever takes one gives it back, outside any transaction.
    """

    def __init__(self, engine: Engine, most: int) -> None:
        self._engine = engine
        self._closed = False
        # From the right: the one that was used last has its pages and its statements at hand. No queue.LifoQueue: its
        # locks take longer than a read.
        self._free: deque[Connection | None] = deque([None] * most)
        self._waiting = 0
        self._returned = threading.Condition()
        # A local file does not hang up; a server that was restarted is noticed before the first statement, not by it.
        self._is_local = engine.dialect.name == "sqlite"

    def take(self) -> Connection:
        """Return one that nobody else has meanwhile. Raises StoreUnavailable, once closed at once, and what opening
        raises."""
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
        """Give it back: somebody else may have it."""
        kept = not (self._closed or connection.invalidated or connection.in_transaction())
        if not kept:
            connection.close()
        self._put(connection if kept else None)

    def close(self) -> None:
        """Close those that are free, and each of the others once it is given back. Whoever waits for one is refused."""
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
        # Whoever waits has said so before the last look at what is free, so that nobody is forgotten here.
        elif self._waiting:
            with self._returned:
                self._returned.notify()

    def _wait(self) -> Connection | None:
        """The next one that is given back. Raises StoreUnavailable."""
        until_s = time.monotonic() + WAIT_S
        with self._returned:
            self._waiting += 1
            try:
                while (left_s := until_s - time.monotonic()) > 0:
                    if self._closed:
                        raise StoreUnavailable(*CLOSED)
                    # Another may take it before this one is awake.
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
    """Connections of which each is in a transaction from being taken until it is given back.

    For SQLAlchemy that is one transaction for as long as they are open, so that it begins and ends none of its own.
    Those that there are are the driver's: one call for each step, where SQLAlchemy takes twenty.
    """

    def take(self) -> Connection:
        """Return one whose transaction has begun. Raises as ``Connections.take``."""
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
        """Give it back, once its transaction has been committed or rolled back."""
        if self._closed or connection.invalidated or not connection.in_transaction():
            self._forget(connection)
        else:
            self._put(connection)


class Snapshots(Connections):
    """Connections of which each sees one snapshot from being taken until it is given back, as ``Transactions``."""

    def take(self) -> Connection:
        """Return one that sees a snapshot. Raises as ``Connections.take``."""
        connection = super().take()
        try:
            if not connection.in_transaction():
                connection.begin()
                driver_of(connection).rollback()
            if self._is_local:
                # For PostgreSQL the driver begins it with the first statement.
                driver_of(connection).execute("BEGIN")
        except BaseException:
            self._forget(connection)
            raise
        return connection

    def give_back(self, connection: Connection) -> None:
        """Give it back: its snapshot is over."""
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


def raise_translated(connection: Connection, error: BaseException) -> NoReturn:
    """Raise an error of the driver as SQLAlchemy would have raised it, and any other as it is."""
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
