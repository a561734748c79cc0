"""A database of the sixth schema, with rows in every table, as it is after an upgrade; see ``test_first_schema``."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command

from claudomator_py.domain.principal import OPERATOR
from claudomator_py.store import full_text, specialist_rows
from claudomator_py.store.database import Database
from claudomator_py.store.migrate import alembic_config, migrate
from claudomator_py.tasks import specialists
from tests.fakes.cards import card
from tests.fakes.world import START_MS
from tests.integration.store.test_first_schema import content, filled, kept

SIXTH = "0006_granted_tools"


@pytest.fixture
def sixth(database_url: str, tmp_path: Path) -> Iterator[Database]:
    """A database with the tables of the sixth schema, and rows in each."""
    with Database.open(database_url, state_dir=tmp_path / "state") as database:
        with database.exclusive() as connection:
            config = alembic_config()
            config.attributes["connection"] = connection
            command.upgrade(config, SIXTH)
        database.write(lambda connection: filled(connection, SIXTH))
        yield database


def test_every_row_survives_the_way_to_the_newest_schema(sixth: Database) -> None:
    before = sixth.read(content)
    assert all(before.values()), "the rows that are kept as text leave a table untried"

    assert migrate(sixth).before == SIXTH

    kept(before, sixth.read(content))


def test_it_takes_cards_and_finds_them(sixth: Database) -> None:
    migrate(sixth)

    sixth.write(lambda connection: specialists.register(connection, card("plumber"), OPERATOR, START_MS))

    assert [one.card.id for one in sixth.read(specialist_rows.seen)] == ["plumber"]
    assert sixth.read(lambda connection: full_text.hits(connection, ["plumber"], OPERATOR))
