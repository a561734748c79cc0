"""Lanes: what a task shares with every task that is blocked whenever it is."""

import json

from claudomator_py.core.task import TaskSpec


def lane(spec: TaskSpec, dir_key: str) -> str:
    """The task's lane: its directory and which agents and models are eligible for it."""
    hint = spec.agent
    return json.dumps([dir_key, hint.type, hint.strict, hint.tier, hint.model], separators=(",", ":"))
