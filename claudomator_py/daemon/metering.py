"""Metrics for monitoring: totals computed from rows on request, plus what only this process knows."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field

from sqlalchemy import Connection

from claudomator_py.daemon.loop import Ticks
from claudomator_py.dispatch.observe import Observer
from claudomator_py.domain.blocked import WAITS, BlockCode, Blocked, Why
from claudomator_py.domain.budget import WindowUse
from claudomator_py.domain.health import CheckView
from claudomator_py.domain.host import HostView
from claudomator_py.domain.lifecycle import StateName
from claudomator_py.domain.units import Histogram
from claudomator_py.faults import ItemFault
from claudomator_py.ports import Clock
from claudomator_py.scheduler.admission import admit
from claudomator_py.scheduler.load import load_of
from claudomator_py.scheduler.snapshot import AgentState, Snapshot
from claudomator_py.store import metric_rows, queue, reads, spending_rows, task_rows
from claudomator_py.store.database import Database, or_unavailable
from claudomator_py.store.metric_rows import EndedRuns
from claudomator_py.values import dataclass

FRESH_S = 5.0
MAX_SAMPLES = 5
"""Maximum tasks examined per lane to find a readable one; all tasks of a lane wait for the same reason."""
OTHER_AGENT = "other"
BY_HAND = "operator"
"""Reason of a hold that an operator placed."""


@dataclass(frozen=True, slots=True)
class WaitCount:
    """Key under which waiting tasks are counted.

    agent: the configured agent or kind that the tasks ask for; ``other`` for any other name, empty if they name none.
    reason and code: as the API gives them for each task.
    """

    state: str
    reason: str
    agent: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """All metrics at one moment. Histograms in seconds, times in epoch milliseconds, sizes in bytes."""

    database: str
    tasks: Mapping[StateName, int]
    waits: Mapping[WaitCount, int]
    agents: Sequence[AgentState]
    slots: int
    remote_slots: int | None
    """None: remote runs share the local slots."""
    live: Mapping[tuple[str, str], int]
    """Number of runs by agent and state."""
    ended: Sequence[EndedRuns]
    holds: Mapping[tuple[str, str], int | None]
    """End of each hold in epoch milliseconds, by agent and reason; None: until released."""
    windows: Mapping[tuple[str, str, str], WindowUse]
    """Latest use of each window that has not reset yet, by kind, account and window."""
    answers: Mapping[tuple[str, str], int]
    """Number of tier questions, by source and cause."""
    ticks: Ticks
    writes: Histogram
    writes_pending: int
    refused_files: int
    free_bytes: int
    least_free_bytes: int
    checks: Mapping[str, bool]
    """Whether each readiness check passed, by name."""
    hosts: Sequence[HostView] = ()
    """The hosts as far as known without asking them; empty if there is only this machine."""
    failing: Mapping[str, int] = field(default_factory=dict)
    """Number of items that fail repeatedly, by activity."""


@dataclass(frozen=True, slots=True)
class ProcessGauges:
    """Sources of the metrics that are in no row."""

    ticks: Callable[[], Ticks]
    checks: Callable[[], Sequence[CheckView]]
    refused_files: Callable[[], int]
    free_bytes: Callable[[], int]
    least_free_bytes: Callable[[], int]
    """Threshold below which nothing is started."""
    hosts: Callable[[], Sequence[HostView]] = tuple
    faults: Callable[[], Sequence[ItemFault]] = tuple
    """Faults of single items."""


class Meter:
    """Takes measurements. Synchronous, and safe to call from many threads.

    However often it is asked, it reads the rows at most once per ``FRESH_S`` seconds.
    """

    def __init__(self, database: Database, observer: Observer, clock: Clock, around: ProcessGauges) -> None:
        self._database = database
        self._observer = observer
        self._clock = clock
        self._around = around
        self._lock = threading.Lock()
        self._last: tuple[float, Measured] | None = None

    def measure(self) -> Measured:
        """Return current metrics, at most ``FRESH_S`` seconds old. Raises Unavailable."""
        with self._lock:
            if self._last is not None and time.monotonic() - self._last[0] < FRESH_S:
                return self._last[1]
            with or_unavailable():
                checks = self._around.checks()
                measured = self._database.read(lambda connection: self._measure(connection, checks))
            self._last = time.monotonic(), measured
            return measured

    def _measure(self, connection: Connection, checks: Sequence[CheckView]) -> Measured:
        around = self._around
        present = self._observer.present(connection)
        passed: dict[str, bool] = {}
        for check in checks:
            passed[check.name] = passed.get(check.name, True) and check.ok
        return Measured(
            database=self._database.dialect,
            tasks=reads.counts(connection),
            waits=self._waits(connection, present),
            agents=present.agents,
            slots=present.rules.total,
            remote_slots=present.rules.remote,
            live=metric_rows.live_runs(connection),
            ended=metric_rows.ended_runs(connection),
            holds=_holds(present),
            windows=_windows(connection, self._observer.accounts, present.now),
            answers=metric_rows.answers(connection),
            ticks=around.ticks(),
            writes=self._database.written,
            writes_pending=self._database.pending,
            refused_files=around.refused_files(),
            free_bytes=around.free_bytes(),
            least_free_bytes=around.least_free_bytes(),
            checks=passed,
            hosts=around.hosts(),
            failing=Counter(fault.item.activity.name.lower() for fault in around.faults() if fault.lasting),
        )

    def _waits(self, connection: Connection, present: Snapshot) -> Mapping[WaitCount, int]:
        """Count waiting tasks by reason. The planner is asked for a queued task's reason once per group that waits
        for the same."""
        waits: Counter[WaitCount] = Counter()
        for reason, number in metric_rows.waiting(connection).items():
            waits[WaitCount("WAITING", reason, code=WAITS.get(reason, ""))] += number
        load = load_of(present)
        lanes = queue.all_lanes(connection)
        firsts = [task_id for lane in lanes for *_, task_id in queue.first(connection, lane, MAX_SAMPLES)]
        samples = queue.contents(connection, firsts)
        specs = [(task, task_rows.readable_spec(spec)) for task, spec in samples]
        queue_heads = self._observer.reader.heads(
            connection, [(task, spec) for task, spec in specs if spec is not None]
        )
        heads = {task.lane: queue_heads[task.id] for task, _ in reversed(samples) if task.id in queue_heads}
        faults = Counter(task.lane for task, _ in samples if task.id not in queue_heads)
        for group in metric_rows.queued(connection, load.taken(present.rules)):
            # If none of a lane's first tasks can be read, nothing in the lane starts.
            broken = group.number if group.lane not in heads else min(faults[group.lane], group.number)
            faults[group.lane] -= broken
            if broken:
                waits[WaitCount("QUEUED", Why.FAULT, code=BlockCode.FAULT)] += broken
            if (number := group.number - broken) == 0:
                continue
            place = {"task_id": group.task_id, "dir_key": group.dir_key, "thread": group.thread or None}
            head = heads[group.lane].model_copy(update=place)
            verdict = admit(head, present.agents, present.rules, load)
            asked_for = _known(head.agent_type, present)
            if isinstance(verdict, Blocked):
                waits[WaitCount("QUEUED", verdict.why, asked_for, verdict.code)] += number
            else:
                waits[WaitCount("QUEUED", Why.READY, asked_for)] += number
        return waits


def _holds(present: Snapshot) -> Mapping[tuple[str, str], int | None]:
    """End of the last hold by agent and reason, in epoch milliseconds; None: until released."""
    ends: dict[tuple[str, str], int | None] = {}
    for agent in present.agents:
        for hold in sorted((hold for hold in agent.holds if hold.room is None), key=lambda hold: hold.end):
            ends[agent.name, hold.reason.value if hold.reason is not None else BY_HAND] = hold.until
    return ends


def _windows(
    connection: Connection, accounts: Iterable[tuple[str, str]], now_ms: int
) -> Mapping[tuple[str, str, str], WindowUse]:
    return {
        (kind, account, name): use
        for kind, account in sorted(accounts)
        for name, use in spending_rows.windows(connection, kind, account).items()
        if use.resets_at > now_ms
    }


def _known(agent_type: str | None, present: Snapshot) -> str:
    """The label of an agent type: a task may ask for anything, so only configured names become labels."""
    if not agent_type:
        return ""
    return agent_type if any(agent_type in (agent.name, agent.kind) for agent in present.agents) else OTHER_AGENT
