"""The database: SQLite in the state folder or PostgreSQL by URL, with snapshot reads on any thread and a single writer.

``read_or_refuse`` and ``write_or_refuse`` are for requests: they turn StoreUnavailable into ``Unavailable``.
"""

import importlib.util
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn, Self, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from claudomator_py.domain.errors import Unavailable, sentence
from claudomator_py.private_files import create_private, flush_path, unfinished
from claudomator_py.store import IN_USE, READ_ONLY, StoreUnavailable, explain, remembered
from claudomator_py.store.connections import COMMITS, Snapshots
from claudomator_py.store.events import caused_by
from claudomator_py.store.stored_json import read_json
from claudomator_py.store.writer import Writer

__all__ = ["Database", "StoreUnavailable"]

T = TypeVar("T")

FILE_NAME = "claudomator.db"
BUSY_TIMEOUT_MS = 5_000
MAX_READERS = 16
"""Concurrent snapshots with PostgreSQL; further readers wait."""
MAX_SQLITE_READERS = 6
"""The same with SQLite. An open connection costs two descriptors and a page cache, and reads are bound by the
processor, not by a network."""
MAX_STATEMENTS = 512
"""Prepared statements kept per connection: more than exist, so that none is prepared twice."""
PROBE = "write_probe"
PROBE_BYTES = 64 * 1024
"""More than a tick usually writes, so that a tick after a successful probe has room, too."""

_WAL = "journal_mode=WAL"
_WAL_LIMIT_BYTES = 64 * 1024 * 1024


class Database(Writer):
    """An open database: its single writer, and snapshots for readers. Thread-safe. Use ``Database.open``."""

    def __init__(self, *, state_dir: Path, file: Path | None, engines: "_Engines") -> None:
        self.state_dir = state_dir
        self.file = file
        """The SQLite file; None with PostgreSQL."""
        self._engines = engines
        self._readers = Snapshots(engines.reader, MAX_READERS if file is None else MAX_SQLITE_READERS)
        super().__init__(engines.writer)

    @classmethod
    def open(
        cls, url: str, *, state_dir: Path, busy_timeout_ms: int = BUSY_TIMEOUT_MS, is_daemon: bool = False
    ) -> Self:
        """Open ``sqlite`` (a file in state_dir, created if missing) or ``postgresql://...``.

        busy_timeout_ms: how long a write waits for another process's lock. is_daemon: with PostgreSQL, refuse to write
        while another daemon, on whatever machine, has the database open. Raises StoreUnavailable.
        """
        _make_private_folder(state_dir)
        file = claim = None
        if url == "sqlite":
            file = state_dir / FILE_NAME
            _make_private_file(file)
            if not (os.access(file, os.W_OK) and os.access(state_dir, os.W_OK)):
                raise StoreUnavailable(*READ_ONLY)
            engines = _sqlite_engines(file, busy_timeout_ms)
        else:
            engines = _postgresql_engines(_postgresql_url(url), busy_timeout_ms)
            if is_daemon:
                claim = _Claim()
                event.listen(engines.writer, "connect", claim.take)
        try:
            with _explained(), engines.writer.connect() as connection, connection.begin() as probe:
                probe.rollback()
                if claim is not None:
                    claim.verify(engines.reader)
        except BaseException:
            engines.dispose()
            raise
        return cls(state_dir=state_dir, file=file, engines=engines)

    @property
    def dialect(self) -> str:
        """``sqlite`` or ``postgresql``."""
        return self._engines.writer.dialect.name

    def read(self, fn: Callable[[Connection], T]) -> T:
        """Run fn in this thread on a read-only connection with a snapshot of its own. Writes do not block it. In
        ``together`` it sees this thread's uncommitted writes. Raises what fn raises, and StoreUnavailable."""
        # Not a `with`, for speed: this runs several times per task.
        try:
            if (uncommitted := self.uncommitted) is not None:
                return fn(uncommitted)
            commits = self.commits
            connection = self._readers.take()
            try:
                connection.info[COMMITS] = commits
                return fn(connection)
            except DBAPIError as error:
                # A session keeps the settings of its role as they were when it began, so another one is needed to see
                # what the remedy has changed.
                if explain(error) is not None:
                    connection.invalidate()
                raise
            finally:
                self._readers.give_back(connection)
        except Exception as error:
            self._read_failed(error)
            _raise_explained(error)

    def write(self, fn: Callable[[Connection], T], *, planned: bool = False) -> T:
        """Run fn on the writer's thread and return its result once it is durable. planned: see ``on_commit``.

        Raises what fn raises, and StoreUnavailable. In both cases nothing was written, with one exception: if the
        connection to PostgreSQL breaks during the commit, only the rows can tell.
        """
        if self.is_current_thread():
            raise RuntimeError("a write inside a write would wait for itself; use submit, or the connection given")
        return self.submit(fn, planned=planned).result()

    def probe(self) -> None:
        """Test whether writing works, by a write that takes disk space. Its commit triggers no callbacks. An empty
        transaction would succeed even on a full disk. Raises StoreUnavailable."""
        filler = {"filler": "." * PROBE_BYTES}
        self.submit(lambda connection: remembered.keep(connection, PROBE, filler), quiet=True).result()

    @contextmanager
    def exclusive(self) -> Iterator[Connection]:
        """Begin a transaction for a change of the schema: it excludes other writers and does not check foreign keys.
        Commits at the end of the block, or rolls back if that raises."""
        with _explained(), self._engines.schema.connect() as connection, connection.begin():
            if self.dialect == "postgresql":
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('claudomator schema'))")
            yield connection
        # Such connections are rarely needed and, on SQLite, lack foreign keys, so none is kept.
        self._engines.schema.dispose()

    def backup(self, target: Path) -> None:
        """Copy the database to a new file (mode 0600) that appears complete or not at all. SQLite only."""
        if self.file is None:
            raise StoreUnavailable("a PostgreSQL database is not copied by the daemon", "use `pg_dump`")
        _make_private_folder(target.parent)
        partial = unfinished(target)
        _make_private_file(partial)
        try:
            with closing(sqlite3.connect(self.file)) as source, closing(sqlite3.connect(partial)) as copy:
                source.backup(copy)
                # The backup must be a single file, without a -wal.
                copy.execute("PRAGMA journal_mode=DELETE")
            flush_path(partial)
            partial.rename(target)
        except sqlite3.Error as error:
            raise StoreUnavailable(
                f"the backup {target} failed ({error})", "check room and rights in its folder"
            ) from error
        finally:
            partial.unlink(missing_ok=True)
        flush_path(target.parent)

    def close(self) -> None:
        """Finish queued writes and close the database. Later writes are refused."""
        super().close()
        self._readers.close()
        self._engines.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Engines:
    """Engines for snapshots, for the writer, and for changes of the schema."""

    def __init__(self, reader: Engine, writer: Engine, schema: Engine) -> None:
        self.reader = reader
        self.writer = writer
        self.schema = schema

    def dispose(self) -> None:
        for engine in (self.reader, self.schema, self.writer):
            engine.dispose()


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        _raise_explained(error)


def _raise_explained(error: Exception) -> NoReturn:
    """Raise StoreUnavailable if the error is the database's, else the error itself."""
    unavailable = explain(error)
    if unavailable is None or unavailable is error:
        raise error
    raise unavailable from error


def _sqlite_engines(file: Path, busy_timeout_ms: int) -> _Engines:
    always = (f"busy_timeout={busy_timeout_ms}", "synchronous=FULL")
    wal = (_WAL, f"journal_size_limit={_WAL_LIMIT_BYTES}")
    return _Engines(
        reader=_sqlite_engine(file, MAX_SQLITE_READERS, "BEGIN", (*always, "foreign_keys=ON", "query_only=ON")),
        # In memory, because a large savepoint journal would otherwise be a new temporary file each time.
        writer=_sqlite_engine(file, 1, "BEGIN IMMEDIATE", (*always, *wal, "foreign_keys=ON", "temp_store=MEMORY")),
        schema=_sqlite_engine(file, 1, "BEGIN IMMEDIATE", (*always, *wal, "foreign_keys=OFF")),
    )


# Without an adapter, the driver looks for two methods at each None and each bool that is bound, and formats an error.
sqlite3.register_adapter(type(None), dict[None, None]().get)
sqlite3.register_adapter(bool, int)


def _sqlite_engine(file: Path, connections: int, begin: str, pragmas: tuple[str, ...]) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(file)),
        pool_size=connections,
        max_overflow=0,
        connect_args={"check_same_thread": False, "cached_statements": MAX_STATEMENTS},
        json_deserializer=read_json,
    )

    def prepare(connection: Any, _record: object) -> None:
        # Switch off the driver's implicit transactions; `do_begin` below sends the only BEGIN.
        connection.isolation_level = None
        for pragma in pragmas:
            answer = connection.execute(f"PRAGMA {pragma}").fetchone()
            if pragma == _WAL and answer != ("wal",):
                raise StoreUnavailable(
                    f"the file system of {file} has no shared memory for a write-ahead log",
                    "move the state folder to a local disk, or use PostgreSQL",
                )

    dialect: Any = engine.dialect
    dialect.do_begin = lambda driver: driver.execute(begin)
    event.listen(engine, "connect", prepare)
    return engine


def _postgresql_url(text: str) -> URL:
    form = "write sqlite, or postgresql://user@host/name"
    try:
        url = make_url(text)
        if url.drivername in ("postgresql", "postgres"):
            url = url.set(drivername=_DRIVER)
        if url.drivername == _DRIVER:
            _hosts(url)
    except (ArgumentError, ValueError) as error:
        if text.startswith("postgres"):
            form = f"{form}; several servers are postgresql://user@/name?host=one:5432&host=two:5432"
        raise StoreUnavailable("the database URL cannot be read", form) from error
    if url.drivername != _DRIVER:
        raise StoreUnavailable(f"a database of kind {url.drivername!r} is not supported", form)
    if importlib.util.find_spec("psycopg") is None:
        raise StoreUnavailable(
            "the driver for PostgreSQL is not installed", "run: pip install 'claudomator-py[postgres]'"
        )
    return url


def _hosts(url: URL) -> str:
    """Return the names of the servers as libpq takes them, separated by commas. Raises ArgumentError."""
    return str(url.get_dialect()().create_connect_args(url)[1].get("host", ""))


def _postgresql_engines(url: URL, busy_timeout_ms: int) -> _Engines:
    return _Engines(
        reader=_postgresql_engine(url, MAX_READERS, busy_timeout_ms).execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        ),
        writer=_postgresql_engine(url, 1, busy_timeout_ms),
        schema=_postgresql_engine(url, 1, busy_timeout_ms),
    )


class _Claim:
    """The right to write to a PostgreSQL database as its only daemon: a lock that the writer's connection holds."""

    def __init__(self) -> None:
        self._session: tuple[Any, ...] | None = None
        """Process and start of the server's session that had the lock last."""

    def take(self, driver: Any, _record: object) -> None:
        """Lock the database for a new connection. Raises StoreUnavailable, and the driver's errors."""
        try:
            if self._session is not None:
                # After a break in the network, the server may keep a session for hours whose client has given it up.
                driver.execute(_END_SESSION, self._session)
            driver.execute("SELECT pg_advisory_lock(hashtext('claudomator daemon'))")
            self._session = driver.execute(_SESSION).fetchone()
            driver.commit()
        except Exception as error:
            driver.close()
            if getattr(error, "sqlstate", None) not in _WAITED_IN_VAIN:
                raise
            raise StoreUnavailable(*IN_USE) from error

    def verify(self, other: Engine) -> None:
        """Raise StoreUnavailable if a pooler lends the session with the lock to another connection while ours is
        open: then anybody may get the lock with it, or lose it."""
        with other.connect() as connection:
            if self._session == tuple(connection.exec_driver_sql(_SESSION).one()):
                raise StoreUnavailable(
                    "a connection pooler shares the sessions of PostgreSQL between transactions",
                    "let it pool by session (`pool_mode = session`), or name the server itself in the URL",
                )


_DRIVER = "postgresql+psycopg"
_WAITED_IN_VAIN = ("55P03", "57014")
"""SQLSTATE of ``lock_timeout``, and of a ``statement_timeout`` of the role that is shorter."""
_SESSION = "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
_END_SESSION = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid = %s AND backend_start = %s"


_CONNECTION: Final[Mapping[str, str | int]] = {
    "application_name": "claudomator",
    "connect_timeout": 10,
    # By default, TCP waits for a server that has vanished for a quarter of an hour, and for its answer for two hours.
    "keepalives_idle": 20,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 40_000,
}
"""Parameters of each connection, unless the URL has them. Units as in libpq: ``tcp_user_timeout`` ms, others s."""


# Roles, databases and environments may have other values.
_SETTINGS: Final[Mapping[str, str]] = {
    "synchronous_commit": "on",  # else a crash could undo acknowledged commits
    "datestyle": "ISO",  # psycopg reads instants in no other format
    "standard_conforming_strings": "on",  # for the regular expressions in our statements
    "extra_float_digits": "1",  # a number is read as it was stored
    "client_encoding": "UTF8",
}


def _postgresql_engine(url: URL, connections: int, busy_timeout_ms: int) -> Engine:
    given = url.query.get("options", "")
    options = given if isinstance(given, str) else " ".join(given)
    defaults = dict(_CONNECTION)
    if "," in _hosts(url):
        # Of several servers, libpq takes the first that answers: a standby cannot be written, and a reader that stays
        # there would see what the writer's server had some time ago.
        defaults["target_session_attrs"] = "primary"
    parameters = {name: value for name, value in defaults.items() if name not in url.query}
    engine = create_engine(
        url.difference_update_query(("options",)),
        pool_size=connections,
        max_overflow=0,
        connect_args={**parameters, **({"options": options} if options else {})},
        json_deserializer=read_json,
    )
    settings = {"lock_timeout": f"{busy_timeout_ms}ms", **_SETTINGS}
    # By statements, since a connection pooler refuses options.
    statement = "; ".join(f"SET {name} = '{value}'" for name, value in settings.items() if name not in options)

    def set_up(driver: Any, _record: object) -> None:
        """Give a new connection its settings. Raises StoreUnavailable if texts could not be stored there, and the
        driver's errors."""
        if (encoding := driver.info.parameter_status("server_encoding")) != "UTF8":
            driver.close()
            raise StoreUnavailable(
                f"the database has the encoding {encoding}, which cannot store all texts",
                "create another one with `createdb --encoding UTF8 --template template0`",
            )
        driver.execute(statement)
        driver.commit()

    event.listen(engine, "connect", set_up, insert=True)  # before SQLAlchemy asks the server about itself
    return engine


def _make_private_folder(folder: Path) -> None:
    """Create the folder (mode 0700) with its parents. An existing one keeps its mode unless it is empty and ours."""
    try:
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        if folder.stat().st_uid == os.geteuid() and not any(folder.iterdir()):
            folder.chmod(0o700)
    except OSError as error:
        raise StoreUnavailable(
            f"the state folder {folder} cannot be used ({error.strerror})",
            "make it a folder that belongs to the daemon's user, or choose another state_dir",
        ) from error


def _make_private_file(file: Path) -> None:
    """Create the file (mode 0600) durably if it is missing. SQLite gives its side files the same mode."""
    try:
        create_private(file).close()
    except FileExistsError:
        return
    except OSError as error:
        raise StoreUnavailable(
            f"the file {file} cannot be made ({error.strerror})", "check room and rights in its folder"
        ) from error
    flush_path(file.parent)


@contextmanager
def or_unavailable() -> Iterator[None]:
    """Translate StoreUnavailable in the block to Unavailable."""
    try:
        yield
    except StoreUnavailable as error:
        raise Unavailable(sentence(error.reason), remedy=sentence(error.remedy)) from error


def read_or_refuse(database: Database, fn: Callable[[Connection], T]) -> T:
    """Return what fn returns on a snapshot. Raises what fn raises, and Unavailable."""
    with or_unavailable():
        return database.read(fn)


def write_or_refuse(database: Database, fn: Callable[[Connection], T], by: str) -> T:
    """Return what fn returns once its writes are durable. by: the principal that events name. Raises what fn raises,
    and Unavailable."""
    with or_unavailable():
        return database.write(caused_by(by, fn))
