"""A database in trouble: every refusal names cause and remedy, and work goes on once the cause is gone."""

import os
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection
from sqlmodel import SQLModel

from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.tables import REMEMBERED
from tests.integration.store.mark_table import add, count, create

# Takes the lock, says so, and holds it until its input is closed.
HOLD_THE_LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[None]:
    """A small file system of its own; skips the test where the user may not mount one."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount a file system")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with Database.open("sqlite", state_dir=folder) as database:
        database.write(create)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
    assert modes == dict.fromkeys(("claudomator.db", "claudomator.db-wal", "claudomator.db-shm"), 0o600)


def test_an_empty_state_folder_is_closed_to_others_and_a_used_one_left_alone(tmp_path: Path) -> None:
    empty, used = tmp_path / "empty", tmp_path / "used"
    for folder in (empty, used):
        folder.mkdir()
        folder.chmod(0o755)
    (used / "something").touch()
    for folder in (empty, used):
        Database.open("sqlite", state_dir=folder).close()
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (empty, used)] == [0o700, 0o755]


def test_sqlite_runs_with_the_settings_that_durability_needs(tmp_path: Path) -> None:
    with Database.open("sqlite", state_dir=tmp_path) as database:

        def settings(connection: Connection) -> list[object]:
            names = ("journal_mode", "synchronous", "foreign_keys")
            return [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names]

        assert database.write(settings) == ["wal", 2, 1]
        assert database.read(settings) == ["wal", 2, 1]


def test_locked_by_another_process(tmp_path: Path) -> None:
    with Database.open("sqlite", state_dir=tmp_path, busy_timeout_ms=50) as database:
        database.write(create)
        command = [sys.executable, "-c", HOLD_THE_LOCK, str(database.file)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"locked\n"
            with pytest.raises(StoreUnavailable, match="locked by another process"):
                database.write(add)
            with pytest.raises(StoreUnavailable, match="locked by another process"):
                Database.open("sqlite", state_dir=tmp_path, busy_timeout_ms=50)
            assert database.read(count) == 0
            other.communicate()
        database.write(add)
        assert database.read(count) == 1


@pytest.mark.needs_root
def test_a_full_disk_refuses_writes_loses_nothing_and_recovers(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with mounted(folder, "3m"):
        ballast = folder / "ballast"
        ballast.write_bytes(bytes(1024 * 1024))
        with Database.open("sqlite", state_dir=folder) as database:
            database.write(create)
            acknowledged = 0

            def fill() -> None:
                nonlocal acknowledged
                while acknowledged < 1_000:
                    database.write(lambda connection: add(connection, "x" * 10_000))
                    acknowledged += 1

            with pytest.raises(StoreUnavailable, match="disk is full") as refusal:
                fill()
            assert "make room" in refusal.value.remedy
            assert acknowledged > 0
            assert database.read(count) == acknowledged
            ballast.unlink()
            database.write(add)
            assert database.read(count) == acknowledged + 1


def test_at_a_limit_on_file_sizes_no_disk_is_blamed_alone_and_writing_goes_on_once_it_is_raised(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Database.open("sqlite", state_dir=tmp_path) as database:
        database.write(create)
        assert database.file is not None
        log_file = database.file.with_name(f"{database.file.name}-wal")
        resource.setrlimit(resource.RLIMIT_FSIZE, (log_file.stat().st_size + 8_192, hard))
        try:
            with pytest.raises(StoreUnavailable, match="writing to the database failed") as refusal:
                database.write(lambda connection: add(connection, "x" * 100_000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert "ulimit -f" in refusal.value.remedy
        database.write(add)
        assert database.read(count) == 1


@pytest.mark.needs_root
def test_only_a_write_that_needs_room_says_that_a_full_disk_is_full_no_longer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "claudomator_py.store.writer")
    folder = tmp_path / "state"
    with mounted(folder, "3m"):
        ballast = folder / "ballast"
        ballast.write_bytes(bytes(1024 * 1024))
        with Database.open("sqlite", state_dir=folder) as database:
            database.write(create)
            database.write(lambda connection: SQLModel.metadata.create_all(connection, [REMEMBERED]))
            commits: list[object] = []

            def fill() -> None:
                while True:
                    database.write(lambda connection: add(connection, "x" * 10_000))

            with pytest.raises(StoreUnavailable, match="disk is full"):
                fill()
            database.on_commit(lambda: commits.append(None))
            for _ in range(20):
                with pytest.raises(StoreUnavailable, match="disk is full"):
                    database.probe()
                assert database.trouble is not None
            assert [record.levelname for record in caplog.records] == ["WARNING"]

            ballast.unlink()
            # Listeners are told after the answer: the second answer says that they have been.
            database.probe()
            database.probe()
            assert database.trouble is None
            assert commits == []
            database.write(add)
            database.write(add)
            assert commits
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


@pytest.mark.needs_root
def test_no_room_for_a_backup_leaves_no_half_backup(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    with Database.open("sqlite", state_dir=tmp_path / "state") as database, mounted(folder, "64k"):
        database.write(create)
        database.write(lambda connection: add(connection, "x" * 200_000))
        with pytest.raises(StoreUnavailable, match="backup"):
            database.backup(folder / "copy.db")
        assert list(folder.iterdir()) == []


@pytest.mark.needs_root
def test_a_read_only_file_system(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with mounted(folder, "3m"):
        with Database.open("sqlite", state_dir=folder) as database:
            database.write(create)
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        with pytest.raises(StoreUnavailable) as refusal:
            Database.open("sqlite", state_dir=folder)
        assert "read-only" in refusal.value.reason
        subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
        with Database.open("sqlite", state_dir=folder) as database:
            database.write(add)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write a read-only file")
def test_a_read_only_file(tmp_path: Path) -> None:
    with Database.open("sqlite", state_dir=tmp_path) as database:
        database.write(create)
    file = tmp_path / "claudomator.db"
    file.chmod(0o400)
    with pytest.raises(StoreUnavailable, match="read-only"):
        Database.open("sqlite", state_dir=tmp_path)
    file.chmod(0o600)
    with Database.open("sqlite", state_dir=tmp_path) as database:
        database.write(add)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "claudomator.db").write_bytes(b"dear diary, " * 1_000)
    with pytest.raises(StoreUnavailable, match="not a SQLite database") as refusal:
        Database.open("sqlite", state_dir=tmp_path)
    assert "backups" in refusal.value.remedy


def test_a_damaged_page(tmp_path: Path) -> None:
    with Database.open("sqlite", state_dir=tmp_path) as database:
        database.write(create)
        database.write(lambda connection: add(connection, "x" * 100_000))
    file = tmp_path / "claudomator.db"
    with file.open("r+b") as pages:
        pages.seek(4096)
        pages.write(b"\xff" * 4096)
    with Database.open("sqlite", state_dir=tmp_path) as database:
        with pytest.raises(StoreUnavailable, match="damaged"):
            database.read(count)
        with pytest.raises(StoreUnavailable, match="damaged"):
            database.write(add)


def test_a_state_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    with pytest.raises(StoreUnavailable, match="state folder"):
        Database.open("sqlite", state_dir=tmp_path / "state")


def test_a_backup_is_whole_and_stands_alone(tmp_path: Path) -> None:
    target = tmp_path / "backups" / "copy.db"
    with Database.open("sqlite", state_dir=tmp_path / "state") as database:
        database.write(create)
        database.write(add)
        database.backup(target)
        database.write(add)
    assert [file.name for file in target.parent.iterdir()] == ["copy.db"]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    restored = tmp_path / "restored"
    restored.mkdir()
    target.rename(restored / "claudomator.db")
    with Database.open("sqlite", state_dir=restored) as database:
        assert database.read(count) == 1
