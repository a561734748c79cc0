"""What the kinds of agents share that print JSON events: one walk over them serves the outcome and the transcript."""

from abc import ABC, abstractmethod

from claudomator_py.agents.event_reader import EventReader
from claudomator_py.agents.kinds import info_of
from claudomator_py.agents.restrictions import unfenced
from claudomator_py.agents.run_events import RunEvents
from claudomator_py.agents.transcript import EventTranscript, LineTranscript, StderrTranscript
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.run import LaunchRequest, Stream


class EventKind(ABC):
    """Such a kind, but for how it is started."""

    kind: str

    def unfenced(self, agent: AgentSpec) -> str | None:
        """Why runs of the agent cannot be kept within a reach; None: they can."""
        return unfenced(info_of(self.kind))

    @abstractmethod
    def events(self, request: LaunchRequest | None) -> RunEvents:
        """What its events mean, with nothing taken yet. request None: of a run of which nothing more is known."""

    def reader(self, request: LaunchRequest | None = None) -> EventReader:
        """A reader for one run; without a request, for a saved output of which nothing more is known."""
        return EventReader(self.events(request))

    def transcript(self, stream: Stream, offset: int = 0) -> LineTranscript:
        """What a run said and did, from that byte of the stream on."""
        events = self.events(None)
        return EventTranscript(events, offset) if stream == "stdout" else StderrTranscript(events, offset)


def zone_of(request: LaunchRequest) -> str | None:
    """The zone of the run's own clock times, as for ``find_reset``."""
    return request.task.env.get("TZ", request.agent.env.get("TZ"))
