"""An agent that has connected to the hub: how the process of its run is started."""

import sys
from pathlib import Path
from typing import Final

from claudomator_py.agents.elsewhere import unsupported_elsewhere
from claudomator_py.agents.event_kind import EventKind
from claudomator_py.agents.hub import INFO
from claudomator_py.agents.hub.events import HubEvents
from claudomator_py.domain.agent import AgentHealth, AgentSpec
from claudomator_py.domain.conversation import Conversations
from claudomator_py.domain.run import Launch, LaunchRequest
from claudomator_py.domain.task import TaskSpec

_INSTALLATION: Final = str(Path(__file__).parents[3])
# Isolated: no site packages, and nothing that a variable could have it import.
_PROGRAM: Final = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from claudomator_py.agents.hub_runner.main import main; sys.exit(main())"
)


class HubAgent(EventKind):
    """The kind ``hub``."""

    kind = INFO.name
    conversations = Conversations.NONE

    def launch(self, request: LaunchRequest) -> Launch:
        """Its process, which only waits: the hub takes the prompt from the run directory."""
        argv = (sys.executable, "-I", "-S", "-X", "utf8", "-c", _PROGRAM, _INSTALLATION)
        return Launch(argv, {}, request.prompt)

    def events(self, request: LaunchRequest | None) -> HubEvents:
        """What its events mean, with nothing taken yet."""
        return HubEvents(resumed=False)

    def health(self, agent: AgentSpec, path: str) -> AgentHealth:
        """Its process is always there. Whether the agent is connected shows when there is something for it."""
        return AgentHealth(installed=True, program=sys.executable)

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """See ``elsewhere``."""
        return unsupported_elsewhere(task, agent)


KIND = HubAgent()
