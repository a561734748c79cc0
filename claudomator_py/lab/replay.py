"""Replay: decide recorded decisions again from their snapshots, and under another configuration.

Nothing is written. Placements follow from their snapshots alone. Specialists and policy verdicts are decided as the
daemon would have decided at the recorded time, and compared with the record.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from sqlalchemy import Connection

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.app.configured import Deciders, agents_of, rules_of
from claudomator_py.dispatch.alternative import FOLLOWED, Alternative, OtherConfiguration
from claudomator_py.dispatch.routing import is_reached
from claudomator_py.domain.units import format_instant
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.lab.replay_shape import (
    ChangedTaskView,
    ChangeView,
    CostView,
    DifferenceView,
    OtherView,
    ReplayView,
    ShareView,
)
from claudomator_py.ports import Clock
from claudomator_py.routing.calibration import Fitted
from claudomator_py.routing.role import agent_of
from claudomator_py.scheduler.plan import decided_again, first_difference, under
from claudomator_py.scheduler.records import Chosen, DecisionKind, DecisionRecord, ShadowRecord
from claudomator_py.scheduler.snapshot import Snapshot
from claudomator_py.schema.agent_settings import FOUND_KINDS, default_agent
from claudomator_py.schema.settings import Settings
from claudomator_py.store import decision_log, decision_rows, run_rows, specialist_rows, task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Decision, Task
from claudomator_py.values import dataclass

BATCH_SIZE = 500
MAX_SHOWN = 20
"""Differences that are listed, from the first on."""
_Z = 1.959964
"""The standard normal quantile of a 95% interval."""
_RESAMPLES = 1_000
_SEED = 0

WAITS = "waits"
"""The place of a run that would not start in that tick."""
_Place = tuple[str, str]
"""An agent's name and a tier."""


@dataclass(frozen=True, slots=True)
class Window:
    """A half-open time span in epoch milliseconds. None: unbounded."""

    since_ms: int | None = None
    until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class _Placed:
    """A recorded placement, and the same decided again under its own and the other configuration. None: no start."""

    row: Decision
    stored: DecisionRecord
    again: DecisionRecord | None
    other: DecisionRecord | None


class _RecordedTime:
    """A clock that shows the recorded time of the decision being replayed."""

    at_ms = 0

    def __call__(self) -> int:
        return self.at_ms


class Replay:
    """Replays the decisions in a database. own: the current configuration; other: one to try, if any. environ: has the
    key of the other configuration's encoder; fitted: stored calibrations by encoder."""

    def __init__(
        self,
        database: Database,
        own: Settings,
        other: Settings | None,
        environ: Mapping[str, str],
        fitted: Mapping[str, Fitted],
    ) -> None:
        self._database = database
        self._own = own
        self._other = other
        self._environ = environ
        self._fitted = fitted

    def run(self, window: Window) -> ReplayView:
        """Replay the window and compare. Raises StoreUnavailable."""
        identical, number, gone = 0, 0, 0
        differing: list[DifferenceView] = []
        placed: list[_Placed] = []
        for placement in self._placements(window):
            number += 1
            if placement is None:
                gone += 1
                continue
            at = _difference(placement)
            identical += at is None
            if at is not None and len(differing) < MAX_SHOWN:
                differing.append(
                    DifferenceView.of(
                        placement.row, decision_id=placement.row.id, decided_at=placement.row.at_ms, at=at
                    )
                )
            if self._other is not None:
                placed.append(placement)
        return ReplayView(
            since=None if window.since_ms is None else format_instant(window.since_ms),
            until=None if window.until_ms is None else format_instant(window.until_ms),
            placements=number,
            identical=identical,
            differing=tuple(differing),
            gone=gone,
            other=None if self._other is None else self._compared(placed, self._other, window),
        )

    def _placements(self, window: Window) -> Iterator[_Placed | None]:
        """Yield the placements of the window, oldest first; None for one whose snapshot is gone."""
        rules = None if self._other is None else rules_of(self._other)
        agents = None if self._other is None else agents_of(self._other)
        known: dict[str, tuple[Mapping[str, DecisionRecord], Mapping[str, DecisionRecord]] | None] = {}
        for row in _paged(lambda after: self._database.read(_page(DecisionKind.PLACEMENT, window, after))):
            digest = row.snapshot_hash or ""
            if digest not in known:
                # The decisions of a tick are adjacent, so only the last snapshot is worth caching.
                known = {digest: None}
                data = self._database.read(partial(decision_rows.snapshot, digest=digest))
                if data is not None:
                    seen = Snapshot.model_validate(data)
                    other = {} if rules is None else decided_again(under(seen, agents, rules))
                    known[digest] = decided_again(seen), other
            record, stored = known[digest], DecisionRecord.model_validate(row.data)
            task_id = row.task_id or ""
            yield None if record is None else _Placed(row, stored, record[0].get(task_id), record[1].get(task_id))

    def _compared(self, placed: Sequence[_Placed], other: Settings, window: Window) -> OtherView:
        routed, generations = self._routed(other, window)
        started = {pair.row.task_id or "": pair for pair in placed}
        tasks = self._database.read(partial(_tasks, ids=sorted({*generations, *started})))
        view = _other_view(
            [(_place(pair.stored), None if pair.other is None else _place(pair.other)) for pair in placed],
            routed.values(),
            len(generations),
            self._database.read(run_rows.mean_costs),
        )
        changed = [
            _rerouted(tasks.get(task_id), task_id, record) for task_id, record in routed.items() if record.differs
        ]
        changed += [
            _moved(tasks.get(task_id), task_id, pair)
            for task_id, pair in started.items()
            if pair.other is None or _place(pair.stored) != _place(pair.other)
        ]
        known = [task_id for task_id, task in tasks.items() if task.generation == generations.get(task_id)]
        return view.model_copy(update={"tasks": tuple(changed), "undecided": len(generations) - len(known)})

    def _routed(self, other: Settings, window: Window) -> tuple[dict[str, ShadowRecord], dict[str, int | None]]:
        """Return the other configuration's specialist and verdict for each task whose last decision can be repeated,
        and the generation that each task of the window had."""
        time_then = _RecordedTime()
        configuration = self._configuration(other, time_then)
        alternative = Alternative(self._database, configuration)
        records, generations = dict[str, ShadowRecord](), dict[str, int | None]()
        try:
            for row in self._decisions(window):
                time_then.at_ms = row.at_ms
                generations[row.task_id or ""] = row.generation
                if (record := alternative.routed(row)) is not None:
                    records[row.task_id or ""] = record
        finally:
            configuration.decider.close()
        return records, generations

    def _decisions(self, window: Window) -> Iterator[Decision]:
        """Yield the window's decisions on specialists and placements, oldest first."""
        begin = (window.since_ms or 0, "")
        read, page = self._database.read, partial(decision_log.following, kinds=FOLLOWED, limit=BATCH_SIZE)
        rows = _paged(lambda after: read(partial(page, after=after or begin)))
        yield from (row for row in rows if window.until_ms is None or row.at_ms < window.until_ms)

    def _configuration(self, other: Settings, clock: Clock) -> OtherConfiguration:
        """Build the other configuration. As in the daemon, remote specialists are agents as well."""
        usual = [default_agent(kind) for kind in FOUND_KINDS]
        agents = [*(agents_of(other) or agents_of(self._own) or usual)]
        cards = self._database.read(specialist_rows.seen)
        agents += [agent_of(card.card) for card in cards if is_reached(card)]
        registry = AgentRegistry(agents, AGENT_KINDS, "")
        return Deciders(self._environ, self._database, registry, self._fitted, clock, keeps=False).other(other)


def _paged(page: Callable[[decision_log.Position | None], Sequence[Decision]]) -> Iterator[Decision]:
    """Yield the decisions of all pages. page: returns those after a position."""
    after = None
    while rows := page(after):
        after = rows[-1].at_ms, rows[-1].id
        yield from rows


def _page(
    kind: DecisionKind, window: Window, after: decision_log.Position | None
) -> Callable[[Connection], Sequence[Decision]]:
    return lambda connection: decision_log.of_kind(
        connection, kind, window.since_ms, window.until_ms, after, BATCH_SIZE
    )


def _tasks(connection: Connection, ids: Sequence[str]) -> dict[str, Task]:
    """Return the tasks by id, without those that are gone."""
    return {task_id: task for task_id in ids if (task := task_rows.find(connection, task_id)) is not None}


def _rerouted(task: Task | None, task_id: str, record: ShadowRecord) -> ChangedTaskView:
    verdicts = _verdict_text(record.actual) != _verdict_text(record)
    wording = _verdict_text if verdicts else _way
    return ChangedTaskView(
        task_id=task_id,
        task_name=None if task is None else task.name,
        what="verdict" if verdicts else "specialist",
        before=wording(record.actual),
        after=wording(record),
        reason=record.reason.text,
    )


def _moved(task: Task | None, task_id: str, placed: _Placed) -> ChangedTaskView:
    own, other = _place(placed.stored), None if placed.other is None else _place(placed.other)
    place = 0 if other is None or own[0] != other[0] else 1
    return ChangedTaskView(
        task_id=task_id,
        task_name=None if task is None else task.name,
        what=("agent", "tier")[place],
        before=own[place],
        after=WAITS if other is None else other[place],
        reason=None if placed.other is None else placed.other.reason.text,
    )


def shadowed(database: Database, window: Window) -> OtherView:
    """Return what the window's last shadow configuration decided differently, from its recorded decisions. Raises
    StoreUnavailable."""

    def read(connection: Connection) -> tuple[Sequence[ShadowRecord], Mapping[_Place, float]]:
        newest = decision_log.newest_shadow(connection, window.since_ms, window.until_ms)
        configuration = None if newest is None else ShadowRecord.model_validate(newest.data).versions.configuration
        return list(_shadows(connection, window, configuration)), run_rows.mean_costs(connection)

    records, means = database.read(read)
    placed = [record for record in records if record.about is DecisionKind.PLACEMENT]
    routed = [record for record in records if record.about is DecisionKind.SPECIALIST]
    return _other_view(
        [(_place(record.actual), None if record.agent is None else _place(record)) for record in placed],
        routed,
        len(routed),
        means,
    )


def _shadows(connection: Connection, window: Window, configuration: str | None) -> Iterator[ShadowRecord]:
    """Yield the configuration's shadow decisions, oldest first."""
    rows = _paged(lambda after: _page(DecisionKind.SHADOW, window, after)(connection))
    records = (ShadowRecord.model_validate(row.data) for row in rows)
    yield from (record for record in records if record.versions.configuration == configuration)


def _place(chosen: DecisionRecord | Chosen) -> _Place:
    return chosen.agent or "", "" if chosen.tier is None else chosen.tier.value


def _verdict_text(chosen: Chosen) -> str:
    return "" if chosen.verdict is None else chosen.verdict.value


def _way(chosen: Chosen) -> str:
    return chosen.specialist or ("" if chosen.route is None else chosen.route.value)


def _other_view(
    placed: Sequence[tuple[_Place, _Place | None]],
    routed: Collection[ShadowRecord],
    tasks: int,
    means: Mapping[_Place, float],
) -> OtherView:
    """Summarise the differences. placed: where each run started, and where it would have; None: it would wait."""
    verdicts = [(_verdict_text(record.actual), _verdict_text(record)) for record in routed]
    routes = [(_way(record.actual), _way(record)) for record in routed]
    started = [(own, other) for own, other in placed if other is not None]
    waits = len(placed) - len(started)
    policy, who = (Counter(pair for pair in pairs if pair[0] != pair[1]) for pairs in (verdicts, routes))
    return OtherView(
        placements=share(sum(own != other for own, other in started) + waits, len(placed)),
        agents=_changes(Counter((own[0], other[0]) for own, other in started if own[0] != other[0])),
        tiers=_changes(Counter((own[1], other[1]) for own, other in started if own[1] != other[1])),
        waits=waits,
        cost=_cost(started, means),
        policy=share(policy.total(), tasks),
        verdicts=_changes(policy),
        specialists=share(who.total(), tasks),
        routes=_changes(who),
    )


def _cost(started: Sequence[tuple[_Place, _Place]], means: Mapping[_Place, float]) -> CostView | None:
    known = [(means[own], means[other]) for own, other in started if own in means and other in means]
    if not known:
        return None
    low, high = bootstrap([theirs - mine for mine, theirs in known])
    own_usd, other_usd = (math.fsum(values) for values in zip(*known, strict=True))
    return CostView(
        placements=len(known),
        own_usd=round(own_usd, 6),
        other_usd=round(other_usd, 6),
        difference_usd=round(other_usd - own_usd, 6),
        low_usd=round(low, 6),
        high_usd=round(high, 6),
    )


def share(number: int, total: int) -> ShareView:
    """Return the share ``number / total`` with its 95% interval."""
    low, high = wilson(number, total)
    return ShareView(number=number, total=total, share=number / total if total else 0.0, low=low, high=high)


def wilson(number: int, total: int) -> tuple[float, float]:
    """Return the 95% Wilson score interval of a share, within 0 to 1; all of that if the total is 0."""
    if total == 0:
        return 0.0, 1.0
    p, square = number / total, _Z * _Z
    middle = p + square / (2 * total)
    spread = _Z * math.sqrt(p * (1 - p) / total + square / (4 * total * total))
    low, high = ((middle + sign * spread) / (1 + square / total) for sign in (-1, 1))
    return max(0.0, low), min(1.0, high)


def bootstrap(differences: Sequence[float]) -> tuple[float, float]:
    """Return the 95% percentile bootstrap interval of the sum, with a fixed seed."""
    values, counts = np.unique(np.asarray(differences), return_counts=True)
    drawn = np.random.default_rng(_SEED).multinomial(len(differences), counts / counts.sum(), size=_RESAMPLES)
    low, high = np.percentile(drawn @ values, (2.5, 97.5))
    return float(low), float(high)


def _difference(pair: _Placed) -> str | None:
    if pair.again is None:
        return "it does not start in that tick"
    stored, again = (_canonical(record) for record in (pair.stored, pair.again))
    return None if stored == again else first_difference(json.loads(stored), json.loads(again)) or "its form"


def _canonical(record: DecisionRecord) -> str:
    return json.dumps(record.model_dump(mode="json", exclude={"given"}), sort_keys=True, separators=(",", ":"))


def _changes(counted: Counter[tuple[str, str]]) -> tuple[ChangeView, ...]:
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return tuple(ChangeView(before=before, after=after, number=number) for (before, after), number in ordered)
