"""Routing a task that was accepted, and what is stored of decisions."""

from functools import partial

import pytest

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.decision import Versions
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.rationale import RationaleCode, rationale
from claudomator_py.domain.routing import Constraints, Risk, TaskRoute
from claudomator_py.scheduler.records import DecisionKind, DecisionRecord, Record, SpecialistCandidate
from claudomator_py.store import decision_log, decision_rows, events, pruning
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Decision, Task
from claudomator_py.store.task_rows import VersionConflict
from claudomator_py.tasks.decisions import route
from tests.fakes.decisions import classification_of
from tests.fakes.world import START_MS, World

ROUTING = TaskRoute(
    specialist="technical-writer",
    skill="release-notes",
    risk=Risk.LOW,
    constraints=Constraints(tier_ceiling=Tier.BALANCED),
)


def routed(world: World, task: Task, routing: TaskRoute = ROUTING) -> Task:
    return world.database.write(lambda connection: route(connection, task, routing, world.now_ms))


def test_a_routed_task_is_in_another_lane_and_carries_where_it_was_routed(database: Database) -> None:
    world = World(database, total=0)
    world.submit("one")
    world.submit("two")
    before = world.row("one")

    after = routed(world, before)

    assert world.row("one").lane != before.lane == world.row("two").lane
    assert (after.specialist, after.skill, after.risk) == ("technical-writer", "release-notes", "low")
    assert (after.version, after.state) == (before.version + 1, "QUEUED")
    assert world.task("one").specialist == "technical-writer"
    event = database.read(partial(events.of_task, task_id=after.id))[-1]
    assert (event.kind, event.data["specialist"]) == ("routed", "technical-writer")


def test_tasks_that_were_routed_alike_share_a_lane(database: Database) -> None:
    world = World(database, total=0)
    world.submit("one")
    world.submit("two")
    for name in ("one", "two"):
        routed(world, world.row(name))

    assert world.row("one").lane == world.row("two").lane


def test_being_routed_where_it_was_before_changes_nothing(database: Database) -> None:
    world = World(database, total=0)
    world.submit("one")
    once = routed(world, world.row("one"))

    assert routed(world, once).version == once.version


def test_a_task_that_has_changed_since_is_not_routed(database: Database) -> None:
    world = World(database, total=0)
    world.submit("one")
    old = world.row("one")
    routed(world, old)

    with pytest.raises(VersionConflict):
        routed(world, old, TaskRoute(specialist="somebody-else"))
    assert world.row("one").specialist == "technical-writer"


def test_nor_is_one_that_runs_or_has_ended(database: Database) -> None:
    world = World(database)
    world.submit("one")
    world.tick()
    with pytest.raises(VersionConflict):
        routed(world, world.row("one"))
    world.succeed("one")
    with pytest.raises(VersionConflict):
        routed(world, world.row("one"))


def test_a_run_carries_where_its_task_was_routed_and_keeps_its_ceiling(database: Database) -> None:
    world = World(database)
    world.submit("one", agent={"type": "claude", "tier": "powerful"})
    routed(world, world.row("one"))
    world.tick()

    run = world.live("one")
    assert (run.specialist, run.skill, run.risk, run.creator) == (
        "technical-writer",
        "release-notes",
        "low",
        "operator",
    )
    assert (run.tier, run.model) == ("balanced", "sonnet")
    (decision,) = world.service.why("one").decisions
    assert (decision.specialist, decision.skill) == ("technical-writer", "release-notes")
    assert classification_of(decision).clamped_from is Tier.POWERFUL
    assert decision.constraints.tier_ceiling is Tier.BALANCED


def test_a_restart_is_routed_anew(database: Database) -> None:
    world = World(database)
    world.submit("one")
    routed(world, world.row("one"))
    world.tick()
    world.succeed("one")
    world.restart("one")

    task = world.row("one")
    assert (task.specialist, task.skill, task.risk, task.constraints) == (None, None, None, None)


def test_each_decision_supersedes_the_one_before_it(database: Database) -> None:
    world = World(database)
    world.submit("one")
    world.tick()
    world.succeed("one")
    world.restart("one")
    world.tick()

    second, first = world.service.why("one").decisions
    assert (first.kind, first.generation, first.supersedes) == ("placement", 1, None)
    assert (second.kind, second.generation, second.supersedes) == ("placement", 2, first.id)
    assert first.id != first.run_id
    task_id = world.row("one").id
    assert database.read(lambda c: decision_rows.current_id(c, task_id, DecisionKind.PLACEMENT)) == second.id
    assert database.read(lambda c: decision_rows.current_id(c, task_id, DecisionKind.SPECIALIST)) is None


RECORD = Record(
    reason=rationale(RationaleCode.TEXT, text="nobody was addressed"),
    confidence=0.41,
    threshold=0.5,
    topic="documentation",
    specialist_candidates=(
        SpecialistCandidate(
            specialist="technical-writer",
            score=0.41,
            parts={"semantic": 0.4, "keyword": 0.01},
            rejected=rationale(RationaleCode.BELOW_THRESHOLD),
        ),
    ),
    versions=Versions(encoder="hashed/1", registry="abc", policy="def"),
    latency_ms=3,
)


def test_a_decision_needs_neither_a_run_nor_a_task(database: Database) -> None:
    made = Decision(
        id=decision_rows.identity(DecisionKind.TRIAGE, "message-1"),
        kind=DecisionKind.TRIAGE.value,
        at_ms=START_MS,
        input_ref="message:message-1",
        confidence=RECORD.confidence,
        data=RECORD.model_dump(mode="json"),
    )
    database.write(lambda connection: decision_rows.add(connection, made))

    assert database.read(lambda c: pruning.old_decisions(c, START_MS, 10)) == []
    assert database.read(lambda c: pruning.old_decisions(c, START_MS + 1, 10)) == [made.id]
    assert database.write(lambda c: pruning.decisions(c, [made.id])) == 1


def test_a_record_is_read_as_it_was_written(database: Database) -> None:
    world = World(database)
    world.submit("one")
    task = world.row("one")
    made = Decision(
        id="1",
        kind=DecisionKind.SPECIALIST.value,
        task_id=task.id,
        generation=1,
        at_ms=START_MS,
        data=RECORD.model_dump(mode="json"),
    )
    database.write(lambda connection: decision_rows.add(connection, made))
    world.tick()

    results = {decision.kind: decision for decision in database.read(lambda c: decision_rows.of_task(c, task.id))}
    specialist, placement = results["specialist"], results["placement"]
    assert Record.model_validate(specialist.data) == RECORD
    assert DecisionRecord.model_validate(placement.data).agent == "claude"
    assert placement.supersedes is None


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_of_decisions_of_one_millisecond_the_same_one_counts_however_they_are_stored(
    database: Database, order: str
) -> None:
    world = World(database)
    world.submit("one")
    world.tick()
    task, run = world.row("one"), world.live("one")
    made = {
        key: Decision(
            id=key,
            kind=DecisionKind.SPECIALIST.value,
            task_id=task.id,
            generation=1,
            at_ms=START_MS,
            data=RECORD.model_dump(mode="json") | {"route": route},
        )
        for key, route in (("a", "default"), ("b", "specialist"))
    }
    for key in order:
        database.write(partial(decision_rows.add, decision=made[key]))

    assert database.read(lambda c: decision_rows.current_id(c, task.id, DecisionKind.SPECIALIST)) == "b"
    newest = database.read(lambda c: decision_log.newest_of_kind(c, DecisionKind.SPECIALIST, 0, 1, OPERATOR))
    assert [decision.id for decision in newest] == ["b"]
    (placement,) = database.read(lambda c: decision_log.placements(c, task.id, OPERATOR))
    assert (placement.decision.run_id, placement.route) == (run.id, "specialist")


def test_a_run_is_told_of_decisions_on_its_generation_but_not_of_those_on_single_runs(database: Database) -> None:
    world = World(database)
    world.submit("one")
    world.tick()
    task = world.row("one")
    reason = RECORD.model_dump(mode="json")["reason"]
    made = {
        "a": (DecisionKind.SPECIALIST, 1, {"reason": reason, "route": "specialist", "cost_usd": 0.5}),
        "b": (DecisionKind.POLICY, 1, {"reason": "Said in words by an early version."}),
        "c": (DecisionKind.TIER, 1, {}),
        "d": (DecisionKind.POLICY, 2, {"reason": reason}),
        "e": (DecisionKind.TRIAGE, 1, {"reason": reason}),
        "f": (DecisionKind.SHADOW, 1, {"reason": reason}),
    }
    for key, (kind, generation, data) in made.items():
        decision = Decision(
            id=key, kind=kind.value, task_id=task.id, generation=generation, at_ms=START_MS + 1, data=data
        )
        database.write(partial(decision_rows.add, decision=decision))

    assert database.read(lambda c: decision_rows.references(c, task.id, task.generation)) == [
        ("a", "specialist", reason, "specialist"),
        ("b", "policy", "Said in words by an early version.", None),
        ("c", "tier", None, None),
    ]
