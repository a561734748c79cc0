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
from claudomator_py.scheduler.decision import Route, SpecialistCandidate, SpecialistRecord
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
    found = learning_rows.figures(connection, since_ms, by.organisation)
    known = _performance(connection, by)
    by_specialist, by_topic = (
        defaultdict[str | None, list[SpecialistFigures]](list),
        defaultdict[str, list[SpecialistFigures]](list),
    )
    for one in found:
        by_specialist[one.specialist if one.specialist in seen else None].append(one)
        if one.topic is not None and (skills is None or one.topic in skills):
            by_topic[one.topic].append(one)
    specialists = [_figures(rows, specialist=name, performance=known.get(name)) for name, rows in by_specialist.items()]
    topics = [_figures(rows, topic=topic) for topic, rows in by_topic.items()]
    sample = learning_rows.compared(connection, since_ms, by.organisation, SAMPLE)
    found_in = [(readable(SpecialistRecord, one.data), one) for one in sample]
    records = [(record, one) for record, one in found_in if record is not None]
    return RoutingStatsView(
        days=days,
        total=_figures(found),
        specialists=tuple(sorted(specialists, key=lambda one: (-one.decisions, one.specialist or ""))),
        topics=tuple(sorted(topics, key=lambda one: (-one.decisions, one.topic or ""))),
        sampled=len(sample),
        gaps=tuple(_gaps(records, seen, skills)),
        signals=tuple(_signals(records)),
        fees=tuple(_fees(connection, since_ms, by)),
    )


def _fees(connection: Connection, since_ms: int, by: Principal) -> list[CreatorFeesView]:
    found = spending_rows.fees(connection, since_ms, by)
    views = [CreatorFeesView(creator=name, runs=runs, usd=round(usd, 6)) for name, (runs, usd) in found.items()]
    return sorted(views, key=lambda one: (-one.usd, one.creator))


def learned(connection: Connection, by: Principal) -> LearnedView:
    """Return what was learned about visible specialists from tasks that the principal can see."""
    seen = frozenset(specialist_rows.ids_seen(connection, by))
    skills = None if by.sees_all else specialist_rows.skills_seen(connection, by)
    frozen = hold_rows.find_switch(connection, FROZEN)
    return LearnedView(
        frozen_at=None if frozen is None else format_instant(frozen.since_ms),
        waiting=learning_rows.waiting(connection, by.organisation),
        standings=tuple(
            StandingView.of(one, topic=one.topic or None, organisation=one.organisation or None)
            for one in learning_rows.standings(connection, by.organisation)
            if one.specialist in seen
        ),
        corrections=tuple(
            CorrectionView.of(
                one,
                specialist=one.specialist if one.specialist in seen else None,
                topic=one.topic if skills is None or one.topic in skills else None,
            )
            for one in learning_rows.corrections(connection, by.organisation)
            if one.wanted in seen
        ),
    )


def labelled(connection: Connection, by: Principal, limit: int, default: str | None) -> LabelledTasksView:
    """Return visible tasks with their right specialist, if that is visible too, newest first.

    default: the default specialist, if there is one.
    """
    seen = frozenset(specialist_rows.ids_seen(connection, by))
    found = learning_rows.telling(connection, by.organisation, limit)
    specs = learning_rows.specs(connection, found)
    items: dict[str, LabelledTaskView] = {}
    for one in found:
        right = one.wanted or one.specialist
        if right not in seen or right is None or one.decision_id not in specs:
            continue
        spec = readable(TaskSpec, specs[one.decision_id])
        if spec is None:
            continue
        # The newest label of a task counts.
        items.setdefault(
            one.task_id,
            LabelledTaskView(
                id=one.task_id,
                name=spec.name,
                instructions=spec.instructions,
                tags=spec.tags,
                expected=ExpectedView(route=Route.DEFAULT) if right == default else ExpectedView(specialist=right),
                by=one.rule,
            ),
        )
    return LabelledTasksView(items=tuple(items.values()))


def _performance(connection: Connection, by: Principal) -> Mapping[str | None, float]:
    """Return the overall performance by specialist. For a principal without an organisation, it comes from tasks
    without one."""
    rows = learning_rows.standings(connection, by.organisation or learning_rows.NO_ORGANISATION)
    return {one.specialist: round(one.performance, _DIGITS) for one in rows if not one.topic}


def _figures(
    rows: Sequence[SpecialistFigures],
    *,
    specialist: str | None = None,
    topic: str | None = None,
    performance: float | None = None,
) -> RoutingFiguresView:
    decisions = sum(one.decisions for one in rows)
    return RoutingFiguresView(
        specialist=specialist,
        topic=topic,
        decisions=decisions,
        confidence=_share(sum(one.confidence for one in rows), sum(one.compared for one in rows)),
        overridden=_share(sum(one.overridden for one in rows), decisions),
        failed=_share(sum(one.failed for one in rows), sum(one.ended for one in rows)),
        answer_chars=_share(sum(one.answer_chars for one in rows), sum(one.answers for one in rows)),
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
    found: dict[tuple[str | None, str | None], _Gap] = defaultdict(_Gap)
    for record, labelled in records:
        if record.route is Route.SPECIALIST or record.confidence is None:
            continue
        best = next((one for one in record.specialist_candidates if not one.barred), None)
        known = best is not None and best.specialist in seen
        topic = record.topic if skills is None or record.topic in skills else None
        gap = found[(best.specialist, topic) if best is not None and known else (None, None)]
        gap.decisions += 1
        gap.confidence += record.confidence
        if labelled.task and len(gap.tasks) < MAX_NAMED and labelled.task not in gap.tasks:
            gap.tasks.append(labelled.task)
    most = sorted(found.items(), key=lambda one: (-one[1].decisions, one[0][0] or "", one[0][1] or ""))[:MAX_GAPS]
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
        open_ = [one for one in record.specialist_candidates if not one.barred]
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
    parts = {name for one in open_ for name, value in one.parts.items() if value}
    return sorted(parts | ({TIE_BREAK} if any(one.tie_break for one in open_) else set()))


def _without(signal: str, open_: Sequence[SpecialistCandidate], threshold: float) -> str | None:
    """Return the specialist with the best score without the signal; None if that is below the threshold."""
    scores = {one.specialist: one.score - one.parts.get(signal, 0.0) for one in open_}
    best = min(scores, key=lambda name: (-round(scores[name], 6), name))
    return best if scores[best] >= threshold else None
