"""A world on a store of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.store.database import Database
from tests.databases import open_migrated
from tests.fakes.world import World


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with open_migrated(tmp_path) as opened:
        yield opened


@pytest.fixture
def world(database: Database) -> World:
    return World(database)
