"""Agents that outlive their supervisor: waited for, still held to what is asked, and ended only if nobody can watch."""

import pytest

from claudomator_py.resources.runs import RunView
from claudomator_py.store.database import Database
from tests.fakes.agents import CLAUDE
from tests.fakes.world import World


@pytest.fixture
def world(database: Database) -> World:
    return World(database, agents=(CLAUDE,))


def begun(world: World) -> RunView:
    """The run of a task whose model has said something."""
    world.submit("t")
    world.tick()
    world.answer("t")
    world.tick()
    return last(world)


def last(world: World) -> RunView:
    return world.service.runs("t")[-1]


def test_an_agent_that_outlives_its_supervisor_is_waited_for(world: World) -> None:
    first = begun(world)
    world.host.kill_shim(first.id, agent_lives=True)
    world.tick()
    assert (world.state("t"), world.host.calls.count(("end_survivors", first.id, 0))) == ("RUNNING", 0)
    world.say("t", text="Done all the same.")
    world.host.end_orphan(first.id)
    world.tick()
    task = world.task("t")
    assert (task.state, task.result_text, task.attempts) == ("COMPLETED", "Done all the same.", 1)
    assert (last(world).exit_code, len(world.service.runs("t"))) == (None, 1)
    assert ("end_survivors", first.id, 0) in world.host.calls, "what it has left is ended"


def test_an_agent_that_outlives_its_supervisor_can_be_cancelled(world: World) -> None:
    first = begun(world)
    world.host.kill_shim(first.id, agent_lives=True)
    world.service.cancel("t")
    world.tick()
    world.tick()
    assert world.task("t").state == "CANCELLED"


def test_one_that_cannot_be_supervised_any_more_is_ended(world: World) -> None:
    first = begun(world)
    world.host.kill_shim(first.id, agent_lives=True)
    world.host.unsupervisable = True
    world.host.survivors[first.id] = 1
    world.tick()
    assert world.state("t") == "RUNNING", "no attempt before it has ended"
    world.host.end_orphan(first.id)
    world.tick()
    assert world.state("t") == "FAILED lost"
