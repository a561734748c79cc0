"""A database with the schema of ``notes``, for tests of the database itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.store.database import Database
from tests.contract.notes import metadata


@pytest.fixture
def db(database_url: str, tmp_path: Path) -> Iterator[Database]:
    with Database.open(database_url, state_dir=tmp_path / "state") as opened:
        opened.write(metadata.create_all)
        yield opened


@pytest.fixture
def commits(db: Database) -> list[int]:
    """One entry for each commit from here on."""
    seen: list[int] = []
    db.on_commit(lambda: seen.append(len(seen)))
    return seen
