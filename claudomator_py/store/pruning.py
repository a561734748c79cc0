"""Removing rows that are old enough, a few at a time.

What may go is decided in the writer: a task that was restarted meanwhile, or is waited for, keeps what it has.
"""

from collections.abc import Collection, Sequence

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, exists, func, or_, select

from claudomator_py.store import remembered
from claudomator_py.store.metric_rows import remember_answers, remember_runs
from claudomator_py.store.tables import (
    CLASSIFICATION,
    DECISION,
    EVENT,
    HOLD,
    INBOX_DOCUMENT,
    OUTBOX_CURSOR,
    RUN,
    SCHEDULE_FIRE,
    SNAPSHOT,
    TASK,
    TASK_DEPENDENCY,
    TASK_REVISION,
)

_ENDED = ("COMPLETED", "FAILED", "CANCELLED")
_EVENTS = "events"


def events(connection: Connection, before_ms: int, targets: Collection[str], limit: int) -> int:
    """Remove events from before then; the number. Those stay that are of a task which has not ended, or that were not
    looked at for each of the targets yet."""
    young = select(EVENT.c.id).where(EVENT.c.at_ms >= before_ms).order_by(EVENT.c.id).limit(1)
    upto = connection.execute(young).scalar_one_or_none()
    cursors = select(OUTBOX_CURSOR.c.target, OUTBOX_CURSOR.c.event_id).where(OUTBOX_CURSOR.c.target.in_(targets))
    reached = {row.target: row.event_id for row in connection.execute(cursors)}
    if any(target not in reached for target in targets):
        return 0
    ends = [*(event_id + 1 for event_id in reached.values()), *([] if upto is None else [upto])]
    # The newest stays: the ids go on from it where a database has lost count.
    newest = connection.execute(select(func.max(EVENT.c.id))).scalar_one()
    if newest is None:
        return 0
    query = (
        select(EVENT.c.id)
        .outerjoin(TASK, TASK.c.id == EVENT.c.task_id)
        .where(EVENT.c.id < min([newest, *ends]), or_(TASK.c.id.is_(None), TASK.c.state.in_(_ENDED)))
        .order_by(EVENT.c.id)
        .limit(limit)
    )
    ids = list(connection.execute(query).scalars())
    if ids:
        connection.execute(delete(EVENT).where(EVENT.c.id.in_(ids)))
        remembered.keep(connection, _EVENTS, {"upto": max(ids[-1], events_gone_upto(connection))})
    return len(ids)


def events_gone_upto(connection: Connection) -> int:
    """The greatest id of an event that was removed; 0: none was."""
    return int(remembered.find(connection, _EVENTS).get("upto", 0))


def decisions(connection: Connection, before_ms: int, limit: int) -> int:
    """Remove decisions about ended tasks from before then, with the snapshots that no other was made from."""
    query = (
        select(DECISION.c.run_id)
        .join(TASK, TASK.c.id == DECISION.c.task_id)
        .where(DECISION.c.at_ms < before_ms, TASK.c.state.in_(_ENDED))
        .limit(limit)
    )
    return _remove_decisions(connection, list(connection.execute(query).scalars()))


def fires(connection: Connection, before_ms: int, limit: int) -> int:
    """Remove times of schedules that were dealt with before then; the newest of each schedule stays."""
    later = SCHEDULE_FIRE.alias()
    query = (
        select(SCHEDULE_FIRE.c.schedule_id, SCHEDULE_FIRE.c.due_ms)
        .outerjoin(TASK, TASK.c.id == SCHEDULE_FIRE.c.task_id)
        .where(
            SCHEDULE_FIRE.c.at_ms < before_ms,
            or_(TASK.c.id.is_(None), TASK.c.state.in_(_ENDED)),
            exists().where(later.c.schedule_id == SCHEDULE_FIRE.c.schedule_id, later.c.due_ms > SCHEDULE_FIRE.c.due_ms),
        )
        .limit(limit)
    )
    found = connection.execute(query).all()
    for schedule_id, due_ms in found:
        connection.execute(
            delete(SCHEDULE_FIRE).where(SCHEDULE_FIRE.c.schedule_id == schedule_id, SCHEDULE_FIRE.c.due_ms == due_ms)
        )
    return len(found)


def holds(connection: Connection, before_ms: int, limit: int) -> int:
    """Remove holds that ended before then."""
    query = select(HOLD.c.id).where(or_(HOLD.c.released_ms < before_ms, HOLD.c.until_ms < before_ms)).limit(limit)
    return _remove(connection, HOLD, HOLD.c.id, list(connection.execute(query).scalars()))


def old_tasks(connection: Connection, before_ms: int, after: str, limit: int) -> Sequence[tuple[str, Sequence[str]]]:
    """Ended tasks that may be removed, in the order of their ids, with their runs. after: the id to go on behind."""
    query = select(TASK.c.id).where(_removable(before_ms), TASK.c.id > after).order_by(TASK.c.id).limit(limit)
    found = list(connection.execute(query).scalars())
    runs: dict[str, list[str]] = {task_id: [] for task_id in found}
    for task_id, run_id in connection.execute(select(RUN.c.task_id, RUN.c.id).where(RUN.c.task_id.in_(found))):
        runs[task_id].append(run_id)
    return list(runs.items())


def tasks(connection: Connection, task_ids: Collection[str], before_ms: int) -> int:
    """Remove those of these tasks that may still be removed, with all that is theirs; the number."""
    query = select(TASK.c.id).where(_removable(before_ms), TASK.c.id.in_(task_ids))
    going = list(connection.execute(query).scalars())
    runs = list(connection.execute(select(RUN.c.id).where(RUN.c.task_id.in_(going))).scalars())
    remember_runs(connection, runs)
    remember_answers(connection, going)
    _remove_decisions(connection, runs)
    for table in (RUN, CLASSIFICATION, TASK_DEPENDENCY, TASK_REVISION, INBOX_DOCUMENT):
        _remove(connection, table, table.c.task_id, going)
    return _remove(connection, TASK, TASK.c.id, going)


def _removable(before_ms: int) -> ColumnElement[bool]:
    """Nobody waits for it, no schedule's time names it, and its file is not in the inbox any more."""
    return and_(
        TASK.c.state.in_(_ENDED),
        TASK.c.created_ms < before_ms,
        TASK.c.updated_ms < before_ms,
        TASK.c.next_revision.is_(None),
        TASK.c.cancel_requested_ms.is_(None),
        TASK.c.restart_requested.is_(None),
        ~exists().where(RUN.c.task_id == TASK.c.id, RUN.c.live),
        ~exists().where(TASK_DEPENDENCY.c.depends_on_id == TASK.c.id),
        ~exists().where(SCHEDULE_FIRE.c.task_id == TASK.c.id),
        ~exists().where(INBOX_DOCUMENT.c.task_id == TASK.c.id, INBOX_DOCUMENT.c.gone_ms.is_(None)),
    )


def _remove_decisions(connection: Connection, run_ids: Collection[str]) -> int:
    query = select(DECISION.c.snapshot_hash).where(DECISION.c.run_id.in_(run_ids)).distinct()
    hashes = list(connection.execute(query).scalars())
    removed = _remove(connection, DECISION, DECISION.c.run_id, run_ids)
    unused = ~exists().where(DECISION.c.snapshot_hash == SNAPSHOT.c.hash)
    connection.execute(delete(SNAPSHOT).where(SNAPSHOT.c.hash.in_(hashes), unused))
    return removed


def _remove(
    connection: Connection, table: Table, column: ColumnElement[str] | ColumnElement[int], values: Collection[object]
) -> int:
    return connection.execute(delete(table).where(column.in_(values))).rowcount if values else 0
