"""What a task may ask of an agent that not every kind can keep to, as several kinds see it."""

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.kind import KindInfo
from claudomator_py.domain.task import PermissionMode, TaskSpec


def unfenced(info: KindInfo) -> str | None:
    """Return why runs of the kind cannot be kept within a reach; None: they can."""
    return None if info.fences else f"there is no fence for agents of kind {info.name}"


def restrictions(task: TaskSpec) -> list[str]:
    """Return the fields by which the task says what its agent may do, for how long, with which model and where."""
    permissions = task.permissions
    asked = {
        "permissions.mode": permissions.mode is not PermissionMode.DEFAULT,
        "permissions.tools": permissions.tools is not None,
        "permissions.allowed_tools": bool(permissions.allowed_tools),
        "permissions.disallowed_tools": bool(permissions.disallowed_tools),
        "max_turns": task.max_turns is not None,
        "add_dirs": bool(task.add_dirs),
        "agent.model": task.agent.model is not None,
    }
    return [field for field, is_asked in asked.items() if is_asked]


def without_list_of_tools(task: TaskSpec, agent: AgentSpec) -> list[str]:
    """Return what an agent cannot keep to that always has all of its tools, in sentences."""
    if task.permissions.tools is None:
        return []
    return [f"{agent.name} has no option for permissions.tools; use permissions.mode"]


def split_by_commas(task: TaskSpec, agent: AgentSpec) -> list[str]:
    """Return what an agent would misread whose lists have commas between their words, in sentences."""
    lists = (("permissions.allowed_tools", task.permissions.allowed_tools), ("add_dirs", task.add_dirs))
    return [
        f"{agent.name} would take {word!r} in {field} for several, as it has a comma"
        for field, words in lists
        for word in words
        if "," in word
    ]


def check_folders(task: TaskSpec, agent: AgentSpec) -> None:
    """Raises ValueError for a further folder that such an agent would take for several."""
    if (folder := next((folder for folder in task.add_dirs if "," in folder), None)) is not None:
        raise ValueError(f"{agent.name} would take the further folder {folder} for several, as it has a comma")
