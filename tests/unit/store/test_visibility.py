"""Which rows exist for whom: each condition by itself, against rows of two organisations and of the daemon's own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import ColumnElement, Table, select

from claudomator_py.domain.channel import NewChannel
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.resources.channels.service import Channels
from claudomator_py.resources.schedules.service import Schedules
from claudomator_py.resources.specialists import GrantRequest
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.store import visibility
from claudomator_py.store.tables import CHANNEL, DECISION, EVENT, RUN, SCHEDULE, SPECIALIST, TASK
from tests.databases import open_migrated
from tests.fakes.cards import card
from tests.fakes.steps import spec
from tests.fakes.world import World

ANN = Principal("ann", Role.OPERATE, "acme")
EVE = Principal("eve", Role.ADMIN, "acme")
BOB = Principal("bob", Role.OPERATE, "bolt")
CARL = Principal("carl", Role.READ)
Condition = Callable[[Principal], ColumnElement[bool]]


@pytest.fixture
def world(tmp_path: Path) -> Any:
    """Each of the three has a task that runs, a schedule and a channel."""
    with open_migrated(tmp_path) as database:
        world = World(database)
        for by, name in ((ANN, "a"), (BOB, "b"), (OPERATOR, "o")):
            access = world.access.as_(by)
            access[Tasks].submit(spec(name))
            access[Schedules].add(spec(f"nightly-{name}", schedule="0 3 * * *"))
            access[Channels].create(NewChannel(name=name))
        world.tick()
        yield world


def found(world: World, table: Table, column: str, condition: ColumnElement[bool]) -> set[Any]:
    query = select(table.c[column]).where(condition)
    return set(world.database.read(lambda connection: connection.execute(query).scalars().all()))


def run_of(world: World, name: str) -> Principal:
    run = world.live(name)
    return Principal(f"run:{run.id}", Role.RUN, world.row(name).organisation, run.id)


@pytest.mark.parametrize(
    ("by", "seen"), [(OPERATOR, {"a", "b", "o"}), (CARL, {"a", "b", "o"}), (ANN, {"a"}), (EVE, {"a"}), (BOB, {"b"})]
)
def test_an_organisation_has_its_own_tasks_runs_schedules_channels_and_decisions(
    world: World, by: Principal, seen: set[str]
) -> None:
    ids = {world.row(name).id for name in seen}
    assert found(world, TASK, "name", visibility.tasks_seen(by)) == seen
    assert found(world, RUN, "task_id", visibility.runs_seen(by)) == ids
    assert found(world, DECISION, "task_id", visibility.rows_seen(DECISION, by)) == ids
    assert found(world, CHANNEL, "name", visibility.rows_seen(CHANNEL, by)) == seen
    assert found(world, SCHEDULE, "name", visibility.rows_seen(SCHEDULE, by)) == {f"nightly-{name}" for name in seen}


@pytest.mark.parametrize("name", ["a", "o"])
def test_a_run_has_itself_and_its_task_and_nothing_beside(world: World, name: str) -> None:
    by = run_of(world, name)
    assert found(world, TASK, "name", visibility.tasks_seen(by)) == {name}
    assert found(world, RUN, "id", visibility.runs_seen(by)) == {by.run_id}
    assert found(world, EVENT, "task_id", visibility.events_seen(by)) == {world.row(name).id}
    for table in (SCHEDULE, CHANNEL, DECISION):
        assert found(world, table, "id", visibility.rows_seen(table, by)) == set()


def test_those_who_see_the_same_are_represented_by_one_who_sees_no_more(world: World) -> None:
    assert visibility.representative(CARL) == visibility.representative(OPERATOR)
    assert visibility.representative(EVE) == visibility.representative(ANN)
    for by in (OPERATOR, ANN, BOB, run_of(world, "a"), run_of(world, "o")):
        seen = found(world, TASK, "id", visibility.tasks_seen(by))
        assert found(world, TASK, "id", visibility.tasks_seen(visibility.representative(by))) == seen


def test_events_are_those_of_ones_tasks_and_those_of_no_task_that_one_has_caused(world: World) -> None:
    of_all = found(world, EVENT, "id", visibility.events_seen(OPERATOR))
    of_ann = found(world, EVENT, "id", visibility.events_seen(ANN))
    of_eve = found(world, EVENT, "id", visibility.events_seen(EVE))
    assert of_eve < of_ann < of_all
    assert found(world, EVENT, "task_id", visibility.events_seen(ANN)) == {world.row("a").id, None}
    assert found(world, EVENT, "by", visibility.events_seen(ANN) & EVENT.c.task_id.is_(None)) == {"ann"}
    assert found(world, EVENT, "task_id", visibility.events_seen(EVE)) == {world.row("a").id}


# --- cards ----------------------------------------------------------------------------------------------------------

CARDS = {
    "open": (ANN, "public"),
    "shared-a": (ANN, "shared"),
    "lent-to-bob": (ANN, "shared"),
    "lent-to-bolt": (ANN, "shared"),
    "hidden-a": (ANN, "private"),
    "shared-o": (OPERATOR, "shared"),
    "hidden-o": (OPERATOR, "private"),
    "gone": (ANN, "public"),
}


@pytest.fixture
def staffed(world: World) -> World:
    for name, (by, seen_by) in CARDS.items():
        world.access.as_(by)[Specialists].register(card(name, visibility=seen_by))
    of_ann = world.access.as_(ANN)[Specialists]
    of_ann.grant("lent-to-bob", GrantRequest(grantee="bob"))
    of_ann.grant("lent-to-bolt", GrantRequest(grantee="org:bolt"))
    of_ann.remove("gone")
    return world


@pytest.mark.parametrize(
    ("by", "seen"),
    [
        (OPERATOR, set(CARDS) - {"gone"}),
        (CARL, set(CARDS) - {"gone"}),
        (ANN, {"open", "shared-a", "lent-to-bob", "lent-to-bolt", "hidden-a"}),
        (EVE, {"open", "shared-a", "lent-to-bob", "lent-to-bolt"}),
        (BOB, {"open", "lent-to-bob", "lent-to-bolt"}),
        (Principal("ben", Role.OPERATE, "bolt"), {"open", "lent-to-bolt"}),
        (Principal("run:r", Role.RUN, None, "r"), {"open", "shared-o"}),
    ],
)
def test_a_card_exists_for_whom_it_is_meant_and_is_hidden_from_all_others(
    staffed: World, by: Principal, seen: set[str]
) -> None:
    assert found(staffed, SPECIALIST, "id", visibility.cards_seen(by)) & set(CARDS) == seen
    # What was removed is not there any more, but whoever saw it may know that it was.
    assert found(staffed, SPECIALIST, "id", visibility.cards_hidden(by)) & set(CARDS) == set(CARDS) - seen - {"gone"}


def test_a_card_works_for_another_side_only_while_its_present_content_is_admitted(staffed: World) -> None:
    def given_work() -> set[str]:
        return found(staffed, SPECIALIST, "id", visibility.assignable_cards(BOB)) & set(CARDS)

    assert given_work() == set()
    staffed.access.as_(OPERATOR)[Specialists].admit("lent-to-bob")
    assert given_work() == {"lent-to-bob"}
    changed = card("lent-to-bob", visibility=CARDS["lent-to-bob"][1], description="Does something else.")
    staffed.access.as_(ANN)[Specialists].replace("lent-to-bob", changed)
    assert given_work() == set()


def test_a_card_reached_over_http_works_only_if_it_is_the_operators(world: World) -> None:
    for by, name in ((ANN, "plain"), (ANN, "hub-a"), (ANN, "http-a"), (OPERATOR, "http-o")):
        url = {"hub-a": "ws-agent://hub-a", "plain": None}.get(name, "https://agents.example/a2a")
        world.access.as_(by)[Specialists].register(card(name, visibility="public", url=url))
        world.access.as_(OPERATOR)[Specialists].admit(name)
    assert found(world, SPECIALIST, "id", visibility.assignable_cards(ANN)) == {"plain", "hub-a", "http-o"}


@pytest.mark.parametrize(
    ("name", "hidden"),
    [("hub:hidden-a", True), ("http:hidden-a", True), ("hub:open", False), ("claude", False), ("hidden-a", False)],
)
def test_an_agent_is_hidden_as_its_card_is(staffed: World, name: str, hidden: bool) -> None:
    for by, expected in ((BOB, hidden), (ANN, False), (OPERATOR, False)):
        assert bool(found(staffed, TASK, "id", visibility.agent_hidden(name, by))) is expected
