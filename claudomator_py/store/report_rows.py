"""Rows for reports and timelines of a time span: runs, tasks, holds, starts of the daemon, and skipped schedules."""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Final, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    and_,
    bindparam,
    case,
    func,
    literal,
    literal_column,
    or_,
    select,
)

from claudomator_py.domain.changes import RunChanges
from claudomator_py.domain.lifecycle import ENDED, UNENDED, StateName
from claudomator_py.domain.limits import Bucket
from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.units import DAY_MS
from claudomator_py.store.run_rows import BEGUN
from claudomator_py.store.statement import Statement
from claudomator_py.store.stored_json import cached_reader, readable, sound
from claudomator_py.store.tables import EVENT, HOLD, RUN, SCHEDULE, SCHEDULE_FIRE, TASK, Task
from claudomator_py.store.visibility import representative, rows_seen, runs_seen, tasks_seen
from claudomator_py.values import dataclass

STARTED = "daemon_started"
"""Kind of the event that a daemon records at its start."""
MAX_ENDED_RUN_MS = 2 * DAY_MS
"""Ended runs that began earlier than this before the span are left out, because only their start is indexed."""
MAX_RUNS = 50_000
_NEVER_MS = 2**62
_PART = 500
"""Ids per query."""


class DrawnRun(NamedTuple):
    """A run as a timeline shows it."""

    task_id: str
    agent: str
    started_ms: int
    ended_ms: int | None
    """None: the run is live."""
    ended_as: str | None
    """See ``domain.outcome.OutcomeStatus``."""
    reason: str | None
    cost_usd: float | None
    id: str


@dataclass(frozen=True, slots=True)
class DrawnHold:
    """A hold as a timeline shows it."""

    bucket: Bucket
    reason: str | None
    """None: set by an operator."""
    begin_ms: int
    end_ms: int | None
    """None: until it is released."""


def runs(connection: Connection, since_ms: int, until_ms: int, by: Principal) -> Sequence[DrawnRun]:
    """Return the runs in the span visible to the principal, by start; at most 50,000 that ended."""
    ended, live = _drawn(representative(by))
    begun_ms = since_ms - MAX_ENDED_RUN_MS
    runs = ended.rows(connection, since=since_ms, begun=begun_ms, until=until_ms)
    runs.reverse()
    runs += live.rows(connection)
    return sorted((run for run in map(DrawnRun._make, runs) if run.started_ms < until_ms), key=_START)


_START: Final = attrgetter("started_ms")


def task_names(connection: Connection, task_ids: Collection[str], by: Principal) -> Mapping[str, str]:
    """Return the names of those of the tasks that are visible to the principal, by id."""
    ids = list(task_ids)
    names: dict[str, str] = {}
    for start in range(0, len(ids), _PART):
        query = select(TASK.c.id, TASK.c.name).where(TASK.c.id.in_(ids[start : start + _PART]), tasks_seen(by))
        names.update((task_id, name) for task_id, name in connection.execute(query))
    return names


@lru_cache(maxsize=16)
def _drawn(by: Principal) -> tuple[Statement, Statement]:
    """Return the statements for ended and for live runs."""
    columns = [RUN.c[name] for name in DrawnRun._fields]
    since, begun, until = (bindparam(name, type_=BigInteger) for name in ("since", "begun", "until"))
    query = select(*columns).where(runs_seen(by))
    ended = query.where(BEGUN, RUN.c.started_ms >= begun, RUN.c.started_ms < until, RUN.c.ended_ms >= since)
    # Without a condition on the start, for which SQLite would read the index of all starts.
    return Statement(ended.order_by(RUN.c.started_ms.desc(), RUN.c.id).limit(MAX_RUNS)), Statement(
        query.where(RUN.c.live)
    )


def holds(connection: Connection, since_ms: int, until_ms: int) -> Sequence[DrawnHold]:
    """Return the holds in force in the span, by start. Everybody may see holds."""
    lasts = and_(
        or_(HOLD.c.until_ms.is_(None), HOLD.c.until_ms > since_ms),
        or_(HOLD.c.released_ms.is_(None), HOLD.c.released_ms > since_ms),
    )
    query = select(HOLD).where(HOLD.c.created_ms < until_ms, lasts).order_by(HOLD.c.created_ms, HOLD.c.id)
    return [
        DrawnHold(
            Bucket(agent=row.agent, kind=row.kind, account=row.account, family=row.family),
            row.reason,
            row.created_ms,
            min((end for end in (row.until_ms, row.released_ms) if end is not None), default=None),
        )
        for row in connection.execute(query)
    ]


def starts(connection: Connection, since_ms: int, until_ms: int) -> Sequence[int]:
    """Return the daemon's starts in the span, in epoch milliseconds."""
    query = select(EVENT.c.at_ms).where(EVENT.c.task_id.is_(None), EVENT.c.kind == STARTED)  # few lack a task
    query = query.where(EVENT.c.at_ms >= since_ms, EVENT.c.at_ms < until_ms)
    return list(connection.execute(query.order_by(EVENT.c.id)).scalars())


def has_earlier(connection: Connection, since_ms: int, by: Principal) -> bool:
    """Return whether a run visible to the principal began before ``since_ms``."""
    query = select(RUN.c.id).where(BEGUN, RUN.c.started_ms < since_ms, runs_seen(by))
    return connection.execute(query.limit(1)).one_or_none() is not None


class FinishedRun(NamedTuple):
    """A run that ended."""

    task_id: str
    agent: str
    ended_as: str | None
    """See ``domain.outcome.OutcomeStatus``."""
    started_ms: int
    ended_ms: int
    cost_usd: float | None
    input_tokens: int | None
    output_tokens: int | None
    in_vain: bool | None
    dir_key: str
    """Empty for a scratch folder."""
    changes: RunChanges | None


def ended_runs(connection: Connection, since_ms: int, until_ms: int, by: Principal) -> Sequence[FinishedRun]:
    """Return the runs visible to the principal that ended from since_ms until before until_ms, by their end."""
    rows = _finished(representative(by)).rows(connection, since=since_ms, until=until_ms)
    return [FinishedRun._make((*row[:-1], None if row[-1] is None else _read_changes(row[-1]))) for row in rows]


_read_changes = cached_reader(RunChanges)


@lru_cache(maxsize=16)
def _finished(by: Principal) -> Statement:
    since, until = (bindparam(name, type_=BigInteger) for name in ("since", "until"))
    columns = [RUN.c[name] for name in FinishedRun._fields if name != "changes"]
    query = (
        # As text, because runs that changed nothing share the same text, which is parsed once.
        select(*columns, sound(RUN.c.outcome)["changes"].as_string())
        .where(RUN.c.ended_ms >= since, RUN.c.ended_ms < until, RUN.c.state != "revoked", runs_seen(by))
        .order_by(RUN.c.ended_ms, RUN.c.id)
    )
    return Statement(query)


def last_outcomes(connection: Connection, task_ids: Sequence[str]) -> Mapping[str, Outcome]:
    """Return the readable outcomes of the tasks' last runs, by the id of the task."""
    outcomes: dict[str, Outcome] = {}
    for start in range(0, len(task_ids), _PART):
        last = select(TASK.c.id, RUN.c.outcome).join(RUN, RUN.c.id == TASK.c.last_run_id)
        for task_id, stored in connection.execute(last.where(TASK.c.id.in_(task_ids[start : start + _PART]))):
            if (outcome := readable(Outcome, stored)) is not None:
                outcomes[task_id] = outcome
    return outcomes


def _ended(state: StateName, since_ms: int, until_ms: int, by: Principal) -> ColumnElement[bool]:
    since = (TASK.c.updated_ms >= since_ms) & (TASK.c.updated_ms < until_ms)
    # A literal, as in the condition of the index.
    return (TASK.c.state == literal_column(f"'{state}'")) & since & tasks_seen(by)


def ended_tasks(connection: Connection, state: StateName, since_ms: int, until_ms: int, by: Principal) -> int:
    """Return the number of tasks visible to the principal that reached this state in the span and still have it."""
    query = select(func.count()).select_from(TASK).where(_ended(state, since_ms, until_ms, by))
    return connection.execute(query).scalar_one()


def open_tasks(connection: Connection, since_ms: int, width_ms: int, parts: int, by: Principal) -> Sequence[int]:
    """Return how many of the tasks visible to the principal had been accepted and not ended by the end of each part of
    a span. width_ms: length of a part. A task that was restarted counts as open until its last end."""
    place = select(literal(0, BigInteger).label("place")).cte("part", recursive=True)
    place = place.union_all(select(place.c.place + 1).where(place.c.place < parts))
    begin = since_ms + place.c.place * width_ms
    end = case((place.c.place == parts, literal(_NEVER_MS, BigInteger)), else_=begin + width_ms)

    def count(column: ColumnElement[int], *conditions: ColumnElement[bool]) -> ColumnElement[int]:
        # A count per part reads an index alone; grouping by part takes several times as long.
        query = select(func.count()).select_from(TASK).where(column >= begin, column < end, *conditions, tasks_seen(by))
        return query.correlate(place).scalar_subquery()

    ended = [count(TASK.c.updated_ms, TASK.c.state == literal_column(f"'{state}'")) for state in ENDED]
    rows = connection.execute(select(place.c.place, count(TASK.c.created_ms) - sum(ended[1:], ended[0])))
    changes = {row[0]: row[1] for row in rows}
    is_open = TASK.c.state.in_(UNENDED)
    number = connection.execute(select(func.count()).select_from(TASK).where(is_open, tasks_seen(by))).scalar_one()
    result = []
    for part in range(parts, 0, -1):
        number -= changes[part]
        result.append(number)
    return result[::-1]


def completed_ids(connection: Connection, since_ms: int, until_ms: int, by: Principal) -> frozenset[str]:
    """Return the ids of the tasks that completed in the span."""
    query = select(TASK.c.id).where(_ended("COMPLETED", since_ms, until_ms, by))
    return frozenset(connection.execute(query).scalars())


def failed_tasks(connection: Connection, since_ms: int, until_ms: int, limit: int, by: Principal) -> Sequence[Task]:
    """Return at most ``limit`` tasks that failed in the span, latest first."""
    query = select(TASK).where(_ended("FAILED", since_ms, until_ms, by))
    query = query.order_by(TASK.c.updated_ms.desc(), TASK.c.id.desc()).limit(limit)
    return Task.rows(connection, query)


def skipped_times(
    connection: Connection, since_ms: int, until_ms: int, limit: int, by: Principal
) -> Sequence[tuple[str, int, str]]:
    """Return at most ``limit`` skipped times of schedules, latest first: schedule name, due time and reason."""
    query = (
        select(SCHEDULE.c.name, SCHEDULE_FIRE.c.due_ms, SCHEDULE_FIRE.c.skipped)
        .join(SCHEDULE, SCHEDULE.c.id == SCHEDULE_FIRE.c.schedule_id)
        .where(SCHEDULE_FIRE.c.skipped.is_not(None), rows_seen(SCHEDULE, by))
        .where(SCHEDULE_FIRE.c.due_ms >= since_ms, SCHEDULE_FIRE.c.due_ms < until_ms)
        .order_by(SCHEDULE_FIRE.c.due_ms.desc(), SCHEDULE.c.name)
        .limit(limit)
    )
    return [(name, due_ms, skipped) for name, due_ms, skipped in connection.execute(query)]
