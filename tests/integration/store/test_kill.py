"""Acknowledged is durable: real processes are killed while they write, and nothing they acknowledged is missing."""

import os
import random
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from claudomator_py.store.database import Database
from tests.warm import bare

CHILD = Path(__file__).with_name("writing_child.py")
# The first write, and one with others before it.
SOME = [1, pytest.param(2, marks=pytest.mark.chaos), 5]


def killed(url: str, state_dir: Path, *, point: str = "-", nth: int = 0, after: int | None = None) -> list[int]:
    """What a child acknowledged before it died at a crash point, or was killed after that many acknowledgements."""
    command = [sys.executable, str(CHILD), url, str(state_dir), point, str(nth)]
    child = bare.of_daemons().read(command, given=b"", environ={"PATH": os.environ["PATH"]})
    lines: list[bytes] = []
    for line in child.stdout:
        lines.append(line)
        if len(lines) == after:
            child.kill()
    _, errors = child.communicate()
    assert child.returncode == -9, errors.decode()
    return [int(line) for line in lines if line.endswith(b"\n")]


def kept(url: str, state_dir: Path) -> list[int]:
    """The writes found by the next process, each of them whole."""
    with Database.open(url, state_dir=state_dir) as database:
        rows = database.read(
            lambda connection: connection.execute(
                text("SELECT number, count(*) FROM mark GROUP BY number ORDER BY number")
            ).all()
        )
        assert {count for _, count in rows} <= {2}
        # The dead left no lock behind.
        database.write(lambda connection: connection.execute(text("INSERT INTO mark VALUES (-1, 0)")))
    return [number for number, _ in rows]


@pytest.mark.parametrize("nth", SOME)
@pytest.mark.parametrize("point", ["store-begin", "store-before-commit"])
def test_killed_before_a_commit_exactly_the_acknowledged_is_kept(
    database_url: str, tmp_path: Path, point: str, nth: int
) -> None:
    acknowledged = killed(database_url, tmp_path, point=point, nth=nth)
    assert kept(database_url, tmp_path) == acknowledged


@pytest.mark.parametrize("nth", SOME)
def test_killed_after_a_commit_what_was_not_yet_acknowledged_is_kept_too(
    database_url: str, tmp_path: Path, nth: int
) -> None:
    acknowledged = killed(database_url, tmp_path, point="store-after-commit", nth=nth)
    results = kept(database_url, tmp_path)
    assert results[: len(acknowledged)] == acknowledged
    assert len(results) > len(acknowledged)


@pytest.mark.parametrize("after", [1, pytest.param(41, marks=pytest.mark.chaos), 777])
def test_killed_at_any_moment_nothing_acknowledged_is_missing(database_url: str, tmp_path: Path, after: int) -> None:
    acknowledged = killed(database_url, tmp_path, after=after)
    assert len(acknowledged) >= after
    assert set(acknowledged) <= set(kept(database_url, tmp_path))


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(20))
def test_killed_at_random_nothing_acknowledged_is_missing(database_url: str, tmp_path: Path, seed: int) -> None:
    acknowledged = killed(database_url, tmp_path, after=random.Random(seed).randrange(1, 5_000))
    assert set(acknowledged) <= set(kept(database_url, tmp_path))
