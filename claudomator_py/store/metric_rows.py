"""Sums over rows for metrics. Each is one query on one index, about 0.1 s for a hundred thousand runs.

Rows removed by retention stay in the sums, because Prometheus takes a falling counter for a restart.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Float, and_, case, cast, func, select, text

from claudomator_py.domain.units import SECOND_MS, Histogram
from claudomator_py.scheduler.load import Taken
from claudomator_py.store import remembered
from claudomator_py.store.tables import CLASSIFICATION, RUN, TASK
from claudomator_py.values import dataclass

DURATION_BOUNDS_S = (1.0, 10.0, 30.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0, 28800.0)
REVOKED = "revoked"
_RUNS = "runs"
_ANSWERS = "answers"


@dataclass(frozen=True, slots=True)
class QueuedTasks:
    """A number of queued tasks that wait for the same thing."""

    lane: str
    dir_key: str
    """The directory they need if it is taken, else empty."""
    thread: str
    """The thread they need if it is taken, else empty."""
    task_id: str
    """The task, if a directory or thread is reserved for it, else empty."""
    number: int


@dataclass(frozen=True, slots=True)
class EndedRuns:
    """Ended runs of one agent with the same end and reason. Unknown tokens and dollars count as 0."""

    agent: str
    ended_as: str
    """Their status, or ``revoked``; see ``store.tables.Run``."""
    reason: str | None
    durations: Histogram
    """In seconds."""
    input_tokens: float
    output_tokens: float
    cost_usd: float

    @property
    def group(self) -> tuple[str, str, str | None]:
        """Agent, end and reason."""
        return self.agent, self.ended_as, self.reason

    def merged(self, other: "EndedRuns") -> "EndedRuns":
        """Return the sum of both."""
        return EndedRuns(
            *self.group,
            self.durations.merged(other.durations),
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost_usd + other.cost_usd,
        )


def ended_runs(connection: Connection) -> Sequence[EndedRuns]:
    """Return all runs that ever ended, by agent, end and reason."""
    return _merged([*_sums(connection, RUN.c.ended_as.is_not(None)), *_remembered_runs(connection)])


def remember_runs(connection: Connection, run_ids: Collection[str]) -> None:
    """Add these ended runs, whose rows are removed in this transaction, to the stored sums."""
    leaving = _sums(connection, and_(RUN.c.ended_as.is_not(None), RUN.c.id.in_(run_ids)))
    kept = _merged([*_remembered_runs(connection), *leaving])
    remembered.keep(connection, _RUNS, {"ended": [_as_json(runs) for runs in kept]})


def _merged(parts: Sequence[EndedRuns]) -> Sequence[EndedRuns]:
    counts: dict[tuple[str, str, str | None], EndedRuns] = {}
    for part in parts:
        before = counts.get(part.group)
        counts[part.group] = part if before is None else before.merged(part)
    return list(counts.values())


def _as_json(runs: EndedRuns) -> dict[str, Any]:
    return {
        "group": list(runs.group),
        "bounds": list(runs.durations.bounds),
        "counts": list(runs.durations.counts),
        "seconds": runs.durations.total,
        "used": [runs.input_tokens, runs.output_tokens, runs.cost_usd],
    }


def _remembered_runs(connection: Connection) -> Sequence[EndedRuns]:
    runs = []
    for entry in remembered.find(connection, _RUNS).get("ended", []):
        counts = [0] * (len(DURATION_BOUNDS_S) + 1)
        # An earlier version may have stored other bounds.
        for bound, count in zip((*entry["bounds"], float("inf")), entry["counts"], strict=True):
            counts[bisect_left(DURATION_BOUNDS_S, bound)] += count
        durations = Histogram(DURATION_BOUNDS_S, tuple(counts), entry["seconds"])
        agent, ended_as, reason = entry["group"]
        runs.append(EndedRuns(agent, ended_as, reason, durations, *entry["used"]))
    return runs


def _sums(connection: Connection, wanted: ColumnElement[bool]) -> Sequence[EndedRuns]:
    took_ms = RUN.c.ended_ms - RUN.c.started_ms
    at_most = [func.sum(case((took_ms <= bound * SECOND_MS, 1), else_=0)) for bound in DURATION_BOUNDS_S]
    # As floats, because sums of integers could overflow.
    sums = [
        func.coalesce(func.sum(cast(column, Float)), 0.0)
        for column in (took_ms, RUN.c.input_tokens, RUN.c.output_tokens, RUN.c.cost_usd)
    ]
    group = (RUN.c.agent, RUN.c.ended_as, RUN.c.reason)
    query = select(*group, func.count(), *sums, *at_most).where(wanted).group_by(*group)
    rows = []
    for agent, ended_as, reason, count, took, inputs, outputs, dollars, *cumulative in connection.execute(query):
        counts = tuple(high - low for high, low in zip((*cumulative, count), (0, *cumulative), strict=True))
        durations = Histogram(DURATION_BOUNDS_S, counts, took / SECOND_MS)
        rows.append(EndedRuns(agent, ended_as, reason, durations, inputs, outputs, dollars))
    return rows


def live_runs(connection: Connection) -> Mapping[tuple[str, str], int]:
    """Return the number of live runs by agent and state."""
    query = select(RUN.c.agent, RUN.c.state, func.count()).where(RUN.c.live).group_by(RUN.c.agent, RUN.c.state)
    return {(agent, state): number for agent, state, number in connection.execute(query)}


def waiting(connection: Connection) -> Mapping[str, int]:
    """Return the number of waiting tasks by reason."""
    query = select(TASK.c.reason, func.count()).where(TASK.c.state == "WAITING").group_by(TASK.c.reason)
    return {reason or "": number for reason, number in connection.execute(query)}


def queued(connection: Connection, taken: Taken) -> Sequence[QueuedTasks]:
    """Return the queued tasks, grouped by what they wait for. taken: directories and threads in use."""
    exclusive = func.coalesce(TASK.c.thread, TASK.c.id)
    # The labels must differ from columns' names, by which PostgreSQL would group.
    place = case((TASK.c.dir_key.in_(sorted(taken.dir_keys)), TASK.c.dir_key), else_="").label("taken_place")
    thread = case((exclusive.in_(sorted(taken.threads)), exclusive), else_="").label("taken_thread")
    holder = case((TASK.c.id.in_(sorted(taken.keepers | taken.in_turn)), TASK.c.id), else_="").label("holder")
    query = select(TASK.c.lane, place, thread, holder, func.count()).where(TASK.c.state == "QUEUED")
    query = query.group_by(TASK.c.lane, text("taken_place"), text("taken_thread"), text("holder"))
    return [QueuedTasks(str(lane), *rest) for lane, *rest in connection.execute(query)]


def answers(connection: Connection) -> Mapping[tuple[str, str], int]:
    """Return the number of all questions about tiers ever answered, by source and cause; an empty cause for none."""
    return _counted(connection, CLASSIFICATION.c.source.is_not(None))


def remember_answers(connection: Connection, task_ids: Collection[str]) -> None:
    """Add the answers for these tasks, whose rows are removed in this transaction, to the stored numbers."""
    leaving = _counted(connection, and_(CLASSIFICATION.c.source.is_not(None), CLASSIFICATION.c.task_id.in_(task_ids)))
    counts = [[source, cause, number] for (source, cause), number in leaving.items()]
    remembered.keep(connection, _ANSWERS, {"counts": counts})


def _counted(connection: Connection, wanted: ColumnElement[bool]) -> dict[tuple[str, str], int]:
    """Return the number of the wanted rows by source and cause, added to the stored numbers."""
    group = (CLASSIFICATION.c.source, CLASSIFICATION.c.cause)
    query = select(*group, func.count()).where(wanted).group_by(*group)
    counted = {(source, cause or ""): number for source, cause, number in connection.execute(query)}
    for source, cause, number in remembered.find(connection, _ANSWERS).get("counts", []):
        counted[source, cause] = counted.get((source, cause), 0) + number
    return counted
