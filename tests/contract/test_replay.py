"""Recorded placements decided again: the same to the byte, and what another configuration would have done."""

import zlib
from typing import Any

import pytest
from sqlalchemy import update

from claudomator_py.domain.units import DAY_MS, HOUR_MS
from claudomator_py.lab.replay import Replay, Window, bootstrap, wilson
from claudomator_py.lab.replay_shape import OtherView, ReplayView
from claudomator_py.schema.configfile import parse_settings
from claudomator_py.schema.settings import Settings
from claudomator_py.store import decision_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import DECISION, SNAPSHOT
from tests.contract.taught import QUERIES, Taught
from tests.fakes.cards import card
from tests.fakes.world import World


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def settings(**keys: Any) -> Settings:
    settings = parse_settings(keys)
    assert isinstance(settings, Settings)
    return settings


def replay(world: World, other: Settings | None = None, **window: int) -> ReplayView:
    return Replay(world.database, settings(), other, {}, {}).run(Window(**window))


def compared(world: World, **keys: Any) -> OtherView:
    result = replay(world, settings(**keys)).other
    assert result is not None
    return result


def night(world: World) -> None:
    """Tasks of every kind of fate: at once, after another, on another agent, after a limit, again after a failure."""
    for number in range(4):
        world.submit(f"t{number}", agent={"tier": "fast" if number % 2 else "powerful"}, priority="high")
    world.tick()
    world.submit("after", depends_on=["t0"])
    world.end("t1", status="limited", reason="rate_limited", reset_at=world.now_ms + HOUR_MS)
    world.fail("t2", reason="agent_error")
    world.end("t0", cost_usd=1.5)
    world.tick(1_000)
    world.tick(2 * HOUR_MS)
    for name in list(world.running()):
        world.end(name, cost_usd=0.5)
    world.tick(1_000)


@pytest.mark.both_databases
def test_every_placement_of_a_night_is_decided_as_it_was(world: World) -> None:
    night(world)
    result = replay(world)
    assert result.placements >= 5
    assert (result.identical, result.differing, result.gone) == (result.placements, (), 0)


def test_one_that_was_tampered_with_is_named_with_where_it_parts(world: World) -> None:
    night(world)
    (row,) = world.database.read(lambda c: c.execute(DECISION.select().where(DECISION.c.kind == "placement").limit(1)))
    changed = DECISION.update().where(DECISION.c.id == row.id).values(data={**row.data, "agent": "mallory"})
    world.database.write(lambda c: c.execute(changed))

    (difference,) = replay(world).differing

    assert (difference.decision_id, difference.task_id) == (row.id, row.task_id)
    assert difference.at == f"agent: 'mallory' was recorded, {row.data['agent']!r} is decided"


def test_what_has_lost_its_snapshot_is_counted_and_not_judged(world: World) -> None:
    night(world)
    number = replay(world).placements
    world.database.write(lambda c: c.execute(SNAPSHOT.delete()))
    result = replay(world)
    assert (result.placements, result.identical, result.gone, result.differing) == (number, 0, number, ())


@pytest.mark.parametrize(
    "packed",
    [
        b"no snapshot",
        zlib.compress(b"[" * 100_000),
        zlib.compress(b"[]"),
        zlib.compress(b'{"now_ms"'),
        zlib.compress(b'{"x": "' + b"y" * 2_000 + b'"}'),
    ],
)
def test_a_snapshot_that_is_damaged_is_named(world: World, packed: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_rows, "_MAX_SNAPSHOT_BYTES", 1_000 if len(packed) < 100 else 1 << 20)
    world.submit("t")
    world.tick()
    world.database.write(lambda connection: connection.execute(update(SNAPSHOT).values(packed=packed)))
    with pytest.raises(ValueError, match=r"the snapshot [0-9a-f]{12} is damaged"):
        replay(world)


def test_only_what_was_decided_then_is_decided_again(world: World) -> None:
    began = world.now_ms
    night(world)
    world.now_ms += DAY_MS
    world.submit("late")
    world.tick()
    everything = replay(world).placements
    assert replay(world, since_ms=began + DAY_MS).placements == 1
    assert replay(world, until_ms=began + DAY_MS).placements == everything - 1


def test_another_configuration_moves_what_it_would_have_moved(world: World) -> None:
    night(world)
    names = {agent.name: agent.kind for agent in world.registry.agents}
    only = {"claude": {"kind": "claude", "max_concurrent": 100}}
    result = compared(world, agents=only, concurrency={"total": 100, "per_workdir": 100})
    assert set(names) - {"claude"}, "there are others"
    assert {change.after for change in result.agents} <= {"claude"}
    assert all(change.before != "claude" for change in result.agents)
    assert result.placements.number == sum(change.number for change in result.agents) + result.waits
    assert result.placements.low <= result.placements.share <= result.placements.high


def test_a_rule_of_the_other_policy_is_asked_about_every_task(world: World) -> None:
    world.submit("docs", tags=["docs"])
    world.submit("code", tags=["code"])
    world.tick()
    result = compared(world, policy=[{"name": "no-docs", "when": '"docs" in task.tags', "deny": "Not here."}])
    assert (result.policy.number, result.policy.total) == (1, 2)
    assert [(verdict.before, verdict.after, verdict.number) for verdict in result.verdicts] == [
        ("allowed", "denied", 1)
    ]


PIPES = "Mend the pipes under the sink, and its taps."


def routed(world: World, name: str, **fields: Any) -> None:
    world.submit(name, **fields)
    world.now_ms += 1_000
    world.router.route()
    world.tick()


def plumbing(world: World) -> None:
    """Tasks that came to their specialist in every way: by their text, by name, by ``@``, after another one, and to
    nobody."""
    world.specialists.register(card("plumber", description="Mends pipes, sinks and taps.", skills=[]))
    world.specialists.register(card("painter", description="Paints walls and doors.", skills=[]))
    routed(world, "drip", instructions=PIPES)
    routed(world, "named", instructions=PIPES, specialist="painter")
    routed(world, "addressed", instructions=f"@painter {PIPES}")
    world.succeed("named")
    world.tick(1_000)
    routed(world, "after", instructions=PIPES, continues="named")
    routed(world, "nobodys", instructions="Xyzzy qwertz.")


@pytest.mark.both_databases
def test_under_the_same_configuration_nothing_is_decided_otherwise(world: World) -> None:
    plumbing(world)
    result = compared(world)
    assert [task for task in result.tasks if task.what in ("verdict", "specialist")] == []
    assert (result.specialists.number, result.specialists.total, result.policy.number, result.undecided) == (0, 5, 0, 0)


def test_what_changes_is_listed_by_name_with_what_was_recorded_before(world: World) -> None:
    plumbing(world)
    world.specialists.register(card("potter", description=PIPES, skills=[]))
    rules = [
        {"name": "no-plumber", "when": "task.name == 'drip'", "exclude_specialists": ["plumber"]},
        {"name": "no-painter", "when": "task.specialist == 'painter' && task.name == 'after'", "deny": "not again"},
    ]
    result = compared(world, policy=rules, routing={"default_specialist": "painter"})
    changes = {task.task_name: (task.what, task.before, task.after) for task in result.tasks if task.what != "agent"}
    assert changes == {
        "drip": ("specialist", "plumber", "potter"),
        "after": ("verdict", "allowed", "denied"),
        "nobodys": ("specialist", "default", "painter"),
    }
    assert {task.task_name: task.reason for task in result.tasks}[
        "after"
    ] == "rule no-painter of the policy refuses it: not again"
    assert (result.specialists.number, result.policy.number) == (3, 1)


def test_it_is_decided_for_the_time_at_which_it_was(world: World) -> None:
    routed(world, "early")
    world.now_ms += 12 * HOUR_MS
    hour = world.now_ms // HOUR_MS % 24
    routed(world, "late")
    rule = {"name": "late", "when": f"now.hour == {hour}", "deny": "not now"}
    result = compared(world, policy=[rule], budget={"timezone": "UTC"})
    assert [(task.task_name, task.after) for task in result.tasks if task.what == "verdict"] == [("late", "denied")]


def test_a_task_that_was_restarted_since_is_counted_and_not_judged(world: World) -> None:
    routed(world, "again")
    world.succeed("again")
    world.tick(1_000)
    world.restart("again")
    result = compared(world, policy=[{"name": "no", "deny": "no"}])
    assert (result.undecided, result.policy.number, result.policy.total) == (1, 0, 1)


def test_what_was_learned_counts(database: Database) -> None:
    taught = Taught(database)
    assert taught.submit("first", QUERIES[0]) == "database-administrator"
    for number, text in enumerate(QUERIES[1:6]):
        taught.submit(f"q{number}", text)
        taught.done(f"q{number}")
        taught.give(f"q{number}", "backend-engineer")
        taught.done(f"q{number}")
    taught.learner.run_once()
    result = compared(taught.world)
    assert ("first", "database-administrator", "backend-engineer") in {
        (task.task_name, task.before, task.after) for task in result.tasks
    }


def test_cost_is_that_of_past_runs_on_the_same_agent_and_tier(world: World) -> None:
    assert compared(world).cost is None, "nobody knows"
    night(world)
    cost = compared(world, agents={name: {"kind": name} for name in ("claude", "codex")}).cost
    assert cost is not None
    assert cost.difference_usd == pytest.approx(cost.other_usd - cost.own_usd)
    assert cost.low_usd <= cost.difference_usd <= cost.high_usd


def test_nothing_is_written(world: World) -> None:
    world.specialists.register(card("ann", description="Fixes tests."))
    night(world)
    before = world.database.read(lambda c: c.execute(DECISION.select().order_by(DECISION.c.id)).all())
    compared(world, routing={"preset": "classic"})
    assert world.database.read(lambda c: c.execute(DECISION.select().order_by(DECISION.c.id)).all()) == before


@pytest.mark.parametrize(
    ("number", "total", "low", "high"),
    [
        (0, 0, 0.0, 1.0),
        (0, 10, 0.0, 0.2775),
        (5, 10, 0.2366, 0.7634),
        (10, 10, 0.7225, 1.0),
        (1, 1_000, 0.0002, 0.0056),
    ],
)
def test_wilsons_interval_is_as_published(number: int, total: int, low: float, high: float) -> None:
    assert wilson(number, total) == pytest.approx((low, high), abs=1e-4)


def test_the_bootstrap_is_the_same_every_time_and_around_the_sum() -> None:
    differences = [1.0] * 30 + [-1.0] * 10
    low, high = bootstrap(differences)
    assert (low, high) == bootstrap(differences)
    assert low < sum(differences) < high
    assert bootstrap([2.0] * 7) == (14.0, 14.0)
