"""What an agent elsewhere cannot be held to, however it is reached."""

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.task import PermissionMode, TaskSpec


def unsupported_elsewhere(task: TaskSpec, agent: AgentSpec) -> list[str]:
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
