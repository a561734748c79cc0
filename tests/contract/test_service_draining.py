"""Draining: nothing is started until an operator says so, on any database."""

import pytest

from claudomator_py.store.database import Database
from tests.fakes.world import World


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


@pytest.mark.both_databases
def test_nothing_starts_and_what_runs_ends(world: World) -> None:
    world.submit("one", working_dir="/a")
    world.tick()
    found = world.service.drain("a new disk")
    assert (found.drained, found.reason, found.running) == (True, "a new disk", 1)
    world.submit("two", working_dir="/b")
    world.tick()
    assert world.state("two") == "QUEUED drained"
    assert "claudomator undrain" in (world.task("two").reason_text or "")
    world.succeed("one")
    assert (world.task("one").state, world.queries.drain_state().running) == ("COMPLETED", 0)
    world.restarted_daemon()
    world.tick()
    assert world.state("two") == "QUEUED drained"
    assert not world.service.undrain().drained
    world.tick()
    assert world.task("two").state == "RUNNING"


def test_it_is_harmless_when_repeated(world: World) -> None:
    first = world.service.drain("one reason")
    world.now_ms += 1_000
    assert world.service.drain("another") == first
    assert world.service.undrain() == world.service.undrain() == world.queries.drain_state()


def test_status_and_readiness_say_so(world: World) -> None:
    assert world.queries.readiness().ready
    world.service.drain(None)
    assert not world.queries.readiness().ready
    (trouble,) = world.queries.status().trouble
    assert (trouble.name, trouble.remedy) == ("drain", "to start tasks again: claudomator undrain")
    world.service.undrain()
    assert world.queries.readiness().ready
    assert world.queries.status().trouble == ()


def test_no_question_for_a_tier_is_asked_while_nothing_starts(database: Database) -> None:
    world = World(database, classifier=True)
    world.service.drain(None)
    world.submit("one")
    assert world.database.read(world.observer.observe).snapshot.heads == ()
    world.service.undrain()
    assert [head.name for head in world.database.read(world.observer.observe).snapshot.heads] == ["one"]
