"""The rows at which a tick looks besides the queue: what is due, to be changed or kept, and when to look again.

One statement asks which kinds of rows exist that are rarely there, where reading each kind takes one.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, and_, bindparam, exists, func, or_, select, text

from claudomator_py.domain.lifecycle import UNENDED, UNSUCCESSFUL
from claudomator_py.store import hold_rows, run_rows, specialist_rows
from claudomator_py.store.classification_rows import NEXT_DEADLINE
from claudomator_py.store.queue import EXCLUSIVE, ORDER
from claudomator_py.store.statement import Selection, Statement
from claudomator_py.store.tables import SWITCH, TASK, TASK_DEPENDENCY, Task


class RareRows(NamedTuple):
    """Whether there are any rows of each kind."""

    holds: bool
    """See ``hold_rows.in_force_and_expired``."""
    warned: bool
    """See ``run_rows.warned``."""
    specialists: bool
    drained: bool
    """Whether nothing is to be started anywhere."""
    kept: bool
    """See ``kept``."""
    in_turn: bool
    """See ``in_turn``."""
    due: bool
    """See ``due``."""
    intent: bool
    """See ``with_intent``."""


class NextTimes(NamedTuple):
    """The next time of each kind, in epoch milliseconds, or None."""

    waiting: int | None
    """A waiting task becomes due."""
    expiring: int | None
    """A task's wait for a person expires."""
    kept: int | None
    """A kept directory is released."""
    hold: int | None
    """A hold ends by itself."""
    question: int | None
    """A question about a tier is given up."""


# Literally the conditions of the partial indexes, so that these are used.
_TIMED = (text("task.state = 'WAITING'"), text("task.state = 'NEEDS_INPUT' AND task.until_ms IS NOT NULL"))
_KEEPING = ("NEEDS_INPUT", "WAITING", "QUEUED")


def _turns() -> Select[Any]:
    """See ``in_turn``."""
    another = TASK.alias("another")
    followed = exists().where(another.c.state.in_(UNENDED), another.c.thread == TASK.c.id)
    return (
        select(EXCLUSIVE, TASK.c.id)
        .where(text("task.seq > 0"), TASK.c.state.in_(_KEEPING), or_(TASK.c.thread.is_not(None), followed))
        .where(or_(TASK.c.state != "WAITING", TASK.c.reason != "dependency"))
        .order_by(*ORDER)
    )


def _on_ended() -> Select[Any]:
    """See ``waiting_on_ended``."""
    dependency = TASK.alias("dependency")
    bound = TASK_DEPENDENCY.join(dependency, dependency.c.id == TASK_DEPENDENCY.c.depends_on_id)
    failed = (
        exists().select_from(bound).where(TASK_DEPENDENCY.c.task_id == TASK.c.id, dependency.c.state.in_(UNSUCCESSFUL))
    )
    open_dependency = (
        exists()
        .select_from(TASK_DEPENDENCY.outerjoin(dependency, dependency.c.id == TASK_DEPENDENCY.c.depends_on_id))
        .where(
            TASK_DEPENDENCY.c.task_id == TASK.c.id, or_(dependency.c.id.is_(None), dependency.c.state != "COMPLETED")
        )
    )
    query = select(TASK).where(TASK.c.state == "WAITING", TASK.c.reason == "dependency", or_(failed, ~open_dependency))
    return query.limit(bindparam("most"))


# Compiled once, as each tick runs nearly all of them.
_IN_TURN = Statement(_turns())
_ON_ENDED = Selection(Task, _on_ended())
_DUE = tuple(and_(state, TASK.c.until_ms <= bindparam("now")) for state in _TIMED)
"""Separate conditions, as each has an index."""
_DUE_TASKS = tuple(
    Selection(Task, select(TASK).where(due).order_by(TASK.c.until_ms).limit(bindparam("most"))) for due in _DUE
)
_STILL_KEPT = (TASK.c.kept_until_ms > bindparam("now"), TASK.c.state.in_(_KEEPING))
_KEPT_AS = ("dir_key", "task_id", "name", "until")
_KEPT = Statement(
    select(TASK.c.dir_key, TASK.c.id, TASK.c.name, TASK.c.kept_until_ms)
    .where(*_STILL_KEPT, TASK.c.dir_key != "")
    .order_by(TASK.c.dir_key, TASK.c.id)
)
_NEXT_TIMES = Statement(
    select(
        *(select(func.min(TASK.c.until_ms)).where(state).scalar_subquery() for state in _TIMED),
        select(func.min(TASK.c.kept_until_ms)).where(*_STILL_KEPT).scalar_subquery(),
        hold_rows.NEXT_END.scalar_subquery(),
        NEXT_DEADLINE.scalar_subquery(),
    )
)
_PAUSING = Selection(Task, select(TASK).where(or_(and_(_TIMED[0], TASK.c.reason == "backoff"), and_(*_STILL_KEPT))))
_RUNNING = Selection(Task, select(TASK).where(TASK.c.state == "RUNNING"))
_WITH_INTENT = or_(TASK.c.cancel_requested_ms.is_not(None), TASK.c.restart_requested.is_not(None))
_INTENT = Selection(Task, select(TASK).where(_WITH_INTENT))
_UNENDED = select(TASK.c.state, func.count().label("number")).where(TASK.c.state.in_(UNENDED)).group_by(TASK.c.state)
_KINDS: tuple[Any, ...] = (
    exists().where(hold_rows.IN_FORCE_OR_EXPIRED),
    exists().where(run_rows.NEAR_LIMIT),
    exists().where(specialist_rows.REGISTERED),
    exists().where(SWITCH.c.name == hold_rows.DRAIN),
    exists().where(*_STILL_KEPT),
    _turns().exists(),
    exists().where(_DUE[0]) | exists().where(_DUE[1]),
    exists().where(_WITH_INTENT),
)
_PRESENT = Statement(select(*_KINDS))


def present(connection: Connection, now_ms: int) -> RareRows:
    """Return which of these rows there are."""
    return RareRows(*_PRESENT.rows(connection, now=now_ms)[0])


def due(connection: Connection, now_ms: int, limit: int) -> Sequence[Task]:
    """Return waiting tasks that are due, and tasks whose wait for a person has expired."""
    tasks = []
    for query in _DUE_TASKS:
        tasks += query.all(connection, now=now_ms, most=limit)
    return tasks


def pausing(connection: Connection, now_ms: int) -> Sequence[Task]:
    """Return tasks that pause after a failure, or for which a directory is kept."""
    return _PAUSING.all(connection, now=now_ms)


def waiting_on_ended(connection: Connection, limit: int) -> Sequence[Task]:
    """Return tasks that wait for dependencies although all of them have completed, or one has failed. A task's end
    readies its dependents in the same transaction, so this finds only what older versions left behind."""
    return _ON_ENDED.all(connection, most=limit)


def with_intent(connection: Connection) -> Sequence[Task]:
    """Return tasks whose requested cancellation or forced restart is pending."""
    return _INTENT.all(connection)


def running(connection: Connection) -> Sequence[Task]:
    """Return the tasks with a live run."""
    return _RUNNING.all(connection)


def kept(connection: Connection, now_ms: int) -> list[dict[str, Any]]:
    """Return the directories kept for tasks, as dir_key, task_id, name and until, in a fixed order."""
    return [dict(zip(_KEPT_AS, row, strict=True)) for row in _KEPT.rows(connection, now=now_ms)]


def in_turn(connection: Connection) -> dict[str, str]:
    """Return, for each thread shared by several tasks, the task whose turn it is: it has begun, and will continue."""
    names: dict[str, str] = {}
    for thread, task_id in _IN_TURN.rows(connection):
        names.setdefault(thread, task_id)
    return names


def next_times(connection: Connection, now_ms: int) -> NextTimes:
    """Return the next times, by one query."""
    return NextTimes(*_NEXT_TIMES.rows(connection, now=now_ms)[0])


def unended(connection: Connection) -> dict[str, int]:
    """Return the number of tasks in each state that is not final."""
    return {row.state: row.number for row in connection.execute(_UNENDED)}
