"""Connections that are shared: no more of them than there may be, and nobody who waits for one is forgotten."""

import threading
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, create_engine

from claudomator_py.store import StoreUnavailable, connections
from claudomator_py.store.connections import Connections, Snapshots

MAX_CONNECTIONS = 2


@pytest.fixture
def shared() -> Iterator[Connections]:
    engine = create_engine("sqlite://", connect_args={"check_same_thread": False})
    opened = Connections(engine, MAX_CONNECTIONS)
    yield opened
    opened.close()
    engine.dispose()


def test_whoever_waits_gets_one_and_nobody_has_the_same_at_a_time(shared: Connections) -> None:
    taken: set[int] = set()
    problems: list[str] = []

    def work() -> None:
        for _ in range(500):
            connection = shared.take()
            if id(connection) in taken or len(taken) >= MAX_CONNECTIONS:
                problems.append("two have it")
            taken.add(id(connection))
            taken.discard(id(connection))
            shared.give_back(connection)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_one_that_is_given_back_goes_to_who_waits_for_it(shared: Connections) -> None:
    first, second = shared.take(), shared.take()
    connections: list[Connection] = []
    waiter = threading.Thread(target=lambda: connections.append(shared.take()))
    waiter.start()
    shared.give_back(second)
    waiter.join()
    assert connections == [second]
    shared.give_back(second)
    shared.give_back(first)
    assert shared.take() is first


def test_waiting_ends_after_a_while(shared: Connections, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "WAIT_S", 0.01)
    for _ in range(MAX_CONNECTIONS):
        shared.take()
    with pytest.raises(StoreUnavailable, match="in use"):
        shared.take()


def test_once_closed_nobody_gets_one_or_waits(shared: Connections) -> None:
    first, second = shared.take(), shared.take()
    refused: list[StoreUnavailable] = []

    def wait() -> None:
        with pytest.raises(StoreUnavailable) as error:
            shared.take()
        refused.append(error.value)

    waiter = threading.Thread(target=wait)
    waiter.start()
    shared.close()
    waiter.join()
    shared.give_back(first)
    with pytest.raises(StoreUnavailable, match="closed") as error:
        shared.take()
    assert [entry.reason for entry in (error.value, *refused)] == ["the database is closed"] * 2
    assert first.closed
    assert not second.closed
    shared.give_back(second)
    assert second.closed


@pytest.mark.parametrize("kind", [Connections, Snapshots])
def test_one_given_back_while_they_are_closed_is_closed_too(kind: type[Connections]) -> None:
    engine = create_engine("sqlite://", connect_args={"check_same_thread": False})
    shared = kind(engine, MAX_CONNECTIONS)
    connection = shared.take()
    shared.close()
    shared.give_back(connection)
    assert connection.closed
    with pytest.raises(StoreUnavailable, match="closed"):
        shared.take()
    engine.dispose()
