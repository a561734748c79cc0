"""The kind ``hub``: start the process of a run whose agent has connected to the hub."""

from typing import ClassVar

from claudomator_py.agents.ending import Result, RunVerdict, failed, limited
from claudomator_py.agents.event_kind import RemoteKind
from claudomator_py.agents.hub import INFO
from claudomator_py.agents.programs import own_program
from claudomator_py.agents.run_events import ClientEvents, OutputEnd, shown
from claudomator_py.domain.outcome import OutcomeStatus, Reason
from claudomator_py.domain.run import Conversations, Launch, LaunchRequest, Part
from claudomator_py.json_fields import Event, amount_of, text_of
from claudomator_py.values import dataclass

_OF_THE_HUB = {
    "lost": Reason.LOST,
    "unreachable": Reason.UNREACHABLE,
    "not_running": Reason.NOT_RUNNING,
    "too_large": Reason.OUTPUT_LIMIT,
}
"""Reasons of the hub itself, for runs whose agent is no longer heard of."""


@dataclass(kw_only=True)
class HubEvents(ClientEvents):
    """The events of one run."""

    program: ClassVar = "its process"

    def take(self, event: Event) -> list[Part]:
        match event.get("type"):
            case "accepted":
                # From here on the agent may have worked on it, whatever is heard of it later.
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
                body = text_of(event, "text") or text_of(event, "error") or ""
                part = Part("message", body) if event.get("outcome") == "completed" else Part("error", body)
                return [part] if body else []
        return []

    def end_verdict(self, end: Event, ending: OutputEnd) -> RunVerdict:
        outcome = text_of(end, "outcome") or ""
        if outcome == "completed":
            return RunVerdict(OutcomeStatus.SUCCEEDED)
        error = text_of(end, "error") or text_of(end, "text") or "it gave no reason"
        if outcome == "lost":
            return RunVerdict(OutcomeStatus.LOST, Reason.LOST, error)
        given = text_of(end, "reason") or ""
        reason = _OF_THE_HUB.get(outcome) or (Reason(given) if given in OF_AN_AGENT else Reason.AGENT_ERROR)
        return limited(error, None) if reason is Reason.RATE_LIMITED else failed(reason, error)

    def result(self) -> Result:
        return Result(text=text_of(self.end or {}, "text"))


OF_AN_AGENT = frozenset({
    Reason.RATE_LIMITED, Reason.OVERLOADED, Reason.NETWORK, Reason.NO_CREDIT, Reason.CONTEXT_TOO_LONG, Reason.REFUSED,
    Reason.TURN_LIMIT, Reason.BUDGET, Reason.TIMEOUT, Reason.AGENT_ERROR,
})  # fmt: skip
"""The reasons that an agent may give for a failure; any other becomes ``agent_error``."""


class HubAgent(RemoteKind):
    """The kind ``hub``."""

    info = INFO
    conversations = Conversations.NONE

    def launch(self, request: LaunchRequest) -> Launch:
        """Return the run's process, which only waits: the hub takes the prompt from the run directory."""
        return Launch(own_program("hub"), {}, request.prompt)

    def events(self, request: LaunchRequest | None) -> HubEvents:
        return HubEvents(resumed=False)


KIND = HubAgent()
