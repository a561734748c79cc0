"""One daemon to a database, wherever its state folder is."""

import fcntl
import os
import time
from pathlib import Path

import pytest

from claudomator_py.daemon.locks import LOCK_FILE, StateInUse, claim_database, hold_state, holder
from claudomator_py.store.database import Database


def folder(tmp_path: Path, name: str) -> Path:
    path = tmp_path / name
    path.mkdir()
    return path


@pytest.mark.both_databases
def test_a_second_daemon_on_the_same_database_is_refused_while_the_first_lives(
    database: Database, tmp_path: Path
) -> None:
    path, other = folder(tmp_path, "one"), folder(tmp_path, "other")
    with hold_state(path), hold_state(other):
        claim_database(database, path)
        claim_database(database, path)
        with pytest.raises(StateInUse, match=f"that of the daemon on {path} .* stop that one first"):
            claim_database(database, other)
        claim_database(database, path)


def test_who_only_asks_for_the_holder_is_not_taken_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = folder(tmp_path, "one")
    asking = os.open(state / LOCK_FILE, os.O_RDONLY | os.O_CREAT, 0o600)
    fcntl.flock(asking, fcntl.LOCK_SH)
    monkeypatch.setattr(time, "sleep", lambda _: fcntl.flock(asking, fcntl.LOCK_UN))
    try:
        with hold_state(state):
            assert holder(state) == str(os.getpid())
    finally:
        os.close(asking)


def test_a_database_goes_with_who_takes_it_up_once_nobody_works_on_it(database: Database, tmp_path: Path) -> None:
    path, other = folder(tmp_path, "one"), folder(tmp_path, "other")
    with hold_state(path):
        claim_database(database, path)

    with hold_state(other):
        claim_database(database, other)
        with hold_state(path), pytest.raises(StateInUse):
            claim_database(database, path)


def test_a_state_folder_that_was_moved_takes_its_database_along(database: Database, tmp_path: Path) -> None:
    path = folder(tmp_path, "one")
    with hold_state(path):
        claim_database(database, path)
    moved = path.rename(tmp_path / "moved")

    with hold_state(moved):
        claim_database(database, moved)
