"""What kinds whose CLI prints JSON events have in common: one pass over the events serves outcome and transcript."""

import sys
from abc import ABC, abstractmethod

from claudomator_py.agents.event_reader import EventReader
from claudomator_py.agents.programs import probe
from claudomator_py.agents.run_events import RunEvents
from claudomator_py.agents.transcript import EventTranscript, LineTranscript, StderrTranscript
from claudomator_py.domain.agent import AgentHealth, AgentSpec
from claudomator_py.domain.kind import KindInfo
from claudomator_py.domain.run import LaunchRequest, Stream
from claudomator_py.domain.task import PermissionMode, TaskSpec


class EventKind(ABC):
    """An ``AgentKind`` whose CLI prints JSON events; subclasses say how it is started."""

    info: KindInfo
    package: str
    """The npm package of its program."""

    @property
    def kind(self) -> str:
        return self.info.name

    def health(self, agent: AgentSpec, path: str) -> AgentHealth:
        """Return whether its program is installed, and which version."""
        remedy = f"install it (npm install -g {self.package}), or set the agent's command in the configuration"
        return probe(agent.command or self.info.command, path, remedy)

    def unfenced(self, agent: AgentSpec) -> str | None:
        return None if self.info.fences else f"there is no fence for agents of kind {self.kind}"

    @abstractmethod
    def events(self, request: LaunchRequest | None) -> RunEvents:
        """Return an empty reader for the run's events. request None: for saved output of an unknown run."""

    def reader(self, request: LaunchRequest | None = None) -> EventReader:
        return EventReader(self.events(request))

    def transcript(self, stream: Stream, offset: int = 0) -> LineTranscript:
        events = self.events(None)
        return EventTranscript(events, offset) if stream == "stdout" else StderrTranscript(events, offset)


def zone_of(request: LaunchRequest) -> str | None:
    """Return the time zone in which the run's CLI prints times, as for ``find_reset``."""
    return request.task.env.get("TZ", request.agent.env.get("TZ"))


class RemoteKind(EventKind):
    """A kind of agents that run elsewhere; subclasses say which client is started and what it prints."""

    def health(self, agent: AgentSpec, path: str) -> AgentHealth:
        """Return that its client is installed. Whether the agent itself is there shows when it is called."""
        return AgentHealth(installed=True, program=sys.executable)

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """Return the task's restrictions that a remote agent need not follow: permissions, model and folders."""
        return [f"{agent.name} is a remote agent, which cannot be held to {field}" for field in restrictions(task)]


def restrictions(task: TaskSpec) -> list[str]:
    """Return the fields in which the task restricts its agent: permissions, turns, folders and model."""
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
    """Return sentences for an agent that always has all of its tools."""
    if task.permissions.tools is None:
        return []
    return [f"{agent.name} has no option for permissions.tools; use permissions.mode"]


def split_by_commas(task: TaskSpec, agent: AgentSpec) -> list[str]:
    """Return sentences for words with commas that the agent, whose lists are comma-separated, would split."""
    lists = (("permissions.allowed_tools", task.permissions.allowed_tools), ("add_dirs", task.add_dirs))
    return [
        f"{agent.name} would take {word!r} in {field} for several, as it has a comma"
        for field, words in lists
        for word in words
        if "," in word
    ]


def check_folders(task: TaskSpec, agent: AgentSpec) -> None:
    """Raise ValueError for a further folder that the agent would split at its comma."""
    if (folder := next((folder for folder in task.add_dirs if "," in folder), None)) is not None:
        raise ValueError(f"{agent.name} would take the further folder {folder} for several, as it has a comma")
