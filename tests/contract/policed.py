"""A world whose rules say what may happen to a task, and what its tests ask of it."""

from collections.abc import Callable
from functools import partial
from typing import Any

from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.policy.rule import Rule
from claudomator_py.resources.tasks import ApproveRequest
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.scheduler.records import DecisionKind, PolicyRecord
from claudomator_py.store import decision_rows
from claudomator_py.store.database import Database
from tests.fakes.world import World

Make = Callable[..., World]
"""With rules, to a world."""


def rule(name: str = "it", **fields: Any) -> Rule:
    return Rule.model_validate({"name": name, **fields})


def policed_world(database: Database, *rules: Rule, total: int = 4) -> World:
    """A world with these rules."""
    world = World(database, routes=True, routing=True, policed=bool(rules), total=total)
    follow(world, *rules)
    return world


def follow(world: World, *rules: Rule) -> None:
    """The rules are these from now on."""
    world.policy_rules = rules
    world.restarted_daemon()


def records(world: World, name: str) -> list[PolicyRecord]:
    """What the policy said of the task, oldest first."""
    result = world.database.read(partial(decision_rows.of_task, task_id=world.row(name).id))
    return [PolicyRecord.model_validate(entry.data) for entry in result if entry.kind == DecisionKind.POLICY]


def approve(world: World, name: str, by: Principal = OPERATOR, **fields: Any) -> None:
    world.access.as_(by)[Tasks].approve(name, ApproveRequest(**fields))
