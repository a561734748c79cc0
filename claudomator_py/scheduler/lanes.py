"""A task's demands: what decides whether an agent can enforce what the task asks for, without irrelevant values.

Whether a kind of agent refuses a task depends only on the task's hint and its demands, so tasks with the same demands
are refused by the same agents. Anything else that a kind starts to check must be added to them.
"""

import json
from typing import Any

from claudomator_py.domain.agent import PERMISSION_VARIABLES
from claudomator_py.domain.budget import Unit
from claudomator_py.domain.conversation import ResumedConversation
from claudomator_py.domain.task import PLAIN_TOOL, OnLimit, PermissionMode, TaskSpec
from claudomator_py.scheduler.snapshot import HeldBy


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
    return json.dumps(parts, separators=(",", ":"))


def hint_of(agent_type: str | None, *, strict: bool) -> str:
    """Return the hint of a task's content as one text; see ``hint``."""
    return json.dumps([agent_type, strict], separators=(",", ":"))


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


def held_by(resumption: ResumedConversation | None, spec: TaskSpec) -> HeldBy | None:
    """Return the conversation that the task continues, as planning sees it; None for a fresh one."""
    if resumption is None or resumption.given_up:
        return None
    held = HeldBy(run=resumption.run_id, agent=resumption.agent, kind=resumption.kind, optional=resumption.optional)
    if resumption.follows is None:
        return held
    of = spec.continues if resumption.run_id == resumption.follows else None
    yields = "limited" if spec.on_limit is OnLimit.FAILOVER else "unable"
    return held.model_copy(update={"of": of, "yields": yields})
