"""What of a task decides whether an agent can enforce what it asks for, without the values that do not matter.

Whether a kind of agent refuses a task depends on nothing else of it than its hint and what is said here, so tasks with
the same demands are refused by the same agents. A kind that looks at more has to be told of here.
"""

import re

from claudomator_py.core.budget import Unit
from claudomator_py.core.task import PermissionMode, TaskSpec

PLAIN_TOOL = re.compile(r"[\w*-]+")
"""The name of a tool alone, without what it may be used for."""
SANDBOX_NAME = "IS_SANDBOX"
OPENCODE_PERMISSION_NAME = "OPENCODE_PERMISSION"


def demands(spec: TaskSpec) -> dict[str, object]:
    """The shape of what the agent has to enforce; empty for a task that demands nothing."""
    permissions = spec.permissions
    found: dict[str, object] = {
        "mode": None if permissions.mode is PermissionMode.DEFAULT else permissions.mode.value,
        "allowed_tools": _shape(permissions.allowed_tools),
        "disallowed_tools": _shape(permissions.disallowed_tools),
        "max_turns": spec.max_turns is not None,
        "add_dirs": _shape(spec.add_dirs),
        "folder_patterns": any("*" in folder or "?" in folder for folder in spec.add_dirs),
        "budget": [unit.value for unit in spec.budget.units if unit is not Unit.RUNS],
        "env": _environment(spec.env),
    }
    return {name: shape for name, shape in found.items() if shape}


def _shape(words: tuple[str, ...]) -> str:
    """Empty without any; else whether all are plain names, and whether a list with commas could hold them."""
    if not words:
        return ""
    plain = "plain" if all(PLAIN_TOOL.fullmatch(word) for word in words) else "qualified"
    return f"{plain}, with commas" if any("," in word for word in words) else plain


def _environment(env: dict[str, str]) -> list[str]:
    sandbox = env.get(SANDBOX_NAME)
    found = [] if sandbox is None else [f"{SANDBOX_NAME}={'1' if sandbox == '1' else 'other'}"]
    return [*found, OPENCODE_PERMISSION_NAME] if OPENCODE_PERMISSION_NAME in env else found
