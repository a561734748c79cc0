"""Databases of earlier schemas, with rows in every table: what is in them survives an upgrade, and work goes on."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, inspect, select
from sqlmodel import SQLModel

from claudomator_py.domain.channel import ChannelSettings, NewChannel, NewMessage
from claudomator_py.domain.learning import LabelRule
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.task import TaskSpec
from claudomator_py.store import channel_rows, decision_rows, events, full_text, learning_rows, specialist_rows
from claudomator_py.store.database import Database
from claudomator_py.store.migrate import migrate
from claudomator_py.store.tables import SNAPSHOT, SPECIALIST_GRANT, Label
from claudomator_py.tasks import specialists
from claudomator_py.tasks.channels import create
from claudomator_py.tasks.inputs import with_granted_tools
from claudomator_py.tasks.learning import has_more, learn
from claudomator_py.tasks.messages import Advice, Written, post
from tests.fakes.cards import card
from tests.fakes.world import START_MS, World
from tests.integration.store.earlier_schemas import ROWS, content, earlier, kept

ANN = Principal("ann", Role.OPERATE, "shop")

REVISIONS = sorted(path.stem for path in ROWS.glob("*.sql"))
Upgraded = Callable[[str], Database]


@pytest.fixture
def upgraded(database_url: str, tmp_path: Path) -> Iterator[Upgraded]:
    """A database of that schema, as it is after the upgrade."""
    with ExitStack() as stack:

        def made(revision: str) -> Database:
            database = stack.enter_context(earlier(revision, database_url, tmp_path / "state"))
            migrate(database)
            return database

        yield made


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_row_survives_the_way_to_the_newest_schema(revision: str, database_url: str, tmp_path: Path) -> None:
    with earlier(revision, database_url, tmp_path / "state") as database:
        before = database.read(content)
        assert all(before.values()), "the rows that are kept as text leave a table untried"

        assert migrate(database).before == revision

        kept(before, database.read(content))


def test_the_column_of_granted_tools_has_only_its_new_name(upgraded: Upgraded) -> None:
    database = upgraded("0005_decisions")

    found = database.read(lambda connection: {column["name"] for column in inspect(connection).get_columns("task")})

    assert "granted_tools" in found
    assert "leave" not in found


def test_tools_that_were_granted_before_the_upgrade_still_are(upgraded: Upgraded) -> None:
    database = upgraded("0005_decisions")
    task = World(database).row("demanding")
    spec = TaskSpec(name="demanding", instructions="Build it.")

    assert with_granted_tools(task, spec, "claude").permissions.allowed_tools == ("Bash(make)",)
    assert with_granted_tools(task, spec, "codex") == spec


def test_one_without_specialists_takes_cards_and_finds_them(upgraded: Upgraded) -> None:
    database = upgraded("0006_granted_tools")

    database.write(lambda connection: specialists.register(connection, card("plumber"), OPERATOR, START_MS))

    assert [one.card.id for one in database.read(specialist_rows.seen)] == ["plumber"]
    assert database.read(lambda connection: full_text.hits(connection, ["plumber"], OPERATOR))


def test_one_that_learned_nothing_learns_from_what_happens_from_now_on(upgraded: Upgraded) -> None:
    database = upgraded("0007_specialists")
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

    last = database.read(events.last_id)
    database.write(lambda connection: learning_rows.put(connection, label))
    database.write(lambda connection: learn(connection, 0.1, START_MS, since=last))
    assert not database.read(has_more)

    found = database.read(lambda connection: learning_rows.standings(connection, None))
    assert [(one.specialist, one.topic, one.positive) for one in found] == [("plumber", "", 1), ("plumber", "taps", 1)]


def test_specialists_from_before_there_were_channels_answer_in_them(upgraded: Upgraded) -> None:
    database = upgraded("0008_learning")
    wanted = NewChannel(name="taps", participants=("plumber",), settings=ChannelSettings())
    channel = database.write(lambda connection: create(connection, wanted, ANN, START_MS))
    written = Written(ANN.id, NewMessage(content="@plumber it drips"))

    posted = database.write(lambda connection: post(connection, channel, written, Advice(), START_MS))

    (answer,) = database.read(lambda connection: channel_rows.answers(connection, [posted.id or 0]))
    assert (answer.specialist, answer.state) == ("plumber", "asked")


def test_labels_that_were_learned_before_the_upgrade_are_corrected_in_their_place(upgraded: Upgraded) -> None:
    database = upgraded("0008_learning")
    (label,) = database.read(lambda connection: learning_rows.telling(connection, "bank", 10))
    assert (label.counted, label.counted_as) == ("positive", 1)


def test_the_newest_rows_that_are_kept_leave_no_table_untried() -> None:
    """A migration that adds a table brings rows of it, so that the one after it is tried on them."""
    newest = max(ROWS.glob("*.sql"))
    assert set(re.findall(r"^INSERT INTO (\w+) ", newest.read_text(), re.MULTILINE)) == set(SQLModel.metadata.tables)


def test_conversations_of_channels_go_on(upgraded: Upgraded) -> None:
    database = upgraded("0013_ended")
    shared = {"specialist_id": "plumber", "grantee": OPERATOR.id, "by": "ann", "created_ms": START_MS}
    database.write(lambda connection: connection.execute(insert(SPECIALIST_GRANT).values(shared)))
    database.write(lambda connection: specialists.admit(connection, "plumber", OPERATOR, START_MS))
    (channel,) = database.read(lambda connection: channel_rows.seen(connection, OPERATOR))
    answered, asked = database.read(lambda connection: channel_rows.messages(connection, channel.id))
    assert (asked.verdict, answered.reply_to) == ("right", asked.id)

    reply = Written(OPERATOR.id, NewMessage(content="And the other tap?", reply_to=answered.id))
    posted = database.write(lambda connection: post(connection, channel, reply, Advice(), START_MS + 10_000))

    (answer,) = database.read(lambda connection: channel_rows.answers(connection, [posted.id or 0]))
    assert (answer.specialist, answer.state) == ("plumber", "asked")


def test_packed_snapshots_are_read(upgraded: Upgraded) -> None:
    database = upgraded("0013_ended")

    def unread(connection: Connection) -> list[str]:
        hashes = connection.execute(select(SNAPSHOT.c.hash)).scalars().all()
        return [digest for digest in hashes if not decision_rows.snapshot(connection, digest)]

    assert database.read(unread) == []
