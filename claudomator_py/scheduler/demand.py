"""A demand: which agents tasks may be given to. It decides for all tasks that share it whether any could start now."""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from claudomator_py.domain.routing import OPEN, Constraints
from claudomator_py.scheduler.snapshot import AgentState
from claudomator_py.schema.agent_settings import BY_NAME_KINDS
from claudomator_py.values import dataclass


class Demand(NamedTuple):
    """What a group of queued tasks demands of agents, as stored. All tasks of a lane have the same demand."""

    hint: str
    """See ``scheduler.lanes.hint``."""
    constraints: str
    """The text of ``domain.routing.Constraints``, or a text that cannot be read if that is too long; empty if the tasks
    are not routed yet."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A demand, parsed."""

    agent_type: str | None
    strict: bool
    constraints: Constraints


@lru_cache(maxsize=4096)
def _parsed(demand: Demand) -> _Wanted | None:
    """Return what the demand says; None if it says too little: the tasks continue conversations, which are with any
    agent, or it cannot be read."""
    try:
        agent_type, strict = json.loads(demand.hint)
        constraints = Constraints.parse(demand.constraints) if demand.constraints else OPEN
    except ValueError:
        return None
    return _Wanted(agent_type, strict, constraints)


def constraints_of(demand: Demand) -> Constraints:
    """Return the constraints in the demand; none if it cannot be read."""
    wanted = _parsed(demand)
    return OPEN if wanted is None else wanted.constraints


def named_by(agent_type: str, agents: Sequence[AgentState]) -> tuple[AgentState, ...]:
    """Return the agents that ``agent.type`` refers to: the agent with that name, or else those of that kind.

    Of a kind, only agents open to balancing if there are any: the others are chosen only by name.
    """
    by_name = tuple(agent for agent in agents if agent.name == agent_type)
    of_kind = tuple(agent for agent in agents if agent.kind == agent_type)
    return by_name or tuple(agent for agent in of_kind if agent.auto_select) or of_kind


def may_be_met(demand: Demand, usable: Sequence[AgentState], agents: Sequence[AgentState]) -> bool:
    """Return whether one of the usable agents might take a task with that demand. agents: all of them.

    False only if the tasks cannot start, whatever else they ask for: other demands, models and holds on these could
    only rule out more agents.
    """
    wanted = _parsed(demand)
    if wanted is None:
        return bool(usable)
    constraints = wanted.constraints
    open_to_it = [agent for agent in usable if _is_open(agent, constraints)]
    if wanted.agent_type is not None:
        visible = [agent for agent in agents if agent.specialist is None or constraints.names(agent.name)]
        meant = named_by(wanted.agent_type, visible)
        if any(agent.name == wanted.name for agent in open_to_it for wanted in meant):
            return True
        by_name = not any(agent.auto_select for agent in meant) if meant else wanted.agent_type in BY_NAME_KINDS
        if wanted.strict or by_name:
            return False
    return any(agent.auto_select or constraints.names(agent.name) for agent in open_to_it)


def _is_open(agent: AgentState, constraints: Constraints) -> bool:
    """True if tasks with these constraints may be given to the agent."""
    visible = agent.specialist is None or constraints.names(agent.name)
    return visible and constraints.admits(agent.name, agent.kind)
