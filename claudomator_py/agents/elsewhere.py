"""What the kinds share whose agents work elsewhere, behind a small program of ours that runs here."""

import sys

from claudomator_py.agents.event_kind import EventKind
from claudomator_py.domain.agent import AgentHealth, AgentSpec
from claudomator_py.domain.task import PermissionMode, TaskSpec


class ElsewhereKind(EventKind):
    """Such a kind, but for its program and what that prints."""

    def health(self, agent: AgentSpec, path: str) -> AgentHealth:
        """Its program is always there. Whether the agent is shows when it is asked for something."""
        return AgentHealth(installed=True, program=sys.executable)

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """What the task asks for and is not ours to say: what the agent may do, with which model and where."""
        permissions = task.permissions
        asked = {
            "permissions.mode": permissions.mode is not PermissionMode.DEFAULT,
            "permissions.allowed_tools": bool(permissions.allowed_tools),
            "permissions.disallowed_tools": bool(permissions.disallowed_tools),
            "max_turns": task.max_turns is not None,
            "add_dirs": bool(task.add_dirs),
            "agent.model": task.agent.model is not None,
        }
        return [
            f"{agent.name} is a remote agent, which cannot be held to {field}"
            for field, is_asked in asked.items()
            if is_asked
        ]
