"""Recorded decisions in the shape of the API, for somebody who may not see every specialist."""

from collections.abc import Mapping, Sequence, Set

from sqlalchemy import Connection

from claudomator_py.domain.decision import message_of
from claudomator_py.domain.errors import Ambiguous, Invalid, NotFound, Problem
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.units import format_instant
from claudomator_py.domain.views.base import Page
from claudomator_py.domain.views.decisions import (
    DecidedRunView,
    DecisionFilter,
    ExplainedDecisionView,
    RecordedDecisionView,
    VersionsView,
)
from claudomator_py.domain.views.routing import PolicyCheckView
from claudomator_py.queries import cursors
from claudomator_py.queries.concealment import concealed
from claudomator_py.queries.decision_details import details_of
from claudomator_py.queries.decision_sentences import explanation_of
from claudomator_py.queries.finding import find_task
from claudomator_py.queries.routing import known_to, reason_for
from claudomator_py.scheduler.decision import Record, record_of
from claudomator_py.store import channel_rows, decision_log
from claudomator_py.store.decision_log import Recorded

_ID_CHARS = 36


def page(
    connection: Connection, wanted: DecisionFilter, cursor: str | None, limit: int, by: Principal
) -> Page[RecordedDecisionView]:
    """Those that exist for that principal, the newest first, at most ``limit``. Raises BadCursor, and Invalid where the
    task that is named cannot be told."""
    if wanted.task is not None:
        wanted = wanted.model_copy(update={"task": _task_id(connection, wanted.task, by)})
    listed = {"list": "decisions", **wanted.model_dump(mode="json", exclude_none=True)}
    before = cursors.read_time(cursor, listed) if cursor is not None else None
    found = decision_log.page(connection, wanted, before, limit + 1, by)
    items, following = cursors.part(
        found, limit, lambda one: cursors.write_time(one.decision.at_ms, one.decision.id, listed)
    )
    seen = known_to(connection, [one.decision for one in items], by)
    channels = _channels(connection, items, by)
    views = [_view(one, seen, channels) for one in items]
    return Page(items=concealed(connection, views, by), next_cursor=following)


def one(connection: Connection, decision_id: str, by: Principal) -> RecordedDecisionView:
    """The decision of that id. Raises NotFound."""
    found = _found(connection, decision_id, by)
    seen = known_to(connection, [found.decision], by)
    return concealed(connection, [_view(found, seen, _channels(connection, [found], by))], by)[0]


def explained(connection: Connection, decision_id: str, by: Principal) -> ExplainedDecisionView:
    """The same, as people read it. Raises NotFound."""
    found = _found(connection, decision_id, by)
    row = found.decision
    seen = known_to(connection, [row], by)
    told = explanation_of(row, seen)
    earlier = None if row.supersedes is None else decision_log.find(connection, row.supersedes, by)
    shape = ExplainedDecisionView(
        decision=_view(found, seen, _channels(connection, [found], by)),
        sentences=told.sentences,
        said=told.said,
        supersedes_kept=earlier is not None,
    )
    return concealed(connection, [shape], by)[0]


def _task_id(connection: Connection, ref: str, by: Principal) -> str:
    """The id of the task that is meant. A whole id is taken as it is: decisions outlive their tasks."""
    if len(ref) == _ID_CHARS:
        return ref
    try:
        return find_task(connection, ref, by).id
    except (NotFound, Ambiguous) as refusal:
        problem = Problem(field="task", message=refusal.detail.removesuffix("."), remedy=refusal.remedy)
        raise Invalid.of([problem]) from None


def _found(connection: Connection, decision_id: str, by: Principal) -> Recorded:
    found = decision_log.find(connection, decision_id, by)
    if found is None:
        raise NotFound(f"There is no decision {decision_id!r}.", remedy="List them with `claudomator decisions list`.")
    return found


def _channels(connection: Connection, found: Sequence[Recorded], by: Principal) -> Mapping[str, str]:
    """The names of the channels in which messages are that these are about, by id."""
    ids = {about[0] for one in found if (about := message_of(one.decision.input_ref)) is not None}
    return {channel.id: channel.name for one in ids for channel in channel_rows.find(connection, one, by)}


def _view(found: Recorded, seen: Set[str], channels: Mapping[str, str]) -> RecordedDecisionView:
    row = found.decision
    channel_id, message_id = message_of(row.input_ref) or (None, None)
    there = channel_id in channels
    record = record_of(row.kind, row.data)
    # What of it fits no shape is not shown either.
    data = {} if type(record) is Record else row.data
    reason = reason_for(record.reason, seen)
    known = row.specialist is None or row.specialist in seen
    # The best score, and whose topic it is, may tell of somebody hidden.
    all_seen = known and all(one.specialist in seen for one in record.specialist_candidates)
    return RecordedDecisionView(
        id=row.id,
        kind=row.kind,
        at=format_instant(row.at_ms),
        input_ref=row.input_ref,
        task_id=row.task_id,
        task_name=found.task_name,
        task_state=found.task_state,
        channel_id=channel_id if there else None,
        channel_name=channels.get(channel_id or ""),
        message_id=message_id if there else None,
        generation=row.generation,
        run_id=row.run_id,
        by=row.by,
        supersedes=row.supersedes,
        superseded_by=found.superseded_by,
        overridden=found.overridden,
        snapshot=row.snapshot_hash,
        route=found.route,
        specialist=row.specialist if known else None,
        skill=row.skill if known else None,
        agent=data.get("agent"),
        tier=data.get("tier"),
        model=data.get("model"),
        intent=record.intent,
        topic=record.topic if all_seen else None,
        risk=record.risk,
        confidence=record.confidence if all_seen else None,
        threshold=record.threshold,
        reason=reason.text,
        rationale=reason,
        required_capabilities=tuple(data.get("required_capabilities", ())) if known else (),
        policy_checks=tuple(PolicyCheckView.of(one) for one in record.policy_checks),
        versions=VersionsView.of(record.versions),
        latency_ms=record.latency_ms,
        cost_usd=record.cost_usd,
        run=None if found.run is None else DecidedRunView.model_validate(found.run),
        **details_of(record, row.run_id, row.at_ms, seen),
    )
