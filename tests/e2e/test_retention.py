"""A daemon lets go of what is old, beside its work; killed in the middle, the next one goes on with it."""

import sqlite3
from contextlib import closing

import httpx
import pytest

from claudomator_py.domain.lifecycle import StateName
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, ended, started
from tests.e2e.site import Site
from tests.patience import wait_until

TABLES = ("task", "run", "event", "decision", "snapshot")
LATER_MS = 400 * 86_400_000
FOREVER = "do: while :; do sleep 0.1; done"


def counts(site: Site) -> dict[str, int]:
    with closing(sqlite3.connect(site.state / "claudomator.db")) as connection:
        return {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in TABLES}


def age(site: Site) -> None:
    """As if four hundred days had passed."""
    with closing(sqlite3.connect(site.state / "claudomator.db")) as connection:
        for table, column in (
            ("task", "created_ms"),
            ("task", "updated_ms"),
            ("run", "started_ms"),
            ("run", "ended_ms"),
            ("event", "at_ms"),
            ("decision", "at_ms"),
            ("snapshot", "created_ms"),
        ):
            connection.execute(f"UPDATE {table} SET {column} = {column} - {LATER_MS}")
        connection.commit()


def old(site: Site) -> Daemon:
    """A daemon that has worked, long ago: two tasks have ended, one of which has lost its file, and one lives."""
    daemon = site.start().ready()
    site.drop("live.yaml", document(None, FOREVER))
    started(site)
    site.drop("kept.yaml", document(None, "do: true"))
    dropped = site.drop("old.yaml", document(None, "do: true"))
    ended(daemon, "kept")
    ended(daemon, "old")
    dropped.unlink()
    wait_until(lambda: not _in_inbox(site, "old"), "the file to be missed")
    assert daemon.stop() == 0
    age(site)
    return daemon


def _in_inbox(site: Site, name: str) -> bool:
    query = "SELECT count(*) FROM inbox_document WHERE name = ? AND gone_ms IS NULL"
    with closing(sqlite3.connect(site.state / "claudomator.db")) as connection:
        return bool(connection.execute(query, (name,)).fetchone()[0])


def states(daemon: Daemon) -> dict[str, StateName]:
    return {task.name: task.state for task in daemon.client.all_tasks()}


@pytest.mark.parametrize(
    "crash_at",
    ["rows-pruned", "run-dir-trashed", *(pytest.param(f"rows-pruned:{n}", marks=pytest.mark.chaos) for n in (2, 3))],
)
def test_what_is_old_goes_and_what_lives_is_left_alone(site: Site, crash_at: str) -> None:
    old(site)
    before = counts(site)
    assert before["task"] == 3
    assert site.start(crash_at=crash_at).wait() == -9

    daemon = site.start().ready()

    wait_until(lambda: states(daemon) == {"kept": "COMPLETED", "live": "RUNNING"}, "the old task to go")
    wait_until(lambda: len(site.run_ids()) == 1, "the directories of ended runs to go")
    (live,) = daemon.client.runs("live")
    assert site.run_ids() == [live.id]
    after = counts(site)
    assert after["event"] < before["event"]
    assert (after["run"], after["decision"], after["snapshot"]) == (2, 1, 0)
    token = (site.state / "token").read_text().strip()
    refused = httpx.get(f"{site.endpoint}/v1/events?after=1", headers={"Authorization": f"Bearer {token}"})
    assert (refused.status_code, refused.json()["code"]) == (410, "gone")
    daemon.client.cancel("live")
    assert ended(daemon, "live").state == "CANCELLED"
    assert "Traceback" not in site.log_text()
