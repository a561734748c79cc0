"""What is measured agrees with the rows, on every database."""

from collections import Counter
from collections.abc import Mapping

import pytest

from claudomator_py.daemon.loop import TICK_BOUNDS_S, Ticks
from claudomator_py.daemon.metering import FRESH_S, Measured, Meter, ProcessGauges, WaitCount
from claudomator_py.domain.errors import Unavailable
from claudomator_py.domain.health import CheckView
from claudomator_py.domain.units import Histogram
from claudomator_py.store.database import Database, StoreUnavailable
from tests.fakes.world import World

CHECKS = [
    CheckView(name="disk", ok=True, detail=""),
    CheckView(name="inbox", ok=True, detail=""),
    CheckView(name="inbox", ok=False, detail=""),
]


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def meter_of(world: World) -> Meter:
    around = ProcessGauges(
        ticks=lambda: Ticks(Histogram.empty(TICK_BOUNDS_S)),
        checks=lambda: CHECKS,
        refused_files=lambda: 3,
        free_bytes=lambda: 2**30,
        least_free_bytes=lambda: 2**20,
    )
    return Meter(world.database, world.observer, world.clock, around)


def measure(world: World) -> Measured:
    return meter_of(world).measure()


def runs(measured: Measured) -> Mapping[tuple[str, str, str | None], int]:
    return {(ended.agent, ended.ended_as, ended.reason): ended.durations.count for ended in measured.ended}


def test_nothing_happened_yet(world: World) -> None:
    measured = measure(world)
    assert (measured.tasks, measured.waits, measured.live, measured.ended, measured.holds, measured.answers) == (
        {},
        {},
        {},
        [],
        {},
        {},
    )
    assert (measured.slots, measured.refused_files, measured.checks) == (4, 3, {"disk": True, "inbox": False})
    assert [(agent.name, agent.max_concurrent) for agent in measured.agents] == [
        ("claude", 2),
        ("codex", 2),
        ("lint", 2),
    ]


def test_a_task_on_its_way(world: World) -> None:
    world.submit("t", agent={"type": "claude"})
    assert measure(world).waits == {WaitCount("QUEUED", "ready", "claude"): 1}
    world.tick()
    measured = measure(world)
    assert (measured.tasks, measured.waits, measured.live) == ({"RUNNING": 1}, {}, {("claude", "starting"): 1})
    world.host.now_ms = world.now_ms = world.now_ms + 45_000
    world.end("t", tokens={"input": 1000, "output": 20}, cost_usd=0.25)
    world.tick()
    measured = measure(world)
    assert (measured.tasks, measured.live, runs(measured)) == ({"COMPLETED": 1}, {}, {("claude", "succeeded", None): 1})
    ended = measured.ended[0]
    assert (ended.input_tokens, ended.output_tokens, ended.cost_usd) == (1000, 20, 0.25)
    assert dict(ended.durations.cumulative())[30.0] == 0
    assert dict(ended.durations.cumulative())[60.0] == 1
    assert ended.durations.total == 45.0


@pytest.mark.both_databases
def test_runs_are_told_apart_by_how_they_ended(world: World) -> None:
    for name in ("a", "b"):
        world.submit(name, agent={"type": "claude"}, retry={"max_attempts": 1})
        world.tick()
        world.fail(name, "timeout")
    world.submit("c", agent={"type": "codex"})
    world.tick()
    world.succeed("c")
    world.host.slow = True
    world.submit("d", agent={"type": "codex"})
    world.tick()
    world.host.kill_shim(world.live("d").id)
    world.tick()
    expected = {("claude", "failed", "timeout"): 2, ("codex", "succeeded", None): 1, ("codex", "revoked", None): 1}
    assert runs(measure(world)) == expected


def test_what_no_run_can_have_used_is_not_summed(world: World) -> None:
    world.submit("t")
    world.tick()
    world.end("t", tokens={"input": 10**30, "output": -5}, cost_usd=1e30)
    world.tick()
    ended = measure(world).ended[0]
    assert (ended.input_tokens, ended.output_tokens, ended.cost_usd) == (0, 0, 0)
    assert world.task("t").state == "COMPLETED"


@pytest.mark.both_databases
def test_holds_until_the_last_of_them_ends(world: World) -> None:
    for name, reset_ms in (("a", 60_000), ("b", 90_000)):
        world.submit(name, agent={"type": "claude"})
        world.tick()
        world.now_ms += 1
        world.limit(name, reset_at=world.now_ms + reset_ms)
        if name == "a":
            world.roster.release("claude")
            world.service.cancel("a")
    end_ms = world.now_ms + 90_000
    measured = measure(world)
    assert measured.holds == {("claude", "rate_limited"): end_ms}
    world.now_ms = end_ms
    assert measure(world).holds == {}


def test_a_hold_until_released_has_no_end(world: World) -> None:
    world.submit("t", agent={"type": "claude"})
    world.tick()
    world.fail("t", "auth")
    assert measure(world).holds == {("claude", "auth"): None}


def test_each_wait_has_the_reason_that_the_api_gives(world: World) -> None:
    world.submit("running", working_dir="/srv/shop", agent={"type": "codex"})
    world.submit("limited-once", agent={"type": "claude"})
    world.tick()
    world.limit("limited-once", reset_at=world.now_ms + 3_600_000)
    wishes: Mapping[str, Mapping[str, object]] = {
        "behind": {"working_dir": "/srv/shop"},
        "behind-too": {"working_dir": "/srv/shop"},
        "patient": {"agent": {"type": "claude", "strict": True}},
        "nobody": {"agent": {"type": "codex", "strict": True}},
        "later": {"not_before": "2030-01-01T00:00:00Z"},
        "after": {"depends_on": ["running"]},
    }
    for name, wish in wishes.items():
        world.submit(name, **wish)
    world.agents = tuple(agent for agent in world.agents if agent.name != "codex")
    world.restarted_daemon()
    counter: Counter[tuple[str, str | None]] = Counter()
    for name in world.names():
        view = world.task(name)
        if view.state in ("WAITING", "QUEUED"):
            counter[view.state, view.reason] += 1
    waits = measure(world).waits
    measured: Counter[tuple[str, str | None]] = Counter()
    for wait, number in waits.items():
        measured[wait.state, wait.reason] += number
    assert measured == counter
    assert waits[WaitCount("QUEUED", "workdir", code="workdir")] == 2
    assert waits[WaitCount("QUEUED", "limited", "claude", "agents_limited")] == 1
    assert waits[WaitCount("QUEUED", "agent", "other", "required_agent")] == 1


def test_it_is_measured_once_in_a_while(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1000.0
    monkeypatch.setattr("claudomator_py.daemon.metering.time.monotonic", lambda: now_s)
    meter = meter_of(world)
    first = meter.measure()
    world.submit("t")
    assert meter.measure() is first
    now_s += FRESH_S
    assert meter.measure().tasks == {"QUEUED": 1}


def test_a_database_that_is_gone_is_said(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: object) -> None:
        raise StoreUnavailable("the server does not answer", "start it")

    meter = meter_of(world)
    monkeypatch.setattr(world.database, "read", gone)
    with pytest.raises(Unavailable, match="The server does not answer"):
        meter.measure()
