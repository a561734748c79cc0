"""What runs write, to be followed while they do."""

from functools import partial

from claudomator_py.domain.errors import Unavailable
from claudomator_py.domain.output import OutputPiece
from claudomator_py.domain.run import Stream
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.secrets import Secrets
from claudomator_py.ports import RunHost
from claudomator_py.queries.finding import find_run
from claudomator_py.queries.log_stream import EntryFeed, LogFeed, LogPosition, LogView, Source, TextFeed
from claudomator_py.resources.session import Service
from claudomator_py.store import task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Run

CHECK_KIND = "command"
"""What checks write is read as what any program writes."""


def log_step(run: Run, *, check: bool) -> int:
    """The step of the run whose output is meant: the agent's, or its check's as it was begun last."""
    return max(1, run.check_seq) if check else 0


class _Commits:
    """How often something was stored."""

    def __init__(self) -> None:
        self.number = 0

    def count(self) -> None:
        self.number += 1


class Logs(Service):
    """Synchronous and safe to call from many threads. Every method may raise ``domain.errors.ServiceError``."""

    def __init__(self, database: Database, registry: AgentRegistry, host: RunHost, secrets: Secrets) -> None:
        super().__init__(database)
        self._registry = registry
        self._host = host
        self._secrets = secrets
        self._commits = _Commits()
        database.on_commit(self._commits.count)

    def open_log(
        self, run_id: str, stream: Stream, view: LogView, position: LogPosition, *, check: bool = False
    ) -> LogFeed:
        """A way through what the run writes, from that place. check: what its check does. Raises NotFound."""
        run = self._read(lambda connection: find_run(connection, run_id, self._by))
        spec = self._read(lambda connection: task_rows.spec_of(connection, run.task_id, run.revision))
        redactor = self._secrets.redactor(spec.env, run.id)
        source = Source(partial(self._output, run.id, stream, log_step(run, check=check)), _Over(self, run.id))
        kind = self._registry.kinds.get(CHECK_KIND if check else run.kind)
        if view == "text" or kind is None:
            return TextFeed(source, redactor, position)
        return EntryFeed(source, redactor, position, lambda offset: kind.transcript(stream, offset))

    def is_over(self, run_id: str) -> bool:
        """Whether the run has ended."""
        return not self._read(lambda connection: find_run(connection, run_id, self._by)).live

    @property
    def commits(self) -> int:
        """How often something was stored."""
        return self._commits.number

    def _output(self, run_id: str, stream: Stream, step: int, offset: int, limit: int) -> OutputPiece:
        try:
            return self._host.read(run_id, stream, offset, limit, step)
        except OSError as error:
            detail = f"The output of run {run_id} cannot be read ({error.strerror})."
            raise Unavailable(detail, remedy="Check the disk, and the permissions of the state folder.") from error


class _Over:
    """Whether a run has ended: asked again only when something was stored since."""

    def __init__(self, logs: Logs, run_id: str) -> None:
        self._logs = logs
        self._run_id = run_id
        self._seen: int | None = None
        self._over = False

    def __call__(self) -> bool:
        commits = self._logs.commits
        if not self._over and commits != self._seen:
            self._over = self._logs.is_over(self._run_id)
            self._seen = commits
        return self._over
