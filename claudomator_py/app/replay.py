"""Recorded decisions, decided again beside the daemon: from the same snapshots, and under another configuration.

Nothing is written. Placements follow from their snapshots alone. What the policy says of a task, and who would do it,
follows from the task, the cards and a configuration, and is decided for both configurations.
"""

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

import numpy as np
from sqlalchemy import Connection

from claudomator_py.app.configured import agents_of, rules_of
from claudomator_py.dispatch.policing import found_here, judged_by_words
from claudomator_py.domain.budget import Spending
from claudomator_py.domain.card import Card
from claudomator_py.domain.encoder import Encoder
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.units import format_instant
from claudomator_py.domain.views.replay import ChangeView, CostView, DifferenceView, OtherView, ReplayView, ShareView
from claudomator_py.embed.hashed import Hashed
from claudomator_py.policy.facts import Facts
from claudomator_py.policy.verdict import Policy, with_built_in
from claudomator_py.routing.calibration import calibration_for
from claudomator_py.routing.evaluation import evaluate
from claudomator_py.routing.labelled_set import Case
from claudomator_py.routing.profile import Request
from claudomator_py.scheduler.decision import Chosen, DecisionKind, DecisionRecord, ShadowRecord
from claudomator_py.scheduler.replay import decided_again, first_difference, under
from claudomator_py.scheduler.snapshot import Snapshot
from claudomator_py.schema.routing_settings import EncoderSettings
from claudomator_py.schema.settings import Settings
from claudomator_py.store import decision_log, decision_rows, run_rows, specialist_rows, task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Decision

AT_ONCE = 500
MOST_SHOWN = 20
"""Differences that are listed; the first."""
_Z = 1.959964
"""Of a 95% interval."""
_RESAMPLES = 1_000
_SEED = 0

_Pair = tuple[str, str]
"""What the configuration in force decides, and what the other one does."""
_Place = tuple[str, str]
"""The name of an agent, and a tier."""

Opened = Callable[[EncoderSettings], AbstractContextManager[Encoder]]


@dataclass(frozen=True, slots=True)
class Window:
    """From when until when, in epoch milliseconds; None: from the first, or to the last."""

    since_ms: int | None = None
    until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class _Placed:
    """A placement with what is decided now. other: under the other configuration; None: it would not start then."""

    row: Decision
    stored: DecisionRecord
    again: DecisionRecord | None
    other: DecisionRecord | None


class Replay:
    """Decides again what a database has. own, other: the configurations; None: there is no other."""

    def __init__(self, database: Database, own: Settings, other: Settings | None, opened: Opened) -> None:
        """opened: an encoder of these settings."""
        self._database = database
        self._own = own
        self._other = other
        self._opened = opened

    def run(self, window: Window) -> ReplayView:
        """Raises StoreUnavailable."""
        identical, number, gone = 0, 0, 0
        differing: list[DifferenceView] = []
        placed: list[_Placed] = []
        for one in self._placements(window):
            number += 1
            if one is None:
                gone += 1
                continue
            at = _difference(one)
            identical += at is None
            if at is not None and len(differing) < MOST_SHOWN:
                differing.append(DifferenceView.of(one.row, decision_id=one.row.id, decided_at=one.row.at_ms, at=at))
            if self._other is not None:
                placed.append(one)
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
        """Those of the window, oldest first; None for one without its snapshot."""
        rules = None if self._other is None else rules_of(self._other)
        agents = None if self._other is None else agents_of(self._other)
        after: tuple[int, str] | None = None
        known: dict[str, tuple[Mapping[str, DecisionRecord], Mapping[str, DecisionRecord]] | None] = {}
        while True:
            rows = self._database.read(
                partial(
                    decision_log.of_kind,
                    kind=DecisionKind.PLACEMENT,
                    since_ms=window.since_ms,
                    until_ms=window.until_ms,
                    after=after,
                    limit=AT_ONCE,
                )
            )
            if not rows:
                return
            after = rows[-1].at_ms, rows[-1].id
            for row in rows:
                digest = row.snapshot_hash or ""
                if digest not in known:
                    # Of one tick come a few decisions, one after the other.
                    known = {digest: None}
                    data = self._database.read(partial(decision_rows.snapshot, digest=digest))
                    if data is not None:
                        seen = Snapshot.model_validate(data)
                        other = {} if rules is None else decided_again(under(seen, agents, rules))
                        known[digest] = decided_again(seen), other
                found, stored = known[digest], DecisionRecord.model_validate(row.data)
                task_id = row.task_id or ""
                yield None if found is None else _Placed(row, stored, found[0].get(task_id), found[1].get(task_id))

    def _compared(self, placed: Sequence[_Placed], other: Settings, window: Window) -> OtherView:
        tasks = self._tasks(window)
        return _other_view(
            [(_place(one.stored), None if one.other is None else _place(one.other)) for one in placed],
            [(_verdict(self._own, facts), _verdict(other, facts)) for facts in tasks],
            self._routes(tasks, other),
            len(tasks),
            self._database.read(run_rows.mean_costs),
        )

    def _tasks(self, window: Window) -> list[Facts]:
        """The tasks of the window as rules see them, each with its last content in it."""

        def read(connection: Connection) -> list[Facts]:
            found = []
            for task_id, at_ms in decision_log.tasks_of(connection, window.since_ms, window.until_ms):
                task = task_rows.find(connection, task_id)
                if task is None:
                    continue
                spec = task_rows.spec_of(connection, task.id, task.revision)
                own = task.creator == OPERATOR.id
                maker = OPERATOR if own else Principal(task.creator, Role.OPERATE, task.organisation)
                found.append(Facts(spec, maker, task.source, spec.specialist, spec.skill, now_ms=at_ms))
            return found

        return self._database.read(read)

    def _routes(self, tasks: Sequence[Facts], other: Settings) -> list[_Pair]:
        if not tasks or not (self._own.routing.enabled and other.routing.enabled):
            return []
        mine, theirs = self._specialists(tasks, self._own), self._specialists(tasks, other)
        return list(zip(mine, theirs, strict=True))

    def _specialists(self, tasks: Sequence[Facts], settings: Settings) -> list[str]:
        """To whom each goes, or which way, as if its maker saw every card."""
        cards = self._database.read(_cards)
        cases = [Case(str(number), Request.of(facts.spec)) for number, facts in enumerate(tasks)]
        with self._opened(settings.routing.encoder) as encoder:
            calibration = calibration_for(settings.routing.preset, encoder.id)
            _, records = evaluate(cards, cases, encoder, calibration, time.perf_counter_ns, Hashed())
        return [
            facts.spec.specialist or record.specialist or record.route.value
            for facts, record in zip(tasks, records, strict=True)
        ]


def shadowed(database: Database, window: Window) -> OtherView:
    """What the shadow configuration has decided otherwise in the window, by what was recorded of it; of several, the
    last one. Raises StoreUnavailable."""

    def read(connection: Connection) -> tuple[Sequence[ShadowRecord], Mapping[_Place, float]]:
        newest = decision_log.newest_shadow(connection, window.since_ms, window.until_ms)
        configuration = None if newest is None else ShadowRecord.model_validate(newest.data).versions.configuration
        return list(_shadows(connection, window, configuration)), run_rows.mean_costs(connection)

    records, means = database.read(read)
    placed = [one for one in records if one.about is DecisionKind.PLACEMENT]
    routed = [one for one in records if one.about is DecisionKind.SPECIALIST]
    return _other_view(
        [(_place(one.actual), None if one.agent is None else _place(one)) for one in placed],
        [(_said(one.actual), _said(one)) for one in routed],
        [(_way(one.actual), _way(one)) for one in routed],
        len(routed),
        means,
    )


def _shadows(connection: Connection, window: Window, configuration: str | None) -> Iterator[ShadowRecord]:
    """Those of that configuration, oldest first."""
    after: decision_log.Position | None = None
    while rows := decision_log.of_kind(
        connection, DecisionKind.SHADOW, window.since_ms, window.until_ms, after, AT_ONCE
    ):
        after = rows[-1].at_ms, rows[-1].id
        records = (ShadowRecord.model_validate(row.data) for row in rows)
        yield from (one for one in records if one.versions.configuration == configuration)


def _place(chosen: DecisionRecord | Chosen) -> _Place:
    return chosen.agent or "", "" if chosen.tier is None else chosen.tier.value


def _said(chosen: Chosen) -> str:
    return "" if chosen.verdict is None else chosen.verdict.value


def _way(chosen: Chosen) -> str:
    return chosen.specialist or ("" if chosen.route is None else chosen.route.value)


def _other_view(
    placed: Sequence[tuple[_Place, _Place | None]],
    verdicts: Sequence[_Pair],
    routes: Sequence[_Pair],
    tasks: int,
    means: Mapping[_Place, float],
) -> OtherView:
    """What differs. placed: where each run started, and where it would have; None: nowhere in that tick."""
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
    """So many of a total, with the interval of the share."""
    low, high = wilson(number, total)
    return ShareView(number=number, total=total, share=number / total if total else 0.0, low=low, high=high)


def wilson(number: int, total: int) -> tuple[float, float]:
    """The 95% interval of a share, 0 to 1, by Wilson's score; all of it where there is nothing to go by."""
    if total == 0:
        return 0.0, 1.0
    p, square = number / total, _Z * _Z
    middle = p + square / (2 * total)
    spread = _Z * math.sqrt(p * (1 - p) / total + square / (4 * total * total))
    low, high = ((middle + sign * spread) / (1 + square / total) for sign in (-1, 1))
    return max(0.0, low), min(1.0, high)


def _cards(connection: Connection) -> list[Card]:
    return list(specialist_rows.cards(connection, specialist_rows.ids_seen(connection)).values())


def bootstrap(differences: Sequence[float]) -> tuple[float, float]:
    """The 95% interval of the sum of these, by the percentiles of sums over resamples."""
    values, counts = np.unique(np.asarray(differences), return_counts=True)
    drawn = np.random.default_rng(_SEED).multinomial(len(differences), counts / counts.sum(), size=_RESAMPLES)
    low, high = np.percentile(drawn @ values, (2.5, 97.5))
    return float(low), float(high)


def _difference(one: _Placed) -> str | None:
    if one.again is None:
        return "it does not start in that tick"
    stored, again = (_canonical(record) for record in (one.stored, one.again))
    return None if stored == again else first_difference(json.loads(stored), json.loads(again)) or "its form"


def _canonical(record: DecisionRecord) -> str:
    return json.dumps(record.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))


def _verdict(settings: Settings, facts: Facts) -> str:
    seen, judged = judged_by_words(facts, settings.agents.values())
    verdict = Policy(settings.policy).judge(found_here(seen, settings.budget, Spending(), facts.now_ms))
    verdict = with_built_in(verdict, harmful=judged.harmful, reviews=settings.routing.enabled, words=judged.words)
    return verdict.shown(facts.spec.name).verdict


def _changes(counted: Counter[tuple[str, str]]) -> tuple[ChangeView, ...]:
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return tuple(ChangeView(before=before, after=after, number=number) for (before, after), number in ordered)
