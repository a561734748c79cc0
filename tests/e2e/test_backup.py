"""A backup of a working daemon: whole, of one moment, and good to go on from."""

import json
import shutil
import sqlite3
import subprocess
import threading
from pathlib import Path

from tests.e2e.harness import COMMAND, REPOSITORY, Site
from tests.e2e.scenarios_support import document, ended


def command(site: Site, *arguments: str) -> "subprocess.CompletedProcess[str]":
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(site.root / "home"), "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(
        [*COMMAND, *arguments, "--config", str(site.config_file)],
        env=variables,
        cwd=site.root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def rows(file: Path, query: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(file) as connection:
        return connection.execute(query).fetchall()


def test_copies_made_under_load_are_whole_and_of_one_moment(site: Site) -> None:
    daemon = site.start().ready()
    stop = threading.Event()

    def submit() -> None:
        number = 0
        while not stop.is_set():
            site.drop(f"t{number}.yaml", document(f"t{number}"))
            number += 1
            stop.wait(0.02)

    writing = threading.Thread(target=submit)
    writing.start()
    try:
        copies = [Path(daemon.client.backup().path) for _ in range(8)]
    finally:
        stop.set()
        writing.join()
    for copy in copies:
        assert copy.stat().st_mode & 0o777 == 0o600
        assert rows(copy, "PRAGMA integrity_check") == [("ok",)]
        assert rows(copy, "PRAGMA foreign_key_check") == []
        # One transaction accepts a task, gives it its content and tells of it.
        assert rows(copy, "SELECT id FROM task WHERE id NOT IN (SELECT task_id FROM task_revision)") == []
        assert rows(copy, "SELECT id FROM task WHERE id NOT IN (SELECT task_id FROM event WHERE kind='accepted')") == []
    assert [len(rows(copy, "SELECT id FROM task")) for copy in copies] == sorted(
        len(rows(copy, "SELECT id FROM task")) for copy in copies
    )
    site.drain(daemon)


def test_the_command_puts_it_where_it_is_told_and_replaces_nothing(site: Site) -> None:
    daemon = site.start().ready()
    site.drop("one.yaml", document("one"))
    ended(daemon, "one")
    target = site.root / "kept.db"
    done = command(site, "backup", str(target), "-o", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["path"] == str(target)
    assert rows(target, "SELECT name, state FROM task") == [("one", "COMPLETED")]
    assert list((site.state / "backups").iterdir()) == []
    again = command(site, "backup", str(target))
    assert (again.returncode, "exists already" in again.stderr) == (1, True)
    stays = command(site, "backup")
    assert Path(stays.stdout.strip()).parent == site.state / "backups"


def test_a_daemon_goes_on_from_a_restored_one(site: Site) -> None:
    daemon = site.start().ready()
    site.drop("one.yaml", document("one"))
    ended(daemon, "one")
    copy = Path(daemon.client.backup().path)
    site.drop("two.yaml", document("two"))
    ended(daemon, "two")
    daemon.stop()
    for name in ("claudomator.db-wal", "claudomator.db-shm"):
        (site.state / name).unlink(missing_ok=True)
    shutil.copy(copy, site.state / "claudomator.db")
    again = site.start().ready()
    # Its file lies in the inbox still, and the restored database knows nothing of it.
    assert ended(again, "two").state == "COMPLETED"
    assert again.client.task("one").state == "COMPLETED"
    site.drain(again)
