"""The simulated agent: to try everything without a model, an account or a cost. It says in all it writes what it is."""

import sys
from pathlib import Path

from claudomator_py.agents.event_kind import EventKind
from claudomator_py.agents.simulated import INFO
from claudomator_py.agents.simulated.events import SimulatedEvents
from claudomator_py.domain.agent import AgentHealth, AgentSpec
from claudomator_py.domain.conversation import Conversations
from claudomator_py.domain.run import Launch, LaunchRequest
from claudomator_py.domain.task import TaskSpec

PROGRAM = Path(__file__).with_name("program.py")
SCRIPT_NAME = "CLAUDOMATOR_SIMULATED_SCRIPT"


class Simulated(EventKind):
    """The kind ``simulated``."""

    kind = INFO.name
    conversations = Conversations.GIVEN

    def launch(self, request: LaunchRequest) -> Launch:
        """Its program, isolated from whatever else is installed."""
        argv = [sys.executable, "-I", "-S", str(PROGRAM), "--conversation", request.conversation_id]
        if request.resume:
            argv.append("--resume")
        if request.model is not None:
            argv.append(f"--model={request.model.model}")
        for tool in request.task.permissions.allowed_tools:
            argv += ["--allow", tool]
        script = request.agent.script
        return Launch(tuple(argv), {SCRIPT_NAME: script} if script is not None else {}, request.prompt)

    def events(self, request: LaunchRequest | None) -> SimulatedEvents:
        """Return what its events mean, with nothing taken yet."""
        return SimulatedEvents()

    def health(self, agent: AgentSpec, path: str) -> AgentHealth:
        """It is always there."""
        return AgentHealth(installed=True, program=str(PROGRAM), version="simulated")

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """Nothing: it asks for the tools that its script names, takes no turns and reads no folders."""
        return []


KIND = Simulated()
