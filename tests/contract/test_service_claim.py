"""One daemon to a database, wherever its state folder is."""

from pathlib import Path

import pytest

from claudomator_py.service.process.database_claim import claim_database
from claudomator_py.service.process.state_lock import StateInUse, hold_state
from claudomator_py.store.database import Database


def folder(tmp_path: Path, name: str) -> Path:
    path = tmp_path / name
    path.mkdir()
    return path


@pytest.mark.both_databases
def test_a_second_daemon_on_the_same_database_is_refused_while_the_first_lives(
    database: Database, tmp_path: Path
) -> None:
    one, other = folder(tmp_path, "one"), folder(tmp_path, "other")
    with hold_state(one), hold_state(other):
        claim_database(database, one)
        claim_database(database, one)
        with pytest.raises(StateInUse, match=f"that of the daemon on {one} .* stop that one first"):
            claim_database(database, other)
        claim_database(database, one)


def test_a_database_goes_with_who_takes_it_up_once_nobody_works_on_it(database: Database, tmp_path: Path) -> None:
    one, other = folder(tmp_path, "one"), folder(tmp_path, "other")
    with hold_state(one):
        claim_database(database, one)

    with hold_state(other):
        claim_database(database, other)
        with hold_state(one), pytest.raises(StateInUse):
            claim_database(database, one)


def test_a_state_folder_that_was_moved_takes_its_database_along(database: Database, tmp_path: Path) -> None:
    one = folder(tmp_path, "one")
    with hold_state(one):
        claim_database(database, one)
    moved = one.rename(tmp_path / "moved")

    with hold_state(moved):
        claim_database(database, moved)
