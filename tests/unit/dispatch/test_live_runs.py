"""What is done about a run while it lives: what it has used, whether its model has answered, and how it is stopped."""

from typing import Any

import pytest

from claudomator_py.domain.budget import DayBudget
from claudomator_py.domain.limits import Bucket, Hold
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.domain.run import WindDown
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS, SECOND_MS
from claudomator_py.store import hold_rows
from tests.fakes.world import World

COLLECT = "claudomator_py.dispatch.collect"


def running(world: World, name: str = "t", **fields: Any) -> str:
    """A task whose program runs; the id of its run."""
    world.submit(name, agent={"type": "claude", "strict": True}, **fields)
    world.tick()
    world.tick()
    return world.live(name).id


def probing(world: World) -> str:
    """A task whose run finds out whether a limit is gone; its id."""
    running(world)
    world.limit("t", reset_at=world.now_ms + MINUTE_MS)
    world.tick(HOUR_MS)
    world.tick()
    return world.live("t").id


def cancels(world: World, run_id: str) -> int:
    return world.host.calls.count(("cancel", run_id, 0))


def test_what_a_run_uses_is_noted_where_a_budget_could_be_used_up(world: World) -> None:
    assert not world.collector.counts, "nothing has been looked at"
    running(world, budget={"tokens": 1_000})
    world.use("t", tokens={"input": 600, "output": 400})
    world.tick()
    assert world.collector.counts
    budget = world.task("t").budget
    assert budget is not None
    assert budget.spent.tokens == 1_000
    assert cancels(world, world.live("t").id) == 0, "all of it is not too much"


def test_what_a_tick_writes_of_a_run_wakes_nobody_for_another_one(world: World) -> None:
    wakes: list[int] = []
    world.submit("t")
    world.database.on_commit(lambda: wakes.append(world.now_ms), planned=False)
    world.tick()
    world.tick()
    assert world.task("t").phase == "running"
    world.succeed("t")
    assert (world.state("t"), wakes) == ("COMPLETED", [])


def test_what_is_noted_already_is_not_written_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    running(world, budget={"tokens": 1_000})
    world.use("t", tokens={"input": 600, "output": 0})
    world.tick()

    def note_use(*_: object, **__: object) -> None:
        raise AssertionError("nothing is new")

    monkeypatch.setattr(f"{COLLECT}.note_use", note_use)
    world.tick()
    assert world.faults.all() == []


def test_a_run_without_a_budget_is_not_counted(world: World) -> None:
    running(world)
    world.use("t", tokens={"input": 600, "output": 400})
    world.tick()
    assert not world.collector.counts
    assert world.live("t").input_tokens is None


def test_a_run_over_its_budget_is_stopped_at_once_and_by_every_later_look(world: World) -> None:
    run_id = running(world, budget={"usd": 1.0})
    world.host.stubborn = True
    world.use("t", cost_usd=1.5)
    world.tick()
    assert (cancels(world, run_id), world.task("t").phase) == (1, "stopping")
    world.tick()
    assert cancels(world, run_id) == 2
    world.host.end(run_id, None, ended_by="cancel")
    world.tick()
    assert world.state("t") == "FAILED budget"


def test_a_run_over_the_budget_of_the_day_is_stopped_though_that_is_raised_meanwhile(world: World) -> None:
    world.day_budget = DayBudget(tokens=1_000, timezone="UTC")
    run_id = running(world)
    world.host.stubborn = True
    world.use("t", tokens={"input": 1_000, "output": 1})
    world.tick()
    assert cancels(world, run_id) == 1
    world.day_budget = DayBudget()
    world.tick()
    assert cancels(world, run_id) == 2


def test_a_run_that_has_said_its_last_word_is_not_stopped(world: World) -> None:
    run_id = running(world, budget={"usd": 1.0})
    world.use("t", cost_usd=1.5)
    world.say("t", cost_usd=1.5)
    world.tick()
    assert cancels(world, run_id) == 0


def test_a_run_that_ended_before_it_could_be_stopped_is_not(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = running(world, budget={"usd": 1.0})
    world.use("t", cost_usd=1.5)
    monkeypatch.setattr(f"{COLLECT}.stop_over_budget", lambda *_: False)
    world.tick()
    assert cancels(world, run_id) == 0


def test_that_a_task_is_being_stopped_is_written_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.host.stubborn = True
    run_id = running(world)
    world.service.cancel("t")
    world.tick()
    assert world.task("t").phase == "stopping"

    def reach_phase(*_: object) -> None:
        raise AssertionError("it is there")

    monkeypatch.setattr(f"{COLLECT}.reach_phase", reach_phase)
    before = cancels(world, run_id)
    world.tick()
    assert (cancels(world, run_id), world.faults.all()) == (before + 1, [])


def test_a_run_whose_supervisor_was_killed_is_live_and_can_be_stopped(world: World) -> None:
    run_id = running(world)
    world.host.kill_shim(run_id, agent_lives=True)
    world.service.cancel("t")
    before = cancels(world, run_id)
    world.tick()
    assert (world.live("t").id, cancels(world, run_id)) == (run_id, before + 1)


def test_the_answer_of_a_run_that_tries_a_limit_is_noted_while_it_lives(world: World) -> None:
    run_id = probing(world)
    assert world.collector.watches
    assert world.live("t").answered_ms is None
    world.answer("t")
    world.tick()
    assert world.live("t").id == run_id
    assert world.live("t").answered_ms == world.now_ms
    assert not world.collector.watches, "nobody waits for it any more"
    world.tick()
    assert not world.collector.watches


@pytest.mark.parametrize(("before_ms", "watches"), [(1, True), (0, False)])
def test_a_run_that_began_although_its_account_was_held_tries_the_limit(
    world: World, before_ms: int, watches: bool
) -> None:
    running(world)
    bucket = Bucket(kind="claude", account="default")
    since_ms = world.live("t").started_ms - before_ms
    hold = Hold(bucket, Reason.RATE_LIMITED, world.now_ms + HOUR_MS, Provenance.REPORTED, "five_hour", since_ms)
    world.database.write(lambda connection: hold_rows.add(connection, hold, None))
    world.tick()
    assert world.collector.watches is watches
    world.database.write(lambda connection: connection.exec_driver_sql("UPDATE run SET answered_ms = 1"))
    world.tick()
    assert not world.collector.watches, "its model has answered"


def test_the_answer_of_any_other_run_is_noted_at_its_end(world: World) -> None:
    running(world)
    assert not world.collector.watches
    world.answer("t")
    world.tick()
    assert world.live("t").answered_ms is None


def test_a_run_whose_output_is_being_read_has_not_ended(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    running(world)
    world.end("t")
    with monkeypatch.context() as patch:
        patch.setattr(world.host, "report", lambda *_: None)
        world.tick()
    assert (world.state("t"), world.faults.all()) == ("RUNNING", [])
    world.tick()
    assert world.state("t") == "COMPLETED"


def test_a_live_run_of_a_kind_that_is_no_longer_known_says_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    running(world)
    monkeypatch.setattr(world.host, "follow", lambda _: None)
    world.tick()
    assert (world.state("t"), world.faults.all()) == ("RUNNING", [])


def test_what_was_known_of_a_run_is_forgotten_with_it(world: World) -> None:
    run_id = running(world)
    world.tick()
    assert run_id in world.collector._contents
    world.succeed("t")
    world.tick()
    assert world.collector._contents == {}


def test_while_a_check_runs_the_agents_output_is_not_listened_to(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    running(world, check=["make test"])
    world.end("t", text="done")
    world.tick()
    assert world.task("t").phase == "checking"

    def follow(*_: object) -> None:
        raise AssertionError("it has ended")

    monkeypatch.setattr(world.host, "follow", follow)
    world.tick()
    assert world.faults.all() == []


def winding(world: World) -> int:
    return sum(call == "wind_down" for call, _, _ in world.host.calls)


def test_a_run_that_stays_after_its_last_word_is_wound_down_once(world: World) -> None:
    run_id = running(world)
    world.say("t", text="done")
    world.tick()
    assert (winding(world), world.collector.stays_ms) == (0, world.now_ms + SECOND_MS), "most exit at once"
    world.tick(2 * SECOND_MS)
    world.tick(SECOND_MS)
    printed = world.host.read(run_id, "stdout", 0, 0).size
    assert (winding(world), world.host.winding[run_id]) == (1, WindDown(printed, 18 * SECOND_MS, idle=False))
    assert world.collector.stays_ms is None
    world.host.end(run_id, None, ended_by="wind_down")
    world.tick()
    assert world.state("t") == "COMPLETED"


def test_one_that_exits_by_itself_is_left_alone(world: World) -> None:
    running(world)
    world.end("t", text="done")
    world.tick()
    assert (world.state("t"), winding(world)) == ("COMPLETED", 0)


def test_what_comes_after_its_last_word_is_counted_from_the_same_moment(world: World) -> None:
    run_id = running(world)
    world.say("t", text="done")
    world.tick()
    world.tick(2 * SECOND_MS)
    world.say("t", text="done again")
    world.tick(30 * SECOND_MS)
    assert (winding(world), world.host.winding[run_id].after_ms) == (2, 0)


def test_what_is_in_the_background_may_go_on_while_it_does_something(world: World) -> None:
    run_id = running(world)
    world.host.write(run_id, b"#background\n")
    world.say("t", text="started")
    world.tick()
    world.tick(2 * SECOND_MS)
    assert (world.host.winding[run_id].idle, world.host.winding[run_id].after_ms) == (True, 2 * MINUTE_MS)


def test_a_run_that_works_is_never_wound_down(world: World) -> None:
    running(world)
    world.use("t", tokens={"input": 1, "output": 1})
    for _ in range(3):
        world.tick(HOUR_MS)
    assert winding(world) == 0


def test_a_new_daemon_asks_again(world: World) -> None:
    run_id = running(world)
    world.say("t", text="done")
    world.tick()
    world.tick(2 * SECOND_MS)
    world.restarted_daemon()
    world.tick()
    world.tick(2 * SECOND_MS)
    assert (winding(world), world.host.winding[run_id].after_ms) == (2, 18 * SECOND_MS)
