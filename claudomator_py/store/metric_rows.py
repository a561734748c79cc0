"""Sums over rows for metrics. Each is one query on one index, so that a hundred thousand runs cost some 0.1 s."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Float, and_, case, cast, func, select, tuple_

from claudomator_py.core.histogram import Histogram
from claudomator_py.core.units import SECOND_MS
from claudomator_py.store.tables import CLASSIFICATION, RUN, TASK, TASK_REVISION, Task

DURATION_BOUNDS_S = (1.0, 10.0, 30.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0, 28800.0)
REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class EndedRuns:
    """Ended runs of one agent that ended alike. ended_as: see ``Run``. durations in seconds.

    Tokens and dollars: as far as they are known.
    """

    agent: str
    ended_as: str
    reason: str | None
    durations: Histogram
    input_tokens: float
    output_tokens: float
    cost_usd: float


def ended_runs(connection: Connection) -> Sequence[EndedRuns]:
    """All ended runs, by agent, end and reason."""
    took_ms = RUN.c.ended_ms - RUN.c.started_ms
    at_most = [func.sum(case((took_ms <= bound * SECOND_MS, 1), else_=0)) for bound in DURATION_BOUNDS_S]
    # As floats: so many integers may not fit into one.
    sums = [
        func.coalesce(func.sum(cast(column, Float)), 0.0)
        for column in (took_ms, RUN.c.input_tokens, RUN.c.output_tokens, RUN.c.cost_usd)
    ]
    group = (RUN.c.agent, RUN.c.ended_as, RUN.c.reason)
    query = select(*group, func.count(), *sums, *at_most).where(RUN.c.ended_as.is_not(None)).group_by(*group)
    found = []
    for agent, ended_as, reason, count, took, inputs, outputs, dollars, *cumulative in connection.execute(query):
        counts = tuple(high - low for high, low in zip((*cumulative, count), (0, *cumulative), strict=True))
        durations = Histogram(DURATION_BOUNDS_S, counts, took / SECOND_MS)
        found.append(EndedRuns(agent, ended_as, reason, durations, inputs, outputs, dollars))
    return found


def live_runs(connection: Connection) -> Mapping[tuple[str, str], int]:
    """Live runs by agent and state."""
    query = select(RUN.c.agent, RUN.c.state, func.count()).where(RUN.c.live).group_by(RUN.c.agent, RUN.c.state)
    return {(agent, state): number for agent, state, number in connection.execute(query)}


def waiting(connection: Connection) -> Mapping[str, int]:
    """Waiting tasks by reason."""
    query = select(TASK.c.reason, func.count()).where(TASK.c.state == "WAITING").group_by(TASK.c.reason)
    return {reason or "": number for reason, number in connection.execute(query)}


def lanes(connection: Connection) -> Sequence[tuple[str, int, int]]:
    """The queue's lanes by the rank of their heads: name, rank of the head (epoch milliseconds), number of tasks."""
    rank = func.min(TASK.c.rank_ms)
    query = select(TASK.c.lane, rank, func.count()).where(TASK.c.state == "QUEUED").group_by(TASK.c.lane).order_by(rank)
    return [(lane, rank_ms, number) for lane, rank_ms, number in connection.execute(query)]


def lane_heads(
    connection: Connection, wanted: Sequence[tuple[str, int]]
) -> Mapping[str, tuple[Task, dict[str, object]]]:
    """The first task of each lane, with its content. wanted: lanes with the ranks of their heads."""
    query = (
        select(TASK, TASK_REVISION.c.spec)
        .join(TASK_REVISION, and_(TASK_REVISION.c.task_id == TASK.c.id, TASK_REVISION.c.revision == TASK.c.revision))
        .where(TASK.c.state == "QUEUED", tuple_(TASK.c.lane, TASK.c.rank_ms).in_(wanted))
        .order_by(TASK.c.created_ms, TASK.c.id)
    )
    heads: dict[str, tuple[Task, dict[str, object]]] = {}
    for row in connection.execute(query):
        columns = dict(row._mapping)
        spec = columns.pop("spec")
        heads.setdefault(columns["lane"], (Task(**columns), spec))
    return heads


def answers(connection: Connection) -> Mapping[tuple[str, str], int]:
    """Answered questions for a tier, by source and cause; the cause is empty where there is none."""
    group = (CLASSIFICATION.c.source, CLASSIFICATION.c.cause)
    query = select(*group, func.count()).where(CLASSIFICATION.c.source.is_not(None)).group_by(*group)
    return {(source, cause or ""): number for source, cause, number in connection.execute(query)}
