"""Events: what happened, in order, written in the same transaction."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeVar

from sqlalchemy import Connection, Select, and_, func, insert, or_, select, text

from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.store.statement import Statement
from claudomator_py.store.stored_json import sound
from claudomator_py.store.tables import EVENT, SETTLED, TASK, Event
from claudomator_py.store.visibility import events_seen, tasks_seen
from claudomator_py.values import dataclass

T = TypeVar("T")

_RECORD = Statement(insert(EVENT))
_CAUSE = "claudomator cause"
"""Key in ``Connection.info`` for the principal whose request is being served."""
_MAX_OF_TASK = 500
_LAST_ID = Statement(select(func.max(EVENT.c.id)))


def record(
    connection: Connection,
    at_ms: int,
    kind: str,
    *,
    task_id: str | None = None,
    run_id: str | None = None,
    data: Mapping[str, Any] | None = None,
) -> None:
    """Append one event."""
    record_all(connection, [NewEvent(at_ms, kind, task_id, run_id, data or {})])


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to be appended."""

    at_ms: int
    kind: str
    task_id: str | None = None
    run_id: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


def record_all(connection: Connection, events: Sequence[NewEvent]) -> None:
    """Append the events in this order."""
    by = connection.info.get(_CAUSE)
    rows = [
        {
            "at_ms": event.at_ms,
            "task_id": event.task_id,
            "run_id": event.run_id,
            "kind": event.kind,
            "data": dict(event.data),
            "by": by,
        }
        for event in events
    ]
    _RECORD.run_all(connection, rows)


def caused_by(principal_id: str, change: Callable[[Connection], T]) -> Callable[[Connection], T]:
    """Return the change such that its events name the principal, without passing the name through its calls. In a
    nested change the outer cause is kept."""

    def attributed(connection: Connection) -> T:
        # Safe without a lock, as the writer runs changes one after the other on its only connection.
        if _CAUSE in connection.info:
            return change(connection)
        connection.info[_CAUSE] = principal_id
        try:
            return change(connection)
        finally:
            del connection.info[_CAUSE]

    return attributed


def of_task(connection: Connection, task_id: str) -> Sequence[Event]:
    """Return the task's newest events, oldest first."""
    query = select(EVENT).where(EVENT.c.task_id == task_id).order_by(EVENT.c.id.desc()).limit(_MAX_OF_TASK)
    return Event.rows(connection, query)[::-1]


def last_id(connection: Connection) -> int:
    """Return the id of the newest event, or 0 if there is none."""
    newest: int | None = _LAST_ID.value(connection)
    return newest or 0


@dataclass(frozen=True, slots=True)
class EventQuery:
    """A filter for events: those that match every field that is set."""

    task_id: str | None = None
    kinds: Collection[str] = ()
    caused_by: str | None = None
    """The principal whose request caused them."""
    seen_by: Principal = OPERATOR
    of_no_task: bool = False
    """Only events without a task. They are few, whereas a search for rare kinds would scan all events."""

    @property
    def query(self) -> Select[Any]:
        """The query, without an order."""
        query = select(EVENT).where(events_seen(self.seen_by))
        if self.task_id is not None:
            query = query.where(EVENT.c.task_id == self.task_id)
        if self.of_no_task:
            query = query.where(EVENT.c.task_id.is_(None))
        if self.kinds:
            query = query.where(EVENT.c.kind.in_(sorted(self.kinds)))
        return query if self.caused_by is None else query.where(EVENT.c.by == self.caused_by)


_ALL = EventQuery()


def following(connection: Connection, after: int, limit: int, sought: EventQuery = _ALL) -> Sequence[Event]:
    """Return at most ``limit`` events with an id greater than ``after``, in order."""
    query = sought.query.where(EVENT.c.id > after).order_by(EVENT.c.id).limit(limit)
    return Event.rows(connection, query)


def newest(connection: Connection, limit: int, sought: EventQuery = _ALL) -> Sequence[Event]:
    """Return at most ``limit`` of the newest events, in order."""
    query = sought.query.order_by(EVENT.c.id.desc()).limit(limit)
    return Event.rows(connection, query)[::-1]


def resolved_branches(connection: Connection, limit: int, by: Principal) -> Sequence[Event]:
    """Return at most ``limit`` of the newest events about settled branches, in order."""
    query = EventQuery(seen_by=by).query.where(text(f"event.{SETTLED}")).order_by(EVENT.c.id.desc()).limit(limit)
    return Event.rows(connection, query)[::-1]


@dataclass(frozen=True, slots=True)
class ResolvedInput:
    """The outcome of a request for input that a task made before its first run."""

    kind: str
    """``approved``, ``rejected``, or ``state`` if the task expired."""
    by: str | None
    data: Mapping[str, Any]
    at_ms: int
    task_id: str
    task_name: str
    asks: Mapping[str, Any]
    """The task's current or last request."""


def resolved_inputs(connection: Connection, by: Principal, *, sample: int, limit: int) -> Sequence[ResolvedInput]:
    """Return at most ``limit`` outcomes for tasks visible to the principal, newest first. sample: how many of the
    newest events are searched."""
    expired = sound(EVENT.c.data)["reason"].as_string() == Reason.EXPIRED.value
    query = (
        select(EVENT.c.kind, EVENT.c.by, EVENT.c.data, EVENT.c.at_ms, EVENT.c.task_id, TASK.c.name, TASK.c.asks)
        .join(TASK, TASK.c.id == EVENT.c.task_id)
        .where(
            EVENT.c.id > last_id(connection) - sample,
            EVENT.c.run_id.is_(None),
            or_(EVENT.c.kind.in_(("approved", "rejected")), and_(EVENT.c.kind == "state", expired)),
            tasks_seen(by),
        )
        .order_by(EVENT.c.id.desc())
        .limit(limit)
    )
    return [ResolvedInput(*row[:-1], asks=row[-1] or {}) for row in connection.execute(query)]
