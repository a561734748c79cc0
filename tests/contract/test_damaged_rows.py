"""One row that cannot be read keeps no other from being shown, routed or run."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, delete, text
from sqlalchemy.exc import DBAPIError

from claudomator_py.domain.blocked import BlockCode
from claudomator_py.domain.channel import NewMessage
from claudomator_py.domain.errors import Conflict, Invalid
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.requests import DecisionFilter, HoldRequest, RestartRequest, TaskFilter
from claudomator_py.resources.access import TokenRequest
from claudomator_py.resources.channels.service import Channels
from claudomator_py.resources.decisions.service import Decisions
from claudomator_py.resources.overview.service import Overview
from claudomator_py.resources.report.service import Reports
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.store import outbox_rows, queue
from claudomator_py.store.database import Database
from claudomator_py.store.tables import LABEL, REMEMBERED, STANDING
from tests.cells import cells
from tests.contract.talk import made, said, told
from tests.contract.taught import Taught
from tests.contract.test_service_metering import measure
from tests.fakes.agents import CLAUDE, CODEX, LINT
from tests.fakes.cards import card
from tests.fakes.steps import spec
from tests.fakes.world import World

pytestmark = pytest.mark.both_databases

DEEP = 5_000
NO_JSON = ["{", "NaN", "nonsense", '{"reason": -Infinity}']
"""What PostgreSQL does not take."""
DAMAGE = [
    *("[]", "12", '"text"', "{}", "true", '{"reason": 1e999, "route": 5, "name": []}'),
    "[" * DEEP + "]" * DEEP,
    '{"reason":' * DEEP + "1" + "}" * DEEP,
    '{"reason": ' + "9" * 5_000 + "}",
    *NO_JSON,
]
Change = Callable[[Any], Any]


def halved(value: Any) -> Any:
    """The same, each text of it with half of a character at its end."""
    if isinstance(value, dict):
        return {key: halved(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [halved(entry) for entry in value]
    return f"{value}\ud800" if isinstance(value, str) else value


def wrapped(value: Any) -> Any:
    """The same, each of its parts of another type."""
    return {key: [entry] for key, entry in value.items()} if isinstance(value, dict) else value


WAYS: list[str | Change] = [*DAMAGE, halved, wrapped]


def damaging(*columns: tuple[str, str]) -> pytest.MarkDecorator:
    """Each of those columns by itself; on PostgreSQL, which hands on the same texts, all of them at once."""
    ways = [("sqlite", [column]) for column in columns] + [("postgresql", [*columns])]
    names = [*(".".join(column) for column in columns), "postgresql"]
    return pytest.mark.parametrize(("database_kind", "columns"), ways, ids=names)


@pytest.fixture
def world(database: Database) -> World:
    agents = [entry.model_copy(update={"max_concurrent": 50}) for entry in (CLAUDE, CODEX, LINT)]
    world = World(database, agents=agents, total=50, per_workdir=50)
    world.specialists.register(card("plumber"))
    world.specialists.register(card("florist"))
    for name, specialist in (("first", "plumber"), ("bad", "florist"), ("last", "plumber")):
        world.access.as_(OPERATOR)[Tasks].submit(spec(name, specialist=specialist, tags=["a"]))
    world.router.route()
    world.tick(1_000)
    for name in ("first", "bad", "last"):
        world.end(name)
    world.tick()
    return world


class Row:
    """The column of a task's rows, to be changed as somebody would by hand, and put back."""

    def __init__(self, database: Database, table: str, column: str, where: str) -> None:
        self._database, self._table, self._column, self._where = database, table, column, where
        self._stored = [
            (key, value if isinstance(value, str | None) else json.dumps(value)) for key, value in self._read()
        ]

    def damage(self, way: str | Change) -> bool:
        """Write that text, or what it makes of what is there; whether the database takes it."""
        texts = [
            (key, way if isinstance(way, str) else None if stored is None else json.dumps(way(json.loads(stored))))
            for key, stored in self._stored
        ]
        try:
            self._write(texts)
        except DBAPIError:
            assert (self._database.dialect, way in NO_JSON) == ("postgresql", True)
            return False
        return True

    def restore(self) -> None:
        self._write(self._stored)

    @property
    def _key(self) -> str:
        return {"event": "id", "task_revision": "revision"}.get(self._table, "id")

    def _read(self) -> list[Any]:
        query = f"SELECT {self._key}, {self._column} FROM {self._table} WHERE {self._where}"
        return self._database.read(lambda connection: list(connection.exec_driver_sql(query)))

    def _write(self, rows: Sequence[tuple[Any, str | None]]) -> None:
        kind = "CAST(:said AS json)" if self._database.dialect == "postgresql" else ":said"
        change = text(f"UPDATE {self._table} SET {self._column} = {kind} WHERE {self._key} = :key AND {self._where}")

        def write(connection: Connection) -> None:
            for key, value in rows:
                connection.execute(change, {"said": value, "key": key})

        self._database.write(write)


def rows_of(database: Database, columns: Sequence[tuple[str, str]], task_id: str) -> list[Row]:
    """Return the row of that task for each column."""
    return [
        Row(database, table, column, f"{'id' if table == 'task' else 'task_id'} = '{task_id}'")
        for table, column in columns
    ]


def damage(rows: Sequence[Row], way: str | Change) -> bool:
    """Damage each row that way; whether the database takes it."""
    return all(row.damage(way) for row in rows)


def test_decisions(world: World, database: Database) -> None:
    decisions = world.access.as_(OPERATOR)[Decisions]
    task_id = world.task("bad").id

    def listed(**wanted: Any) -> dict[str, Any]:
        return {item.id: item for item in decisions.page(DecisionFilter(**wanted), None, 200).items}

    before = listed()
    row = Row(database, "decision", "data", f"task_id = '{task_id}'")
    for way in filter(row.damage, WAYS):
        now = listed()
        assert now.keys() == before.keys()
        assert all(now[name] == before[name] for name in now if now[name].task_id != task_id)
        assert len(listed(kind="specialist")) == 3
        assert len(listed(route="specialist")) >= 2
        for entry in now.values():
            explained = decisions.explained(entry.id)
            if way is not halved and entry.task_id == task_id:
                assert "cannot be read" in entry.reason
                assert any("cannot be read" in sentence for sentence in explained.sentences)
        assert world.service.why("bad").task.name == "bad"
        assert world.service.why("first").decisions
    row.restore()
    assert listed() == before


@damaging(
    *(("run", name) for name in ("outcome", "progress", "check_result", "windows", "prior", "asked")),
    *(("task", name) for name in ("tags", "asks", "resume", "granted_tools", "restart_requested", "constraints")),
    ("task_revision", "spec"),
    ("event", "data"),
)
@pytest.mark.parametrize("third", cells([0], [1, 2]))
def test_tasks(world: World, database: Database, columns: Sequence[tuple[str, str]], third: int) -> None:
    overview = world.access.as_(OPERATOR)[Overview]
    task_id = world.task("bad").id
    before = {item.name: item for item in world.service.page(TaskFilter(), None, 50).items}
    rows = rows_of(database, columns, task_id)
    # The ways are read alike in all columns: in the gate, each column has a third of them, the next column another.
    begins = sum(map(len, columns[0])) + third
    for way in filter(partial(damage, rows), WAYS[begins % 3 :: 3]):
        now = {item.name: item for item in world.service.page(TaskFilter(), None, 50).items}
        assert list(now) == list(before), way
        assert (now["first"], now["last"]) == (before["first"], before["last"])
        assert overview.status().counts["COMPLETED"] == 3
        assert world.service.get("bad").name == "bad"
        assert world.service.why("bad").sentences
        assert world.service.runs("bad")
    world.submit("another", specialist="plumber")
    world.router.route()
    world.tick(1_000)
    assert world.state("another") == "RUNNING"


WORDS = [("task", "state"), ("task", "reason"), ("run", "state"), ("run", "tier"), ("run", "reason")]
NUMBERS = [
    *(("task", name) for name in ("priority", "revision", "updated_ms")),
    *(("run", name) for name in ("input_tokens", "started_ms")),
    *(("decision", name) for name in ("at_ms", "confidence", "generation")),
]
WRITTEN: list[tuple[str, str, object]] = [
    *((table, column, "DONE") for table, column in WORDS),
    *((table, column, 7_000_000) for table, column in NUMBERS),
]


@pytest.mark.parametrize(("table", "column", "value"), WRITTEN)
def test_a_word_or_number_that_is_not_known_harms_no_other_row(
    world: World, database: Database, table: str, column: str, value: object
) -> None:
    access = world.access.as_(OPERATOR)
    world.submit("after", specialist="plumber", depends_on=["bad"])
    task_id = world.task("bad").id
    key = "id" if table == "task" else "task_id"
    before = {item.name: item for item in world.service.page(TaskFilter(), None, 50).items}
    decided = {item.id: item for item in access[Decisions].page(DecisionFilter(), None, 200).items}

    change = text(f"UPDATE {table} SET {column} = :value WHERE {key} = '{task_id}'")
    database.write(lambda connection: connection.execute(change, {"value": value}))

    now = {item.name: item for item in world.service.page(TaskFilter(), None, 50).items}
    assert (now.keys(), now["first"], now["last"]) == (before.keys(), before["first"], before["last"])
    others = {item.id: item for item in access[Decisions].page(DecisionFilter(), None, 200).items}
    assert others.keys() == decided.keys()
    assert [others[name] for name in decided if decided[name].task_id != task_id] == [
        decision for decision in decided.values() if decision.task_id != task_id
    ]
    assert access[Overview].status().counts
    assert access[Reports].report()
    assert world.service.get("bad").name == "bad"
    assert world.service.why("after").sentences
    assert world.service.why("first").sentences


def test_a_task_whose_state_is_none_says_so_and_is_refused_changes(world: World, database: Database) -> None:
    change = text("UPDATE task SET state = 'DONE' WHERE name = 'bad'")
    database.write(lambda connection: connection.execute(change))
    view = world.service.get("bad")
    assert (view.state, view.available_actions) == ("FAILED", ())
    assert "cannot be read" in str(view.reason_text)
    assert any("cannot be read" in sentence for sentence in world.service.why("bad").sentences)
    with pytest.raises(Conflict, match="'DONE' is no state"):
        world.service.restart("bad", RestartRequest())
    with pytest.raises(Conflict, match="'DONE' is no state"):
        world.service.cancel("bad")


@damaging(("task", "constraints"), ("task_revision", "spec"))
def test_tasks_in_the_queue(world: World, database: Database, columns: Sequence[tuple[str, str]]) -> None:
    """Each damage by itself as to what is shown; then all of them at once, as to who runs."""
    overview = world.access.as_(OPERATOR)[Overview]
    bad, good = [f"bad-{number}" for number in range(len(WAYS))], ["one", "two", "three"]
    before = sum(measure(world).waits.values())
    for name in (good[0], *bad[:5], good[1], *bad[5:], good[2]):
        world.submit(name, specialist="plumber")
    world.router.route()
    damaged = [rows_of(database, columns, world.task(name).id) for name in bad]
    queued = before + len(bad) + len(good)
    for name, rows, way in zip(bad, damaged, WAYS, strict=True):
        if damage(rows, way):
            assert overview.status().counts["QUEUED"] == queued, way
            assert {item.name for item in world.service.page(TaskFilter(state="QUEUED"), None, 50).items} >= {
                *bad,
                *good,
            }
            assert world.service.why(name).sentences
            waits = measure(world).waits
            assert sum(waits.values()) == queued, way
            assert sum(number for wait, number in waits.items() if wait.code is BlockCode.FAULT) <= 1, way
        for row in rows:
            row.restore()
    for rows, way in zip(damaged, WAYS, strict=True):
        damage(rows, way)
    world.tick(1_000)
    assert {world.state(name) for name in good} == {"RUNNING"}


def test_a_running_task_whose_caps_cannot_be_read_counts_for_none(world: World, database: Database) -> None:
    """They are counted at each start where there are rules."""
    world.submit("one", specialist="plumber")
    world.router.route()
    world.tick(1_000)
    assert world.state("one") == "RUNNING"
    for way in ('{"caps": 5}', '{"caps": [{"rule": []}]}', '["caps"]'):
        assert Row(database, "task", "constraints", f"id = '{world.task('one').id}'").damage(way)
        assert not database.read(queue.caps_in_use)


def test_cards(world: World, database: Database) -> None:
    access = world.access.as_(OPERATOR)
    row = Row(database, "specialist", "card", "id = 'florist'")
    for number, _ in enumerate(filter(row.damage, WAYS)):
        with pytest.raises(Conflict, match="cannot be read"):
            access[Specialists].get("florist")
        assert "plumber" in [item.id for item in access[Specialists].page(None, 50).items]
        name = f"pipes-{number}"
        access[Tasks].submit(spec(name, specialist="plumber"))
        world.router.route()
        world.tick(1_000)
        assert world.state(name) == "RUNNING"
        world.end(name)
        world.tick()
        assert access[Overview].status().counts
    assert access[Specialists].register(card("florist")).id == access[Specialists].get("florist").id, (
        "it is written anew"
    )


def test_whoever_names_a_card_that_cannot_be_read_is_told_so(world: World, database: Database) -> None:
    """Not that there is none, nor that it was meant."""
    access = world.access.as_(OPERATOR)
    assert Row(database, "specialist", "card", "id = 'florist'").damage("{}")
    naming: list[Callable[[], object]] = [
        lambda: access[Tasks].submit(spec("roses", specialist="florist")),
        lambda: access[Specialists].register(card("gardener", fallback="florist")),
        lambda: access[Specialists].register(card("gardener", escalation="florist")),
    ]
    for named in naming:
        with pytest.raises(Invalid) as refused:
            named()
        (problem,) = refused.value.problems
        assert "cannot be read" in problem.message
        assert str(problem.remedy).startswith("write it again")


@pytest.mark.parametrize("way", ["{}", "[]", wrapped])
def test_a_task_whose_card_cannot_be_read_says_so_and_waits(
    world: World, database: Database, way: str | Change
) -> None:
    world.submit("roses", specialist="florist")
    row = Row(database, "specialist", "card", "id = 'florist'")
    row.damage(way)
    world.router.route()
    blocked = world.service.get("roses").blocked
    assert "the card of `florist` cannot be read" in str(blocked)
    assert "register that card again" in str(blocked)
    world.router.route()
    row.restore()
    world.now_ms += 60_000
    world.router.route()
    world.tick(1_000)
    assert world.state("roses") == "RUNNING"


@damaging(("task_revision", "spec"), ("run", "outcome"), ("event", "data"), ("decision", "data"))
def test_what_ended_before_and_after_it_teaches_all_the_same(
    database: Database, columns: Sequence[tuple[str, str]]
) -> None:
    taught = Taught(database, card("plumber"), card("florist"))
    for name in ("first", "bad", "last"):
        taught.submit(name, f"Do what {name} says", specialist="plumber")
        taught.done(name)
    rows = rows_of(database, columns, taught.world.task("bad").id)
    for way in filter(partial(damage, rows), WAYS):
        taught.learner.run_once()
        assert [len(taught.labels(name)) for name in ("first", "last")] == [1, 1], way
        database.write(_unlearned)


def _unlearned(connection: Connection) -> None:
    for table in (LABEL, STANDING, REMEMBERED):
        connection.execute(delete(table))


@pytest.mark.parametrize("way", ["[]", '{"working_dir": 5}', '"text"', wrapped])
def test_a_channel_whose_settings_cannot_be_read_keeps_no_other_without_its_answers(
    world: World, database: Database, way: str | Change
) -> None:
    made(world, name="cellar", participants=("florist",))
    made(world, participants=("plumber",))
    message = NewMessage(content="@florist roses")
    world.access.as_(OPERATOR)[Channels].post("cellar", message)
    said(world, "@plumber pipes")
    assert Row(database, "channel", "settings", "name = 'cellar'").damage(way)
    world.answers.run_once()
    world.router.route()
    world.tick(1_000)
    for task in world.service.page(TaskFilter(state="RUNNING"), None, 50).items:
        world.end(task.name, text="Done.")
    world.tick()
    world.answers.run_once()
    assert ("plumber", "assistant", "Done.") in told(world)


Listed = Callable[[], Sequence[Any]]


@pytest.fixture
def lists(world: World, database: Database) -> dict[str, Listed]:
    """Every list of the world by its table, each with three entries."""
    access = world.access.as_(OPERATOR)
    for number, name in enumerate(("first", "bad", "last")):
        world.schedules.add(spec(name, schedule="0 3 * * *", timezone="Europe/Berlin"))
        world.tokens.create(TokenRequest(name=name, role="read"))
        world.roster.hold(world.agents[number].name, HoldRequest(reason=name))
        made(world, name=name, participants=("plumber",))
        _noticed(database, name, world.now_ms)
    for name in ("first", "bad", "last"):
        access[Channels].post("bad", NewMessage(content=f"@plumber {name}"))
    return {
        "specialist": lambda: access[Specialists].page(None, 50).items,
        "event": lambda: world.events.last_events(world.events.event_filter(None, ()), 50).items,
        "schedule": world.schedules.all,
        "api_token": world.tokens.all,
        "hold": lambda: [hold for agent in world.roster.all() for hold in agent.holds],
        "channel": lambda: access[Channels].page(None, 50).items,
        "channel_member": lambda: access[Channels].page(None, 50).items,
        "channel_message": lambda: access[Channels].messages("bad").items,
        "channel_answer": lambda: access[Channels].messages("bad").items,
        "outbox": lambda: world.notices.deliveries(None, None, 50).items,
    }


TIMES: list[object] = ["soon", 7 * 10**18]
WORD: list[object] = ["soon"]
CHANGED: dict[str, dict[str, list[object]]] = {
    "specialist": {"created_ms": [7 * 10**18]},
    "event": {"at_ms": [7 * 10**18]},
    "schedule": {
        **dict.fromkeys(("cron", "timezone"), WORD),
        **dict.fromkeys(("last_ms", "created_ms", "paused_ms"), TIMES),
    },
    "api_token": {"role": WORD, **dict.fromkeys(("expires_ms", "revoked_ms", "created_ms"), TIMES)},
    "hold": {
        **dict.fromkeys(("reason", "provenance"), WORD),
        **dict.fromkeys(("created_ms", "doubted_ms", "until_ms"), TIMES),
    },
    "channel": dict.fromkeys(("version", "created_ms"), TIMES),
    "channel_member": {"role": WORD},
    "channel_message": {"created_ms": [7 * 10**18]},
    "channel_answer": {"state": WORD},
    "outbox": {"state": WORD, **dict.fromkeys(("attempts", "next_ms", "created_ms"), TIMES)},
}


@pytest.mark.parametrize("table", CHANGED)
def test_a_value_that_is_not_known_keeps_no_row_from_a_list(
    world: World, database: Database, lists: dict[str, Listed], table: str
) -> None:
    page, where = lists[table], "1 = 1"
    if alone := table not in ("channel_answer", "channel_member"):
        where = f"id = '{_scalar(database, f'SELECT id FROM {table} ORDER BY id LIMIT 1 OFFSET 1')}'"
    for column, values in CHANGED[table].items():
        before = page()
        stored = _scalar(database, f"SELECT {column} FROM {table} WHERE {where}") if alone else None
        change = text(f"UPDATE {table} SET {column} = :value WHERE {where}")
        for value in values:
            try:
                database.write(partial(_changed, change, value))
            except DBAPIError:
                assert database.dialect == "postgresql"
                continue
            after = page()
            assert len(after) == len(before), (column, value)
            assert sum(entry not in before for entry in after) <= (1 if alone else 3), (column, value)
            assert world.access.as_(OPERATOR)[Overview].status().counts
            assert world.access.as_(OPERATOR)[Reports].report()
            world.tick(1_000)
        if alone:
            database.write(partial(_changed, change, stored))


def _scalar(database: Database, query: str) -> Any:
    return database.read(lambda connection: connection.execute(text(query)).scalar_one())


def _noticed(database: Database, target: str, now_ms: int) -> None:
    database.write(lambda connection: outbox_rows.add(connection, target, 1, {}, now_ms))


def _changed(change: Any, value: object, connection: Connection) -> None:
    connection.execute(change, {"value": value})
