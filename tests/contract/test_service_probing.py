"""After a limit: one run goes first, and the others follow as it is answered; or it is tried ever less often."""

from typing import Any

import pytest

from claudomator_py.domain.units import HOUR_MS, MINUTE_MS, SECOND_MS, format_instant
from claudomator_py.store.database import Database
from tests.contract.limited import WIDE, WORK, limit_on
from tests.fakes.agents import CLAUDE
from tests.fakes.steps import spec
from tests.fakes.world import START_MS, World


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


# --- after the reset --------------------------------------------------------------------------------------------------


def queue_behind_a_limit(world: World, number: int, **outcome: Any) -> None:
    """The account is limited, and so many tasks wait for its reset."""
    limit_on(world, "claude", tier="balanced", **outcome)
    assert world.take("/in/many.yaml", *(spec(f"t{task}") for task in range(number))) == []
    world.tick()
    assert world.running() == {}


def answer_all(world: World) -> list[int]:
    """How many runs were live, as one round of answers follows the other."""
    results = []
    for _ in range(6):
        world.tick()
        world.tick(SECOND_MS)
        results.append(len(world.running()))
        for name in world.running():
            world.answer(name)
    return results


def test_five_hundred_tasks_do_not_stampede_at_the_reset(world: World) -> None:
    world = World(world.database, agents=(WIDE,), total=6)
    queue_behind_a_limit(world, 500, reset_at=START_MS + HOUR_MS)
    world.tick(HOUR_MS)
    assert world.running() == {"t0": "claude"}
    for _ in range(3):
        world.tick(MINUTE_MS)
        assert world.running() == {"t0": "claude"}, "the probe has not answered yet"
    text = "claude is being tried after its limit (reported): more may start once it answers"
    assert (world.task("t1").reason, world.task("t1").reason_text) == ("limited", text)
    (hold,) = world.roster.all()[0].holds
    assert (hold.probing, hold.may_start) == (True, 0)
    world.answer("t0")
    assert answer_all(world) == [2, 4, 6, 6, 6, 6]
    assert world.roster.all()[0].holds == ()


def test_a_daemon_that_is_killed_goes_on_with_the_ramp_where_it_was(world: World) -> None:
    world = World(world.database, agents=(WIDE,), total=6)
    queue_behind_a_limit(world, 20, reset_at=START_MS + HOUR_MS)
    world.tick(HOUR_MS)
    for expected in (1, 2, 4, 6):
        world.restarted_daemon()
        world.tick()
        world.restarted_daemon()
        world.tick(SECOND_MS)
        assert len(world.running()) == expected
        for name in world.running():
            world.answer(name)


def test_a_probe_that_meets_the_limit_again_extends_the_hold_and_one_that_ends_otherwise_frees_its_place(
    world: World,
) -> None:
    world = World(world.database, agents=(CLAUDE,))
    queue_behind_a_limit(world, 5)
    world.tick(30 * SECOND_MS)
    assert set(world.running()) == {"t0"}
    world.end("t0", status="limited", reason="rate_limited")
    world.tick()
    (hold,) = world.roster.all()[0].holds
    assert (hold.until, hold.provenance) == (format_instant(world.now_ms + MINUTE_MS), "probed")
    world.tick(MINUTE_MS)
    assert set(world.running()) == {"t0"}
    world.end("t0", exit_code=1, status="failed", reason="agent_error")
    world.tick()
    assert set(world.running()) == {"t1"}, "neither released nor extended"
    world.tick(MINUTE_MS)
    assert set(world.running()) == {"t1"}
    world.succeed("t1")
    assert len(world.running()) == 2


def test_a_probe_that_a_family_needs_is_not_used_up_by_another_family(world: World) -> None:
    world = World(world.database, agents=(CLAUDE, WORK), total=8)
    limit_on(world, "claude", limit="seven_day_opus", family="opus", reset_at=START_MS + HOUR_MS)
    for task in range(4):
        world.submit(f"strong{task}", agent={"tier": "powerful"})
        world.submit(f"light{task}", agent={"tier": "fast"})
        world.now_ms += 1  # among those of one millisecond chance decides, and the light ones may fill all slots
    world.tick(HOUR_MS)
    assert len([name for name in world.running() if name.startswith("strong")]) == 1
    assert len(world.running()) == 4


def test_a_released_bucket_is_open_at_once(world: World) -> None:
    world = World(world.database, agents=(CLAUDE,))
    queue_behind_a_limit(world, 5, reset_at=START_MS + HOUR_MS)
    world.tick(HOUR_MS)
    assert len(world.running()) == 1
    world.roster.release("claude")
    world.tick()
    assert len(world.running()) == 2


def test_trying_all_the_same_does_not_double_a_probe(world: World) -> None:
    world = World(world.database, agents=(CLAUDE,), when_all_limited="try")
    limit_on(world, "claude", reset_at=START_MS + HOUR_MS)
    assert world.take("/in/many.yaml", *(spec(f"t{task}") for task in range(5))) == []
    world.tick(HOUR_MS)
    assert [name for name in world.running() if name != "first"] == ["t0"]
    world.tick(MINUTE_MS)
    assert [name for name in world.running() if name != "first"] == ["t0"]


# --- limits of which nobody knows the end -----------------------------------------------------------------------------


def met_until(world: World, hours: int) -> list[int]:
    """Let every run meet the limit at once, for so long; the minutes at which there was one."""
    met, began = [], world.now_ms
    while world.now_ms < began + hours * HOUR_MS:
        report = world.tick()
        running = world.running()
        for name in running:
            met.append((world.now_ms - began) // MINUTE_MS)
            world.end(name, exit_code=1, status="limited", reason="rate_limited")
        if not running:
            world.now_ms = max(report.wake_ms or 0, world.now_ms + SECOND_MS)
    return met


def test_a_hundred_tasks_probe_a_limit_without_a_known_end_ever_less_often(world: World) -> None:
    world = World(world.database, agents=(CLAUDE,))
    world.take("/in/many.yaml", *(spec(f"t{number}") for number in range(100)))
    assert met_until(world, 5) == [0, 0, 0, 1, 3, 7, 15, 31, 63, 123, 183, 243]
    assert {world.task(f"t{number}").attempts for number in range(100)} == {0}
    world.tick(HOUR_MS)
    (probe,) = world.running()
    world.succeed(probe)
    assert len(world.running()) == 2


def test_trying_all_the_same_tries_an_account_and_not_every_task(world: World) -> None:
    world = World(world.database, agents=(CLAUDE,), when_all_limited="try")
    world.take("/in/many.yaml", *(spec(f"t{number}") for number in range(100)))
    met = met_until(world, 2)
    assert len(met) < 40, "and not a hundred at once, again and again"
    assert len([minute for minute in met if minute >= 60]) < 20


@pytest.mark.both_databases
def test_a_try_that_is_answered_lets_others_follow(world: World) -> None:
    world = World(world.database, agents=(WIDE,), total=6, when_all_limited="try")
    limit_on(world, "claude", reset_at=START_MS + HOUR_MS)
    world.take("/in/many.yaml", *(spec(f"t{number}") for number in range(9)))
    world.tick(SECOND_MS)
    assert len(world.running()) == 1
    assert answer_all(world) == [1, 2, 4, 6, 6, 6]


def test_what_an_operator_has_to_mend_is_not_tried_all_the_same(world: World) -> None:
    world = World(world.database, agents=(CLAUDE,), when_all_limited="try")
    world.submit("t")
    world.tick()
    world.fail("t", "auth")
    world.submit("u")
    world.tick(HOUR_MS)
    assert world.running() == {}


def test_an_earlier_end_that_is_told_later_shortens_nothing(world: World) -> None:
    world = World(world.database, agents=(WIDE,))
    for name in ("a", "b"):
        world.submit(name)
    world.tick()
    world.limit("a", reset_at=START_MS + 2 * HOUR_MS)
    world.limit("b", reset_at=START_MS + HOUR_MS)
    world.tick(HOUR_MS + 1)
    assert world.running() == {}
    world.tick(HOUR_MS)
    assert len(world.running()) == 1
