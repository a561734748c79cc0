"""What can be followed, in memory: events that a test makes, and what the runs of a fake desk write."""

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.domain.redaction import Redactor
from claudomator_py.domain.run import Stream
from claudomator_py.domain.units import format_instant
from claudomator_py.domain.views import EventView, RunView
from claudomator_py.queries.event_stream import EventFilter, EventPage
from claudomator_py.queries.log_stream import EntryFeed, LogFeed, LogPosition, LogView, Source, TextFeed


@dataclass
class FakeLive:
    """Implements ``queries.event_stream.Live``. secrets: what no text shows."""

    find_task: Callable[[str], str]
    find_run: Callable[[str], RunView]
    logs: Mapping[tuple[str, Stream], bytes]
    secrets: tuple[str, ...] = ()
    happened: list[EventView] = field(default_factory=list)
    gone: int = 0
    _listeners: list[Callable[[], None]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def happen(self, kind: str, at_ms: int, task_id: str | None = None, **data: object) -> EventView:
        """An event, and everybody who listens is told."""
        with self._lock:
            number = (self.happened[-1].id if self.happened else self.gone) + 1
            event = EventView(id=number, at=format_instant(at_ms), task_id=task_id, kind=kind, data=data)
            self.happened.append(event)
        for listener in tuple(self._listeners):
            listener()
        return event

    def clear(self) -> None:
        """As at the beginning; who listens, listens on."""
        with self._lock:
            self.happened.clear()
            self.gone = 0
            self.secrets = ()

    def newest_event(self) -> int:
        with self._lock:
            return self.happened[-1].id if self.happened else 0

    def events_gone(self) -> int:
        with self._lock:
            return self.gone

    def event_filter(self, task: str | None, kinds: Collection[str], by: str | None = None) -> EventFilter:
        return EventFilter(None if task is None else self.find_task(task), tuple(kinds), by)

    def last_events(self, wanted: EventFilter, limit: int) -> EventPage:
        found = self.events(wanted, 0, len(self.happened)).items[-limit:]
        return EventPage(found, self.newest_event(), False)

    def events(self, wanted: EventFilter, after: int, limit: int) -> EventPage:
        with self._lock:
            following = [event for event in self.happened if event.id > after]
        found = [
            event
            for event in following
            if wanted.task_id in (None, event.task_id)
            and (not wanted.kinds or event.kind in wanted.kinds)
            and wanted.by in (None, event.by)
        ]
        if len(found) > limit:
            return EventPage(tuple(found[:limit]), found[limit - 1].id, True)
        return EventPage(tuple(found), following[-1].id if following else after, False)

    def on_change(self, callback: Callable[[], None]) -> None:
        self._listeners.append(callback)

    def open_log(
        self, run_id: str, stream: Stream, view: LogView, position: LogPosition, *, check: bool = False
    ) -> LogFeed:
        run = self.find_run(run_id)
        written_by = f"{run_id}/check" if check else run_id

        def read(offset: int, limit: int) -> tuple[int, bytes]:
            return offset, self.logs.get((written_by, stream), b"")[offset : offset + limit]

        source = Source(read, lambda: self.find_run(run_id).state == "ended")
        redactor = Redactor(self.secrets)
        if view == "text" or run.agent not in AGENT_KINDS:
            return TextFeed(source, redactor, position)
        kind = AGENT_KINDS[run.agent]
        return EntryFeed(source, redactor, position, lambda offset: kind.transcript(stream, offset))
