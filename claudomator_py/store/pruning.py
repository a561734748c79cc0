"""Removal of old rows in small batches.

Candidates are found by readers and checked again by the writer, so that a task restarted meanwhile keeps its rows.
"""

from collections.abc import Collection, Sequence

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, exists, func, or_, select, tuple_

from claudomator_py.domain.channel import AnswerState
from claudomator_py.domain.lifecycle import ENDED, UNENDED
from claudomator_py.store import remembered
from claudomator_py.store.metric_rows import remember_answers, remember_runs
from claudomator_py.store.tables import (
    CHANNEL_ANSWER,
    CHANNEL_MESSAGE,
    DECISION,
    EVENT,
    HOLD,
    INBOX_DOCUMENT,
    LABEL,
    OUTBOX_CURSOR,
    RUN,
    SCHEDULE_FIRE,
    SNAPSHOT,
    TASK,
    TASK_DEPENDENCY,
)

_EVENTS = "events"
_NOT_BUSY = or_(TASK.c.id.is_(None), TASK.c.state.in_(ENDED))
"""That the task has ended or does not exist."""


def events_end(connection: Connection, before_ms: int, targets: Collection[str]) -> int:
    """Return the id before which all events are older than ``before_ms`` and processed for each target."""
    newest = connection.execute(select(func.max(EVENT.c.id))).scalar_one() or 0
    young = select(EVENT.c.id).where(EVENT.c.at_ms >= before_ms).order_by(EVENT.c.id).limit(1)
    first_young = connection.execute(young).scalar_one_or_none()
    cursors = select(OUTBOX_CURSOR.c.target, OUTBOX_CURSOR.c.event_id).where(OUTBOX_CURSOR.c.target.in_(targets))
    reached: dict[str, int] = {row.target: row.event_id + 1 for row in connection.execute(cursors)}
    # The newest event stays, because readers take the last id from it.
    ends: list[int] = [newest, newest if first_young is None else first_young]
    return min([*ends, *(reached.get(name, 0) for name in targets)])


def old_events(connection: Connection, end: int, limit: int) -> Sequence[int]:
    """Return the first events before that id whose task has ended or is none."""
    query = (
        select(EVENT.c.id)
        .outerjoin(TASK, TASK.c.id == EVENT.c.task_id)
        .where(EVENT.c.id < end, _NOT_BUSY)
        .order_by(EVENT.c.id)
        .limit(limit)
    )
    return list(connection.execute(query).scalars())


def events(connection: Connection, ids: Collection[int]) -> int:
    """Remove the events, except of tasks that have not ended. Return the number removed."""
    going = and_(EVENT.c.id.in_(ids), _of_no_busy_task(EVENT))
    last = connection.execute(select(func.max(EVENT.c.id)).where(going)).scalar_one()
    if last is None:
        return 0
    remembered.keep(connection, _EVENTS, {"upto": max(last, events_gone_upto(connection))})
    return connection.execute(delete(EVENT).where(going)).rowcount


def events_gone_upto(connection: Connection) -> int:
    """Return the greatest id of a removed event, or 0."""
    return int(remembered.find(connection, _EVENTS).get("upto", 0))


def old_decisions(connection: Connection, before_ms: int, limit: int) -> Sequence[str]:
    """Return decisions older than ``before_ms`` whose task has ended or is none."""
    query = (
        select(DECISION.c.id)
        .outerjoin(TASK, TASK.c.id == DECISION.c.task_id)
        .where(DECISION.c.at_ms < before_ms, _NOT_BUSY)
        .limit(limit)
    )
    return list(connection.execute(query).scalars())


def decisions(connection: Connection, ids: Collection[str]) -> int:
    """Remove the decisions, except of tasks that have not ended. Return the number removed."""
    going = and_(DECISION.c.id.in_(ids), _of_no_busy_task(DECISION))
    return connection.execute(delete(DECISION).where(going)).rowcount


def old_snapshots(connection: Connection, before_ms: int, limit: int) -> Sequence[str]:
    """Return the hashes of snapshots that no decision from ``before_ms`` on was made from."""
    query = select(SNAPSHOT.c.hash).where(_old_snapshot(before_ms)).order_by(SNAPSHOT.c.created_ms).limit(limit)
    return list(connection.execute(query).scalars())


def snapshots(connection: Connection, hashes: Collection[str], before_ms: int) -> int:
    """Remove the snapshots, except those that a decision from ``before_ms`` on was made from. Return the number."""
    going = and_(SNAPSHOT.c.hash.in_(hashes), _old_snapshot(before_ms))
    return connection.execute(delete(SNAPSHOT).where(going)).rowcount


def old_messages(connection: Connection, before_ms: int, limit: int) -> Sequence[int]:
    """Return messages older than ``before_ms``, oldest first, except those with an open answer. The newest message
    stays, because SQLite would reuse its id, and decisions refer to messages by id."""
    last = select(func.max(CHANNEL_MESSAGE.c.id)).scalar_subquery()
    old = (CHANNEL_MESSAGE.c.created_ms < before_ms, CHANNEL_MESSAGE.c.id < last)
    query = select(CHANNEL_MESSAGE.c.id).where(*old, ~_awaited())
    return list(connection.execute(query.order_by(CHANNEL_MESSAGE.c.id).limit(limit)).scalars())


def messages(connection: Connection, ids: Collection[int]) -> int:
    """Remove the messages with their answers, except those with an open answer. Return the number removed."""
    going = select(CHANNEL_MESSAGE.c.id).where(CHANNEL_MESSAGE.c.id.in_(ids), ~_awaited())
    removed = list(connection.execute(going).scalars())
    connection.execute(delete(CHANNEL_ANSWER).where(CHANNEL_ANSWER.c.message_id.in_(removed)))
    return connection.execute(delete(CHANNEL_MESSAGE).where(CHANNEL_MESSAGE.c.id.in_(removed))).rowcount


def _awaited() -> ColumnElement[bool]:
    open_ = CHANNEL_ANSWER.c.state.in_([AnswerState.HELD.value, AnswerState.ASKED.value])
    return exists().where(CHANNEL_ANSWER.c.message_id == CHANNEL_MESSAGE.c.id, open_)


def _old_snapshot(before_ms: int) -> ColumnElement[bool]:
    young = exists().where(DECISION.c.snapshot_hash == SNAPSHOT.c.hash, DECISION.c.at_ms >= before_ms)
    return and_(SNAPSHOT.c.created_ms < before_ms, ~young)


def old_fires(connection: Connection, before_ms: int, limit: int) -> Sequence[tuple[str, int]]:
    """Return schedules' times handled before ``before_ms``, except the newest of each schedule."""
    later = SCHEDULE_FIRE.alias()
    query = (
        select(SCHEDULE_FIRE.c.schedule_id, SCHEDULE_FIRE.c.due_ms)
        .outerjoin(TASK, TASK.c.id == SCHEDULE_FIRE.c.task_id)
        .where(
            SCHEDULE_FIRE.c.at_ms < before_ms,
            _NOT_BUSY,
            exists().where(later.c.schedule_id == SCHEDULE_FIRE.c.schedule_id, later.c.due_ms > SCHEDULE_FIRE.c.due_ms),
        )
        .limit(limit)
    )
    return [(schedule_id, due_ms) for schedule_id, due_ms in connection.execute(query)]


def fires(connection: Connection, times: Collection[tuple[str, int]]) -> int:
    """Remove the times, except those whose task has not ended. Return the number removed."""
    place = tuple_(SCHEDULE_FIRE.c.schedule_id, SCHEDULE_FIRE.c.due_ms)
    going = and_(place.in_(times), _of_no_busy_task(SCHEDULE_FIRE))
    return connection.execute(delete(SCHEDULE_FIRE).where(going)).rowcount


def old_holds(connection: Connection, before_ms: int, limit: int) -> Sequence[int]:
    """Return the ids of holds that ended before ``before_ms``."""
    query = select(HOLD.c.id).where(or_(HOLD.c.released_ms < before_ms, HOLD.c.until_ms < before_ms)).limit(limit)
    return list(connection.execute(query).scalars())


def holds(connection: Connection, ids: Collection[int]) -> int:
    """Remove the holds. Return the number removed."""
    return _remove(connection, HOLD, HOLD.c.id, ids)


def old_tasks(connection: Connection, before_ms: int, after: str, limit: int) -> Sequence[tuple[str, Sequence[str]]]:
    """Return ended tasks that may be removed, ordered by id, with the ids of their runs. after: only greater ids."""
    query = select(TASK.c.id).where(_removable(before_ms), TASK.c.id > after).order_by(TASK.c.id).limit(limit)
    ids = list(connection.execute(query).scalars())
    runs: dict[str, list[str]] = {task_id: [] for task_id in ids}
    for task_id, run_id in connection.execute(select(RUN.c.task_id, RUN.c.id).where(RUN.c.task_id.in_(ids))):
        runs[task_id].append(run_id)
    return list(runs.items())


def tasks(connection: Connection, task_ids: Collection[str], before_ms: int) -> int:
    """Remove those of the tasks that may still be removed, with all their rows except decisions. Return the number."""
    query = select(TASK.c.id).where(_removable(before_ms), TASK.c.id.in_(task_ids))
    going = list(connection.execute(query).scalars())
    runs = list(connection.execute(select(RUN.c.id).where(RUN.c.task_id.in_(going))).scalars())
    remember_runs(connection, runs)
    remember_answers(connection, going)
    for table in (LABEL, *_of_a_task()):
        _remove(connection, table, table.c.task_id, going)
    return _remove(connection, TASK, TASK.c.id, going)


def _of_a_task() -> list[Table]:
    """Return the tables with rows of tasks, referencing ones first. Tasks named by a schedule's time are kept."""
    tables = [table for table in reversed(TASK.metadata.sorted_tables) if table is not SCHEDULE_FIRE]
    return [table for table in tables if "task_id" in table.c and table.c.task_id.references(TASK.c.id)]


def _of_no_busy_task(table: Table) -> ColumnElement[bool]:
    """Return the condition that the row is of no task, or of none that has still to end."""
    busy = select(TASK.c.id).where(TASK.c.state.in_(UNENDED))  # an index serves IN, but not NOT IN
    return or_(table.c.task_id.is_(None), table.c.task_id.not_in(busy))


def _removable(before_ms: int) -> ColumnElement[bool]:
    """Return the condition that an old ended task is unreferenced: by dependents, schedules' times and inbox files."""
    return and_(
        TASK.c.state.in_(ENDED),
        TASK.c.created_ms < before_ms,
        TASK.c.updated_ms < before_ms,
        TASK.c.cancel_requested_ms.is_(None),
        TASK.c.restart_requested.is_(None),
        ~exists().where(RUN.c.task_id == TASK.c.id, RUN.c.live),
        ~exists().where(TASK_DEPENDENCY.c.depends_on_id == TASK.c.id),
        ~exists().where(SCHEDULE_FIRE.c.task_id == TASK.c.id),
        ~exists().where(INBOX_DOCUMENT.c.task_id == TASK.c.id, INBOX_DOCUMENT.c.gone_ms.is_(None)),
    )


def _remove(
    connection: Connection, table: Table, column: ColumnElement[str] | ColumnElement[int], values: Collection[object]
) -> int:
    return connection.execute(delete(table).where(column.in_(values))).rowcount if values else 0
