"""Events: which there are, and what is told when others come."""

from collections.abc import Callable, Collection

from sqlalchemy import Connection

from claudomator_py.resources.events.ask import event_views
from claudomator_py.resources.events.shape import EventView
from claudomator_py.resources.session import Service, find_task
from claudomator_py.store import events, pruning
from claudomator_py.store.events import EventQuery
from claudomator_py.values import dataclass


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


class Events(Service):
    """What can be asked about events."""

    def newest_event(self) -> int:
        """Return the id of the newest event; 0 when there is none."""
        return self._read(events.last_id)

    def events_gone(self) -> int:
        """Return the greatest id of an event that is not kept any more; 0: all are kept."""
        return self._read(pruning.events_gone_upto)

    def event_filter(self, task: str | None, kinds: Collection[str], by: str | None = None) -> EventFilter:
        """Return the filter that is meant; by: who caused them. Raises NotFound, Ambiguous."""
        known = tuple(kind for kind in kinds if "\0" not in kind)  # PostgreSQL refuses such a text altogether
        if kinds and not known:
            known = ("",)
        whose = "" if by is not None and "\0" in by else by
        if task is None:
            return EventFilter(None, known, whose)
        return EventFilter(self._read(lambda connection: find_task(connection, task, self._by).id), known, whose)

    def events(self, wanted: EventFilter, after: int, limit: int) -> EventPage:
        """Return events with a greater id than ``after``, oldest first, at most ``limit``."""

        def page(connection: Connection) -> EventPage:
            found = events.following(connection, after, limit + 1, self._sought(wanted))
            items = event_views(connection, found[:limit], self._by)
            more = len(found) > limit
            upto = items[-1].id if more else max(after, events.last_id(connection))
            return EventPage(items, upto, more)

        return self._read(page)

    def last_events(self, wanted: EventFilter, limit: int) -> EventPage:
        """Return the newest events, oldest first, at most ``limit``."""

        def page(connection: Connection) -> EventPage:
            found = events.newest(connection, limit, self._sought(wanted))
            return EventPage(event_views(connection, found, self._by), events.last_id(connection), more=False)

        return self._read(page)

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call callback, on any thread, after something was stored. It must be quick and must not wait."""
        self._database.on_commit(callback)

    def _sought(self, wanted: EventFilter) -> EventQuery:
        return EventQuery(wanted.task_id, wanted.kinds, wanted.by, self._by)
