"""Outages and losses: which conversation goes on, who takes over and with what note, and what it costs."""

from typing import Any

import pytest

from claudomator_py.domain.units import HOUR_MS, MINUTE_MS
from claudomator_py.resources.runs import RunView
from claudomator_py.scheduler.after_run import PATIENT_OUTAGES
from claudomator_py.store.database import Database
from tests.fakes.agents import CLAUDE, CODEX
from tests.fakes.world import World

OUTAGES = ["overloaded", "network"]
STEP_MS = 30_000
NEVER_HEARD_OF_IT: dict[str, Any] = {"reason": "bad_invocation", "conversation_lost": True}


@pytest.fixture
def world(database: Database) -> World:
    return World(database, agents=(CLAUDE,))


def begun(world: World, **fields: Any) -> RunView:
    """The run of a task whose model has said something."""
    world.submit("t", **fields)
    world.tick()
    world.answer("t")
    world.tick()
    return last(world)


def last(world: World) -> RunView:
    return world.service.runs("t")[-1]


def why(world: World) -> str:
    return "\n".join(world.service.why("t").sentences)


def until_next(world: World, run: RunView, longest_ms: int = 12 * MINUTE_MS) -> RunView:
    """The run after that one, once it has begun."""
    for _ in range(longest_ms // STEP_MS + 1):
        world.tick(STEP_MS)
        if last(world).id != run.id:
            return last(world)
    raise AssertionError(f"no run within {longest_ms} ms: {world.state('t')}")


@pytest.mark.parametrize("reason", OUTAGES)
def test_what_was_begun_goes_on_in_its_conversation(world: World, reason: str) -> None:
    first = begun(world, retry={"max_attempts": 1})
    world.fail("t", reason)
    assert world.state("t") == "WAITING backoff"
    assert f"Its next run resumes the conversation of run {first.id[:8]} on claude." in why(world)
    second = until_next(world, first)
    assert (second.resumes, second.attempt) == (first.id, 1)
    assert world.kinds["claude"].requests[-1].resume
    world.succeed("t")
    assert (world.task("t").state, world.task("t").attempts) == ("COMPLETED", 1)
    assert f"Run 2 on claude, in the conversation of run {first.id[:8]}, succeeded" in why(world)


@pytest.mark.parametrize("answered", [False, True])
def test_an_hour_of_it_fails_no_task_and_is_looked_at_a_bounded_number_of_times(world: World, answered: bool) -> None:
    world.submit("t", retry={"max_attempts": 1}, budget={"runs": 2})
    world.tick()
    if answered:
        world.answer("t")
    over_ms = world.now_ms + HOUR_MS
    while world.now_ms < over_ms:
        run = last(world)
        world.fail("t", "network")
        until_next(world, run)
    world.succeed("t")
    assert (world.task("t").state, world.task("t").attempts) == ("COMPLETED", 1)
    runs = world.service.runs("t")
    assert 5 < len(runs) < 15
    assert world.now_ms - over_ms < 12 * MINUTE_MS, "the pause is bounded"
    assert [run.resumes for run in runs] == [None, *(run.id for run in runs[:-1])] if answered else [None] * len(runs)


def test_what_was_not_begun_goes_to_the_next_agent_at_once(database: Database) -> None:
    world = World(database, agents=(CLAUDE, CODEX))
    world.submit("t")
    world.tick()
    world.fail("t", "overloaded")
    assert (last(world).agent, last(world).attempt) == ("codex", 1)
    assert "# Handoff" not in world.kinds["codex"].requests[-1].prompt, "nothing was done yet"


def test_a_long_outage_hands_what_was_begun_to_another_agent_with_a_note(database: Database) -> None:
    world = World(database, agents=(CLAUDE, CODEX))
    first = begun(world)
    for _ in range(PATIENT_OUTAGES):
        run = last(world)
        world.fail("t", "network", text="I have made half of it.")
        run = until_next(world, run)
        assert run.agent == "claude"
    world.fail("t", "network")
    taken_over = last(world)
    assert (taken_over.agent, taken_over.resumes, taken_over.attempt) == ("codex", None, 1)
    prompt = world.kinds["codex"].requests[-1].prompt
    assert "Another agent, claude, had this task before you and stopped" in prompt
    assert "I have made half of it." in prompt
    assert f"Run 5 on codex, in a fresh conversation with a note from run {first.id[:8]}, is" in why(world)


def test_a_conversation_that_an_operator_asked_for_is_waited_for_however_long(database: Database) -> None:
    world = World(database, agents=(CLAUDE, CODEX))
    begun(world)
    world.fail("t")
    world.restart("t", resume=True)
    world.tick()
    for _ in range(PATIENT_OUTAGES + 2):
        run = last(world)
        world.fail("t", "overloaded")
        run = until_next(world, run)
        assert (run.agent, run.resumes is not None) == ("claude", True)


def test_a_lost_run_goes_on_in_its_conversation(world: World) -> None:
    first = begun(world, on_lost="retry")
    world.host.kill_shim(first.id)
    world.tick()
    second = until_next(world, first)
    assert (second.resumes, second.attempt) == (first.id, 2)


def test_a_conversation_that_was_never_begun_or_is_forgotten_costs_one_look_and_is_told_in_a_note(world: World) -> None:
    first = begun(world, on_lost="retry")
    world.host.kill_shim(first.id)
    world.tick()
    second = until_next(world, first)
    world.fail("t", **NEVER_HEARD_OF_IT)
    third = until_next(world, second)
    assert (third.resumes, third.attempt) == (None, 2)
    prompt = world.kinds["claude"].requests[-1].prompt
    assert prompt.startswith("do t\n\n# Handoff\n\nYou began this task before, in another conversation, and stopped: ")
    assert f"The conversation of run {first.id[:8]} was given up: claude no longer knows it" in why(world)
    assert f"Run 3 on claude, in a fresh conversation with a note from run {first.id[:8]}, is" in why(world)


def test_an_attempt_after_a_failure_of_its_own_is_told_how_that_ended(world: World) -> None:
    first = begun(world, check=["make test"])
    world.end("t")
    world.tick()
    world.host.write(first.id, b"E1: no such file\n", step=1)
    world.host.end(first.id, 2, step=1)
    world.tick()
    second = until_next(world, first)
    assert (second.resumes, second.attempt) == (None, 2)
    assert "exited with 2\\nE1: no such file" in world.kinds["claude"].requests[-1].prompt
