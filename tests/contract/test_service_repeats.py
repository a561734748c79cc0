"""Requests with a key, on every store: done once, told the same again, by the next daemon too."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection

from claudomator_py.domain import principal
from claudomator_py.domain.errors import Conflict, Invalid, KeyInUse, KeyReused
from claudomator_py.domain.principal import KEPT_MS, RequestKey
from claudomator_py.domain.requests import RestartRequest
from claudomator_py.store.database import Database
from tests.fakes.steps import spec
from tests.fakes.world import World
from tests.patience import PATIENCE_S

KEY = RequestKey("k", "what was asked")


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def test_a_repeated_submission_is_one_task_told_as_it_was(world: World) -> None:
    first = world.service.submit(spec("t"), key=KEY)
    world.tick()
    world.succeed("t")
    assert world.service.submit(spec("t"), key=KEY) == first
    assert (first.state, world.task("t").state) == ("QUEUED", "COMPLETED")
    assert len(world.names()) == 1


def test_what_is_told_with_a_key_is_what_is_told_without(world: World) -> None:
    with_key = world.service.submit(spec("t", depends_on=["other"], tags=["a"]), key=KEY)
    assert with_key == world.service.get("t")


def test_the_next_daemon_knows_the_answer(world: World) -> None:
    first = world.service.submit(spec("t"), key=KEY)
    world.restarted_daemon()
    assert world.service.submit(spec("t"), key=KEY) == first
    assert len(world.names()) == 1


@pytest.mark.both_databases
def test_every_change_is_repeated(world: World) -> None:
    seen = world.submit("t").version
    cancelled = world.service.cancel("t", versions=seen, key=RequestKey("c", "c"))
    restarted = world.service.restart("t", RestartRequest(), key=RequestKey("r", "r"))
    released = world.roster.release("claude", key=RequestKey("a", "a"))
    world.restarted_daemon()
    assert world.service.cancel("t", versions=seen, key=RequestKey("c", "c")) == cancelled
    assert world.service.restart("t", RestartRequest(), key=RequestKey("r", "r")) == restarted
    assert world.roster.release("claude", key=RequestKey("a", "a")) == released
    assert world.task("t").generation == 2


def test_a_repetition_is_told_even_if_the_request_would_be_refused_by_now(world: World) -> None:
    first = world.service.submit(spec("t", agent={"type": "codex", "strict": True}), key=KEY)
    world.agents = world.agents[:1]
    world.restarted_daemon()
    assert world.service.submit(spec("t", agent={"type": "codex", "strict": True}), key=KEY) == first


def test_a_key_names_one_request(world: World) -> None:
    world.service.submit(spec("t"), key=KEY)
    with pytest.raises(KeyReused, match="new key"):
        world.service.submit(spec("u"), key=RequestKey(KEY.key, "something else"))
    assert world.names() == ["t"]


def test_a_refusal_keeps_no_key(world: World) -> None:
    world.submit("done")
    world.tick()
    world.succeed("done")
    with pytest.raises(Conflict):
        world.service.cancel("done", key=KEY)
    with pytest.raises(Invalid):
        world.service.submit(spec("t", agent={"type": "codx", "strict": True}), key=KEY)
    assert world.service.submit(spec("u"), key=RequestKey(KEY.key, "changed")).name == "u"


def test_while_the_first_is_in_work_the_second_is_sent_away(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    writing, go_on = threading.Event(), threading.Event()
    write = world.database.write

    def slow(fn: Callable[[Connection], Any]) -> Any:
        writing.set()
        assert go_on.wait(PATIENCE_S)
        return write(fn)

    monkeypatch.setattr(world.database, "write", slow)
    answers: list[str] = []
    first = threading.Thread(target=lambda: answers.append(world.service.submit(spec("t"), key=KEY).id))
    first.start()
    try:
        assert writing.wait(PATIENCE_S)
        with pytest.raises(KeyInUse, match="same key"):
            world.service.submit(spec("t"), key=KEY)
    finally:
        go_on.set()
        first.join()
    assert world.service.submit(spec("t"), key=KEY).id == answers[0]
    assert len(world.names()) == 1


def test_keys_are_kept_for_a_day(world: World) -> None:
    first = world.service.submit(spec("t"), key=KEY)
    world.now_ms += KEPT_MS - 1
    assert world.service.submit(spec("t"), key=KEY).id == first.id
    world.now_ms += 1
    assert world.service.submit(spec("t"), key=KEY).id != first.id


def test_the_number_of_keys_is_bounded_and_the_oldest_go_first(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert principal.MAX_KEPT >= 1_000
    monkeypatch.setattr("claudomator_py.store.access_rows.MAX_KEPT", 3)
    for number in range(5):
        world.service.submit(spec(f"t{number}"), key=RequestKey(str(number), "x"))
    for number in range(2, 5):
        assert world.service.submit(spec("other"), key=RequestKey(str(number), "x")).name == f"t{number}"
    assert world.service.submit(spec("t0"), key=RequestKey("0", "x")).name == "t0"
    assert sorted(world.names()) == ["t0", "t0", "t1", "t2", "t3", "t4"]


def test_a_schedule_and_a_task_of_it_are_made_once_for_each_key(world: World) -> None:
    nightly = spec("nightly", schedule="0 3 * * *")
    added = world.schedules.add(nightly, key=KEY)
    run = RequestKey("run", "run")
    made = world.schedules.run("nightly", key=run)
    world.tick()
    world.succeed(made.name)
    world.restarted_daemon()
    assert world.schedules.add(nightly, key=KEY) == added
    assert world.schedules.run("nightly", key=run) == made
    assert world.names() == [made.name]
    with pytest.raises(KeyReused):
        world.service.submit(spec("t"), key=RequestKey(KEY.key, "something else"))
    world.schedules.delete("nightly")
    assert world.schedules.add(nightly, key=KEY) == added
    assert world.schedules.all() == []
