"""About which tasks of a lane a tier is asked."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection

from claudomator_py.domain.limits import Bucket, Hold
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import HOUR_MS
from claudomator_py.faults import Activity, item_of
from claudomator_py.resources.daemon import DrainRequest
from claudomator_py.store import hold_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import TASK
from tests.fakes.agents import CLAUDE, CODEX
from tests.fakes.steps import spec
from tests.fakes.world import START_MS, World
from tests.unit.dispatch.looks import SECOND, Looks, queue

# --- questions for tiers ----------------------------------------------------------------------------------------------


def asks(database: Database, *tasks: TaskSpec, running: Sequence[TaskSpec] = (), **rules: Any) -> World:
    """A world that asks for tiers, in which these run, those wait, and codex is limited."""
    world = World(database, agents=(CLAUDE, CODEX, SECOND), classifier=True, **rules)
    limited = Hold(Bucket(agent="codex"), Reason.RATE_LIMITED, START_MS + HOUR_MS, Provenance.REPORTED, "", START_MS)
    database.write(partial(hold_rows.add, hold=limited, run_id=None))
    for task_spec in running:
        queue(world, task_spec)
        world.tick()
    assert len(world.running()) == len(running)
    world.take("/in/waiting.yaml", *tasks)
    return world


def asked_about(world: World) -> list[str]:
    return [question.head.name for question in world.observed().questions]


ON_CODEX = {"agent": {"type": "codex", "strict": True}}
ON_SECOND = {"agent": {"type": "second", "strict": True}}
PINNED = {"agent": {"tier": "fast"}}


def test_what_is_not_to_start_after_all_leaves_the_rest_of_the_plan_as_it_is(database: Database) -> None:
    world = asks(database, spec("one", **PINNED), spec("two", **PINNED), spec("a"), total=4)
    observed = world.observed()
    left = observed.without({world.row("one").id})
    assert [start.head.name for start in observed.starts] == ["one", "two"]
    assert [start.head.name for start in left.starts] == ["two"]
    assert [question.head.name for question in left.questions] == ["a"]


def test_no_more_is_asked_nor_looked_at_than_may_be(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    many = [spec(f"t{number}") for number in range(9)]
    limited = spec("limited", agent={"type": "codex", "strict": True, "tier": "fast"})
    world = asks(database, limited, *many, spec("in-another-lane", max_turns=9), total=1)
    looks = Looks(monkeypatch)
    assert asked_about(world) == ["t0", "t1"]
    assert looks.decided == ["limited", "t0", "t1", "in-another-lane"]


def test_a_lane_that_may_ask_nothing_more_is_looked_at_again_when_a_start_has_changed_who_would_take_it(
    database: Database,
) -> None:
    """Once claude is full, it is codex, of which there is nothing to ask."""
    agents = CLAUDE.model_copy(update={"max_concurrent": 1}), CODEX.model_copy(update={"models": {}})
    world = World(database, agents=agents, classifier=True, total=2)
    alike = [f"t{number}" for number in range(4)]
    queue(world, *map(spec, alike), spec("fills", agent={"type": "claude", "strict": True, "tier": "fast"}), spec("t4"))
    assert world.row("t0").lane == world.row("t4").lane
    observed = world.observed()
    assert [(start.head.name, start.decision.agent) for start in observed.starts] == [
        ("fills", "claude"),
        ("t4", "codex"),
    ]
    assert [question.head.name for question in observed.questions] == alike


def test_where_its_agent_is_busy_one_task_of_those_alike_is_asked_about(database: Database) -> None:
    busy = spec("busy", agent={"type": "second", "strict": True, "tier": "fast"})
    alike = [spec(name, **ON_SECOND) for name in ("first", "second", "third")]
    world = asks(database, *alike, running=[busy], total=9)
    in_another_lane = TASK.update().where(TASK.c.name == "second").values(failed_on="second", failed_for="overloaded")
    database.write(partial(Connection.execute, statement=in_another_lane))
    assert asked_about(world) == ["first"]
    is_asked = TASK.update().where(TASK.c.name == "third").values(asked_tier="open")
    database.write(partial(Connection.execute, statement=is_asked))
    assert asked_about(world) == []


def test_while_no_slot_is_free_the_next_tasks_that_wait_for_nothing_else_are_asked_about(database: Database) -> None:
    world = asks(
        database,
        *(spec(f"limited{number}", **ON_CODEX) for number in range(4)),
        spec("odd", max_turns=9),
        spec("pinned", **PINNED),
        *(spec(name) for name in ("a", "b", "asked", "beyond")),
        running=[spec("one", **PINNED), spec("two", **PINNED)],
        total=2,
    )
    for name, column in (("odd", {"tier": "no such tier"}), ("asked", {"asked_tier": "open"})):
        change = TASK.update().where(TASK.c.name == name).values(name=name, **column)
        database.write(partial(Connection.execute, statement=change))
    assert asked_about(world) == ["a", "b"]
    world.daemon.drain(DrainRequest())
    assert asked_about(world) == []


@pytest.mark.parametrize("total", [1, 9])
def test_what_is_asked_about_a_task_does_not_make_up_for_its_starts_that_failed(database: Database, total: int) -> None:
    """Whether or not a slot is free."""
    world = asks(database, spec("a"), running=[spec("busy", **PINNED)], total=total)
    item = item_of(Activity.START, world.row("a"))
    world.faults.note(item, OSError("no such folder"))
    fault = world.faults.note(item, OSError("no such folder"))
    assert asked_about(world) == [], "it is in its pause"
    world.now_ms = fault.again_ms
    assert asked_about(world) == ["a"]
    assert world.faults.find(item) == fault


def test_five_hundred_tasks_on_one_busy_directory_hide_nobody(world: World) -> None:
    busy = [spec(f"busy{number}", working_dir="/srv/busy", priority="urgent") for number in range(500)]
    queue(world, *busy, spec("elsewhere", working_dir="/srv/quiet", priority="low"), spec("scratch"))
    world.tick()
    assert set(world.running()) - {"elsewhere", "scratch"} == {"busy0"}
    assert len(world.running()) == 3
    assert world.observed().snapshot.heads == ()
