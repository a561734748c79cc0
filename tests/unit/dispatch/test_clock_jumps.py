"""The machine's clock is set while tasks wait. Waits are kept as instants, so that they hold across restarts.

Forward: what has become due is released by the next tick. Backward: a time that somebody named, an agent's reset or
``not_before``, is kept to as it was named; a pause of our own, after a failure or for an estimated limit, lasts no
longer than it was meant to, and an operator's restart or release ends it at once.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from claudomator_py.domain.units import DAY_MS, HOUR_MS, MINUTE_MS
from claudomator_py.faults import Activity, Item
from tests.databases import open_migrated
from tests.fakes.agents import CLAUDE
from tests.fakes.world import START_MS, World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_migrated(tmp_path) as database:
        yield World(database, agents=[CLAUDE.model_copy(update={"max_concurrent": 4})])


def waiting(world: World) -> None:
    """One task each in a pause after a failure, before its time, and behind a limit of an hour that is known."""
    world.submit("pausing", retry={"backoff": "10m"})
    world.tick()
    world.fail("pausing", reason="agent_error")
    world.submit("early", not_before="2026-09-21T15:00:00Z")
    world.submit("limited")
    world.tick()
    world.limit("limited", reset_at=START_MS + HOUR_MS)
    assert (world.state("pausing"), world.state("early")) == ("WAITING backoff", "WAITING time")
    assert world.state("limited") == "QUEUED limited"


def begun_in_turn(world: World) -> set[str]:
    """What begins with no more time passing: after a limit one goes first, and the others follow its answer."""
    begun: set[str] = set()
    while running := set(world.running()):
        begun |= running
        for name in running:
            world.end(name)
        world.tick()
    return begun


def test_a_jump_forward_releases_every_wait_at_once(world: World) -> None:
    waiting(world)

    world.tick(after_ms=DAY_MS)

    assert begun_in_turn(world) == {"pausing", "early", "limited"}


def test_a_jump_backward_keeps_to_named_times_and_prolongs_no_pause(world: World) -> None:
    waiting(world)
    named = world.task("early").waiting_until, world.task("limited").waiting_until

    world.tick(after_ms=-3 * HOUR_MS)

    assert (world.task("early").waiting_until, world.task("limited").waiting_until) == named
    world.tick(after_ms=12 * MINUTE_MS)
    assert world.state("pausing") == "QUEUED limited", "it is ready, and its agent still limited"
    world.tick(after_ms=4 * HOUR_MS)
    assert begun_in_turn(world) == {"pausing", "early", "limited"}


@pytest.mark.parametrize("reason", ["rate_limited", "network"])
def test_a_limit_of_unknown_length_is_tried_as_soon_after_a_jump_backward_as_before(world: World, reason: str) -> None:
    world.submit("task")
    world.tick()
    world.limit("task", reason=reason)
    world.tick(after_ms=-3 * HOUR_MS)
    assert world.running() == {}

    world.tick(after_ms=MINUTE_MS)

    assert set(world.running()) == {"task"}


def test_a_limit_is_tried_anyway_as_soon_after_a_jump_backward_as_before(world: World) -> None:
    trying = World(world.database, agents=[CLAUDE], when_all_limited="try")
    trying.submit("task", retry={"backoff": "1s"})
    trying.tick()
    trying.limit("task", reset_at=START_MS + 6 * HOUR_MS)
    trying.limit("task", reset_at=START_MS + 6 * HOUR_MS)
    assert trying.running() == {}
    trying.tick(after_ms=-3 * HOUR_MS)
    assert trying.running() == {}

    trying.tick(after_ms=MINUTE_MS)

    assert set(trying.running()) == {"task"}


def test_a_success_that_is_to_be_confirmed_after_a_reset_waits_for_it_after_a_jump_backward(world: World) -> None:
    world.submit("task", on_limit="wait")
    world.tick()
    windows = {"five_hour": {"used": 0.97, "resets_at": START_MS + HOUR_MS}}
    world.end("task", near_limit_until=START_MS + HOUR_MS, windows=windows)
    world.tick()
    reset = world.task("task").waiting_until
    assert world.state("task") == "WAITING backoff"

    world.tick(after_ms=-3 * HOUR_MS)

    assert world.task("task").waiting_until == reset


def test_a_directory_is_kept_no_longer_after_a_jump_backward(world: World) -> None:
    world.submit("asks", working_dir="/srv/shop")
    world.tick()
    world.end("asks", status="needs_input", question="Red or blue?")
    world.submit("other", working_dir="/srv/shop")
    world.launch_rules = replace(world.launch_rules, input_hold_ms=30 * MINUTE_MS)
    world.tick()
    assert world.state("other") == "QUEUED kept"

    world.tick(after_ms=-3 * HOUR_MS)
    assert world.state("other") == "QUEUED kept"
    world.tick(after_ms=31 * MINUTE_MS)

    assert set(world.running()) == {"other"}


def test_work_that_pauses_after_a_fault_is_tried_at_once_after_a_jump_backward(world: World) -> None:
    item = Item(Activity.COLLECT, "run")
    world.faults.note(item, OSError("no"))
    assert world.faults.is_paused(item, world.now_ms)

    assert not world.faults.is_paused(item, world.now_ms - 3 * HOUR_MS)


def test_after_a_jump_backward_an_operator_ends_any_wait(world: World) -> None:
    waiting(world)
    world.tick(after_ms=-3 * HOUR_MS)

    world.roster.release("claude")
    world.restart("pausing")
    world.tick()

    assert set(world.running()) == {"pausing", "limited"}


def test_a_run_that_ends_before_it_began_took_no_time(world: World) -> None:
    world.submit("task")
    world.tick()
    started_ms = world.live("task").started_ms
    world.now_ms -= HOUR_MS

    world.succeed("task")

    (run,) = world.service.runs("task")
    assert world.state("task") == "COMPLETED"
    assert run.ended_at is not None
    assert run.ended_at >= run.started_at
    assert world.row("task").updated_ms < started_ms
