"""A span of time as lanes and figures, from rows."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from datetime import date, datetime, time, timedelta, tzinfo
from itertools import accumulate
from math import ceil
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from claudomator_py.domain.host import LOCAL
from claudomator_py.domain.outcome import OutcomeStatus
from claudomator_py.domain.units import MINUTE_MS, SECOND_MS
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.ports import Clock
from claudomator_py.resources.session import Service, reading
from claudomator_py.store import report_rows
from claudomator_py.store.connections import Unchanged
from claudomator_py.store.report_rows import DrawnHold, DrawnRun
from claudomator_py.store.visibility import representative
from claudomator_py.values import dataclass

BINS = 60
"""The number of parts of the span, in figures over time."""
DONE = OutcomeStatus.SUCCEEDED.value
LIMITED = OutcomeStatus.LIMITED.value
MAX_KEPT = 10_000
"""The most runs of a picture that are cached for when it is asked for again."""
RUNNING = "running"
"""How a live run is counted."""
UNDONE = (OutcomeStatus.FAILED.value, OutcomeStatus.LOST.value)


@dataclass(frozen=True, slots=True)
class Lane:
    """An agent on one host."""

    agent: str
    """Its name, and the host if that is not this machine: ``claude on cluster``."""
    runs: Sequence[DrawnRun]
    """By their start."""
    holds: Sequence[DrawnHold]
    counts: Mapping[str, int]
    """Runs by how they ended; live ones are ``running``."""
    busy_ms: int
    """The total time of its runs within the span."""
    cost_usd: float | None
    """Of its runs that ended; None: none reported it."""
    unpriced: int
    """Ended runs that reported no cost, except those that a limit ended before they did anything."""


@dataclass(frozen=True, slots=True)
class Bin:
    """A part of the span."""

    begin_ms: int
    running: int
    """The most runs that were live in it at once."""
    done: int
    """Runs that succeeded in it."""
    failed: int
    """Runs that failed in it, or were lost."""
    open: int
    """Tasks that were accepted and had not ended at its end."""


@dataclass(frozen=True, slots=True)
class DayTotal:
    """The totals of an agent's runs that started on a day."""

    day: date
    agent: str
    runs: int
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class Night:
    """A span of time."""

    since_ms: int
    until_ms: int
    zone: ZoneInfo
    lanes: Sequence[Lane]
    """Configured agents first, then others that had runs, by name."""
    bins: Sequence[Bin]
    starts: Sequence[int]
    """When daemons started, in epoch milliseconds; empty for a caller who does not see everything."""
    days: Sequence[DayTotal]
    has_earlier: bool = False
    """Whether anything ran before."""


class Days:
    """The days of instants, which are mostly those of the instant before. Not for use by several threads."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone
        self._day = date.min
        self._begin_ms = self._end_ms = 0

    def of(self, at_ms: int) -> date:
        """Return the day of an instant, in epoch milliseconds."""
        if not self._begin_ms <= at_ms < self._end_ms:
            self._day = datetime.fromtimestamp(at_ms / SECOND_MS, self._zone).date()
            self._begin_ms, self._end_ms = (
                round(datetime.combine(day, time.min, self._zone).timestamp() * SECOND_MS)
                for day in (self._day, self._day + timedelta(days=1))
            )
        return self._day


@dataclass(eq=False, repr=False)
class Nights(Service):
    """The service of the night's picture."""

    registry: AgentRegistry
    clock: Clock
    zone: Callable[[], ZoneInfo]
    """Returns the operator's time zone, which days are counted in."""
    host_of: Callable[[str], str]
    """Returns the host of a run."""
    _unchanged: Unchanged = field(default_factory=lambda: Unchanged(most=2), init=False)

    @reading()
    def names(self, connection: Connection, task_ids: Collection[str]) -> Mapping[str, str]:
        """Return the names of tasks by id, without those that no longer exist."""
        return report_rows.task_names(connection, task_ids, self._by)

    def night(self, since_ms: int, until_ms: int) -> Night:
        """Return the span, which must not be empty."""
        # Whole minutes, so that the cached runs also serve a little later.
        begin_ms, end_ms = since_ms - since_ms % MINUTE_MS, until_ms - until_ms % -MINUTE_MS
        width_ms = max(1, ceil((until_ms - since_ms) / BINS))
        rows, holds, starts, has_earlier, open_tasks = self._read(
            lambda connection: (
                self._unchanged.read(
                    connection,
                    (representative(self._by), begin_ms, end_ms),
                    lambda: report_rows.runs(connection, begin_ms, end_ms, self._by),
                    lambda runs: len(runs) <= MAX_KEPT,
                ),
                report_rows.holds(connection, since_ms, until_ms),
                report_rows.starts(connection, since_ms, until_ms) if self._by.sees_all else (),
                report_rows.has_earlier(connection, since_ms, self._by),
                report_rows.open_tasks(connection, since_ms, width_ms, BINS, self._by),
            )
        )
        runs = [run for run in rows if run.started_ms < until_ms and (run.ended_ms is None or run.ended_ms >= since_ms)]
        now_ms, zone = self.clock(), self.zone()
        by_agent: dict[str, dict[str, list[DrawnRun]]] = defaultdict(lambda: defaultdict(list))
        host_of = self.host_of
        for run in runs:
            by_agent[run.agent][host_of(run.id)].append(run)
        known = {agent.name: agent for agent in self.registry.agents if agent.specialist is None}
        names = sorted(known) + sorted(by_agent.keys() - known.keys())
        lanes = []
        for name in names:
            agent = known.get(name)
            own = (
                []
                if agent is None
                else [hold for hold in holds if hold.bucket.is_of(name, agent.kind, agent.quota_account)]
            )
            on = by_agent[name] or {LOCAL: []}
            for host in sorted(on, key=lambda host: (host != LOCAL, host)):
                title = name if host == LOCAL else f"{name} on {host}"
                lanes.append(_lane(title, on[host], own, since_ms, min(until_ms, now_ms)))
        return Night(
            since_ms,
            until_ms,
            zone,
            lanes,
            _bins(runs, open_tasks, since_ms, until_ms, now_ms),
            starts,
            _days(runs, zone),
            has_earlier,
        )


def _lane(name: str, runs: Sequence[DrawnRun], holds: Sequence[DrawnHold], since_ms: int, end_ms: int) -> Lane:
    costs = [run.cost_usd for run in runs if run.cost_usd is not None]
    counts = Counter([run.ended_as or RUNNING for run in runs])
    unpriced = sum([run.cost_usd is None and run.ended_as not in (None, LIMITED) for run in runs])
    busy_ms = 0
    for run in runs:  # thousands, for which calls of `min` and `max` cost as much as the rest of the lane
        begin_ms, until_ms = run.started_ms, run.ended_ms
        if begin_ms < since_ms:
            begin_ms = since_ms
        if until_ms is None or until_ms > end_ms:
            until_ms = end_ms
        if until_ms > begin_ms:
            busy_ms += until_ms - begin_ms
    return Lane(name, runs, holds, counts, busy_ms, sum(costs) if costs else None, unpriced)


def _bins(
    runs: Sequence[DrawnRun], open_tasks: Sequence[int], since_ms: int, until_ms: int, now_ms: int
) -> Sequence[Bin]:
    width = (until_ms - since_ms) / BINS
    done, failed = ([0] * (BINS + 1) for _ in range(2))  # the last one is for what comes afterwards
    edges: list[int] = []
    for run in runs:
        begin_ms, end_ms = run.started_ms, run.ended_ms
        if end_ms is None:
            end_ms = now_ms + 1
        elif end_ms < until_ms:
            place = int((end_ms - since_ms) // width)
            done[place] += run.ended_as == DONE
            failed[place] += run.ended_as in UNDONE
        # Doubled, so that at the same moment ends count before starts.
        edges.append(begin_ms * 2 + 1)
        edges.append((end_ms if end_ms > begin_ms else begin_ms + 1) * 2)
    edges.sort()
    running = list(accumulate([1 if edge & 1 else -1 for edge in edges], initial=0))
    columns = []
    for place in range(BINS):
        begin = since_ms + place * width
        first, after = bisect_right(edges, 2 * begin + 1), bisect_left(edges, 2 * (begin + width))
        most = max(running[first : after + 1])
        columns.append(Bin(round(begin), most, done[place], failed[place], open_tasks[place]))
    return columns


def _days(runs: Sequence[DrawnRun], zone: ZoneInfo) -> Sequence[DayTotal]:
    runs_by_day: dict[tuple[date, str], list[float | None]] = defaultdict(list)
    days = Days(zone)
    for run in runs:
        runs_by_day[days.of(run.started_ms), run.agent].append(run.cost_usd)
    totals = []
    for (day, agent), of_day in sorted(runs_by_day.items()):
        costs = [cost for cost in of_day if cost is not None]
        totals.append(DayTotal(day, agent, len(of_day), sum(costs) if costs else None))
    return totals
