"""What the service needs from outside: agents to launch and read, hosts that keep runs alive without the daemon, work
trees, messengers, encoders."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from claudomator_py.domain.agent import AgentHealth, AgentSpec
from claudomator_py.domain.changes import Commit, Discarded, Merged, MergeOrder, RunChanges
from claudomator_py.domain.host import HostView
from claudomator_py.domain.notice import Notice
from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.report import Backlog, LiveOutput, OutputPiece, RunReport, Stage, Used
from claudomator_py.domain.run import (
    Conversations,
    ExitRecord,
    Launch,
    LaunchRequest,
    PromptPart,
    RunSpec,
    RunStatus,
    Stream,
    Swept,
    WindDown,
)
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.trace import Span
from claudomator_py.domain.worktree import Tree, TreeState, WorktreeRequest
from claudomator_py.scheduler.classification import ModelQuestion

if TYPE_CHECKING:
    from claudomator_py.routing.space import Vector  # imports numpy, which only code that compares needs

Clock = Callable[[], int]
"""Returns the current time in epoch milliseconds."""


class OutputReader(Protocol):
    """Reads one run's output as it arrives; any bytes, in chunks of any size."""

    @property
    def stuck_until(self) -> int | None:
        """When the limit or outage that the agent is waiting out ends (epoch milliseconds), if the agent has said
        so."""

    @property
    def stuck_since(self) -> int | None:
        """Since when the agent has been waiting out a limit or an outage (epoch milliseconds), even if it has not said
        until when."""

    @property
    def answered(self) -> bool:
        """True once the output fed so far shows that the model has produced anything."""

    @property
    def stage(self) -> Stage:
        """How far the run has got, judging by its output so far."""

    @property
    def used(self) -> Used:
        """Usage reported by the run so far."""

    def feed(self, stream: Stream, data: bytes) -> None:
        """Feed the next bytes of a stream."""

    def outcome(self, exit_record: ExitRecord | None, now_ms: int) -> Outcome:
        """Return the run's outcome. With ``exit_record=None`` (supervisor lost), only a complete terminal event
        counts."""


class Transcript(Protocol):
    """Turns a stream into what the agent said and did, as it arrives; any bytes, in chunks of any size."""

    @property
    def offset(self) -> int:
        """Start offset of the line that is not complete yet."""

    def feed(self, offset: int, data: bytes, *, final: bool = False) -> Sequence[PromptPart]:
        """Return the parts completed by the bytes at that offset. The offset skips ahead where bytes in between were
        not kept.

        final: no more data follows.
        """


class AgentKind(Protocol):
    """A kind of agent: how to launch it and how to read its output."""

    @property
    def kind(self) -> str:
        """The kind's name in the configuration."""

    @property
    def conversations(self) -> Conversations:
        """Whether the kind can continue a conversation, and which side assigns the conversation's id."""

    def launch(self, request: LaunchRequest) -> Launch:
        """Return the command line. Raises ValueError, including the remedy, if the configuration does not yield one."""

    def reader(self, request: LaunchRequest | None = None) -> OutputReader:
        """Return a reader for one run. Without a request it reads saved output about which nothing else is known."""

    def transcript(self, stream: Stream, offset: int = 0) -> Transcript:
        """Return a reader of what a run said and did, for people, starting at that byte of the stream."""

    def health(self, agent: AgentSpec, path: str) -> AgentHealth:
        """Return whether the agent's program is found on this PATH. Runs the program once to get its version."""

    def unfenced(self, agent: AgentSpec) -> str | None:
        """Return why the agent's runs cannot be confined to a reach, as a clause; None if they can."""

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """Return what the task asks for that this kind cannot enforce, as sentences."""


class RunHost(Protocol):
    """Where runs execute and where their files are kept. The daemon has one, which covers this machine and any
    clusters.

    Runs outlive the daemon. Every call refers to a run directory, and what an earlier daemon requested stays in force.
    Every method is idempotent, can be called from any thread (except ``watch``) and, apart from disk I/O and
    ``end_survivors``, returns immediately. step: 0 is the agent's run; n is the n-th start of its check.
    """

    news: Callable[[], None]
    """Called, on any thread, when a tick may have something to do: a run may have ended or produced output."""

    # --- starting and ending ---

    def prepare(self, order: RunSpec, step: int = 0) -> None:
        """Create the run directory, replacing what an earlier attempt at the same run left there.

        Raises RunConflict if that attempt was started; OSError.
        """

    def flush_prepared(self) -> None:
        """Make the names of all prepared run directories durable. Call this before their rows are committed, so that no
        committed run lacks its directory. Raises OSError."""

    def spawn(self, run_id: str, environment: Mapping[str, str], step: int = 0) -> None:
        """Start the prepared run with these variables, which are never written to a file. However often this is called,
        the run starts only once, and never if it was revoked or cancelled. Raises OSError."""

    def reconcile(self, run_id: str, step: int = 0) -> RunStatus:
        """Return the run's status. Side effects: a run that has not started and has no live supervisor is revoked and
        can never start; a run whose supervisor was lost gets a new one if that still makes sense. Raises OSError."""

    def cancel(self, run_id: str, step: int = 0) -> None:
        """Request that the run end; the request is durable on return. ``reconcile`` reports when the run has ended.
        Raises OSError, also if there is no such run."""

    def wind_down(self, run_id: str, order: WindDown) -> None:
        """Request that the run end as ordered unless it ends by itself first. Replaces any earlier order. Raises
        OSError, also if there is no such run."""

    def end_survivors(self, run_id: str) -> bool:
        """End the processes left behind by a lost supervisor; blocks for about the grace period if there are any.
        Returns True if no process of the run is left."""

    # --- where they are ---

    def hosts(self, *, ask: bool = True) -> list[HostView]:
        """Return the hosts and their current state. May block for a minute while their engines are queried.

        ask: if False, use each engine's last answer, which may be a minute old: immediate, but without nodes and
        versions until there is one.
        """

    def host_of(self, run_id: str) -> str:
        """Return the name of the host whose folder contains the run; this machine if none does."""

    def conversation_obstacle(self, run_id: str, hosts: Sequence[str]) -> str | None:
        """Return why none of these hosts can continue that run's conversation, as a clause; None if one can."""

    def obstacle(self, run_id: str) -> str | None:
        """Return why a spawned run has not started, in plain words; None if no reason is known."""

    def closed(self) -> Mapping[str, str]:
        """Return the hosts that can take no new runs at present, and why, as clauses that follow the name. Returns
        immediately."""

    # --- what runs say ---

    def watch(self, live: Iterable[tuple[str, int]]) -> None:
        """Watch exactly these runs and steps, the only live ones, and call ``news`` once when one of them may have
        ended. State about any others may be dropped. Call on the daemon's loop. Raises OSError; ends are then found by
        polling."""

    def follow(self, request: LaunchRequest) -> LiveOutput | None:
        """Return the live run's output as read so far, while reading continues in the background; None if it cannot be
        read.

        request: as at launch, without the prompt. Raises the OSError that prevented reading.
        """

    def backlog(self, run_id: str) -> Backlog | None:
        """Return how much of the run's output is still unread, if reading it takes long enough to be worth
        reporting."""

    def report(self, request: LaunchRequest, record: ExitRecord | None, step: int = 0) -> RunReport | None:
        """Return how the run or check ended, with secrets removed; None while its output is still being read (``news``
        follows). The result is always the same for the same run. Afterwards no process of the run that could still
        write is left.

        record: the result of ``reconcile``; None if the supervisor was lost. Raises the OSError that prevented reading.
        """

    def read(self, run_id: str, stream: Stream, offset: int, limit: int, step: int = 0) -> OutputPiece:
        """Return at most limit bytes of a stream from offset on, or from the next byte that was kept. Returns an empty
        piece if there is no such run. Raises OSError."""

    # --- what runs are told ---

    def prompt(self, run_id: str) -> str:
        """Return the prompt that the run was given. Raises OSError."""

    def handoff(self, run_id: str) -> str:
        """Return the handoff document that the run was given, as JSON. Raises OSError, also if it was given none."""

    def changes(self, run_id: str) -> RunChanges | None:
        """Return what the run changed, with everything kept about it; None if nothing was recorded or the record is
        gone."""

    def patch(self, run_id: str) -> str:
        """Return the run's changes as a patch, as far as it was kept; empty if there are none or they are gone."""

    def append_message(self, run_id: str, message: bytes, *, durable: bool) -> None:
        """Append a line to the run's mailbox; if ``durable``, the line survives a power failure. Raises OSError, also
        if there is no such run."""

    def messages(self, run_id: str) -> Iterator[bytes]:
        """Return the lines in the run's mailbox as an iterator, as there may be very many. Raises OSError, except for a
        run that was told nothing."""

    # --- what is left of them ---

    def place(self, run_id: str) -> str:
        """Return the path of the run's directory, for people; it need not exist."""

    def run_ids(self) -> list[str]:
        """Return the ids of runs that have a directory. Raises OSError."""

    def users(self, run_id: str) -> list[int]:
        """Return the ids of the processes working in the run's directory, as far as they are visible."""

    def size(self, run_id: str) -> int:
        """Return the disk usage of the run's directory in bytes, as far as it can be read."""

    def give_up_scratch(self, run_id: str) -> None:
        """Make the run's scratch folder unreachable immediately: no further run can start in it. Raises OSError."""

    def has_directory(self, run_id: str) -> bool:
        """Return whether the run's directory exists, with its output."""

    def scratch(self, run_id: str) -> str | None:
        """Return the path of the scratch folder created with the run; None if there is none or it is gone."""

    def remove(self, run_id: str) -> None:
        """Remove the run's directory and everything in it; the run can then never start. Does nothing if there is none.
        Raises RunConflict if the run is alive; OSError."""

    def sweep(self, known: frozenset[str]) -> list[Swept]:
        """Remove the directories of all other runs, ending whatever runs in them. Do not call while a run is being
        prepared. Raises OSError if no directory can be examined."""


class Trees(Protocol):
    """Work trees on this machine. Thread-safe."""

    def ensure(self, order: WorktreeRequest) -> Tree:
        """Return the tree, creating it if it does not exist. Raises TreeFault; TreeBusy if another process is using
        it."""

    def all(self) -> list[Tree]:
        """Return all existing trees."""

    def find(self, name: str) -> Tree | None:
        """Return the tree with that name."""

    def look(self, tree: Tree, by_agent: Collection[str] | None = None) -> TreeState:
        """Return the tree's current state, and remember it. by_agent: the files that the last run's agent left
        uncommitted, if a check came after it. Never raises."""

    def seen(self, name: str) -> TreeState | None:
        """Return the tree's state when it was last examined; None if that has not happened since a run last used it.
        Starts no process."""

    def by_check(self, name: str) -> frozenset[str]:
        """Return the uncommitted files that only checks had left when the tree was last examined."""

    def users(self, tree: Tree) -> list[int]:
        """Return the ids of the processes working in the tree."""

    def size(self, tree: Tree) -> int:
        """Return the tree's disk usage in bytes."""

    def remove(self, tree: Tree) -> None:
        """Remove a tree that is no longer needed, and its branch. Raises TreeFault; TreeBusy if another process is
        using it."""

    def close(self) -> None:
        """Stop work in progress and accept no more."""


class Branches(Protocol):
    """The branches of work trees on this machine. Thread-safe."""

    def tree_in(self, path: str) -> str | None:
        """Return the name of the tree in that folder; None if there is none."""

    def merge(self, order: MergeOrder, is_busy: Callable[[str], str | None]) -> Merged:
        """Merge a tree's branch, or report what merging would do. is_busy: returns who is working in a folder, as a
        clause. Raises NotMerged, having changed nothing."""

    def discard(self, name: str, *, dry_run: bool = False) -> Discarded:
        """Remove a tree and its branch, keeping its contents under a git reference. Raises NotMerged."""

    def commit(
        self, name: str, title: str, left_at: str | None = None, only: Collection[str] | None = None
    ) -> Commit | None:
        """Commit a tree's uncommitted changes to its branch. Returns None if there was nothing to commit. Raises
        NotMerged, having changed nothing.

        left_at: commit at which a run left the branch. A commit on top of it with the same title was made by an earlier
        call whose result was lost in a crash, and is returned. only: paths of the files to commit; None for all.
        """

    def recover(self) -> None:
        """Finish what a crash interrupted."""


class CheapModel(Protocol):
    """A cheap model for small questions. Thread-safe."""

    @property
    def model(self) -> str:
        """The model's name."""

    def ask(self, question: ModelQuestion, timeout_s: float) -> str:
        """Return the model's answer within timeout_s seconds. Raises ModelFault."""

    def close(self) -> None:
        """Release its resources."""


class ExportFault(Exception):
    """Spans were not accepted. lasting: retrying is pointless. The message gives the reason and contains no secret."""

    def __init__(self, detail: str, *, lasting: bool = False) -> None:
        super().__init__(detail)
        self.lasting = lasting


class SpanExporter(Protocol):
    """Sends spans to a collector. Used by one thread at a time; ``close`` can be called from any thread."""

    def send(self, spans: Sequence[Span]) -> None:
        """Send the spans. Raises ExportFault, although some of them may have been accepted."""

    def close(self) -> None:
        """Release its resources; an export in progress is soon abandoned."""


class Messenger(Protocol):
    """A channel through which somebody is notified. Thread-safe."""

    def send(self, notice: Notice) -> None:
        """Deliver the notice. Raises DeliveryFault."""

    def close(self) -> None:
        """Release its resources."""


class EncoderFault(Exception):
    """An encoder returned no vectors. The message gives the reason and contains no secret."""


class Encoder(Protocol):
    """Turns texts into vectors. Thread-safe."""

    id: str
    """Includes everything that affects the vectors: vectors of encoders with different ids are never compared."""
    dimensions: int
    immediate: bool
    """True if it answers immediately, so that nothing is gained by caching its vectors or waiting elsewhere."""
    weighs_rarity: bool
    """True if its vectors are counts of features, where rarer features weigh more."""

    def encode(self, texts: Sequence[str]) -> "Vector":
        """Return one row per text. Raises EncoderFault."""

    def close(self) -> None:
        """Release its resources."""
