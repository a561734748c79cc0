"""A backup of a working daemon: whole, of one moment, and good to go on from."""

import itertools
import json
import os
import shutil
import signal
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

from claudomator_py.client.http import Client
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, ended, in_state, started
from tests.e2e.site import Site, open_site
from tests.fakes.steps import from_document
from tests.patience import PATIENCE_S, wait_until
from tests.warm.starter import WarmStarter

FOREVER = "do: while :; do sleep 0.1; done"
HINT = {"type": "sh", "strict": True}


def rows(file: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(query).fetchall()


@contextmanager
def four_writers(site: Site, daemon: Daemon) -> Iterator[set[str]]:
    """Three clients that submit tasks and one that drops files, as fast as they can; the ids that were acknowledged."""
    accepted: set[str] = set()
    stop = threading.Event()

    def drop() -> None:
        for number in itertools.count():
            if stop.wait(0.02):
                return
            site.drop(f"dropped-{number}.yaml", document(None, agent="sh"))

    def submit(writer: int) -> None:
        token = (site.state / "token").read_text().strip()
        with Client(daemon.client.base_url, token, timeout_s=PATIENCE_S) as client:
            for number in itertools.count():
                if stop.is_set():
                    return
                task = {"name": f"by-{writer}-{number}", "instructions": "do: true", "agent": HINT}
                accepted.add(client.submit(from_document(task)).id)

    with ThreadPoolExecutor(4) as threads:
        writing = [threads.submit(drop), *(threads.submit(submit, writer) for writer in range(3))]
        try:
            wait_until(lambda: len(accepted) >= 3, "the first submissions")
            yield accepted
        finally:
            stop.set()
        for future in writing:
            future.result()


def test_copies_made_under_load_are_whole_and_of_one_moment(site: Site) -> None:
    daemon = site.start().ready()
    copies: list[tuple[set[str], Path]] = []
    with four_writers(site, daemon) as accepted:
        while len(copies) < 6:
            before = set(accepted)
            copies.append((before, Path(daemon.client.backup().path)))
    for before, copy in copies:
        assert copy.stat().st_mode & 0o777 == 0o600
        assert rows(copy, "PRAGMA integrity_check") == [("ok",)]
        assert rows(copy, "PRAGMA foreign_key_check") == []
        # One transaction accepts a task, gives it its content and tells of it.
        assert rows(copy, "SELECT id FROM task WHERE id NOT IN (SELECT task_id FROM task_revision)") == []
        assert rows(copy, "SELECT id FROM task WHERE id NOT IN (SELECT task_id FROM event WHERE kind='accepted')") == []
        assert before <= {task_id for (task_id,) in rows(copy, "SELECT id FROM task")}
    counts = [len(rows(copy, "SELECT id FROM task")) for _, copy in copies]
    assert counts == sorted(counts)


def test_a_copy_goes_on_elsewhere_without_the_runs_that_it_takes_for_live(
    site: Site, tmp_path: Path, warm: WarmStarter
) -> None:
    daemon = site.start().ready()
    site.drop("done.yaml", document(None, "do: true"))
    ended(daemon, "done")
    site.drop("live.yaml", document(None, FOREVER))
    again = "do: [ $CLAUDOMATOR_ATTEMPT -ge 2 ] || while :; do sleep 0.1; done"
    site.drop("stubborn.yaml", document(None, again, on_lost="retry", retry={"max_attempts": 2, "backoff": "10ms"}))
    site.drop("after.yaml", document(None, "do: true", depends_on=["stubborn"]))
    live = started(site, 3)[1:]
    with four_writers(site, daemon) as accepted:
        before = set(accepted)
        copy = Path(daemon.client.backup().path)
    site.close()
    running = {run_id for (run_id,) in rows(copy, "SELECT id FROM run WHERE live")}
    assert set(live) <= running

    # Another machine: the database is there, the run directories are not; what its runs say comes into the same ledger.
    with open_site(tmp_path / "elsewhere", warm=warm, new=True) as elsewhere:
        elsewhere.config_file.write_bytes(site.config_file.read_bytes())
        elsewhere.state.mkdir(mode=0o700)
        shutil.copy(copy, elsewhere.state / "claudomator.db")
        daemon = elsewhere.start().ready()
        tasks = elsewhere.drain(daemon)

        assert before <= set(tasks)
        states = {task.name: (task.state, task.reason) for task in tasks.values()}
        assert states["live"] == ("FAILED", "lost")
        assert "its run directory" in (daemon.client.task("live").reason_text or "")
        assert states["done"] == states["stubborn"] == states["after"] == ("COMPLETED", None)
        assert [run.state for run in daemon.client.runs("stubborn")] == ["ended", "ended"]
        starts = Counter(entry.run_id for entry in site.ledger.entries() if entry.what == "start")
        assert {starts[run_id] for run_id in live} == {1}, "a run that the copy takes for live was started again"
        unlike = {name: state for name, state in states.items() if state[0] != "COMPLETED"}
        assert {reason for _, reason in unlike.values()} == {"lost"}
        assert len(unlike) <= len(running)
        assert daemon.stop() == 0
        elsewhere.no_processes()


def test_no_daemon_works_on_a_copy_beside_the_one_on_the_original(
    site: Site, tmp_path: Path, warm: WarmStarter
) -> None:
    daemon = site.start().ready()
    site.drop("live.yaml", document(None, FOREVER))
    started(site)
    copy = Path(daemon.client.backup().path)

    with open_site(tmp_path / "elsewhere", warm=warm, new=True) as elsewhere:
        elsewhere.state.mkdir(mode=0o700)
        shutil.copy(copy, elsewhere.state / "claudomator.db")
        assert elsewhere.start().wait() == 1
        text = f"the database is that of the daemon on {site.state} (pid {daemon.pid}), or a copy of it; stop that one"
        assert text in elsewhere.log_text()
        assert "Traceback" not in elsewhere.log_text()

        assert daemon.client.task("live").state == "RUNNING"
        daemon.client.cancel("live")
        assert ended(daemon, "live").state == "CANCELLED"
        assert daemon.stop() == 0
        again = elsewhere.start().ready()
        assert ended(again, "live").reason == "lost"
        assert again.stop() == 0


def test_the_command_puts_it_where_it_is_told_and_replaces_nothing(site: Site) -> None:
    daemon = site.start().ready()
    site.drop("one.yaml", document("one"))
    ended(daemon, "one")
    target = site.root / "kept.db"
    done = site.command("backup", str(target), "-o", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["path"] == str(target)
    assert rows(target, "SELECT name, state FROM task") == [("one", "COMPLETED")]
    assert list((site.state / "backups").iterdir()) == []
    again = site.command("backup", str(target))
    assert (again.returncode, "already exists" in again.stderr) == (1, True)
    stays = site.command("backup")
    assert Path(stays.stdout.strip()).parent == site.state / "backups"


def restored(site: Site, daemon: Daemon, copy: Path) -> Daemon:
    """The next daemon, on that copy, as the guide says."""
    assert daemon.stop() == 0
    for name in ("claudomator.db-wal", "claudomator.db-shm"):
        (site.state / name).unlink(missing_ok=True)
    shutil.copy(copy, site.state / "claudomator.db")
    return site.start().ready()


def test_a_check_that_ran_at_the_time_of_the_copy_decides_after_the_restore(site: Site) -> None:
    """One that was lost since, and begun again, was begun by nobody as far as the copy knows."""
    daemon = site.start().ready()
    check = f"until [ -e {site.root}/go ]; do sleep 0.05; done"
    site.drop("checked.yaml", document(None, "do: true", check=[["sh", "-c", check]]))
    site.drop("other.yaml", document(None, "do: true", depends_on=["checked"]))
    in_state(daemon, "checked", "RUNNING", "COMPLETED")
    wait_until(lambda: daemon.client.task("checked").phase == "checking", "its check")
    run_id = daemon.client.runs("checked")[0].id
    first, second = (site.state / "runs" / run_id / name for name in ("check", "check-2"))
    wait_until((first / "started").exists, "the check's start")
    copy = Path(daemon.client.backup().path)
    os.kill(json.loads((first / "shim.json").read_text())["pid"], signal.SIGKILL)
    wait_until((second / "started").exists, "the second check's start")

    daemon = restored(site, daemon, copy)
    (site.root / "go").touch()

    assert ended(daemon, "other").state == "COMPLETED"
    assert [run.state for run in daemon.client.runs("checked")] == ["ended"]
    assert not (second.parent / "check-3").exists()
    wait_until(lambda: all(check.ok for check in daemon.client.readiness().checks), "all to be well")


def test_a_daemon_goes_on_from_a_restored_one(site: Site) -> None:
    daemon = site.start().ready()
    site.drop("one.yaml", document("one"))
    ended(daemon, "one")
    copy = Path(daemon.client.backup().path)
    site.drop("two.yaml", document("two"))
    ended(daemon, "two")
    again = restored(site, daemon, copy)
    # Its file lies in the inbox still, and the restored database knows nothing of it.
    assert ended(again, "two").state == "COMPLETED"
    assert again.client.task("one").state == "COMPLETED"
    site.drain(again)
