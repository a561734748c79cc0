"""Draining: nothing is started until an operator says so, on any database."""

import pytest

from claudomator_py.resources.daemon import DrainRequest
from claudomator_py.store.database import Database
from tests.fakes.world import World


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


@pytest.mark.both_databases
def test_nothing_starts_and_what_runs_ends(world: World) -> None:
    world.submit("one", working_dir="/a")
    world.tick()
    drain = world.daemon.drain(DrainRequest(reason="a new disk"))
    assert (drain.drained, drain.reason, drain.running) == (True, "a new disk", 1)
    world.submit("two", working_dir="/b")
    world.tick()
    assert world.state("two") == "QUEUED drained"
    assert "claudomator undrain" in (world.task("two").reason_text or "")
    world.succeed("one")
    assert (world.task("one").state, world.daemon.drain_state().running) == ("COMPLETED", 0)
    world.restarted_daemon()
    world.tick()
    assert world.state("two") == "QUEUED drained"
    assert not world.daemon.undrain().drained
    world.tick()
    assert world.task("two").state == "RUNNING"


def test_it_is_harmless_when_repeated(world: World) -> None:
    first = world.daemon.drain(DrainRequest(reason="one reason"))
    world.now_ms += 1_000
    assert world.daemon.drain(DrainRequest(reason="another")) == first
    assert world.daemon.undrain() == world.daemon.undrain() == world.daemon.drain_state()


def test_status_and_readiness_say_so(world: World) -> None:
    assert world.overview.readiness().ready
    world.daemon.drain(DrainRequest())
    assert not world.overview.readiness().ready
    (trouble,) = world.overview.status().trouble
    assert (trouble.name, trouble.remedy) == ("drain", "to start tasks again: claudomator undrain")
    world.daemon.undrain()
    assert world.overview.readiness().ready
    assert world.overview.status().trouble == ()


def test_no_question_for_a_tier_is_asked_while_nothing_starts(database: Database) -> None:
    world = World(database, classifier=True)
    world.daemon.drain(DrainRequest())
    world.submit("one")
    assert world.observed().snapshot.heads == ()
    world.daemon.undrain()
    assert [head.name for head in world.observed().snapshot.heads] == ["one"]
