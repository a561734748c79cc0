"""Deciding again what was decided: from the same snapshot, or as it would have been under another configuration."""

from collections.abc import Mapping, Sequence
from typing import Any

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.scheduler.decision import DecisionRecord
from claudomator_py.scheduler.plan import StartRun, plan
from claudomator_py.scheduler.snapshot import AgentState, Rules, Snapshot


def decided_again(snapshot: Snapshot) -> Mapping[str, DecisionRecord]:
    """Return where each task starts, by its id; one that is not there does not start in that tick."""
    return {action.head.task_id: action.decision for action in plan(snapshot) if isinstance(action, StartRun)}


def under(snapshot: Snapshot, agents: Sequence[AgentSpec] | None, rules: Rules) -> Snapshot:
    """Return what that tick would have observed with these agents and rules. agents: None: those that it observed.

    An agent that existed keeps its live runs and its holds. A new one has neither, and is assumed to work.
    """
    observed = {agent.name: agent for agent in snapshot.agents}
    states = []
    for spec in sorted(agents or (), key=lambda spec: spec.name):
        earlier = observed.get(spec.name)
        same_kind = earlier is not None and earlier.kind == spec.kind
        states.append(
            AgentState(
                name=spec.name,
                kind=spec.kind,
                active=earlier.active if earlier is not None and same_kind else 0,
                max_concurrent=spec.max_concurrent,
                auto_select=spec.auto_select,
                problem=earlier.problem if earlier is not None and same_kind else None,
                holds=earlier.holds if earlier is not None and same_kind else (),
                near_limit=earlier.near_limit if earlier is not None and same_kind else False,
                models=spec.models,
                default_tier=spec.default_tier,
                fallback_model=spec.fallback_model,
                remote=spec.info.remote,
            )
        )
    if agents is None:
        states = list(snapshot.agents)
    # What was routed and judged by then, the snapshot knows: nothing waits for what was not asked. Nor is a classifier
    # asked now that was not then: its task gets the tier that it would without an answer.
    then = snapshot.rules
    settled: dict[str, bool | None] = {
        "routing": then.routing,
        "policed": then.policed,
        "classifier": rules.classifier and then.classifier,
    }
    if then.remote is None:
        # An earlier version did not tell whose the runs were, nor remote ones from others.
        settled |= {"per_organisation": None, "remote": None, "remote_per_organisation": None}
    rules = rules.model_copy(update=settled)
    return snapshot.model_copy(update={"agents": tuple(states), "rules": rules})


def first_difference(stored: Any, replayed: Any, at: str = "") -> str | None:
    """Return where two JSON values first differ, as a path with both values; None: nowhere."""
    if isinstance(stored, dict) and isinstance(replayed, dict):
        for key in sorted(stored.keys() | replayed.keys()):
            difference = first_difference(stored.get(key), replayed.get(key), f"{at}.{key}" if at else key)
            if difference is not None:
                return difference
        return None
    if isinstance(stored, list) and isinstance(replayed, list) and len(stored) == len(replayed):
        for index, (one, other) in enumerate(zip(stored, replayed, strict=True)):
            if (difference := first_difference(one, other, f"{at}[{index}]")) is not None:
                return difference
        return None
    return None if stored == replayed else f"{at}: {stored!r} was recorded, {replayed!r} is decided"
