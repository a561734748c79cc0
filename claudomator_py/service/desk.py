"""The desk: everything anyone can ask the service for. The web knows only this."""

from collections.abc import Collection
from typing import Protocol

from claudomator_py.domain.errors import StaleVersion
from claudomator_py.domain.principal import Principal, RequestKey
from claudomator_py.domain.retention import CleanupRequest, CleanupView
from claudomator_py.domain.run import Stream
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.views import (
    AgentView,
    AnswerRequest,
    ApproveRequest,
    BackupView,
    DrainView,
    FileProblemPage,
    HoldRequest,
    LogChunk,
    Page,
    ReadinessView,
    RejectRequest,
    ReleaseRequest,
    RestartRequest,
    RunView,
    StatusView,
    TaskFilter,
    TaskView,
    WhyView,
)
from claudomator_py.queries.event_stream import Live
from claudomator_py.service.notices import Notices
from claudomator_py.service.schedules import Schedules
from claudomator_py.service.tokens import Tokens

Versions = int | Collection[int] | None
"""The version of a task that a caller has seen, or several; None: any."""


def require_version(name: str, version: int, wanted: Versions) -> None:
    """Raises StaleVersion if the task of that name, now at ``version``, is at none of those wanted."""
    among = (wanted,) if isinstance(wanted, int) else wanted
    if among is not None and version not in among:
        seen = " or ".join(str(one) for one in sorted(among)) or "as named in the request"
        detail = f"{name} is at version {version}, not {seen}."
        raise StaleVersion(detail, remedy="Look at it again, and decide anew.")


class Desk(Protocol):
    """What one principal may ask: it sees and changes what that one may, and what it does is in that one's name.

    Synchronous and safe to call from many threads. Every method may raise ``domain.errors.ServiceError``.

    ref: a task's id, a unique prefix of it (4 characters or more), or a name, which means the newest task of that
    name. It raises NotFound or Ambiguous. if_version: what the caller has seen of it; StaleVersion if it is another by
    now. key: a repetition of the same request gets the answer that the first one got. Raises KeyInUse and KeyReused.
    """

    @property
    def live(self) -> Live:
        """What can be followed while it happens."""

    @property
    def notices(self) -> Notices:
        """Who was told of what."""

    @property
    def schedules(self) -> Schedules:
        """What is made again and again."""

    @property
    def tokens(self) -> Tokens:
        """Who may ask what."""

    def submit(self, spec: TaskSpec, *, key: RequestKey | None = None) -> TaskView:
        """Accept a task; it is durable when this returns. Raises Invalid, such as for a directory outside the roots."""

    def tasks(self, wanted: TaskFilter, cursor: str | None, limit: int) -> Page[TaskView]:
        """Tasks, newest first, at most ``limit``. Raises Invalid for a cursor that was not given out."""

    def task(self, ref: str) -> TaskView:
        """The task with its content."""

    def cancel(self, ref: str, *, if_version: Versions = None, key: RequestKey | None = None) -> TaskView:
        """Ask for its end; a running one ends a little later. Raises Conflict when it has ended already."""

    def restart(
        self, ref: str, request: RestartRequest, *, if_version: Versions = None, key: RequestKey | None = None
    ) -> TaskView:
        """Begin a new generation. Raises Conflict when queued, or running without ``force``; Invalid."""

    def answer(
        self, ref: str, request: AnswerRequest, *, if_version: Versions = None, key: RequestKey | None = None
    ) -> TaskView:
        """Let its agent go on with the answer, in the conversation in which it asked. Raises Conflict."""

    def approve(
        self, ref: str, request: ApproveRequest, *, if_version: Versions = None, key: RequestKey | None = None
    ) -> TaskView:
        """Allow what it asks for. Raises Conflict; Invalid for what its agent cannot be told to allow."""

    def reject(
        self, ref: str, request: RejectRequest, *, if_version: Versions = None, key: RequestKey | None = None
    ) -> TaskView:
        """End it, as what it asks for is not to be. Raises Conflict."""

    def runs(self, ref: str) -> list[RunView]:
        """All runs of the task, oldest first."""

    def run(self, run_id: str) -> RunView:
        """One run, by its whole id."""

    def log(self, run_id: str, stream: Stream, offset: int, limit: int, *, check: bool = False) -> LogChunk:
        """At most ``limit`` bytes of what the run wrote, or its check; empty when there is nothing yet."""

    def why(self, ref: str) -> WhyView:
        """Why the task is where it is, in words, with the decisions and events behind them."""

    def agents(self) -> list[AgentView]:
        """The configured agents, in the order of the configuration."""

    def hold(self, agent: str, request: HoldRequest, *, key: RequestKey | None = None) -> AgentView:
        """Start nothing on the agent, as an operator."""

    def release(self, agent: str, request: ReleaseRequest | None = None, *, key: RequestKey | None = None) -> AgentView:
        """End all holds of the agent, or those on a family of its models, as an operator."""

    def drain(self, reason: str | None) -> DrainView:
        """Start nothing new from here on, over restarts of the daemon, too. Harmless when repeated."""

    def undrain(self) -> DrainView:
        """Start tasks again. Harmless when repeated."""

    def drain_state(self) -> DrainView:
        """Whether tasks are started, and how many run."""

    def backup(self) -> BackupView:
        """Copy the database into a new file. Raises Unavailable."""

    def clean_up(self, request: CleanupRequest) -> CleanupView:
        """Remove what ended tasks have left and nobody misses. Raises Conflict if that is under way."""

    def status(self) -> StatusView:
        """Everything at a glance."""

    def inbox_problems(self, cursor: str | None, limit: int) -> FileProblemPage:
        """Files of the inbox that were refused, the last one first. Raises BadCursor."""

    def readiness(self) -> ReadinessView:
        """Whether tasks are accepted and started. Never raises."""


class Desks(Protocol):
    """A desk for each who asks. There is none for nobody, so no request can be answered without saying whose it is."""

    def as_(self, by: Principal) -> Desk:
        """The desk as that principal has it. It costs nothing."""
