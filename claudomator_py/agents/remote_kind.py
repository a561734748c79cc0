"""What the kinds of remote agents share: each works behind a small program of ours that runs here."""

import sys

from claudomator_py.agents.event_kind import EventKind
from claudomator_py.agents.restrictions import restrictions
from claudomator_py.domain.agent import AgentHealth, AgentSpec
from claudomator_py.domain.task import TaskSpec


class RemoteKind(EventKind):
    """Such a kind, but for its program and what that prints."""

    def health(self, agent: AgentSpec, path: str) -> AgentHealth:
        """Its program is always there. Whether the agent is shows when it is asked for something."""
        return AgentHealth(installed=True, program=sys.executable)

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """What the task asks for and is not ours to say: what the agent may do, with which model and where."""
        return [f"{agent.name} is a remote agent, which cannot be held to {field}" for field in restrictions(task)]
