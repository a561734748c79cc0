"""What tests of tasks share that one specialist hands on to another."""

import json
from typing import Any

from claudomator_py.domain.handoff import HANDOFF_MARKER
from claudomator_py.domain.outcome import Outcome
from claudomator_py.scheduler.records import DecisionKind, HandoffRecord
from claudomator_py.store import decision_rows, run_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Run
from tests.fakes.cards import card
from tests.fakes.world import World


def world_of_specialists(database: Database) -> World:
    """One with ann, ben, cid and dan."""
    world = World(database, routing=True)
    for name in ("ann", "ben", "cid", "dan"):
        world.specialists.register(card(name, description=f"Does what {name} does."))
    return world


def begin(world: World, name: str = "t", **fields: Any) -> Run:
    """Let a task for ann begin."""
    world.submit(name, **{"specialist": "ann", **fields})
    return go_on(world, name)


def go_on(world: World, name: str = "t") -> Run:
    """The run of whoever does it next."""
    world.router.route()
    world.tick()
    return world.live(name)


def last_words(to: str, **text: Any) -> str:
    """What an agent says last that hands its task on."""
    return f"I looked at it.\n\n{HANDOFF_MARKER} {json.dumps({'to': to, **text})}"


def hand_on(world: World, to: str, name: str = "t", **fields: Any) -> None:
    """Let its run end so that it hands the task on."""
    world.end(name, text=last_words(to, **fields))
    world.tick()


def records(world: World, name: str = "t") -> list[HandoffRecord]:
    """Every hand-over of the task, accepted or not, in order."""
    task_id = world.row(name).id
    result = world.database.read(lambda connection: decision_rows.of_task(connection, task_id))
    handoffs = [
        HandoffRecord.model_validate(entry.data) for entry in result if entry.kind == DecisionKind.HANDOFF.value
    ]
    return sorted(handoffs, key=lambda handoff: (handoff.hop, not handoff.accepted))


def document(world: World, name: str = "t") -> dict[str, Any]:
    """What its live run was handed."""
    text = world.host.directories[world.live(name).id, 0].order.handoff
    assert text is not None
    payload: dict[str, Any] = json.loads(text)
    return payload


def prompt(world: World, name: str = "t") -> str:
    """What its live run was told."""
    return world.host.directories[world.live(name).id, 0].order.stdin


def outcome(world: World, run: Run) -> Outcome:
    """How the run ended."""
    result = world.database.read(lambda connection: run_rows.find(connection, run.id))
    assert result is not None
    return Outcome.model_validate(result.outcome)
