"""A database of the thirteenth schema, with rows in every table, as after an upgrade; see ``test_first_schema``."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import Connection, select
from sqlmodel import SQLModel

from claudomator_py.domain.channel import NewMessage
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.store import channel_rows, decision_rows
from claudomator_py.store.database import Database
from claudomator_py.store.migrate import alembic_config, migrate
from claudomator_py.store.tables import SNAPSHOT
from claudomator_py.tasks.messages import Advice, Written, post
from tests.fakes.world import START_MS
from tests.integration.store.test_first_schema import ROWS, content, filled, kept

THIRTEENTH = "0013_ended"


@pytest.fixture
def thirteenth(database_url: str, tmp_path: Path) -> Iterator[Database]:
    """A database with the tables of the thirteenth schema, and rows in each."""
    with Database.open(database_url, state_dir=tmp_path / "state") as database:
        with database.exclusive() as connection:
            config = alembic_config()
            config.attributes["connection"] = connection
            command.upgrade(config, THIRTEENTH)
        database.write(lambda connection: filled(connection, THIRTEENTH))
        yield database


def test_every_row_survives_the_way_to_the_newest_schema(thirteenth: Database) -> None:
    before = thirteenth.read(content)
    assert all(before.values()), "the rows that are kept as text leave a table untried"

    assert migrate(thirteenth).before == THIRTEENTH

    kept(before, thirteenth.read(content))


def test_the_newest_rows_that_are_kept_leave_no_table_untried() -> None:
    """A migration that adds a table brings rows of it, so that the one after it is tried on them."""
    newest = max(ROWS.glob("*.sql"))
    assert set(re.findall(r"^INSERT INTO (\w+) ", newest.read_text(), re.MULTILINE)) == set(SQLModel.metadata.tables)


def test_its_conversations_go_on(thirteenth: Database) -> None:
    migrate(thirteenth)
    (channel,) = thirteenth.read(lambda connection: channel_rows.seen(connection, OPERATOR))
    answered, asked = thirteenth.read(lambda connection: channel_rows.messages(connection, channel.id))
    assert (asked.verdict, answered.reply_to) == ("right", asked.id)

    reply = Written(OPERATOR.id, NewMessage(content="And the other tap?", reply_to=answered.id))
    posted = thirteenth.write(lambda connection: post(connection, channel, reply, Advice(), START_MS + 10_000))

    (answer,) = thirteenth.read(lambda connection: channel_rows.answers(connection, [posted.id or 0]))
    assert (answer.specialist, answer.state) == ("plumber", "asked")


def test_its_snapshots_are_read(thirteenth: Database) -> None:
    migrate(thirteenth)

    def unread(connection: Connection) -> list[str]:
        hashes = connection.execute(select(SNAPSHOT.c.hash)).scalars().all()
        return [digest for digest in hashes if not decision_rows.snapshot(connection, digest)]

    assert thirteenth.read(unread) == []
