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
    found = world.desk.drain("a new disk")
    assert (found.drained, found.reason, found.running) == (True, "a new disk", 1)
    world.submit("two", working_dir="/b")
    world.tick()
    assert world.state("two") == "QUEUED drained"
    assert "claudomator undrain" in (world.task("two").reason_text or "")
    world.succeed("one")
    assert (world.task("one").state, world.desk.drain_state().running) == ("COMPLETED", 0)
    world.restarted_daemon()
    world.tick()
    assert world.state("two") == "QUEUED drained"
    assert not world.desk.undrain().drained
    world.tick()
    assert world.task("two").state == "RUNNING"


def test_it_is_harmless_when_repeated(world: World) -> None:
    first = world.desk.drain("one reason")
    world.now_ms += 1_000
    assert world.desk.drain("another") == first
    assert world.desk.undrain() == world.desk.undrain() == world.desk.drain_state()


def test_status_and_readiness_say_so(world: World) -> None:
    assert world.desk.readiness().ready
    world.desk.drain(None)
    assert not world.desk.readiness().ready
    (trouble,) = world.desk.status().trouble
    assert (trouble.name, trouble.remedy) == ("drain", "to start tasks again: claudomator undrain")
    world.desk.undrain()
    assert world.desk.readiness().ready
    assert world.desk.status().trouble == ()


def test_no_question_for_a_tier_is_asked_while_nothing_starts(database: Database) -> None:
    world = World(database, classifier=True)
    world.desk.drain(None)
    world.submit("one")
    assert world.database.read(world.observer.snapshot).heads == ()
    world.desk.undrain()
    assert [head.name for head in world.database.read(world.observer.snapshot).heads] == ["one"]
