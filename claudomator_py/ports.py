"""What the service needs from the outside: agents to start and read, and a host that keeps runs alive without it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from claudomator_py.domain.agent import AgentHealth, AgentSpec
from claudomator_py.domain.changes import Commit, Discarded, Merged, MergeOrder, RunChanges
from claudomator_py.domain.conversation import Conversations
from claudomator_py.domain.host import HostView
from claudomator_py.domain.notice import Notice
from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.pricing import Used
from claudomator_py.domain.report import Backlog, LiveOutput, OutputPiece, RunReport, Stage
from claudomator_py.domain.run import (
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
    def stage(self) -> Stage:
        """How far the run has come, by what it has said."""

    @property
    def used(self) -> Used:
        """What the run has used so far, as far as it has said."""

    def feed(self, stream: Stream, data: bytes) -> None:
        """Take the next bytes of a stream."""

    def outcome(self, exit_record: ExitRecord | None, now_ms: int) -> Outcome:
        """Return what the run came to. exit_record None: its supervisor was lost, so only a complete terminal event
        counts."""


class Transcript(Protocol):
    """Reads a stream as what the agent said and did, as it comes: any bytes, in any pieces."""

    @property
    def offset(self) -> int:
        """Where the line begins that has not ended yet."""

    def feed(self, offset: int, data: bytes, *, final: bool = False) -> Sequence[PromptPart]:
        """Return what the bytes at that offset complete. It is past the end of those before if bytes there were not
        kept.

        final: nothing follows.
        """


class AgentKind(Protocol):
    """One kind of agent: how to start it, how to read it."""

    @property
    def kind(self) -> str:
        """Its name in the configuration."""

    @property
    def conversations(self) -> Conversations:
        """Whether it can continue in a conversation, and who names that."""

    def launch(self, request: LaunchRequest) -> Launch:
        """Return the command line. Raises ValueError, with the remedy, if the configuration does not give one."""

    def reader(self, request: LaunchRequest | None = None) -> OutputReader:
        """Return a reader for one run of it; without a request for a saved output of which nothing more is known."""

    def transcript(self, stream: Stream, offset: int = 0) -> Transcript:
        """Return what one run of it said and did, for people, from that byte of the stream on."""

    def health(self, agent: AgentSpec, path: str) -> AgentHealth:
        """Return whether its program is there, looked for on this PATH. Runs it once for its version."""

    def unfenced(self, agent: AgentSpec) -> str | None:
        """Return why runs of the agent cannot be kept within a reach, in a clause; None: they can."""

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """Return what the task asks for and this kind cannot enforce, in sentences."""


class RunHost(Protocol):
    """Where runs take place, and where what they leave behind is. There is one, for this machine.

    A run outlives whoever asks here; all that is asked is about run directories, and what an earlier daemon asked for
    holds. Every method may be called again, from any thread but for ``watch``, and returns at once, but for disks and
    ``end_survivors``. step: 0 is the agent's run; n is the n-th time that its check was begun.
    """

    news: Callable[[], None]
    """Called, on any thread, when a tick may have something to do: a run may have ended, or has said something."""

    # --- starting and ending ---

    def prepare(self, order: RunSpec, step: int = 0) -> None:
        """Make the run directory, durably. What is there from an earlier attempt at the same is replaced.

        Raises RunConflict if that attempt was started; OSError.
        """

    def spawn(self, run_id: str, environment: Mapping[str, str], step: int = 0) -> None:
        """Have what was prepared start, with these variables, which are in no file. It starts once, however often this
        is called, and not at all if it was revoked or cancelled. Raises OSError.
        """

    def reconcile(self, run_id: str, step: int = 0) -> RunStatus:
        """Return what became of the run. One that nobody holds and that has not started is revoked by this look, and
        can never start; one whose supervisor was lost is given another one, as long as that makes sense. Raises
        OSError."""

    def cancel(self, run_id: str, step: int = 0) -> None:
        """Have the run end; durable when this returns. That it has ended is told by ``reconcile``. Raises OSError; also
        where there is no such run.
        """

    def wind_down(self, run_id: str, order: WindDown) -> None:
        """Have the run end so, if it has not by then. What was asked for before is forgotten. Raises OSError; also
        where there is no such run.
        """

    def end_survivors(self, run_id: str) -> bool:
        """End what a lost supervisor left behind: blocks for about the time of grace if there is any. True: no process
        of the run is left.
        """

    # --- where they are ---

    def hosts(self, *, ask: bool = True) -> list[HostView]:
        """Return the places where runs happen, as they are now. May block for a minute: their engines are asked.

        ask: False: what they have said last counts, which is without nodes and versions, and at once.
        """

    def host_of(self, run_id: str) -> str:
        """Return the name of the host whose folder has the run; this machine's if none has."""

    def conversation_obstacle(self, run_id: str, hosts: Sequence[str]) -> str | None:
        """Return why none of these hosts can continue the conversation of that run, in a clause; None: one can."""

    def obstacle(self, run_id: str) -> str | None:
        """Return why the run has not begun although it was spawned, in plain words; None: nothing is known of that."""

    # --- what runs say ---

    def watch(self, live: Iterable[tuple[str, int]]) -> None:
        """Watch these runs and steps, which are all that are live: tell ``news`` once when one of them may have ended.
        What is known of others may be forgotten. On the daemon's loop. Raises OSError; ends are then found by
        looking."""

    def follow(self, request: LaunchRequest) -> LiveOutput | None:
        """Return what the live run has said as far as it has been read, which continues beside; None: nobody can read
        it.

        request: as it was launched, but for the prompt. Raises OSError that kept it from being read.
        """

    def backlog(self, run_id: str) -> Backlog | None:
        """Return what there is to be read of the run, if it takes long enough to be told about."""

    def report(self, request: LaunchRequest, record: ExitRecord | None, step: int = 0) -> RunReport | None:
        """Return how the run or check ended, without secrets; None: its output is being read, and ``news`` comes.
        Always the same for the same run. Nothing that could write is left of it.

        record: what ``reconcile`` said; None: its supervisor was lost. Raises OSError that kept it from being read.
        """

    def read(self, run_id: str, stream: Stream, offset: int, limit: int, step: int = 0) -> OutputPiece:
        """Return at most limit bytes of a stream from the offset on, or from the first after it that was kept. Raises
        OSError. An empty piece where there is no such run."""

    # --- what runs are told ---

    def prompt(self, run_id: str) -> str:
        """Return what the run was given to do. Raises OSError."""

    def handoff(self, run_id: str) -> str:
        """Return the handoff document that the run was given, as JSON. Raises OSError, also where it was given none."""

    def changes(self, run_id: str) -> RunChanges | None:
        """Return what the run changed, with all that is kept of it; None: nothing was recorded, or it is gone."""

    def patch(self, run_id: str) -> str:
        """Return its changes line by line, as far as they were kept; empty: there are none, or they are gone."""

    def tell(self, run_id: str, message: bytes, *, durable: bool) -> None:
        """Add a line to what the run's process hears; it is there after a loss of power if ``durable``. Raises OSError,
        also where there is no such run.
        """

    def told(self, run_id: str) -> Iterator[bytes]:
        """Return the lines that it was told, read one by one: there may be very many. Raises OSError, but for a run
        that was told nothing."""

    # --- what is left of them ---

    def place(self, run_id: str) -> str:
        """Return where the directory of that run is, for people; it need not be there."""

    def run_ids(self) -> list[str]:
        """Return the runs that have a directory. Raises OSError."""

    def users(self, run_id: str) -> list[int]:
        """Return the processes that work in the directory, as far as they can be seen."""

    def size(self, run_id: str) -> int:
        """Return the bytes that the directory takes on the disk, as far as it can be read."""

    def give_up_scratch(self, run_id: str) -> None:
        """Take the scratch folder that was made with that run out of reach, at once: no run can be started in it any
        more. Raises OSError.
        """

    def has_directory(self, run_id: str) -> bool:
        """Return whether the directory of that run is there, with what it wrote."""

    def scratch(self, run_id: str) -> str | None:
        """Return where the scratch folder is that was made with that run; None: there is none, or no longer."""

    def remove(self, run_id: str) -> None:
        """Remove the directory with all that is in it; it can never be started any more. Nothing if there is none.

        Raises RunConflict if its run is alive; OSError.
        """

    def sweep(self, known: frozenset[str]) -> list[Swept]:
        """Remove directories of other runs than these, ending what runs in them. Not while a run is being prepared.

        Raises OSError if none can be looked at.
        """


class Trees(Protocol):
    """Work trees on this machine. Safe to use from many threads."""

    def ensure(self, order: WorktreeRequest) -> Tree:
        """Return the tree, made now unless it is there. Raises TreeFault; another exception if somebody else is at
        it."""

    def all(self) -> list[Tree]:
        """Return the trees that there are."""

    def find(self, name: str) -> Tree | None:
        """Return the tree of that name."""

    def look(self, tree: Tree) -> TreeState:
        """Return how it stands at present, which is kept. Never raises."""

    def seen(self, name: str) -> TreeState | None:
        """Return how the tree of that name stood when it was last looked at; None: not since a run was last in it.

        Starts no process.
        """

    def users(self, tree: Tree) -> list[int]:
        """Return the processes that work in it."""

    def size(self, tree: Tree) -> int:
        """Return the bytes that it takes on the disk."""

    def remove(self, tree: Tree) -> None:
        """Remove a spent tree and its branch. Raises TreeFault, or another exception if somebody is at it."""

    def close(self) -> None:
        """End what is under way, and do nothing more."""


class Branches(Protocol):
    """The branches of work trees on this machine. Safe to use from many threads."""

    def tree_in(self, path: str) -> str | None:
        """Return the name of the tree in that folder; None: there is none."""

    def merge(self, order: MergeOrder, is_busy: Callable[[str], str | None]) -> Merged:
        """Merge a tree's branch, or say what would become of it. is_busy: says who works in a folder, in a clause.

        Raises NotMerged: nothing was changed.
        """

    def discard(self, name: str, *, dry_run: bool = False) -> Discarded:
        """Remove a tree and its branch; all that is in it is kept under a reference. Raises NotMerged."""

    def commit(self, name: str, title: str) -> Commit | None:
        """Commit what is not committed in a tree, on its branch. None: there was nothing to commit.

        Raises NotMerged: nothing was changed.
        """

    def recover(self) -> None:
        """Finish what a crash has left half done."""


class CheapModel(Protocol):
    """A cheap model that is asked small questions. Safe to use from many threads."""

    @property
    def model(self) -> str:
        """Its name."""

    def ask(self, question: ModelQuestion, timeout_s: float) -> str:
        """Return what it says, within timeout_s seconds. Raises ModelFault."""

    def close(self) -> None:
        """Let go of what it holds."""


class ExportFault(Exception):
    """Spans were not taken. lasting: these never will be. The text says why, and holds no secret."""

    def __init__(self, detail: str, *, lasting: bool = False) -> None:
        super().__init__(detail)
        self.lasting = lasting


class SpanExporter(Protocol):
    """The way to one who collects spans. Used by one thread at a time; ``close`` by any."""

    def send(self, spans: Sequence[Span]) -> None:
        """Hand them over. Raises ExportFault: some of them may have been taken."""

    def close(self) -> None:
        """Let go of what it holds; what is being sent is given up soon."""


class Messenger(Protocol):
    """A way to one who is told about things. Safe to use from several threads."""

    def send(self, notice: Notice) -> None:
        """Deliver it. Raises DeliveryFault."""

    def close(self) -> None:
        """Let go of what it holds."""
