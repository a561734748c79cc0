"""Removing rows that are old enough, a few at a time.

What may go is looked for beside the writer and seen again in it: a task that was restarted meanwhile keeps its own.
"""

from collections.abc import Collection, Sequence

from sqlalchemy import ColumnElement, Connection, FromClause, Table, and_, delete, exists, func, or_, select, tuple_

from claudomator_py.domain.channel import AnswerState
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

_ENDED = ("COMPLETED", "FAILED", "CANCELLED")
_NOT_ENDED = ("WAITING", "QUEUED", "RUNNING", "NEEDS_INPUT")
"""Named one by one, as an index finds these, and no index what is none of the others."""
_EVENTS = "events"


def events_end(connection: Connection, before_ms: int, targets: Collection[str]) -> int:
    """Return the id up to which, itself excluded, events are from before then and were looked at for each of the
    targets."""
    newest = connection.execute(select(func.max(EVENT.c.id))).scalar_one() or 0
    young = select(EVENT.c.id).where(EVENT.c.at_ms >= before_ms).order_by(EVENT.c.id).limit(1)
    first_young = connection.execute(young).scalar_one_or_none()
    cursors = select(OUTBOX_CURSOR.c.target, OUTBOX_CURSOR.c.event_id).where(OUTBOX_CURSOR.c.target.in_(targets))
    reached: dict[str, int] = {row.target: row.event_id + 1 for row in connection.execute(cursors)}
    # The newest stays: where ids begin is known by it.
    ends: list[int] = [newest, newest if first_young is None else first_young]
    return min([*ends, *(reached.get(name, 0) for name in targets)])


def old_events(connection: Connection, end: int, limit: int) -> Sequence[int]:
    """Return the first events before that id that may be removed: not those of a task which has not ended."""
    query = (
        select(EVENT.c.id)
        .outerjoin(TASK, TASK.c.id == EVENT.c.task_id)
        .where(EVENT.c.id < end, _nobody_is_at(TASK))
        .order_by(EVENT.c.id)
        .limit(limit)
    )
    return list(connection.execute(query).scalars())


def events(connection: Connection, ids: Collection[int]) -> int:
    """Remove those of these events that may still be removed; the number."""
    busy = select(TASK.c.id).where(TASK.c.state.in_(_NOT_ENDED))
    going = and_(EVENT.c.id.in_(ids), or_(EVENT.c.task_id.is_(None), EVENT.c.task_id.not_in(busy)))
    last = connection.execute(select(func.max(EVENT.c.id)).where(going)).scalar_one()
    if last is None:
        return 0
    remembered.keep(connection, _EVENTS, {"upto": max(last, events_gone_upto(connection))})
    return connection.execute(delete(EVENT).where(going)).rowcount


def events_gone_upto(connection: Connection) -> int:
    """Return the greatest id of an event that was removed; 0: none was."""
    return int(remembered.find(connection, _EVENTS).get("upto", 0))


def old_decisions(connection: Connection, before_ms: int, limit: int) -> Sequence[str]:
    """Return the decisions from before then that are about no task, or about one that has ended."""
    query = (
        select(DECISION.c.id)
        .outerjoin(TASK, TASK.c.id == DECISION.c.task_id)
        .where(DECISION.c.at_ms < before_ms, _nobody_is_at(TASK))
        .limit(limit)
    )
    return list(connection.execute(query).scalars())


def decisions(connection: Connection, ids: Collection[str]) -> int:
    """Remove these, unless their task has been restarted; the number."""
    busy = select(TASK.c.id).where(TASK.c.state.in_(_NOT_ENDED))
    going = and_(DECISION.c.id.in_(ids), or_(DECISION.c.task_id.is_(None), DECISION.c.task_id.not_in(busy)))
    return connection.execute(delete(DECISION).where(going)).rowcount


def old_snapshots(connection: Connection, before_ms: int, limit: int) -> Sequence[str]:
    """Return those that no decision since then was made from."""
    query = select(SNAPSHOT.c.hash).where(_old_snapshot(before_ms)).order_by(SNAPSHOT.c.created_ms).limit(limit)
    return list(connection.execute(query).scalars())


def snapshots(connection: Connection, hashes: Collection[str], before_ms: int) -> int:
    """Remove those of these that no decision since then was made from; the number."""
    going = and_(SNAPSHOT.c.hash.in_(hashes), _old_snapshot(before_ms))
    return connection.execute(delete(SNAPSHOT).where(going)).rowcount


def old_messages(connection: Connection, before_ms: int, limit: int) -> Sequence[int]:
    """Return the messages from before then, the oldest first, but for those that somebody is still to answer.

    The last one of all stays, as SQLite would give its number, by which a decision is known, to the next one.
    """
    last = select(func.max(CHANNEL_MESSAGE.c.id)).scalar_subquery()
    old = (CHANNEL_MESSAGE.c.created_ms < before_ms, CHANNEL_MESSAGE.c.id < last)
    query = select(CHANNEL_MESSAGE.c.id).where(*old, ~_awaited())
    return list(connection.execute(query.order_by(CHANNEL_MESSAGE.c.id).limit(limit)).scalars())


def messages(connection: Connection, ids: Collection[int]) -> int:
    """Remove these with who was to answer them, unless somebody still is; the number."""
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
    """Return times of schedules that were dealt with before then, but for the newest of each schedule."""
    later = SCHEDULE_FIRE.alias()
    query = (
        select(SCHEDULE_FIRE.c.schedule_id, SCHEDULE_FIRE.c.due_ms)
        .outerjoin(TASK, TASK.c.id == SCHEDULE_FIRE.c.task_id)
        .where(
            SCHEDULE_FIRE.c.at_ms < before_ms,
            _nobody_is_at(TASK),
            exists().where(later.c.schedule_id == SCHEDULE_FIRE.c.schedule_id, later.c.due_ms > SCHEDULE_FIRE.c.due_ms),
        )
        .limit(limit)
    )
    return [(schedule_id, due_ms) for schedule_id, due_ms in connection.execute(query)]


def fires(connection: Connection, times: Collection[tuple[str, int]]) -> int:
    """Remove those of these times whose task has not been restarted; the number."""
    busy = select(TASK.c.id).where(TASK.c.state.in_(_NOT_ENDED))
    going = and_(
        tuple_(SCHEDULE_FIRE.c.schedule_id, SCHEDULE_FIRE.c.due_ms).in_(times),
        or_(SCHEDULE_FIRE.c.task_id.is_(None), SCHEDULE_FIRE.c.task_id.not_in(busy)),
    )
    return connection.execute(delete(SCHEDULE_FIRE).where(going)).rowcount


def old_holds(connection: Connection, before_ms: int, limit: int) -> Sequence[int]:
    """Return holds that ended before then."""
    query = select(HOLD.c.id).where(or_(HOLD.c.released_ms < before_ms, HOLD.c.until_ms < before_ms)).limit(limit)
    return list(connection.execute(query).scalars())


def holds(connection: Connection, ids: Collection[int]) -> int:
    """Remove these; the number."""
    return _remove(connection, HOLD, HOLD.c.id, ids)


def old_tasks(connection: Connection, before_ms: int, after: str, limit: int) -> Sequence[tuple[str, Sequence[str]]]:
    """Return ended tasks that may be removed, in the order of their ids, with their runs. after: the id to continue
    behind."""
    query = select(TASK.c.id).where(_removable(before_ms), TASK.c.id > after).order_by(TASK.c.id).limit(limit)
    found = list(connection.execute(query).scalars())
    runs: dict[str, list[str]] = {task_id: [] for task_id in found}
    for task_id, run_id in connection.execute(select(RUN.c.task_id, RUN.c.id).where(RUN.c.task_id.in_(found))):
        runs[task_id].append(run_id)
    return list(runs.items())


def tasks(connection: Connection, task_ids: Collection[str], before_ms: int) -> int:
    """Remove those of these tasks that may still be removed, with all that is theirs but decisions; the number."""
    query = select(TASK.c.id).where(_removable(before_ms), TASK.c.id.in_(task_ids))
    going = list(connection.execute(query).scalars())
    runs = list(connection.execute(select(RUN.c.id).where(RUN.c.task_id.in_(going))).scalars())
    remember_runs(connection, runs)
    remember_answers(connection, going)
    for table in (LABEL, *_of_a_task()):
        _remove(connection, table, table.c.task_id, going)
    return _remove(connection, TASK, TASK.c.id, going)


def _of_a_task() -> list[Table]:
    """The tables whose rows are a task's, those first that name others. No schedule's time names a task that goes."""
    tables = [table for table in reversed(TASK.metadata.sorted_tables) if table is not SCHEDULE_FIRE]
    return [table for table in tables if "task_id" in table.c and table.c.task_id.references(TASK.c.id)]


def _nobody_is_at(task: FromClause) -> ColumnElement[bool]:
    """The task has ended, or there is none."""
    return or_(task.c.id.is_(None), task.c.state.in_(_ENDED))


def _removable(before_ms: int) -> ColumnElement[bool]:
    """Nobody waits for it, no schedule's time names it, and its file is not in the inbox any more."""
    return and_(
        TASK.c.state.in_(_ENDED),
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
