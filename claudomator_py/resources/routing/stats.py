"""Computes figures on routing: by specialist and topic, the gaps that nobody covers well, and the effect of each
signal."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import field

from sqlalchemy import Connection

from claudomator_py.domain.learning import LabelVerdict
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import DAY_MS, format_instant
from claudomator_py.resources.routing import (
    CorrectionView,
    CreatorFeesView,
    ExpectedView,
    LabelledTasksView,
    LabelledTaskView,
    LearnedView,
    RoutingFiguresView,
    RoutingGapView,
    RoutingSignalView,
    RoutingStatsView,
    StandingView,
)
from claudomator_py.scheduler.records import Route, SpecialistCandidate, SpecialistRecord
from claudomator_py.store import hold_rows, learning_rows, specialist_rows, spending_rows
from claudomator_py.store.learning_rows import Labelled, SpecialistFigures
from claudomator_py.store.stored_json import readable
from claudomator_py.tasks.learning import FROZEN
from claudomator_py.values import dataclass

SAMPLE = 1_000
"""Number of decisions that are examined individually."""
MAX_GAPS = 10
MAX_NAMED = 3
"""Number of tasks that a gap names."""
TIE_BREAK = "tie_break"
_DIGITS = 4


def stats(connection: Connection, by: Principal, days: int, now_ms: int) -> RoutingStatsView:
    """Return figures on the decisions of the last days on tasks that the principal can see. Hidden specialists count as
    none."""
    since_ms = now_ms - days * DAY_MS
    seen = frozenset(specialist_rows.ids_seen(connection, by))
    skills = None if by.sees_all else specialist_rows.skills_seen(connection, by)
    figures = learning_rows.figures(connection, since_ms, by.organisation)
    known = _performance(connection, by)
    by_specialist, by_topic = (
        defaultdict[str | None, list[SpecialistFigures]](list),
        defaultdict[str, list[SpecialistFigures]](list),
    )
    for row in figures:
        by_specialist[row.specialist if row.specialist in seen else None].append(row)
        if row.topic is not None and (skills is None or row.topic in skills):
            by_topic[row.topic].append(row)
    specialists = [_figures(rows, specialist=name, performance=known.get(name)) for name, rows in by_specialist.items()]
    topics = [_figures(rows, topic=topic) for topic, rows in by_topic.items()]
    sample = learning_rows.compared(connection, since_ms, by.organisation, SAMPLE)
    found_in = [(readable(SpecialistRecord, row.data), row) for row in sample]
    records = [(record, row) for record, row in found_in if record is not None]
    return RoutingStatsView(
        days=days,
        total=_figures(figures),
        specialists=tuple(sorted(specialists, key=lambda row: (-row.decisions, row.specialist or ""))),
        topics=tuple(sorted(topics, key=lambda row: (-row.decisions, row.topic or ""))),
        sampled=len(sample),
        gaps=tuple(_gaps(records, seen, skills)),
        signals=tuple(_signals(records)),
        fees=tuple(_fees(connection, since_ms, by)),
    )


def _fees(connection: Connection, since_ms: int, by: Principal) -> list[CreatorFeesView]:
    fees = spending_rows.fees(connection, since_ms, by)
    views = [CreatorFeesView(creator=name, runs=runs, usd=round(usd, 6)) for name, (runs, usd) in fees.items()]
    return sorted(views, key=lambda view: (-view.usd, view.creator))


def learned(connection: Connection, by: Principal) -> LearnedView:
    """Return what was learned about visible specialists from tasks that the principal can see."""
    seen = frozenset(specialist_rows.ids_seen(connection, by))
    skills = None if by.sees_all else specialist_rows.skills_seen(connection, by)
    frozen = hold_rows.find_switch(connection, FROZEN)
    return LearnedView(
        frozen_at=None if frozen is None else format_instant(frozen.since_ms),
        waiting=learning_rows.waiting(connection, by.organisation),
        standings=tuple(
            StandingView.legible(standing, topic=standing.topic or None, organisation=standing.organisation or None)
            for standing in learning_rows.standings(connection, by.organisation)
            if standing.specialist in seen
        ),
        corrections=tuple(
            CorrectionView.legible(
                correction,
                specialist=correction.specialist if correction.specialist in seen else None,
                topic=correction.topic if skills is None or correction.topic in skills else None,
            )
            for correction in learning_rows.corrections(connection, by.organisation)
            if correction.wanted in seen
        ),
    )


def labelled(connection: Connection, by: Principal, limit: int, default: str | None) -> LabelledTasksView:
    """Return visible tasks with their right specialist, if that is visible too, newest first.

    default: the default specialist, if there is one.
    """
    seen = frozenset(specialist_rows.ids_seen(connection, by))
    row = learning_rows.with_right_specialist(connection, by.organisation, limit)
    specs = learning_rows.specs(connection, row)
    items: dict[str, LabelledTaskView] = {}
    for entry in row:
        right = entry.wanted or entry.specialist
        if right not in seen or right is None or entry.decision_id not in specs:
            continue
        spec = readable(TaskSpec, specs[entry.decision_id])
        if spec is None:
            continue
        expected = ExpectedView(route=Route.DEFAULT) if right == default else ExpectedView(specialist=right)
        view = LabelledTaskView.of(spec, id=entry.task_id, expected=expected, by=entry.rule)
        items.setdefault(entry.task_id, view)  # the newest label of a task counts
    return LabelledTasksView(items=tuple(items.values()))


def _performance(connection: Connection, by: Principal) -> Mapping[str | None, float]:
    """Return the overall performance by specialist. For a principal without an organisation, it comes from tasks
    without one."""
    rows = learning_rows.standings(connection, by.organisation or learning_rows.NO_ORGANISATION)
    return {row.specialist: round(row.performance, _DIGITS) for row in rows if not row.topic}


def _figures(
    rows: Sequence[SpecialistFigures],
    *,
    specialist: str | None = None,
    topic: str | None = None,
    performance: float | None = None,
) -> RoutingFiguresView:
    decisions = sum(row.decisions for row in rows)
    return RoutingFiguresView(
        specialist=specialist,
        topic=topic,
        decisions=decisions,
        confidence=_share(sum(row.confidence for row in rows), sum(row.compared for row in rows)),
        overridden=_share(sum(row.overridden for row in rows), decisions),
        failed=_share(sum(row.failed for row in rows), sum(row.ended for row in rows)),
        answer_chars=_share(sum(row.answer_chars for row in rows), sum(row.answers for row in rows)),
        performance=performance,
    )


def _share(part: float, whole: int) -> float | None:
    return round(part / whole, _DIGITS) if whole else None


@dataclass(slots=True)
class _Gap:
    decisions: int = 0
    confidence: float = 0.0
    tasks: list[str] = field(default_factory=list)


def _gaps(
    records: Iterable[tuple[SpecialistRecord, Labelled]], seen: Set[str], skills: Set[str] | None
) -> list[RoutingGapView]:
    """Return where the best specialist was below the threshold or several were equally good, most frequent first.
    skills: the topics that may be named; None for all."""
    gaps: dict[tuple[str | None, str | None], _Gap] = defaultdict(_Gap)
    for record, labelled in records:
        if record.route is Route.SPECIALIST or record.confidence is None:
            continue
        best = next((candidate for candidate in record.specialist_candidates if not candidate.barred), None)
        known = best is not None and best.specialist in seen
        topic = record.topic if skills is None or record.topic in skills else None
        gap = gaps[(best.specialist, topic) if best is not None and known else (None, None)]
        gap.decisions += 1
        gap.confidence += record.confidence
        if labelled.task and len(gap.tasks) < MAX_NAMED and labelled.task not in gap.tasks:
            gap.tasks.append(labelled.task)
    most = sorted(gaps.items(), key=lambda gap: (-gap[1].decisions, gap[0][0] or "", gap[0][1] or ""))[:MAX_GAPS]
    return [
        RoutingGapView(
            specialist=specialist,
            topic=topic,
            decisions=gap.decisions,
            confidence=round(gap.confidence / gap.decisions, _DIGITS),
            tasks=tuple(gap.tasks),
        )
        for (specialist, topic), gap in most
    ]


def _signals(records: Iterable[tuple[SpecialistRecord, Labelled]]) -> list[RoutingSignalView]:
    """Return the effect of each signal: what the decisions would have been without it."""
    had, decided, right, wrong = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for record, labelled in records:
        open_ = [candidate for candidate in record.specialist_candidates if not candidate.barred]
        if record.route is not Route.SPECIALIST or not open_:
            continue
        for signal in _having_a_part(open_):
            had[signal] += 1
            without = _without(signal, open_, record.threshold or 0.0)
            if without == record.specialist:
                continue
            decided[signal] += 1
            right[signal] += labelled.verdict == LabelVerdict.POSITIVE
            wrong[signal] += labelled.wanted is not None and labelled.wanted == without
    return [
        RoutingSignalView(
            signal=signal, decisions=had[signal], decided=decided[signal], right=right[signal], wrong=wrong[signal]
        )
        for signal in sorted(had)
    ]


def _having_a_part(open_: Sequence[SpecialistCandidate]) -> list[str]:
    parts = {name for candidate in open_ for name, value in candidate.parts.items() if value}
    return sorted(parts | ({TIE_BREAK} if any(candidate.tie_break for candidate in open_) else set()))


def _without(signal: str, open_: Sequence[SpecialistCandidate], threshold: float) -> str | None:
    """Return the specialist with the best score without the signal; None if that is below the threshold."""
    scores = {candidate.specialist: candidate.score - candidate.parts.get(signal, 0.0) for candidate in open_}
    best = min(scores, key=lambda name: (-round(scores[name], 6), name))
    return best if scores[best] >= threshold else None
