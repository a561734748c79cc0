"""What can be followed, read from the store and from the files of runs."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection

from claudomator_py.domain.errors import Unavailable
from claudomator_py.domain.output import OutputPiece
from claudomator_py.domain.run import Stream
from claudomator_py.domain.views.base import EventView
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.secrets import Secrets
from claudomator_py.ports import RunHost
from claudomator_py.queries.finding import find_run, find_task
from claudomator_py.queries.log_stream import EntryFeed, LogFeed, LogPosition, LogView, Source, TextFeed
from claudomator_py.queries.views import event_views
from claudomator_py.resources.session import Service
from claudomator_py.store import events, pruning, task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.events import EventQuery
from claudomator_py.store.tables import Run


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events. task_id None: of all tasks and of none; kinds empty: all; by None: whoever caused them."""

    task_id: str | None = None
    kinds: tuple[str, ...] = ()
    by: str | None = None


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events in order. upto: the id to continue after, past all that was filtered out. more: others follow already."""

    items: tuple[EventView, ...]
    upto: int
    more: bool


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


class Live(Service):
    """Synchronous and safe to call from many threads. Every method may raise ``domain.errors.ServiceError``."""

    def __init__(self, database: Database, registry: AgentRegistry, host: RunHost, secrets: Secrets) -> None:
        super().__init__(database)
        self._registry = registry
        self._host = host
        self._secrets = secrets
        self._commits = _Commits()
        database.on_commit(self._commits.count)

    def newest_event(self) -> int:
        """The id of the newest event; 0 when there is none."""
        return self._read(events.last_id)

    def events_gone(self) -> int:
        """The greatest id of an event that is not kept any more; 0: all are kept."""
        return self._read(pruning.events_gone_upto)

    def event_filter(self, task: str | None, kinds: Collection[str], by: str | None = None) -> EventFilter:
        """The filter that is meant; task: as for ``TaskService``; by: who caused them. Raises NotFound, Ambiguous."""
        known = tuple(kind for kind in kinds if "\0" not in kind)  # PostgreSQL refuses such a text altogether
        if kinds and not known:
            known = ("",)
        whose = "" if by is not None and "\0" in by else by
        if task is None:
            return EventFilter(None, known, whose)
        return EventFilter(self._read(lambda connection: find_task(connection, task, self._by).id), known, whose)

    def events(self, wanted: EventFilter, after: int, limit: int) -> EventPage:
        """Events with a greater id than ``after``, oldest first, at most ``limit``."""

        def page(connection: Connection) -> EventPage:
            found = events.following(connection, after, limit + 1, self._sought(wanted))
            items = event_views(connection, found[:limit], self._by)
            more = len(found) > limit
            upto = items[-1].id if more else max(after, events.last_id(connection))
            return EventPage(items, upto, more)

        return self._read(page)

    def last_events(self, wanted: EventFilter, limit: int) -> EventPage:
        """The newest events, oldest first, at most ``limit``."""

        def page(connection: Connection) -> EventPage:
            found = events.newest(connection, limit, self._sought(wanted))
            return EventPage(event_views(connection, found, self._by), events.last_id(connection), more=False)

        return self._read(page)

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call callback, on any thread, after something was stored. It must be quick and must not wait."""
        self._database.on_commit(callback)

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

    def _sought(self, wanted: EventFilter) -> EventQuery:
        return EventQuery(wanted.task_id, wanted.kinds, wanted.by, self._by)

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

    def __init__(self, live: Live, run_id: str) -> None:
        self._live = live
        self._run_id = run_id
        self._seen: int | None = None
        self._over = False

    def __call__(self) -> bool:
        commits = self._live.commits
        if not self._over and commits != self._seen:
            self._over = self._live.is_over(self._run_id)
            self._seen = commits
        return self._over
