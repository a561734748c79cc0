"""What a report sums up: runs and tasks that ended in a span of time, and times of schedules that made no task."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, literal_column, select

from claudomator_py.domain.lifecycle import StateName
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.units import DAY_MS
from claudomator_py.store.stored_json import sound
from claudomator_py.store.tables import RUN, SCHEDULE, SCHEDULE_FIRE, TASK, Task
from claudomator_py.store.task_rows import task_from
from claudomator_py.store.visibility import runs_seen, schedules_seen, tasks_seen
from claudomator_py.values import dataclass

MAX_RUN_MS = 30 * DAY_MS
"""A run that began earlier than this before the span is left out: there is an index of beginnings alone."""
_BEGUN = RUN.c.state != literal_column("'revoked'")
"""As the index has it."""


@dataclass(frozen=True, slots=True)
class FinishedRun:
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
    changes: Mapping[str, Any] | None
    """As ``domain.changes.RunChanges``."""


def ended_runs(connection: Connection, since_ms: int, until_ms: int, by: Principal) -> Sequence[FinishedRun]:
    """Return the runs that ended from since_ms until before until_ms and exist for that principal, in the order in
    which they ended."""
    query = (
        select(
            RUN.c.task_id,
            RUN.c.agent,
            RUN.c.ended_as,
            RUN.c.started_ms,
            RUN.c.ended_ms,
            RUN.c.cost_usd,
            RUN.c.input_tokens,
            RUN.c.output_tokens,
            RUN.c.in_vain,
            RUN.c.dir_key,
            sound(RUN.c.outcome)["changes"].label("changes"),
        )
        .where(_BEGUN, RUN.c.started_ms >= since_ms - MAX_RUN_MS, RUN.c.started_ms < until_ms)
        .where(RUN.c.ended_ms >= since_ms, RUN.c.ended_ms < until_ms, runs_seen(by))
        .order_by(RUN.c.ended_ms, RUN.c.id)
    )
    rows = (row._asdict() for row in connection.execute(query))
    return [
        FinishedRun(**row | {"changes": row["changes"] if isinstance(row["changes"], dict) else None}) for row in rows
    ]


def _ended(state: StateName, since_ms: int, until_ms: int, by: Principal) -> ColumnElement[bool]:
    since = (TASK.c.updated_ms >= since_ms) & (TASK.c.updated_ms < until_ms)
    # Written out, as the index has it.
    return (TASK.c.state == literal_column(f"'{state}'")) & since & tasks_seen(by)


def ended_tasks(connection: Connection, state: StateName, since_ms: int, until_ms: int, by: Principal) -> int:
    """Return how many tasks are in that state, have been since that time, and exist for that principal."""
    query = select(func.count()).select_from(TASK).where(_ended(state, since_ms, until_ms, by))
    return connection.execute(query).scalar_one()


def completed_ids(connection: Connection, since_ms: int, until_ms: int, by: Principal) -> frozenset[str]:
    """Return the ids of the tasks that completed in that time."""
    query = select(TASK.c.id).where(_ended("COMPLETED", since_ms, until_ms, by))
    return frozenset(connection.execute(query).scalars())


def failed_tasks(connection: Connection, since_ms: int, until_ms: int, limit: int, by: Principal) -> Sequence[Task]:
    """Return the tasks that failed in that time, the latest first, at most limit."""
    query = select(TASK).where(_ended("FAILED", since_ms, until_ms, by))
    query = query.order_by(TASK.c.updated_ms.desc(), TASK.c.id.desc()).limit(limit)
    return [task_from(row) for row in connection.execute(query)]


def skipped_times(
    connection: Connection, since_ms: int, until_ms: int, limit: int, by: Principal
) -> Sequence[tuple[str, int, str]]:
    """Return the times of schedules that were dealt with by making no task: the schedule's name, when it was due and
    why, the latest first, at most limit."""
    query = (
        select(SCHEDULE.c.name, SCHEDULE_FIRE.c.due_ms, SCHEDULE_FIRE.c.skipped)
        .join(SCHEDULE, SCHEDULE.c.id == SCHEDULE_FIRE.c.schedule_id)
        .where(SCHEDULE_FIRE.c.skipped.is_not(None), schedules_seen(by))
        .where(SCHEDULE_FIRE.c.due_ms >= since_ms, SCHEDULE_FIRE.c.due_ms < until_ms)
        .order_by(SCHEDULE_FIRE.c.due_ms.desc(), SCHEDULE.c.name)
        .limit(limit)
    )
    return [(name, due_ms, skipped) for name, due_ms, skipped in connection.execute(query)]
