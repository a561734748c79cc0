"""What the service needs from the outside: agents to start and read, and a host that keeps runs alive without it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from claudomator_py.domain.agent import AgentHealth, AgentSpec
from claudomator_py.domain.conversation import Conversations
from claudomator_py.domain.notice import Notice
from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.output import OutputPiece
from claudomator_py.domain.pricing import Used
from claudomator_py.domain.run import Entry, ExitRecord, Launch, LaunchRequest, RunSpec, RunStatus, Stream, Swept
from claudomator_py.domain.task import TaskSpec
from claudomator_py.scheduler.classification import TierQuestion

Clock = Callable[[], int]
"""The present, in epoch milliseconds."""


class OutputReader(Protocol):
    """Reads what one run wrote, as it comes: any bytes, in any pieces."""

    @property
    def stuck_until(self) -> int | None:
        """Until when (epoch milliseconds) the agent sleeps in a limit, as far as it has said by now."""

    @property
    def stuck_since(self) -> int | None:
        """Since when it waits out a limit, whether or not it has said until when."""

    @property
    def answered(self) -> bool:
        """Whether its model has said or done anything yet, by what has been fed."""

    @property
    def terminal(self) -> bool:
        """Whether it has said, completely, how the run came out."""

    @property
    def used(self) -> Used:
        """What the run has used so far, as far as it has said."""

    def feed(self, stream: Stream, data: bytes) -> None:
        """Take the next bytes of a stream."""

    def outcome(self, exit_record: ExitRecord | None, now_ms: int) -> Outcome:
        """What the run came to. exit_record None: its supervisor was lost, so only a complete terminal event counts."""


class Transcript(Protocol):
    """Reads a stream as what the agent said and did, as it comes: any bytes, in any pieces."""

    @property
    def offset(self) -> int:
        """Where the line begins that has not ended yet."""

    def feed(self, offset: int, data: bytes, *, final: bool = False) -> Sequence[Entry]:
        """What the bytes at that offset complete. It is past the end of those before if bytes there were not kept.

        final: nothing follows.
        """


class AgentKind(Protocol):
    """One kind of agent: how to start it, how to read it."""

    @property
    def kind(self) -> str:
        """Its name in the configuration."""

    @property
    def conversations(self) -> Conversations:
        """Whether it can go on in a conversation, and who names that."""

    def launch(self, request: LaunchRequest) -> Launch:
        """The command line. Raises ValueError, with the remedy, if the configuration does not give one."""

    def reader(self, request: LaunchRequest) -> OutputReader:
        """A reader for one run of it."""

    def transcript(self, stream: Stream, offset: int = 0) -> Transcript:
        """What one run of it said and did, for people, from that byte of the stream on."""

    def health(self, agent: AgentSpec, path: str) -> AgentHealth:
        """Whether its program is there, looked for on this PATH. Runs it once for its version."""

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """What the task asks for and this kind cannot enforce, in sentences."""


class RunHost(Protocol):
    """Where runs live. step: 0 is the agent's run; n is the n-th time that its check was begun."""

    def prepare(self, order: RunSpec, step: int = 0) -> None:
        """Make the run directory, durably. What is there from an earlier attempt at the same is replaced.

        Raises RunConflict if that attempt was started; OSError.
        """

    def discard(self, run_id: str) -> None:
        """Remove the directory of a run that was prepared and is not to be started. Raises RunConflict, OSError."""

    def has_scratch(self, run_id: str) -> bool:
        """Whether the scratch folder that was made with that run is there."""

    def spawn(self, run_id: str, environment: Mapping[str, str], step: int = 0) -> None:
        """Start the shim. It may start the run, or find it revoked."""

    def settle(self, run_id: str, step: int = 0) -> RunStatus:
        """What became of the run. One that nobody holds and that has not started is revoked by this look."""

    def take_over(self, run_id: str) -> bool:
        """Have an ORPHANED run supervised again. False: it cannot be, so what is left of it is to be ended."""

    def cancel(self, run_id: str, step: int = 0) -> None:
        """Ask the shim to end the run; durable when it returns, and harmless when repeated."""

    def end_survivors(self, run_id: str) -> bool:
        """End what a lost shim left behind. True: no process of the run is left."""

    def read(self, run_id: str, stream: Stream, offset: int, limit: int, step: int = 0) -> OutputPiece:
        """At most limit bytes of a stream from the offset on, or from the first after it that was kept."""

    def sweep(self, known: frozenset[str]) -> list[Swept]:
        """Remove directories that no row knows, ending what runs in them. Raises OSError if none can be looked at."""


class TierModel(Protocol):
    """A cheap model that is asked for tiers. Safe to use from many threads."""

    @property
    def model(self) -> str:
        """Its name."""

    def ask(self, question: TierQuestion, timeout_s: float) -> str:
        """What it says, within timeout_s seconds. Raises ClassifierFault."""

    def close(self) -> None:
        """Let go of what it holds."""


class Messenger(Protocol):
    """A way to one who is told of things. Safe to use from several threads."""

    def send(self, notice: Notice) -> None:
        """Deliver it. Raises DeliveryFault."""

    def close(self) -> None:
        """Let go of what it holds."""
