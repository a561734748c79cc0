"""An agent that has connected to the hub: how the process of its run is started."""

from typing import ClassVar

from claudomator_py.agents.api_errors import limited
from claudomator_py.agents.ending import Result, RunVerdict, failed
from claudomator_py.agents.event_kind import RemoteKind
from claudomator_py.agents.hub import INFO
from claudomator_py.agents.jsonlines import Event, amount_of, text_of
from claudomator_py.agents.programs import own_program
from claudomator_py.agents.run_events import ClientEvents, OutputEnd, shown
from claudomator_py.domain.conversation import Conversations
from claudomator_py.domain.outcome import OutcomeStatus, Reason
from claudomator_py.domain.run import Launch, LaunchRequest, Part
from claudomator_py.values import dataclass

_OF_THE_HUB = {
    "lost": Reason.LOST,
    "unreachable": Reason.UNREACHABLE,
    "not_running": Reason.NOT_RUNNING,
    "too_large": Reason.OUTPUT_LIMIT,
}
"""How a run ends of whose agent nothing more is heard."""


@dataclass(kw_only=True)
class HubEvents(ClientEvents):
    """One run."""

    program: ClassVar = "its process"

    def take(self, event: Event) -> list[Part]:
        """Take the next event: what it says, for people."""
        match event.get("type"):
            case "accepted":
                # From here on it may have been worked on, whatever is heard of it later.
                self.answered = True
                return [Part("notice", f"accepted by {shown(event.get('agent'))}")]
            case "waking":
                return [Part("notice", "the agent is not connected, and is being woken")]
            case "progress":
                percent = amount_of(event, "percent")
                text = text_of(event, "text") or ""
                share = "" if percent is None else f"{percent:.0f}%"
                return [Part("message", ": ".join(part for part in (share, text) if part))]
            case "notice":
                return [Part("notice", shown(event.get("text")))]
            case "end":
                self.end = event
                said = text_of(event, "text") or text_of(event, "error") or ""
                part = Part("message", said) if event.get("outcome") == "completed" else Part("error", said)
                return [part] if said else []
        return []

    def said(self, ending: OutputEnd) -> RunVerdict | None:
        """Return what its end means."""
        if self.end is None:
            return None
        outcome = text_of(self.end, "outcome") or ""
        if outcome == "completed":
            return RunVerdict(OutcomeStatus.SUCCEEDED)
        error = text_of(self.end, "error") or text_of(self.end, "text") or "it gave no reason"
        if outcome == "lost":
            return RunVerdict(OutcomeStatus.LOST, Reason.LOST, error)
        given = text_of(self.end, "reason") or ""
        reason = _OF_THE_HUB.get(outcome) or (Reason(given) if given in OF_AN_AGENT else Reason.AGENT_ERROR)
        return limited(error, None) if reason is Reason.RATE_LIMITED else failed(reason, error)

    def result(self) -> Result:
        return Result(text=text_of(self.end or {}, "text"))


OF_AN_AGENT = frozenset(
    {
        Reason.RATE_LIMITED,
        Reason.OVERLOADED,
        Reason.NETWORK,
        Reason.NO_CREDIT,
        Reason.CONTEXT_TOO_LONG,
        Reason.REFUSED,
        Reason.TURN_LIMIT,
        Reason.BUDGET,
        Reason.TIMEOUT,
        Reason.AGENT_ERROR,
    }
)
"""The reasons that an agent may give for a failure; any other one is ``agent_error``."""


class HubAgent(RemoteKind):
    """The kind ``hub``."""

    kind = INFO.name
    conversations = Conversations.NONE

    def launch(self, request: LaunchRequest) -> Launch:
        """Return its process, which only waits: the hub takes the prompt from the run directory."""
        return Launch(own_program("claudomator_py.agents.hub_runner"), {}, request.prompt)

    def events(self, request: LaunchRequest | None) -> HubEvents:
        """Return what its events mean, with nothing taken yet."""
        return HubEvents(resumed=False)


KIND = HubAgent()
