"""Events: reading them, and being told of new ones."""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Final

from sqlalchemy import Connection

from claudomator_py.domain.budget import SpentBudget
from claudomator_py.domain.errors import Invalid, Problem, near, shown
from claudomator_py.domain.inputs import request_in_event
from claudomator_py.domain.outcome import RefusedHandoff
from claudomator_py.domain.principal import Principal
from claudomator_py.resources.concealment import concealed, without_hidden
from claudomator_py.resources.events import TITLES, EventView
from claudomator_py.resources.session import Service, find_task, reading
from claudomator_py.store import events, pruning, specialist_rows, task_rows
from claudomator_py.store.events import EventQuery
from claudomator_py.store.stored_json import readable
from claudomator_py.store.tables import Event
from claudomator_py.tasks.decisions import ROUTED
from claudomator_py.tasks.handing_on import HANDED_ON
from claudomator_py.values import dataclass

_SPECIALISTS: Final[Mapping[str, tuple[str, ...]]] = {ROUTED: ("specialist",), HANDED_ON: ("from", "to")}
"""The keys under which events of a kind name specialists."""


def event_views(connection: Connection, rows: Sequence[Event], by: Principal) -> tuple[EventView, ...]:
    """Return the events without the specialists that do not exist for the principal, and without their agents."""
    values = (event.data.get(key) for event in rows for key in _SPECIALISTS.get(event.kind, ()))
    named = [name for name in values if isinstance(name, str)]
    hidden = specialist_rows.hidden(connection, named, by)
    names = task_rows.names_of(connection, {event.task_id for event in rows if event.task_id is not None})
    return concealed(
        connection, [_event_view(event, names, hidden) for event in without_hidden(connection, rows, by)], by
    )


def _event_view(event: Event, names: Mapping[str, str], hidden: Set[str]) -> EventView:
    data = {**event.data, **_budget_words(event), **_words(event)}
    for coded in ("asked", "meant"):
        data.pop(coded, None)
    concealed = {
        key for key in _SPECIALISTS.get(event.kind, ()) if isinstance(data.get(key), str) and data[key] in hidden
    }
    if concealed:
        data = {key: value for key, value in data.items() if key not in concealed | {"skill", "constraints"}}
    return EventView.legible(event, data=data, task_name=names.get(event.task_id or ""))


def _words(event: Event) -> dict[str, str]:
    """Return what was asked and answered, and why a task was not handed on, under the keys where earlier versions
    stored the words."""
    seen_names: dict[str, str] = {}
    if (asked := request_in_event(event.data)) is not None:
        seen_names["asks"] = asked.words
    if (meant := event.data.get("meant")) is not None:
        seen_names["answer"] = meant
    if (refused := event.data.get("refused_handoff")) is not None:
        why = readable(RefusedHandoff, refused)
        seen_names |= {} if why is None else {"detail": why.text}
    return seen_names


def _budget_words(event: Event) -> dict[str, str]:
    """Return the words for the spent budget, under the key where earlier versions stored them."""
    budget = event.data.get("budget")
    if budget is None or event.kind not in ("over_budget", "budget_spent", "state"):
        return {}
    spent = readable(SpentBudget, budget)
    if spent is None:
        return {}
    if event.kind == "budget_spent":
        return {"figures": spent.figures.text}
    if event.kind == "over_budget":
        return {"why": spent.text}
    return {"detail": ". ".join(part for part in (spent.text, event.data.get("detail")) if part)}


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events in order. upto: the id to continue after, past all that was filtered out. more: others already follow."""

    items: tuple[EventView, ...]
    upto: int
    more: bool


class Events(Service):
    """The service of events."""

    def newest_event(self) -> int:
        """Return the id of the newest event; 0 when there is none."""
        return self._read(events.last_id)

    def events_gone(self) -> int:
        """Return the greatest id of the events that are no longer kept; 0: all are kept."""
        return self._read(pruning.events_gone_upto)

    def event_filter(self, task: str | None, kinds: Collection[str], by: str | None = None) -> EventQuery:
        """Return the query for what the caller sees of the task's events, or of all, of these kinds, or of any. by: who
        caused them; None: anyone. Raises NotFound, Ambiguous, Invalid for an unknown kind."""
        unknown = next((kind for kind in kinds if kind not in TITLES), None)
        if unknown is not None:
            message = f"`{shown(unknown)}` is not one of {', '.join(TITLES)}"
            remedy = near(unknown, TITLES) or "write one of these"
            raise Invalid.of([Problem(field="kind", message=message, remedy=remedy)])
        whose = "" if by is not None and "\0" in by else by  # PostgreSQL refuses text with a NUL
        task_id = None if task is None else self._read(lambda connection: find_task(connection, task, self._by).id)
        return EventQuery(task_id, tuple(kinds), whose, self._by)

    @reading()
    def events(self, connection: Connection, wanted: EventQuery, after: int, limit: int) -> EventPage:
        """Return events with ids above ``after``, oldest first, at most ``limit``."""
        rows = events.following(connection, after, limit + 1, wanted)
        items = event_views(connection, rows[:limit], self._by)
        more = len(rows) > limit
        upto = items[-1].id if more else max(after, events.last_id(connection))
        return EventPage(items, upto, more)

    @reading()
    def last_events(self, connection: Connection, wanted: EventQuery, limit: int) -> EventPage:
        """Return the newest events, oldest first, at most ``limit``."""
        rows = events.newest(connection, limit, wanted)
        return EventPage(event_views(connection, rows, self._by), events.last_id(connection), more=False)

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call callback, on any thread, after each commit. It must be quick and must not block."""
        self.database.on_commit(callback)
