"""Queries on recorded decisions of every kind, restricted to a principal, with what became of them."""

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, case, exists, func, select, tuple_

from claudomator_py.domain.learning import LabelRule
from claudomator_py.domain.lifecycle import StateName
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.requests import DecisionFilter
from claudomator_py.domain.units import SECOND_MS
from claudomator_py.scheduler.records import DecisionKind, Route
from claudomator_py.store.stored_json import sound
from claudomator_py.store.tables import DECISION, LABEL, RUN, SPECIALIST, TASK, Decision
from claudomator_py.store.visibility import agent_hidden, cards_seen, rows_seen
from claudomator_py.values import dataclass

Position = tuple[int, str]
"""A decision's time in epoch milliseconds, and its id."""
_ORDER = (DECISION.c.at_ms, DECISION.c.id)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A decision with what became of it."""

    decision: Decision
    task_name: str | None
    """None: as for ``task_state``."""
    task_state: StateName | None
    """None: it concerns no task, or the task was removed."""
    superseded_by: str | None
    overridden: bool
    route: str | None
    """The route's name. None: the decision has no route."""
    run: dict[str, Any] | None
    """State, ``ended_as``, ``reason``, tokens and dollars of the run that it started, or None."""


def page(
    connection: Connection, wanted: DecisionFilter, before: Position | None, limit: int, by: Principal
) -> Sequence[Recorded]:
    """Return the matching decisions visible to the principal, newest first, after the position ``before``. Shadow
    decisions are returned only if their kind is asked for."""
    conditions = [rows_seen(DECISION, by), *_conditions(wanted, by)]
    if before is not None:
        conditions.append(tuple_(*_ORDER) < before)
    return _read(connection, conditions, limit)


def find(connection: Connection, decision_id: str, by: Principal) -> Recorded | None:
    """Return the decision with this id if it is visible to the principal, else None."""
    decisions = _read(connection, [rows_seen(DECISION, by), DECISION.c.id == decision_id], 1)
    return decisions[0] if decisions else None


def placements(connection: Connection, task_id: str, by: Principal) -> Sequence[Recorded]:
    """Return the task's placements visible to the principal, newest run first."""
    query = _all().where(rows_seen(DECISION, by), DECISION.c.task_id == task_id)
    query = query.where(DECISION.c.kind == DecisionKind.PLACEMENT.value)
    query = query.order_by(None).order_by(RUN.c.generation.desc(), RUN.c.seq.desc())
    return [_recorded(row._mapping) for row in connection.execute(query)]


def of_kind(
    connection: Connection,
    kind: DecisionKind,
    since_ms: int | None,
    until_ms: int | None,
    after: Position | None,
    limit: int,
) -> Sequence[Decision]:
    """Return all decisions of a kind, whoever may see them, oldest first, after the position."""
    conditions = [DECISION.c.kind == kind.value, *_between(since_ms, until_ms)]
    if after is not None:
        conditions.append(tuple_(*_ORDER) > after)
    query = select(DECISION).where(*conditions).order_by(*_ORDER).limit(limit)
    return Decision.rows(connection, query)


def newest_of_kind(
    connection: Connection, kind: DecisionKind, since_ms: int, limit: int, by: Principal
) -> Sequence[Decision]:
    """Return decisions of a kind that are visible to the principal, from that time on, newest first."""
    query = select(DECISION).where(DECISION.c.kind == kind.value, rows_seen(DECISION, by), *_between(since_ms, None))
    return Decision.rows(connection, query.order_by(DECISION.c.at_ms.desc(), DECISION.c.id.desc()).limit(limit))


def newest_shadow(connection: Connection, since_ms: int | None, until_ms: int | None) -> Decision | None:
    """Return the last shadow decision in the time span, or None."""
    query = select(DECISION).where(DECISION.c.kind == DecisionKind.SHADOW.value, *_between(since_ms, until_ms))
    return Decision.one(connection, query.order_by(DECISION.c.at_ms.desc(), DECISION.c.id.desc()).limit(1))


def following(connection: Connection, kinds: Sequence[DecisionKind], after: Position, limit: int) -> Sequence[Decision]:
    """Return all decisions of these kinds, whoever may see them, oldest first, after the position."""
    query = select(DECISION).where(tuple_(*_ORDER) > after, DECISION.c.kind.in_([kind.value for kind in kinds]))
    query = query.order_by(*_ORDER).limit(limit)
    return Decision.rows(connection, query)


def _between(since_ms: int | None, until_ms: int | None) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if since_ms is not None:
        conditions.append(DECISION.c.at_ms >= since_ms)
    if until_ms is not None:
        conditions.append(DECISION.c.at_ms < until_ms)
    return conditions


def _conditions(wanted: DecisionFilter, by: Principal) -> list[ColumnElement[bool]]:
    data = sound(DECISION.c.data)
    conditions: list[ColumnElement[bool]] = []
    if wanted.kind is not None:
        conditions.append(DECISION.c.kind == wanted.kind)
    else:  # shadow decisions had no effect
        conditions.append(DECISION.c.kind != DecisionKind.SHADOW.value)
    if wanted.task is not None:
        conditions.append(DECISION.c.task_id == wanted.task)
    if wanted.specialist is not None:
        # A specialist that is hidden from the principal must not be found by guessing its name.
        known = exists().where(SPECIALIST.c.id == wanted.specialist, cards_seen(by))
        conditions.append(and_(DECISION.c.specialist == wanted.specialist, known))
    if wanted.agent is not None:
        conditions += [RUN.c.agent == wanted.agent, ~agent_hidden(wanted.agent, by)]
    if wanted.route is not None:
        conditions.append(_route() == wanted.route)
    if wanted.reason is not None:
        conditions.append(data[("reason", "code")].as_string() == wanted.reason.value)
    if wanted.risk is not None:
        conditions.append(data["risk"].as_string() == wanted.risk.value)
    if wanted.overridden is not None:
        conditions.append(_overridden() if wanted.overridden else ~_overridden())
    if wanted.since is not None:
        conditions.append(DECISION.c.at_ms >= _ms(wanted.since))
    if wanted.until is not None:
        conditions.append(DECISION.c.at_ms < _ms(wanted.until))
    return conditions


def _ms(time: datetime) -> int:
    return round(time.timestamp() * SECOND_MS)


def _route() -> ColumnElement[str]:
    """Return the decision's route. For a placement, that of the last decision on the specialist before it."""
    before, data = DECISION.alias("before"), sound(DECISION.c.data)
    went = (
        select(sound(before.c.data)["route"].as_string())
        .where(
            before.c.task_id == DECISION.c.task_id,
            before.c.generation == DECISION.c.generation,
            before.c.kind.in_((DecisionKind.SPECIALIST.value, DecisionKind.HANDOFF.value)),
            before.c.specialist.is_not_distinct_from(DECISION.c.specialist),
            before.c.at_ms <= DECISION.c.at_ms,
        )
        .order_by(before.c.at_ms.desc(), before.c.id.desc())
        .limit(1)
        .scalar_subquery()
    )
    verdict = data["verdict"].as_string()  # older records of the policy have no route
    own = func.coalesce(
        data["route"].as_string(), case((verdict == "held", "human_review"), (verdict == "denied", "reject"))
    )
    return case((DECISION.c.kind == DecisionKind.PLACEMENT.value, func.coalesce(went, own)), else_=own)


def _overridden() -> ColumnElement[bool]:
    return exists().where(LABEL.c.decision_id == DECISION.c.id, LABEL.c.rule == LabelRule.OVERRIDDEN.value)


_ROUTE_SHOWN = case({route.value: route.value for route in Route}, value=_route())
"""NULL for anything but a route: the driver raises for damaged text such as half a character."""
_OF_RUN = ("state", "ended_as", "reason", "input_tokens", "output_tokens", "cost_usd")


@cache
def _all() -> Select[Any]:
    later = DECISION.alias("later")
    return (
        select(
            DECISION,
            TASK.c.name.label("task_name"),
            TASK.c.state.label("task_state"),
            later.c.id.label("superseded_by"),
            _overridden().label("overridden"),
            _ROUTE_SHOWN.label("route"),
            *(RUN.c[name].label(f"run_{name}") for name in _OF_RUN),
        )
        .outerjoin(TASK, TASK.c.id == DECISION.c.task_id)
        .outerjoin(RUN, RUN.c.id == DECISION.c.run_id)
        .outerjoin(later, later.c.supersedes == DECISION.c.id)
        .order_by(DECISION.c.at_ms.desc(), DECISION.c.id.desc())
    )


def _read(connection: Connection, conditions: Sequence[ColumnElement[bool]], limit: int) -> Sequence[Recorded]:
    rows = connection.execute(_all().where(*conditions).limit(limit))
    return [_recorded(row._mapping) for row in rows]


def _recorded(row: Any) -> Recorded:
    run = {name: row[f"run_{name}"] for name in _OF_RUN}
    return Recorded(
        decision=Decision(**{column.name: row[column.name] for column in DECISION.columns}),
        task_name=row["task_name"],
        task_state=row["task_state"],
        superseded_by=row["superseded_by"],
        overridden=bool(row["overridden"]),
        route=row["route"],
        run=None if run["state"] is None else run,
    )
