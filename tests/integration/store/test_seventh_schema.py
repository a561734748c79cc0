"""A database of the seventh schema, with rows in every table, as it is after an upgrade; see ``test_first_schema``."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command

from claudomator_py.domain.learning import LabelRule
from claudomator_py.store import events, learning_rows
from claudomator_py.store.database import Database
from claudomator_py.store.migrate import alembic_config, migrate
from claudomator_py.store.tables import Label
from claudomator_py.tasks.learning import has_more, learn
from tests.fakes.world import START_MS
from tests.integration.store.test_first_schema import content, filled, kept

SEVENTH = "0007_specialists"


@pytest.fixture
def seventh(database_url: str, tmp_path: Path) -> Iterator[Database]:
    """A database with the tables of the seventh schema, and rows in each."""
    with Database.open(database_url, state_dir=tmp_path / "state") as database:
        with database.exclusive() as connection:
            config = alembic_config()
            config.attributes["connection"] = connection
            command.upgrade(config, SEVENTH)
        database.write(lambda connection: filled(connection, SEVENTH))
        yield database


def test_every_row_survives_the_way_to_the_newest_schema(seventh: Database) -> None:
    before = seventh.read(content)
    assert all(before.values()), "the rows that are kept as text leave a table untried"

    assert migrate(seventh).before == SEVENTH

    kept(before, seventh.read(content))


def test_it_learns_from_what_happens_from_now_on(seventh: Database) -> None:
    migrate(seventh)
    label = Label(
        decision_id="d",
        task_id="t",
        revision=1,
        organisation="",
        specialist="plumber",
        topic="taps",
        verdict="positive",
        rule=LabelRule.SUCCEEDED.value,
        at_ms=START_MS,
    )

    last = seventh.read(events.last_id)
    seventh.write(lambda connection: learning_rows.put(connection, label))
    seventh.write(lambda connection: learn(connection, 0.1, START_MS, since=last))
    assert not seventh.read(has_more)

    found = seventh.read(lambda connection: learning_rows.standings(connection, None))
    assert [(one.specialist, one.topic, one.positive) for one in found] == [("plumber", "", 1), ("plumber", "taps", 1)]
