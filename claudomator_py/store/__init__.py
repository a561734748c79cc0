"""Tables, the one writer, queries and migrations; here the one error, with a remedy, into which those of the database's
drivers are translated."""

import sqlite3

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout


class StoreUnavailable(Exception):
    """The database cannot be used now, or not as configured. reason: what is wrong; remedy: what to do next."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}; {remedy}")
        self.reason = reason
        self.remedy = remedy


_RESTORE = "stop the daemon and restore the newest file of the folder backups in the state folder"

CLOSED = ("the database is closed", "start the daemon again")
GIVEN_UP = ("the database has given up the transaction after an error", "try again")
IN_USE = (
    "another daemon has the database open",
    "stop that one (its sessions in pg_stat_activity are called `claudomator`), or give this one a database of its own",
)
READ_ONLY = (
    "the database is read-only",
    "make the file and its folder writable for the daemon's user, or remount the file system for writing",
)

# By SQLite's result code, an extended one or else the primary one.
_SQLITE = {
    sqlite3.SQLITE_BUSY: (
        "the database is locked by another process",
        "end the process that holds it (`fuser` on the database file names it) and try again",
    ),
    sqlite3.SQLITE_PERM: ("the database may not be opened", "give the daemon's user rights on the state folder"),
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_IOERR: (
        "reading or writing the database failed",
        "look for disk errors in the system log (`dmesg`) and check that the state folder is on a local disk",
    ),
    # Of what may be full, SQLite knows the disk: a quota or a limit on file sizes is an I/O error to it (3.40).
    sqlite3.SQLITE_IOERR_WRITE: (
        "writing to the database failed",
        "make room in the user's quota, raise its limit on file sizes (`ulimit -f`), or look for disk errors (`dmesg`)",
    ),
    sqlite3.SQLITE_CORRUPT: ("the database file is damaged", _RESTORE),
    sqlite3.SQLITE_NOTADB: ("the database file is not a SQLite database", _RESTORE),
    sqlite3.SQLITE_FULL: ("the disk is full", "make room on the disk of the state folder"),
    sqlite3.SQLITE_CANTOPEN: (
        "the database file cannot be opened",
        "check that the state folder exists and belongs to the daemon's user",
    ),
    sqlite3.SQLITE_PROTOCOL: (
        "the locks of the database do not work here",
        "move the state folder to a local disk",
    ),
}

# A refused login has no SQLSTATE either, so the remedy covers both; the server's message is added as detail.
_SERVER_GONE = (
    "the connection to PostgreSQL failed",
    "start the server, allow 18 connections, run `createdb`, put the password in ~/.pgpass, or correct the URL",
)
_CANCELLED = (
    "PostgreSQL has cancelled a statement or a transaction",
    "raise the daemon's statement_timeout and the other limits of its role with `ALTER ROLE ... SET`",
)
_NO_WRITING = (
    "PostgreSQL permits no writing",
    "point the database URL at the primary server, or reset default_transaction_read_only",
)

# By prefix of the SQLSTATE, longer ones first.
_SQLSTATE = (
    ("53100", ("the disk of the PostgreSQL server is full", "make room on the server's disk")),
    ("53300", ("PostgreSQL has no connection left", "raise max_connections or end other clients")),
    ("57014", _CANCELLED),
    ("25P03", _CANCELLED),
    ("25P04", _CANCELLED),
    ("40", ("PostgreSQL has given up a transaction because of another client", "try again")),
    ("55P03", ("a table is locked by another client", "end the client that holds it (see pg_locks) and try again")),
    ("57P", _SERVER_GONE),
    ("25006", _NO_WRITING),
    ("53", ("PostgreSQL is out of resources", "see the server's log")),
    ("58", ("PostgreSQL met a system error", "see the server's log")),
    ("XX", ("PostgreSQL found damaged data", "see the server's log and restore a backup")),
    ("08", _SERVER_GONE),
)


def explain(error: BaseException) -> StoreUnavailable | None:
    """Return the error as StoreUnavailable if the database, not the statement, is at fault; else None."""
    if isinstance(error, StoreUnavailable):
        return error
    if isinstance(error, PoolTimeout):
        return StoreUnavailable("all connections to the database are in use", "try again in a moment")
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, sqlite3.Error):
        code: int = getattr(cause, "sqlite_errorcode", 0)
        known = _SQLITE.get(code) or _SQLITE.get(code & 0xFF)
    elif isinstance(error, DBAPIError) and cause is not None:
        known = _by_sqlstate(error)
    else:
        return None
    if known is None:
        return None
    reason, remedy = known
    detail = str(cause).strip().partition("\n")[0]
    return StoreUnavailable(f"{reason} ({detail})" if detail else reason, remedy)


def _by_sqlstate(error: DBAPIError) -> tuple[str, str] | None:
    state: str | None = getattr(error.orig, "sqlstate", None)
    if state is not None:
        for prefix, reason in _SQLSTATE:
            if state.startswith(prefix):
                return reason
    return _SERVER_GONE if error.connection_invalidated or (state is None and _is_operational(error)) else None


def _is_operational(error: DBAPIError) -> bool:
    return any(kind.__name__ == "OperationalError" for kind in type(error.orig).__mro__)
