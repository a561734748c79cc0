"""What the kinds of agents share that print JSON events: one walk over them serves the outcome and the transcript."""

import sys
from abc import ABC, abstractmethod

from claudomator_py.agents.event_reader import EventReader
from claudomator_py.agents.kinds import info_of
from claudomator_py.agents.run_events import RunEvents
from claudomator_py.agents.transcript import EventTranscript, LineTranscript, StderrTranscript
from claudomator_py.domain.agent import AgentHealth, AgentSpec
from claudomator_py.domain.kind import KindInfo
from claudomator_py.domain.run import LaunchRequest, Stream
from claudomator_py.domain.task import PermissionMode, TaskSpec


class EventKind(ABC):
    """Such a kind, but for how it is started."""

    kind: str

    def unfenced(self, agent: AgentSpec) -> str | None:
        """Return why runs of the agent cannot be kept within a reach; None: they can."""
        return unfenced(info_of(self.kind))

    @abstractmethod
    def events(self, request: LaunchRequest | None) -> RunEvents:
        """Return what its events mean, with nothing taken yet. request None: of a run of which nothing more is
        known."""

    def reader(self, request: LaunchRequest | None = None) -> EventReader:
        """Return a reader for one run; without a request, for a saved output of which nothing more is known."""
        return EventReader(self.events(request))

    def transcript(self, stream: Stream, offset: int = 0) -> LineTranscript:
        """Return what a run said and did, from that byte of the stream on."""
        events = self.events(None)
        return EventTranscript(events, offset) if stream == "stdout" else StderrTranscript(events, offset)


def zone_of(request: LaunchRequest) -> str | None:
    """Return the zone of the run's own clock times, as for ``find_reset``."""
    return request.task.env.get("TZ", request.agent.env.get("TZ"))


class RemoteKind(EventKind):
    """Such a kind, but for its program and what that prints."""

    def health(self, agent: AgentSpec, path: str) -> AgentHealth:
        """Return its program is always there. Whether the agent is shows when it is asked for something."""
        return AgentHealth(installed=True, program=sys.executable)

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """Return what the task asks for and is not ours to say: what the agent may do, with which model and where."""
        return [f"{agent.name} is a remote agent, which cannot be held to {field}" for field in restrictions(task)]


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
    """Raise ValueError for a further folder that such an agent would take for several."""
    if (folder := next((folder for folder in task.add_dirs if "," in folder), None)) is not None:
        raise ValueError(f"{agent.name} would take the further folder {folder} for several, as it has a comma")
