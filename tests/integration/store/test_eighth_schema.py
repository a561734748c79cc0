"""A database of the eighth schema, with rows in every table, as it is after an upgrade; see ``test_first_schema``."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command

from claudomator_py.domain.channel import ChannelSettings, NewChannel, NewMessage
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.store import channel_rows
from claudomator_py.store.database import Database
from claudomator_py.store.migrate import alembic_config, migrate
from claudomator_py.tasks.channels import create
from claudomator_py.tasks.messages import Advice, Written, post
from tests.fakes.world import START_MS
from tests.integration.store.test_first_schema import content, filled, kept

EIGHTH = "0008_learning"


@pytest.fixture
def eighth(database_url: str, tmp_path: Path) -> Iterator[Database]:
    """A database with the tables of the eighth schema, and rows in each."""
    with Database.open(database_url, state_dir=tmp_path / "state") as database:
        with database.exclusive() as connection:
            config = alembic_config()
            config.attributes["connection"] = connection
            command.upgrade(config, EIGHTH)
        database.write(lambda connection: filled(connection, EIGHTH))
        yield database


def test_every_row_survives_the_way_to_the_newest_schema(eighth: Database) -> None:
    before = eighth.read(content)
    assert all(before.values()), "the rows that are kept as text leave a table untried"

    assert migrate(eighth).before == EIGHTH

    kept(before, eighth.read(content))


def test_its_specialists_answer_in_channels(eighth: Database) -> None:
    migrate(eighth)
    wanted = NewChannel(name="taps", participants=("plumber",), settings=ChannelSettings())
    channel = eighth.write(lambda connection: create(connection, wanted, OPERATOR, START_MS))
    written = Written(OPERATOR.id, NewMessage(content="@plumber it drips"))

    posted = eighth.write(lambda connection: post(connection, channel, written, Advice(), START_MS))

    (answer,) = eighth.read(lambda connection: channel_rows.answers(connection, [posted.id or 0]))
    assert (answer.specialist, answer.state) == ("plumber", "asked")
