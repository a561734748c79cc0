"""An agent that has connected to the hub: how the process of its run is started."""

from claudomator_py.agents.event_kind import RemoteKind
from claudomator_py.agents.hub import INFO
from claudomator_py.agents.hub.events import HubEvents
from claudomator_py.agents.own_programs import own_program
from claudomator_py.domain.conversation import Conversations
from claudomator_py.domain.run import Launch, LaunchRequest


class HubAgent(RemoteKind):
    """The kind ``hub``."""

    kind = INFO.name
    conversations = Conversations.NONE

    def launch(self, request: LaunchRequest) -> Launch:
        """Its process, which only waits: the hub takes the prompt from the run directory."""
        return Launch(own_program("claudomator_py.agents.hub_runner.main"), {}, request.prompt)

    def events(self, request: LaunchRequest | None) -> HubEvents:
        """Return what its events mean, with nothing taken yet."""
        return HubEvents(resumed=False)


KIND = HubAgent()
