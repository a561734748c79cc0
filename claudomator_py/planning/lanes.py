"""Lanes: what a task shares with every task that is blocked whenever it is."""

import json

from claudomator_py.core.budget import Unit
from claudomator_py.core.task import TaskSpec


def lane(spec: TaskSpec, dir_key: str, holder: str | None = None, thread: str | None = None) -> str:
    """The task's lane: its directory, which agents and models are eligible for it, and what they have to enforce.

    holder: the agent that has the conversation in which the task goes on, if it does. thread: the task that began the
    thread, if it continues another one.
    """
    hint = spec.agent
    parts: list[object] = [dir_key, hint.type, hint.strict, hint.tier, hint.model]
    demands = spec.model_dump(mode="json", include={"permissions", "max_turns", "add_dirs"}, exclude_defaults=True)
    if demands:
        parts.append(demands)
    if counted := [unit.value for unit in spec.budget.units if unit is not Unit.RUNS]:
        parts.append({"budget": counted})
    if holder is not None:
        parts.append({"conversation_on": holder})
    if thread is not None:
        parts.append({"thread": thread})
    return json.dumps(parts, separators=(",", ":"))
