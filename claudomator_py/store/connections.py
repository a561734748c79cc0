"""Connections that stay open: to take one out of SQLAlchemy's pool and put it back costs more than most reads do."""

import queue
from typing import Any

from sqlalchemy import Connection, Engine

from claudomator_py.store.errors import StoreUnavailable

WAIT_S = 30.0
"""How long somebody waits for one of them to be free."""


class Connections:
    """As many connections of an engine as there may be, each opened when it is first needed. Safe to use from any
    thread; whoever takes one gives it back, outside any transaction.
    """

    def __init__(self, engine: Engine, most: int) -> None:
        self._engine = engine
        self._closed = False
        # The one that was used last has its pages and its statements at hand.
        self._free: queue.LifoQueue[Connection | None] = queue.LifoQueue()
        for _ in range(most):
            self._free.put(None)
        # A local file does not hang up; a server that was restarted is noticed before the first statement, not by it.
        self._may_be_gone = engine.dialect.name != "sqlite"

    def take(self) -> Connection:
        """One that nobody else has meanwhile. Raises StoreUnavailable, and what opening one raises."""
        try:
            connection = self._free.get(timeout=WAIT_S)
        except queue.Empty:
            raise StoreUnavailable("all connections to the database are in use", "try again in a moment") from None
        try:
            if connection is not None and self._may_be_gone and not _answers(connection):
                _discard(connection)
                connection = None
            return self._engine.connect() if connection is None else connection
        except BaseException:
            self._free.put(None)
            raise

    def give_back(self, connection: Connection) -> None:
        """Somebody else may have it."""
        kept = not (self._closed or connection.invalidated or connection.in_transaction())
        if not kept:
            connection.close()
        self._free.put(connection if kept else None)

    def close(self) -> None:
        """Close those that are free, and each of the others once it is given back."""
        self._closed = True
        try:
            while True:
                if (connection := self._free.get_nowait()) is not None:
                    connection.close()
        except queue.Empty:
            pass


def _answers(connection: Connection) -> bool:
    driver: Any = connection.connection.dbapi_connection
    try:
        return connection.dialect.do_ping(driver)
    except connection.dialect.loaded_dbapi.Error:
        return False


def _discard(connection: Connection) -> None:
    connection.invalidate()
    connection.close()
