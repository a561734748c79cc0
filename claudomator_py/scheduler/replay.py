"""Deciding again what was decided: from the same snapshot, or as it would have been under another configuration."""

from collections.abc import Mapping, Sequence
from typing import Any

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.scheduler.decision import DecisionRecord
from claudomator_py.scheduler.plan import StartRun, plan
from claudomator_py.scheduler.snapshot import AgentState, Rules, Snapshot


def decided_again(snapshot: Snapshot) -> Mapping[str, DecisionRecord]:
    """Where each task starts, by its id; one that is not there does not start in that tick."""
    return {action.head.task_id: action.decision for action in plan(snapshot) if isinstance(action, StartRun)}


def under(snapshot: Snapshot, agents: Sequence[AgentSpec] | None, rules: Rules) -> Snapshot:
    """What that tick would have seen with these agents and rules. agents: None: with those that it saw.

    An agent that there was keeps its live runs and its holds. One that there was not has neither, and is taken to work.
    """
    seen = {agent.name: agent for agent in snapshot.agents}
    states = []
    for spec in sorted(agents or (), key=lambda one: one.name):
        before = seen.get(spec.name)
        kept = before is not None and before.kind == spec.kind
        states.append(
            AgentState(
                name=spec.name,
                kind=spec.kind,
                active=before.active if before is not None and kept else 0,
                max_concurrent=spec.max_concurrent,
                auto_select=spec.auto_select,
                problem=before.problem if before is not None and kept else None,
                holds=before.holds if before is not None and kept else (),
                near_limit=before.near_limit if before is not None and kept else False,
                models=spec.models,
                default_tier=spec.default_tier,
                fallback_model=spec.fallback_model,
            )
        )
    if agents is None:
        states = list(snapshot.agents)
    # Whether anything is to be routed depends on whether there are specialists, which the snapshot knows; and a
    # classifier that was not asked then is not asked now: its task gets the tier that it would without an answer.
    known = {"routing": snapshot.rules.routing, "classifier": rules.classifier and snapshot.rules.classifier}
    rules = rules.model_copy(update=known)
    return snapshot.model_copy(update={"agents": tuple(states), "rules": rules})


def first_difference(stored: Any, again: Any, at: str = "") -> str | None:
    """Where two JSON values part, as a path with both values; None: nowhere."""
    if isinstance(stored, dict) and isinstance(again, dict):
        for key in sorted(stored.keys() | again.keys()):
            found = first_difference(stored.get(key), again.get(key), f"{at}.{key}" if at else key)
            if found is not None:
                return found
        return None
    if isinstance(stored, list) and isinstance(again, list) and len(stored) == len(again):
        for index, (one, other) in enumerate(zip(stored, again, strict=True)):
            if (found := first_difference(one, other, f"{at}[{index}]")) is not None:
                return found
        return None
    return None if stored == again else f"{at}: {stored!r} was recorded, {again!r} is decided"
