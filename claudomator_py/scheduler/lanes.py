"""Lanes and demands: which queued tasks the same agents may take.

A task's demands decide whether an agent can enforce what the task asks for, without irrelevant values. Whether a kind
of agent refuses a task depends only on its hint and its demands, so tasks with the same demands are refused by the same
agents. Anything else that a kind starts to check must be added to them.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from claudomator_py.domain.agent import BY_NAME_KINDS, PERMISSION_VARIABLES
from claudomator_py.domain.budget import Unit
from claudomator_py.domain.routing import OPEN, Constraints
from claudomator_py.domain.run import ResumedConversation
from claudomator_py.domain.task import PLAIN_TOOL, OnLimit, PermissionMode, TaskSpec
from claudomator_py.scheduler.snapshot import AgentState, HeldConversation
from claudomator_py.values import dataclass

_compact = json.JSONEncoder(separators=(",", ":")).encode


def demands(spec: TaskSpec) -> dict[str, object]:
    """Return the shape of what the agent has to enforce; empty for a task without demands."""
    permissions = spec.permissions
    shapes: dict[str, object] = {
        "mode": None if permissions.mode is PermissionMode.DEFAULT else permissions.mode.value,
        "tools": permissions.tools is not None,
        "allowed_tools": _shape(permissions.allowed_tools),
        "disallowed_tools": _shape(permissions.disallowed_tools),
        "reach": None if spec.reach is None else spec.reach.value,
        "max_turns": spec.max_turns is not None,
        "host": spec.host,
        "needs": spec.needs is not None,
        "add_dirs": _shape(spec.add_dirs),
        "folder_patterns": any("*" in folder or "?" in folder for folder in spec.add_dirs),
        "budget": [unit.value for unit in spec.budget.units if unit is not Unit.RUNS],
        "env": _environment(spec.env),
    }
    return {name: shape for name, shape in shapes.items() if shape}


def _shape(words: tuple[str, ...]) -> str:
    """Empty without words; otherwise whether all are plain tool names, and whether any contains a comma."""
    if not words:
        return ""
    plain = "plain" if all(PLAIN_TOOL.fullmatch(word) for word in words) else "qualified"
    return f"{plain}, with commas" if any("," in word for word in words) else plain


def _environment(env: dict[str, str]) -> list[str]:
    """Return the variables through which agents' programs take permissions, with the relevant part of their values."""
    return [
        name if value is None else f"{name}={value if env[name] == value else 'other'}"
        for name, value in PERMISSION_VARIABLES.items()
        if name in env
    ]


def eligibility(spec: TaskSpec, resumption: ResumedConversation | None = None) -> str:
    """Return what decides which agents and models are eligible for the task, as far as known when it is queued.

    The working directory is not included: it separates tasks whichever agent runs them. resumption: the conversation
    that the task continues, if any. Together with the tier kept or found, and what the last run did not get, this is
    the task's lane; see ``store.tables.Task``.
    """
    hint = spec.agent
    parts: list[object] = [hint.type, hint.strict, hint.tier, hint.model]
    if demanded := demands(spec):
        parts.append(demanded)
    held = held_by(resumption, spec)
    if held is not None:
        parts.append({"conversation": [held.agent, held.kind, held.optional, held.yields]})
    return _compact(parts)


@lru_cache(maxsize=1024)
def hint_of(agent_type: str | None, *, strict: bool) -> str:
    """Return the hint of a task's content as one text; see ``hint``."""
    return _compact([agent_type, strict])


def hint(spec: TaskSpec, resumption: ResumedConversation | None = None) -> str:
    """Return which agent the task asks for, and whether that is strict; empty if the task continues a conversation, as
    it is then for the agent that has it.

    While no agent matching a hint can take a task, all lanes with that hint are skipped at once; see
    ``scheduler.admission.exhausted_hints``.
    """
    if held_by(resumption, spec) is not None:
        return ""
    return hint_of(spec.agent.type, strict=spec.agent.strict)


def lane_columns(spec: TaskSpec, resumption: ResumedConversation | None = None) -> dict[str, Any]:
    """Return the task's queue columns that are derived from its content and its conversation."""
    return {"eligibility": eligibility(spec, resumption), "hint": hint(spec, resumption)}


def held_by(resumption: ResumedConversation | None, spec: TaskSpec) -> HeldConversation | None:
    """Return the conversation that the task continues, as planning sees it; None for a fresh one."""
    if resumption is None or resumption.given_up:
        return None
    held = HeldConversation(
        run=resumption.run_id, agent=resumption.agent, kind=resumption.kind, optional=resumption.optional
    )
    if resumption.follows is None:
        return held
    of = spec.continues if resumption.run_id == resumption.follows else None
    yields = "limited" if spec.on_limit is OnLimit.FAILOVER else "unable"
    return held.model_copy(update={"of": of, "yields": yields})


class Demand(NamedTuple):
    """What a group of queued tasks demands of agents, as stored. All tasks of a lane have the same demand."""

    hint: str
    """The agent that they ask for, as ``scheduler.lanes.hint`` writes it."""
    constraints: str
    """The text of ``domain.routing.Constraints``, or a text that cannot be read if that is too long; empty if the tasks
    are not routed yet."""


@dataclass(frozen=True, slots=True)
class _ReadDemand:
    """A demand, read."""

    agent_type: str | None
    strict: bool
    constraints: Constraints


@lru_cache(maxsize=4096)
def _parsed(demand: Demand) -> _ReadDemand | None:
    """Return what the demand says; None if it says too little: the tasks continue conversations, which are with any
    agent, or it cannot be read."""
    try:
        agent_type, strict = json.loads(demand.hint)
        constraints = Constraints.parse(demand.constraints) if demand.constraints else OPEN
    except ValueError:
        return None
    return _ReadDemand(agent_type, strict, constraints)


def constraints_of(demand: Demand) -> Constraints:
    """Return the constraints in the demand; none if it cannot be read."""
    wanted = _parsed(demand)
    return OPEN if wanted is None else wanted.constraints


def named_by(agent_type: str, agents: Sequence[AgentState]) -> tuple[AgentState, ...]:
    """Return the agents that ``agent.type`` refers to: the agent with that name, or else those of that kind. Of a kind,
    only agents open to balancing if there are any: the others are chosen only by name."""
    by_name = tuple(agent for agent in agents if agent.name == agent_type)
    of_kind = tuple(agent for agent in agents if agent.kind == agent_type)
    return by_name or tuple(agent for agent in of_kind if agent.auto_select) or of_kind


def visible_to(constraints: Constraints, agents: Sequence[AgentState]) -> tuple[AgentState, ...]:
    """Return the agents visible to tasks with these constraints. An agent that is a remote specialist is visible only
    to tasks routed to that specialist, as not everybody may see or use it."""
    return tuple(agent for agent in agents if agent.specialist is None or constraints.names(agent.name))


def is_by_name_only(agent_type: str | None, meant: Sequence[AgentState]) -> bool:
    """Return whether no other agent may take a task that asks for this type, as with a strict hint. meant: the agents
    that it refers to."""
    return not any(agent.auto_select for agent in meant) if meant else agent_type in BY_NAME_KINDS


def is_balanced(agent: AgentState, constraints: Constraints) -> bool:
    """Return whether the balancer may choose the agent for tasks with these constraints. A specialist's card can also
    name an agent that must be chosen by name."""
    return agent.auto_select or constraints.names(agent.name)


def may_be_met(demand: Demand, usable: Sequence[AgentState], agents: Sequence[AgentState]) -> bool:
    """Return whether one of the usable agents might take a task with that demand. agents: all of them.

    False only if the tasks cannot start, whatever else they ask for: other demands, models and holds on these could
    only rule out more agents.
    """
    wanted = _parsed(demand)
    if wanted is None:
        return bool(usable)
    constraints = wanted.constraints
    open_to_it = [agent for agent in visible_to(constraints, usable) if constraints.admits(agent.name, agent.kind)]
    if wanted.agent_type is not None:
        meant = named_by(wanted.agent_type, visible_to(constraints, agents))
        if any(agent.name == wanted.name for agent in open_to_it for wanted in meant):
            return True
        if wanted.strict or is_by_name_only(wanted.agent_type, meant):
            return False
    return any(is_balanced(agent, constraints) for agent in open_to_it)
