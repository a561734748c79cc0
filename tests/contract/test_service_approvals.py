"""A task that a person has to approve before its first run."""

from typing import Any

import pytest

from claudomator_py.domain.errors import Conflict, Invalid
from claudomator_py.domain.units import MINUTE_MS
from claudomator_py.resources.tasks import AnswerRequest, ApproveRequest, RejectRequest, TaskView
from claudomator_py.store.database import Database
from tests.fakes.steps import spec
from tests.fakes.world import World


@pytest.fixture
def world(database: Database) -> World:
    return World(database, routes=True)


def answer(world: World, text: str = "Blue.", name: str = "t", **more: Any) -> TaskView:
    return world.service.answer(name, AnswerRequest(text=text), **more)


def approve(world: World, *tools: str, name: str = "t", **more: Any) -> TaskView:
    return world.service.approve(name, ApproveRequest(tools=tools), **more)


def reject(world: World, reason: str | None = None, name: str = "t") -> TaskView:
    return world.service.reject(name, RejectRequest(reason=reason))


# --- approval before the first run ------------------------------------------------------------------------------------


def test_a_task_asks_before_its_first_run_and_no_run_begins(world: World) -> None:
    world.submit("t", approval=True)
    world.tick()
    task = world.task("t")
    assert (task.state, task.reason, task.runs) == ("NEEDS_INPUT", "approval", 0)
    assert task.reason_text == "asks for approval before its first run"
    assert task.available_actions == ("approve", "reject", "cancel", "restart")
    with pytest.raises(Conflict, match="there is no agent to answer"):
        answer(world)
    with pytest.raises(Invalid, match="tools: were not requested"):
        approve(world, "Bash")
    approve(world)
    world.tick()
    assert world.task("t").state == "RUNNING"
    world.fail("t", "agent_error")
    assert world.state("t") == "WAITING backoff", "it was approved for all attempts"


def test_the_person_comes_after_dependencies_and_time(world: World) -> None:
    world.submit("first")
    world.submit("t", approval=True, depends_on=["first"], not_before="2026-09-21T15:00:00Z")
    assert world.state("t") == "WAITING dependency"
    world.tick()
    world.succeed("first")
    assert world.state("t") == "WAITING time"
    world.tick(60 * MINUTE_MS)
    world.tick()
    assert world.state("t") == "NEEDS_INPUT approval"


def test_what_became_unready_meanwhile_waits_after_the_approval(world: World) -> None:
    world.submit("first")
    world.submit("t", approval=True, depends_on=["first"])
    world.tick()
    world.succeed("first")
    world.tick()
    world.restart("first")
    approve(world)
    assert world.state("t") == "WAITING dependency"
    world.tick()
    world.succeed("first")
    assert world.task("t").state == "RUNNING"


def test_no_input_is_taken_while_a_dependency_has_failed_and_why_says_what_comes_first(world: World) -> None:
    world.submit("first")
    world.submit("t", approval=True, depends_on=["first"])
    world.tick()
    world.succeed("first")
    world.tick()
    approve(world)
    world.tick()
    world.end("t", status="needs_input", question="Red or blue?")
    world.tick()

    world.restart("first")
    assert "Then it waits for first (QUEUED)." in world.service.why("t").sentences
    world.tick()
    world.fail("first")

    assert "Restart first first; t cannot continue before that." in world.service.why("t").sentences
    with pytest.raises(Conflict, match="Restart first first; then t"):
        answer(world)
    assert world.state("t") == "NEEDS_INPUT question"
    world.restart("first")
    world.tick()
    world.succeed("first")
    answer(world)
    world.tick()
    assert (world.task("t").state, world.task("t").generation) == ("RUNNING", 1), "the answer was not lost"


def test_what_was_approved_before_it_was_revived_is_not_told_as_if_it_still_counted(world: World) -> None:
    world.submit("first")
    world.submit("t", approval=True, depends_on=["first"])
    world.tick()
    world.succeed("first")
    world.tick()
    approve(world)
    assert "The operator approved its first run." in world.service.why("t").sentences
    world.restart("first")
    world.tick()
    world.fail("first")
    world.restart("first")
    world.tick()
    world.succeed("first")
    world.tick()
    assert world.state("t") == "NEEDS_INPUT approval"
    assert "The operator approved its first run." not in world.service.why("t").sentences


def test_a_restart_and_changed_content_ask_anew(world: World) -> None:
    world.submit("t", approval=True)
    world.tick()
    approve(world)
    world.tick()
    world.succeed("t")
    world.restart("t")
    world.tick()
    assert world.state("t") == "NEEDS_INPUT approval"

    world.take("a.yaml", spec("f", approval=True))
    world.tick()
    approve(world, name="f")
    assert world.task("f").state == "QUEUED"
    world.take("a.yaml", spec("f", approval=True, instructions="something else"), mtime_ns=2)
    world.tick()
    assert world.state("f") == "NEEDS_INPUT approval"
    world.take("a.yaml", spec("f", instructions="something else"), mtime_ns=3)
    assert world.task("f").state == "QUEUED"


def test_each_task_of_a_schedule_asks(world: World) -> None:
    world.schedules.add(spec("nightly", schedule="0 3 * * *", overlap="queue", approval=True))
    for _ in range(2):
        world.now_ms += 60 * MINUTE_MS
        name = world.schedules.run("nightly").name
        world.tick()
        assert world.state(name) == "NEEDS_INPUT approval"
        approve(world, name=name)
        assert world.task(name).state == "QUEUED"


def test_a_rejected_task_fails_with_what_the_person_said_and_so_do_its_dependents(world: World) -> None:
    world.submit("t", approval=True)
    world.submit("after", depends_on=["t"])
    world.tick()
    task = reject(world, "Not on a Friday.")
    assert (task.state, task.reason) == ("FAILED", "rejected")
    assert task.reason_text == "Rejected. Not on a Friday."
    assert "The operator rejected it." in world.service.why("t").sentences
    assert world.state("after") == "FAILED dependency_failed"
    with pytest.raises(Conflict):
        reject(world)
