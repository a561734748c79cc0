"""A world on a store of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.store.database import Database
from claudomator_py.store.migrate import migrate
from tests.fakes.world import World


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open("sqlite", state_dir=tmp_path) as opened:
        migrate(opened)
        yield opened


@pytest.fixture
def world(database: Database) -> World:
    return World(database)
