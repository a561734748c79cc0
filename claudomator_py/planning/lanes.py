"""Lanes: what a task shares with every task that is blocked whenever it is."""

import json

from claudomator_py.core.task import TaskSpec


def lane(spec: TaskSpec, dir_key: str) -> str:
    """The task's lane: its directory, which agents and models are eligible for it, and what they have to enforce."""
    hint = spec.agent
    parts: list[object] = [dir_key, hint.type, hint.strict, hint.tier, hint.model]
    demands = spec.model_dump(mode="json", include={"permissions", "max_turns", "add_dirs"}, exclude_defaults=True)
    if demands:
        parts.append(demands)
    return json.dumps(parts, separators=(",", ":"))
