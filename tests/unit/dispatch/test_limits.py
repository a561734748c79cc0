"""Limits: whom they hold, for how long, and runs that sleep in one."""

import pytest

from claudomator_py.dispatch.collect import PATIENCE_MS, WORTH_ENDING_MS
from claudomator_py.domain import crashpoint
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS
from tests.fakes.agents import CLAUDE, OutcomeReader
from tests.fakes.steps import spec
from tests.fakes.world import START_MS, World


def test_a_limited_run_loses_no_attempt_and_goes_on_elsewhere_and_new_tasks_flow_around(world: World) -> None:
    world.submit("a", retry={"max_attempts": 1})
    world.tick()
    assert world.running() == {"a": "claude"}
    world.limit("a", reset_at=START_MS + HOUR_MS)
    assert world.running() == {"a": "codex"}
    assert world.live("a").attempt == 1
    world.take("/in/more.yaml", spec("b"), spec("c"))
    world.tick()
    assert world.running() == {"a": "codex", "b": "codex"}
    text = "codex is full (2 of 2 slots); claude is limited (5h window, reported) until 15:13 UTC (in 1h)"
    assert world.task("c").reason_text == text
    assert world.tick().wake_ms == START_MS + HOUR_MS
    world.tick(HOUR_MS)
    assert world.running() == {"a": "codex", "b": "codex", "c": "claude"}


def test_runs_that_meet_one_limit_together_are_told_of_once_and_a_longer_one_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(world.database, agents=(CLAUDE.model_copy(update={"max_concurrent": 3}),))
    names = ("a", "b", "c")
    for name in names:
        world.submit(name)
    world.tick()
    world.tick()
    for name, reset_at in zip(names, (HOUR_MS, HOUR_MS, 3 * HOUR_MS), strict=True):
        world.limit(name, reset_at=START_MS + reset_at)
    held = [record.message for record in caplog.records if "agent_held" in record.message]
    assert len(held) == 2


def test_what_falls_due_while_a_tick_is_under_way_is_not_forgotten(world: World) -> None:
    world = World(world.database, agents=(CLAUDE,))
    world.submit("t")
    world.tick()
    world.limit("t", reset_at=START_MS + HOUR_MS)
    world.tick(HOUR_MS - 1)

    def pass_by(point: str) -> None:
        world.now_ms += 5 * (point == "tick-end")

    crashpoint.install(pass_by)
    try:
        wake = world.tick().wake_ms
    finally:
        crashpoint.install(None)
    assert wake == START_MS + HOUR_MS, "it is over already, and the next tick is due at once"


def test_when_all_are_limited_tasks_wait_for_the_first_reset_or_are_released_by_hand(world: World) -> None:
    world.submit("t")
    world.tick()
    world.limit("t", reset_at=START_MS + HOUR_MS)
    world.limit("t", reset_at=START_MS + 2 * HOUR_MS)
    view = world.task("t")
    assert (view.state, view.reason, view.attempts, view.runs) == ("QUEUED", "limited", 0, 2)
    world.tick(MINUTE_MS)
    assert world.running() == {}
    world.roster.release("codex")
    world.tick()
    assert world.running() == {"t": "codex"}


def test_a_limit_without_a_reset_is_probed_with_growing_pauses(world: World) -> None:
    world = World(world.database, agents=(CLAUDE,))
    world.submit("t")
    begun = []
    for _ in range(4):
        wake = world.tick().wake_ms
        begun.append(world.now_ms - START_MS)
        world.limit("t")
        wake = world.tick().wake_ms
        assert wake is not None
        world.now_ms = wake
    assert begun == [0, 30_000, 90_000, 210_000]
    assert world.task("t").attempts == 0


def test_runs_that_meet_one_limit_together_hold_it_once(world: World) -> None:
    world = World(world.database, agents=(CLAUDE,))
    world.submit("a")
    world.submit("b")
    world.tick()
    for name in ("a", "b"):
        world.end(name, status="limited", reason="rate_limited")
    world.tick()
    assert world.tick().wake_ms == START_MS + 30_000


def test_an_earlier_deadline_does_not_shorten_a_later_one(world: World) -> None:
    world.submit("a", agent={"type": "claude", "strict": True})
    world.submit("b", agent={"type": "claude", "strict": True})
    world.tick()
    world.end("a", status="limited", reason="rate_limited", reset_at=START_MS + 2 * HOUR_MS)
    world.tick()
    world.end("b", status="limited", reason="rate_limited", reset_at=START_MS + HOUR_MS)
    world.tick()
    world.tick(HOUR_MS)
    assert world.running() == {}
    world.tick(HOUR_MS)
    (probe,) = world.running()
    world.succeed(probe)
    assert set(world.running()) == {"a", "b"} - {probe}


def test_a_login_that_is_missing_holds_until_somebody_acts(world: World) -> None:
    world = World(world.database, agents=(CLAUDE,))
    world.submit("t")
    world.tick()
    world.fail("t", "auth", detail="Please run /login")
    world.tick(1_000 * HOUR_MS)
    view = world.task("t")
    assert (view.state, view.reason) == ("QUEUED", "limited")
    assert view.reason_text == "claude is held (auth: Please run /login, reported) until `claudomator release claude`"
    world.roster.release("claude")
    world.tick()
    assert world.running() == {"t": "claude"}


def test_tried_all_the_same_when_so_configured(world: World) -> None:
    world = World(world.database, when_all_limited="try", agents=(CLAUDE,))
    world.submit("t")
    world.tick()
    world.limit("t", reset_at=START_MS + HOUR_MS)
    assert world.running() == {"t": "claude"}
    assert "Every agent is limited; one was tried anyway." in world.service.why("t").sentences


# --- sleeping in a limit ----------------------------------------------------------------------------------------------


def test_a_run_that_sleeps_in_a_limit_is_ended_and_its_agent_held_until_then(world: World) -> None:
    world.submit("t")
    world.tick()
    run = world.live("t")
    world.host.begin(run.id)
    world.tick()
    reset = world.clock() + HOUR_MS
    world.host.write(run.id, str(reset).encode(), "stderr")
    world.tick()
    assert ("cancel", run.id, 0) in world.host.calls
    world.tick()

    assert world.state("t") != "CANCELLED"
    assert world.task("t").attempts == 0
    held = {view.name: view.limited_until for view in world.roster.all() if view.limited}
    assert list(held) == [run.agent]


def test_a_short_sleep_is_waited_out(world: World) -> None:
    world.submit("t")
    world.tick()
    run = world.live("t")
    world.host.begin(run.id)
    world.host.write(run.id, str(world.clock() + MINUTE_MS // 2).encode(), "stderr")
    world.tick()
    world.tick()
    assert ("cancel", run.id, 0) not in world.host.calls


@pytest.mark.parametrize(("sleeps_ms", "ended"), [(WORTH_ENDING_MS, False), (WORTH_ENDING_MS + 1, True)])
def test_a_sleep_is_ended_from_the_moment_that_it_costs_more_than_starting_again(
    world: World, sleeps_ms: int, ended: bool
) -> None:
    world.submit("t")
    world.tick()
    run = world.live("t")
    world.host.begin(run.id)
    world.tick()
    world.host.write(run.id, str(world.clock() + sleeps_ms).encode(), "stderr")
    world.tick()
    assert (("cancel", run.id, 0) in world.host.calls) is ended


def test_a_run_that_waits_in_a_limit_without_saying_for_how_long_is_waited_for_a_while(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.submit("t")
    world.tick()
    run = world.live("t")
    world.host.begin(run.id)
    world.tick()
    monkeypatch.setattr(OutcomeReader, "stuck_since", world.clock())
    world.answer("t")
    world.tick(PATIENCE_MS)
    assert ("cancel", run.id, 0) not in world.host.calls
    world.tick(1)
    assert ("cancel", run.id, 0) in world.host.calls
