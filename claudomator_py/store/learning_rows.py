"""Rows of learning: labels of decisions, and specialists' standings, each for one organisation."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, bindparam, case, delete, func, insert, select, update

from claudomator_py.domain.learning import LabelRule, LabelVerdict
from claudomator_py.scheduler.records import DecisionKind
from claudomator_py.store import remembered
from claudomator_py.store.statement import Selection, Statement
from claudomator_py.store.tables import DECISION, LABEL, STANDING, TASK, TASK_REVISION, Label, Standing
from claudomator_py.values import dataclass

_REMEMBERED = "learning"
NO_ORGANISATION = ""
"""The organisation of tasks that belong to none."""
_CONFIRMS = (
    (LABEL.c.verdict == LabelVerdict.POSITIVE.value)
    & LABEL.c.specialist.is_not(None)
    & (LABEL.c.rule != LabelRule.HANDED_ON.value)
)
"""That a label confirms a specialist as the right one for the task's text."""
# Compiled once, as learning from an ended task runs them.
_OF_DECISION = LABEL.c.decision_id == bindparam("decision")
_LABEL = Selection(Label, select(LABEL).where(_OF_DECISION))
_REMOVE_LABEL = Statement(delete(LABEL).where(_OF_DECISION))
_ADD_LABEL = Statement(insert(LABEL))
_WHOSE = (
    STANDING.c.organisation == bindparam("organisation"),
    STANDING.c.specialist == bindparam("specialist"),
    STANDING.c.topic == bindparam("topic"),
)
_STANDING = Selection(Standing, select(STANDING).where(*_WHOSE))
_REMOVE_STANDING = Statement(delete(STANDING).where(*_WHOSE))
_ADD_STANDING = Statement(insert(STANDING))


@dataclass(frozen=True, slots=True)
class LearningProgress:
    """How far learning has come."""

    event: int
    """The last event that was processed."""
    version: int
    """Incremented by each change of what was learned."""


def progress(connection: Connection) -> LearningProgress | None:
    """Return the progress of learning, or None if it has not begun."""
    data = remembered.find(connection, _REMEMBERED)
    return LearningProgress(int(data["event"]), int(data["version"])) if data else None


def version(connection: Connection) -> int:
    """Return the version of what was learned."""
    now = progress(connection)
    return 0 if now is None else now.version


def keep_progress(connection: Connection, now: LearningProgress) -> None:
    """Store the progress of learning."""
    remembered.keep(connection, _REMEMBERED, {"event": now.event, "version": now.version})


def label(connection: Connection, decision_id: str) -> Label | None:
    """Return the decision's label, or None."""
    return _LABEL.first(connection, decision=decision_id)


def keep_label(connection: Connection, row: Label) -> None:
    """Store a decision's label, replacing the former one."""
    _REMOVE_LABEL.run(connection, decision=row.decision_id)
    _ADD_LABEL.run(connection, **row.stored())


def unlearned(connection: Connection, limit: int) -> Sequence[Label]:
    """Return the oldest labels that were not learned yet."""
    query = select(LABEL).where(LABEL.c.learned_ms.is_(None)).order_by(LABEL.c.at_ms, LABEL.c.decision_id).limit(limit)
    return Label.rows(connection, query)


def mark(connection: Connection, ids: Sequence[str], now_ms: int, *, forgotten: bool = False) -> None:
    """Mark labels as learned or, if ``forgotten``, as never to be learned."""
    values = {"learned_ms": now_ms} | ({"forgotten_ms": now_ms} if forgotten else {})
    connection.execute(update(LABEL).where(LABEL.c.decision_id.in_(ids)).values(**values))


def forget(connection: Connection, organisation: str | None, specialist: str | None, now_ms: int) -> int:
    """Forget what was learned, and return the number of labels that no longer count. organisation: only its labels;
    None: all. specialist: only labels that concern it; None: all."""
    which = [LABEL.c.forgotten_ms.is_(None), *_of(LABEL, organisation)]
    rows = _of(STANDING, organisation)
    if specialist is not None:
        which.append((LABEL.c.specialist == specialist) | (LABEL.c.wanted == specialist))
        rows.append(STANDING.c.specialist == specialist)
    connection.execute(delete(STANDING).where(*rows))
    return connection.execute(update(LABEL).where(*which).values(learned_ms=now_ms, forgotten_ms=now_ms)).rowcount


def standing(connection: Connection, organisation: str, specialist: str, topic: str) -> Standing | None:
    """Return the specialist's standing on the topic, or None. An empty topic stands for all together."""
    return _STANDING.first(connection, organisation=organisation, specialist=specialist, topic=topic)


def keep_standing(connection: Connection, row: Standing) -> None:
    """Store a specialist's standing on a topic, replacing the former one."""
    _REMOVE_STANDING.run(connection, organisation=row.organisation, specialist=row.specialist, topic=row.topic)
    _ADD_STANDING.run(connection, **row.stored())


def counted_after(connection: Connection, label: Label, topic: str) -> int:
    """Return how many labels were counted after this one in its specialist's standing. topic: empty for all."""
    query = _of_standing(select(func.count()), label, topic).where(LABEL.c.counted_as > label.counted_as)
    return int(connection.execute(query).scalar_one())


def last_success(connection: Connection, label: Label, topic: str) -> int | None:
    """Return the label's specialist's last success by other labels, in epoch milliseconds, or None. topic: empty for
    all together."""
    query = _of_standing(select(func.max(LABEL.c.at_ms)), label, topic).where(
        LABEL.c.counted == LabelVerdict.POSITIVE.value
    )
    decision_id: int | None = connection.execute(query.where(LABEL.c.decision_id != label.decision_id)).scalar_one()
    return decision_id


def _of_standing(query: Select[int], label: Label, topic: str) -> Select[int]:
    whose = (LABEL.c.organisation == label.organisation) & (LABEL.c.specialist == label.specialist)
    query = query.where(whose, LABEL.c.counted.is_not(None), LABEL.c.forgotten_ms.is_(None))
    return query.where(LABEL.c.topic == topic) if topic else query


def standings(connection: Connection, organisation: str | None) -> Sequence[Standing]:
    """Return the organisation's standings, ordered by specialist and topic. organisation: None for all."""
    query = select(STANDING).where(*_of(STANDING, organisation))
    query = query.order_by(STANDING.c.specialist, STANDING.c.topic, STANDING.c.organisation)
    return Standing.rows(connection, query)


def overrides(connection: Connection, organisation: str, limit: int) -> Sequence[Label]:
    """Return the newest learned labels by which an operator reassigned a task."""
    query = _counting(organisation).where(LABEL.c.wanted.is_not(None))
    return _labels(connection, query, limit)


def confirmations(connection: Connection, organisation: str, limit: int) -> Sequence[Label]:
    """Return the newest learned labels that confirm a specialist as the right one for the task's text."""
    query = _counting(organisation).where(_CONFIRMS)
    return _labels(connection, query, limit)


@dataclass(frozen=True, slots=True)
class SpecialistFigures:
    """Figures of decisions for one specialist and topic."""

    specialist: str | None
    topic: str | None
    decisions: int
    compared: int
    """Decisions with a known confidence."""
    confidence: float
    """The sum of the known confidences."""
    overridden: int
    ended: int
    """Decisions with an outcome that were not overridden."""
    failed: int
    answers: int
    answer_chars: int
    """The total length of all answers."""


def figures(connection: Connection, since_ms: int, organisation: str | None) -> Sequence[SpecialistFigures]:
    """Return figures of the decisions from ``since_ms`` on. organisation: only its tasks'; None: all."""
    ended = LABEL.c.rule.is_not(None) & LABEL.c.wanted.is_(None)
    query = (
        select(
            DECISION.c.specialist,
            DECISION.c.topic,
            func.count().label("decisions"),
            func.count(DECISION.c.confidence).label("compared"),
            func.coalesce(func.sum(DECISION.c.confidence), 0.0).label("confidence"),
            func.count(LABEL.c.wanted).label("overridden"),
            func.coalesce(func.sum(case((ended, 1), else_=0)), 0).label("ended"),
            func.coalesce(func.sum(case((LABEL.c.rule == LabelRule.FAILED.value, 1), else_=0)), 0).label("failed"),
            func.count(LABEL.c.answer_chars).label("answers"),
            func.coalesce(func.sum(LABEL.c.answer_chars), 0).label("answer_chars"),
        )
        .select_from(DECISION.outerjoin(LABEL, LABEL.c.decision_id == DECISION.c.id))
        .where(*_since(since_ms, organisation))
        .group_by(DECISION.c.specialist, DECISION.c.topic)
        .order_by(DECISION.c.specialist, DECISION.c.topic)
    )
    return [SpecialistFigures(**row._mapping) for row in connection.execute(query)]


@dataclass(frozen=True, slots=True)
class Labelled:
    """A decision made by comparison, with its label."""

    data: Mapping[str, Any]
    task: str
    """The task's name; empty if it was removed."""
    verdict: str | None
    wanted: str | None


def compared(connection: Connection, since_ms: int, organisation: str | None, limit: int) -> Sequence[Labelled]:
    """Return the newest decisions made by comparison from ``since_ms`` on. organisation: see ``figures``."""
    query = (
        select(DECISION.c.data, func.coalesce(TASK.c.name, "").label("task"), LABEL.c.verdict, LABEL.c.wanted)
        .select_from(
            DECISION.outerjoin(LABEL, LABEL.c.decision_id == DECISION.c.id).outerjoin(
                TASK, TASK.c.id == DECISION.c.task_id
            )
        )
        .where(*_since(since_ms, organisation), DECISION.c.confidence.is_not(None))
        .order_by(DECISION.c.at_ms.desc(), DECISION.c.id)
        .limit(limit)
    )
    return [Labelled(**row._mapping) for row in connection.execute(query)]


def _since(since_ms: int, organisation: str | None) -> list[ColumnElement[bool]]:
    made = (DECISION.c.kind == DecisionKind.SPECIALIST.value, DECISION.c.at_ms >= since_ms)
    return [*made, *_of(DECISION, organisation)]


@dataclass(frozen=True, slots=True)
class Corrections:
    """Tasks that operators reassigned from one specialist to another, on one topic."""

    specialist: str | None
    wanted: str
    topic: str | None
    tasks: int
    last_ms: int


def corrections(connection: Connection, organisation: str | None) -> Sequence[Corrections]:
    """Return the corrections that count, most frequent first. organisation: only its own; None: all."""
    which = [LABEL.c.wanted.is_not(None), LABEL.c.forgotten_ms.is_(None), *_of(LABEL, organisation)]
    columns = (LABEL.c.specialist, LABEL.c.wanted, LABEL.c.topic)
    query = select(*columns, func.count().label("tasks"), func.max(LABEL.c.at_ms).label("last_ms"))
    query = query.where(*which).group_by(*columns).order_by(func.count().desc(), *columns)
    return [Corrections(**row._mapping) for row in connection.execute(query)]


def waiting(connection: Connection, organisation: str | None) -> int:
    """Return the number of labels not learned yet. organisation: only its own; None: all."""
    query = select(func.count()).select_from(LABEL).where(LABEL.c.learned_ms.is_(None), *_of(LABEL, organisation))
    return int(connection.execute(query).scalar_one())


def with_right_specialist(connection: Connection, organisation: str | None, limit: int) -> Sequence[Label]:
    """Return the newest labels that count and tell the right specialist. organisation: only its own; None: all."""
    right = LABEL.c.wanted.is_not(None) | _CONFIRMS
    query = select(LABEL).where(LABEL.c.forgotten_ms.is_(None), right, *_of(LABEL, organisation))
    return _labels(connection, query, limit)


def specs(connection: Connection, labels: Sequence[Label]) -> dict[str, dict[str, object]]:
    """Return the specs of the labels' tasks by decision id, without tasks that were removed."""
    ids = [entry.decision_id for entry in labels]
    query = select(LABEL.c.decision_id, TASK_REVISION.c.spec).join(
        TASK_REVISION, (TASK_REVISION.c.task_id == LABEL.c.task_id) & (TASK_REVISION.c.revision == LABEL.c.revision)
    )
    return {row.decision_id: row.spec for row in connection.execute(query.where(LABEL.c.decision_id.in_(ids)))}


def _of(table: Table, organisation: str | None) -> list[ColumnElement[bool]]:
    """Return the condition for the organisation's rows; none for all rows."""
    return [] if organisation is None else [table.c.organisation == organisation]


def _counting(organisation: str) -> Select[tuple[object, ...]]:
    return select(LABEL).where(
        LABEL.c.organisation == organisation, LABEL.c.learned_ms.is_not(None), LABEL.c.forgotten_ms.is_(None)
    )


def _labels(connection: Connection, query: Select[tuple[object, ...]], limit: int) -> Sequence[Label]:
    query = query.order_by(LABEL.c.at_ms.desc(), LABEL.c.decision_id).limit(limit)
    return Label.rows(connection, query)
