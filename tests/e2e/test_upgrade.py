"""Two installed versions, one after the other, on one state folder, while runs go on."""

import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.daemon import Daemon
from tests.e2e.invariants import hold
from tests.e2e.scenarios_support import document, in_state, started
from tests.e2e.site import Site, open_site
from tests.e2e.versions import ADDED, NEWER, Version, newer_version, this_version
from tests.patience import wait_until

NAP = "do: until [ -e ../../../../go ]; do sleep 0.05; done"
"""Works until the site's folder has a file ``go``."""
FOREVER = "do: while :; do sleep 0.1; done"
LIVE = ("played", "nap", "endless")
QUEUED = ("queued-1", "queued-2", "after-nap")
OUTCOMES = {**dict.fromkeys((*LIVE, *QUEUED), "COMPLETED"), "endless": "CANCELLED"}


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Version, Version]:
    folder = tmp_path_factory.mktemp("versions")
    this = this_version(folder)
    return this, newer_version(this, folder)


@pytest.fixture
def this(versions: tuple[Version, Version]) -> Iterator[Version]:
    """The version that is upgraded."""
    yield versions[0]
    versions[0].put_back()


@pytest.fixture
def newer(versions: tuple[Version, Version]) -> Version:
    """The one that it is upgraded to."""
    return versions[1]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """An installation with room for three runs."""
    with open_site(tmp_path / "site", concurrency={"total": 3}) as opened:
        yield opened


def rows(file: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(query).fetchall()


def columns(file: Path, table: str) -> set[object]:
    return {name for _, name, *_ in rows(file, f"PRAGMA table_info({table})")}


def at_work(site: Site, version: Version) -> Daemon:
    """A daemon of that version with three live runs, of a process and of a simulated agent, and three queued tasks."""
    daemon = site.start(**version.environ).ready()
    # Long enough to be seen at work on a busy machine as well.
    played = "simulate: delay=8s outcome=success"
    site.drop("played.yaml", document(None, played, agent="simulated"))
    site.drop("nap.yaml", document(None, NAP))
    site.drop("endless.yaml", document(None, FOREVER))
    for name in LIVE:
        in_state(daemon, name, "RUNNING")
    started(site, 2)
    site.drop("queued-1.yaml", document(None, "do: true", check=[site.ledger.check()]))
    site.drop("queued-2.yaml", document(None, "simulate: outcome=success", agent="simulated"))
    site.drop("after-nap.yaml", document(None, "do: true", depends_on=["nap"]))
    in_state(daemon, "queued-1", "QUEUED")
    in_state(daemon, "queued-2", "QUEUED")
    in_state(daemon, "after-nap", "WAITING")
    return daemon


def migrated(site: Site, this: Version, newer: Version) -> Path:
    """The last copy that was made before, which has the schema of before; the database has the new one."""
    database = site.state / "claudomator.db"
    copy = max((site.state / "backups").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert copy.name.startswith(f"claudomator-{this.schema}-")
    assert rows(copy, "SELECT version_num FROM alembic_version") == [(this.schema,)]
    assert rows(copy, "PRAGMA integrity_check") == [("ok",)]
    assert ADDED not in columns(copy, "task") | columns(copy, "run")
    assert rows(database, "SELECT version_num FROM alembic_version") == [(newer.schema,)]
    assert ADDED in columns(database, "task") & columns(database, "run")
    assert rows(database, f"SELECT DISTINCT {ADDED} FROM run") == [(7,)]
    return copy


def refused(site: Site, this: Version, newer: Version) -> None:
    """The older version leaves the newer database alone, and says what to do."""
    before = (site.state / "claudomator.db").read_bytes()
    assert site.start(**this.environ).wait() == 1
    text = f"the database has schema {newer.schema}, which is newer than this version of Claudomator ({this.schema})"
    assert text in site.log_text()
    assert f"install the newer version again, or restore a file of {site.state / 'backups'}" in site.log_text()
    assert "Traceback" not in site.log_text()
    assert (site.state / "claudomator.db").read_bytes() == before


def restore(site: Site, copy: Path) -> None:
    """As docs/how-to/upgrade.md says."""
    shutil.copy(copy, site.state / "claudomator.db")
    for suffix in ("-wal", "-shm"):
        (site.state / f"claudomator.db{suffix}").unlink(missing_ok=True)


def test_an_upgrade_under_running_tasks_shows_in_none_of_them(site: Site, this: Version, newer: Version) -> None:
    at_work(site, this).kill()
    live = site.run_ids()
    this.remove()

    # The change of the schema is all or nothing, too.
    assert site.start(crash_at="schema-changed", **newer.environ).wait() == -9
    assert rows(site.state / "claudomator.db", "SELECT version_num FROM alembic_version") == [(this.schema,)]
    assert ADDED not in columns(site.state / "claudomator.db", "task")

    daemon = site.start(**newer.environ).ready()

    assert f"version={NEWER}" in site.log_text()
    copy = migrated(site, this, newer)
    assert f"database_migrated before={this.schema} after={newer.schema} backup={copy}" in site.log_text()
    assert set(live) <= set(site.run_ids())
    assert all(daemon.client.task(name).state in ("RUNNING", "COMPLETED") for name in LIVE)
    (site.root / "go").touch()
    daemon.client.cancel("endless")
    tasks = {task.name: task.state for task in site.drain(daemon).values()}
    assert tasks == OUTCOMES
    for name in tasks:
        assert len(daemon.client.runs(name)) == 1, f"{name} was started more than once"
    assert daemon.stop() == 0
    hold(site, file_names=tasks)


def test_the_way_back_is_the_copy_that_the_upgrade_has_made(site: Site, this: Version, newer: Version) -> None:
    assert at_work(site, this).stop() == 0
    live = site.run_ids()
    daemon = site.start(**newer.environ).ready()
    copy = migrated(site, this, newer)
    site.drop("later.yaml", document(None, "do: true"))
    later = in_state(daemon, "later", "QUEUED", "COMPLETED")
    assert daemon.stop() == 0
    refused(site, this, newer)

    restore(site, copy)
    daemon = site.start(**this.environ).ready()

    # It was accepted after the copy was made: its file is taken again.
    wait_until(lambda: "later" in {task.name for task in daemon.client.all_tasks()}, "the file to be taken again")
    (site.root / "go").touch()
    daemon.client.cancel("endless")
    tasks = {task.name: task.state for task in site.drain(daemon).values()}
    assert tasks == {**OUTCOMES, "later": "COMPLETED"}
    assert daemon.client.task("later").id != later.id
    starts = Counter(entry.run_id for entry in site.ledger.entries() if entry.what == "start")
    assert all(starts[run_id] <= 1 for run_id in live), "what the copy knew as running was not started again"
    assert daemon.stop() == 0
