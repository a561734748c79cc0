"""Events over HTTP from a real database, while it is written to: none is missed, none comes twice, nobody waits."""

import random
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import pytest
from sqlalchemy import Connection, select

from claudomator_py.store.database import Database
from claudomator_py.store.events import record
from claudomator_py.store.tables import EVENT
from tests.fakes.daemon import Daemon, running
from tests.fakes.sse import EventSource
from tests.fakes.world import World
from tests.patience import PATIENCE_S

WRITERS = 4
EACH = 75


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


@pytest.fixture
def daemon(world: World, tmp_path: Path) -> Iterator[Daemon]:
    with running(world, tmp_path / "web") as opened:
        yield opened


def ids(database: Database, *, kind: str | None = None) -> list[int]:
    query = select(EVENT.c.id).order_by(EVENT.c.id)
    if kind is not None:
        query = query.where(EVENT.c.kind == kind)
    return database.read(lambda connection: list(connection.execute(query).scalars()))


def write_some(database: Database, writer: int) -> None:
    """Events in transactions of their own, some of which are undone: their ids are never seen."""
    chance = random.Random(writer)
    for number in range(EACH):

        def transaction(connection: Connection, number: int = number) -> None:
            for kind in ("approved", "rejected")[: chance.randint(1, 2)]:
                record(connection, number, kind, data={"writer": writer})
            if chance.random() < 0.1:
                raise LookupError

        try:
            database.write(transaction)
        except LookupError:
            continue


def read_with_breaks(daemon: Daemon, path: str, seed: int, last: threading.Event) -> list[int]:
    """The ids of all events up to that of kind ``released``, over connections that are cut again and again."""
    chance = random.Random(seed)
    seen: list[int] = []
    headers: dict[str, str] = {}
    while True:
        with EventSource(daemon, path, headers) as source:
            for message in islice(source.messages(), chance.randint(1, 60)):
                seen.append(message.data["id"])
                if message.kind == "released":
                    return seen
            if source.last_id:
                headers = {"Last-Event-ID": source.last_id}


@pytest.mark.parametrize("query", ["after=0", "after=0&kind=approved&kind=released"])
def test_readers_that_come_and_go_get_every_event_once_while_many_write(
    world: World, daemon: Daemon, query: str
) -> None:
    last = threading.Event()
    with ThreadPoolExecutor(WRITERS + 4) as pool:
        readers = [pool.submit(read_with_breaks, daemon, f"/v1/events?{query}", seed, last) for seed in range(4)]
        writers = [pool.submit(write_some, world.database, number) for number in range(WRITERS)]
        for writer in writers:
            writer.result(60)
        world.database.write(lambda connection: record(connection, 1, "released"))
        results = [reader.result(60) for reader in readers]
    expected = ids(world.database)
    if "kind" in query:
        expected = sorted([*ids(world.database, kind="approved"), *ids(world.database, kind="released")])
    assert len(expected) > EACH
    assert results == [expected] * 4


# What is stuck is a socket: no matter of the database.
@pytest.mark.parametrize("database_kind", ["sqlite"])
def test_a_reader_that_is_stuck_keeps_nobody_waiting(world: World, daemon: Daemon) -> None:
    host, port = daemon.address.split(":")
    stuck = [socket.create_connection((host, int(port)), timeout=PATIENCE_S) for _ in range(8)]
    for entry in stuck:
        entry.sendall(
            f"GET /v1/events?after=0 HTTP/1.1\r\nHost: {daemon.address}\r\nAuthorization: Bearer {daemon.token}\r\n"
            "Accept: text/event-stream\r\n\r\n".encode()
        )
    events, each = 2_000, 100
    with EventSource(daemon, "/v1/events?kind=approved") as reader:
        reader.opened()
        for first in range(0, events, each):
            world.database.write(lambda connection: _make(connection, each))
            assert world.submit(f"task-{first}").state == "QUEUED"
            assert daemon.ask("GET", "/livez").status == 200
        assert len(list(islice(reader.messages(), events))) == events
    assert daemon.ask("GET", "/v1/status").json()["counts"]["QUEUED"] == events // each
    assert world.tick().started > 0
    for entry in stuck:
        entry.close()


def _make(connection: Connection, number: int) -> None:
    """Events that are too large for eight of them to vanish in the buffers of a socket."""
    for _ in range(number):
        record(connection, 1, "approved", data={"text": "x" * 4_000})


def test_events_of_one_task_in_pages_and_as_they_come(world: World, daemon: Daemon) -> None:
    world.submit("other")
    task = world.submit("it")
    page = daemon.ask("GET", "/v1/events?task=it&limit=1").json()
    assert [event["kind"] for event in page["items"]] == ["accepted"]
    rest = daemon.ask("GET", f"/v1/events?task=it&cursor={page['next_cursor']}").json()
    assert ([event["kind"] for event in rest["items"]], rest["next_cursor"]) == (["state"], None)
    with EventSource(daemon, f"/v1/events?task={task.id}") as reader:
        reader.opened()
        world.service.cancel("other")
        world.service.cancel("it")
        message = next(reader.messages())
    assert (message.data["task_id"], message.data["data"]["state"]) == (task.id, "CANCELLED")


def test_the_output_of_a_run_without_what_its_agent_was_given(world: World, daemon: Daemon) -> None:
    world.submit("it", env={"MY_SECRET": "from-the-task"})
    world.tick()
    run = world.live("it")
    with EventSource(daemon, f"/v1/runs/{run.id}/log") as reader:
        messages = reader.messages()
        world.host.write(run.id, b"it is from-the-task.\n")
        assert next(messages).data["text"] == "it is [redacted].\n"
        world.end("it")
        world.tick()
        assert [message.kind for message in messages] == ["output", "end"]


def test_a_kind_that_no_event_has_is_refused_by_name(daemon: Daemon) -> None:
    """An empty list would look as if nothing had happened."""
    remedies = {"kind=bogus": "write one of these", "kind=state&kind=aproved": "did you mean `approved`?"}
    for kinds, remedy in remedies.items():
        refused = daemon.ask("GET", f"/v1/events?{kinds}")
        (problem,) = refused.json()["problems"]
        assert (refused.status, problem["field"], problem["remedy"]) == (422, "kind", remedy)
        assert "is not one of state, accepted, cancel_requested, " in problem["message"]
