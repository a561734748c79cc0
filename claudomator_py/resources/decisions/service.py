"""Decisions, from their rows to the shapes that a caller may see, who may not know every specialist."""

from collections.abc import Mapping, Sequence, Set
from typing import Any

from sqlalchemy import Connection

from claudomator_py.domain.blocked_words import predicate
from claudomator_py.domain.decision import message_of
from claudomator_py.domain.errors import Ambiguous, Invalid, NotFound, Problem
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.requests import DecisionFilter
from claudomator_py.domain.shape import Page, View
from claudomator_py.domain.wording import utc_clock, worded
from claudomator_py.resources import cursors
from claudomator_py.resources.concealment import concealed
from claudomator_py.resources.decisions import (
    CandidateView,
    ChosenView,
    DecidedHandoffView,
    DecidedShadowView,
    DecidedTriageView,
    DecidedVerdictView,
    DecisionCalls,
    DecisionView,
    PlacementView,
    SelectionView,
)
from claudomator_py.resources.decisions.sentences import overridden_text, placement_text, said_of, sentences_of
from claudomator_py.resources.routing.service import LABELS, candidate_views, known_to, reason_of, routed_before
from claudomator_py.resources.session import Service, each_shown, find_task, reading
from claudomator_py.scheduler.records import (
    UNREADABLE,
    Candidate,
    DecisionRecord,
    HandoffRecord,
    PolicyRecord,
    Record,
    ShadowRecord,
    SpecialistRecord,
    TriageRecord,
    record_of,
)
from claudomator_py.store import channel_rows, decision_log
from claudomator_py.store.decision_log import Recorded
from claudomator_py.store.tables import Decision, Task
from claudomator_py.surface import answers

_ID_CHARS = 36


class Explained(View):
    """A decision, in words."""

    decision: DecisionView
    sentences: tuple[str, ...]
    """What was chosen, why, and what would have changed it."""
    said: tuple[tuple[str, str], ...] = ()
    """What people and agents wrote about it, each with its title."""
    supersedes_kept: bool = False
    """Whether the decision it replaced is still stored."""


class Decisions(Service):
    """The service of decisions."""

    @reading(DecisionCalls.decisions)
    def page(
        self, connection: Connection, wanted: DecisionFilter | None = None, cursor: str | None = None, limit: int = 50
    ) -> Page[DecisionView]:
        """Return a page of those that exist for the caller, newest first. Raises BadCursor, and Invalid if the filter's
        task cannot be found."""
        asked = wanted or DecisionFilter()
        if asked.task is not None:
            asked = asked.model_copy(update={"task": _task_id(connection, asked.task, self._by)})
        listed = {"list": "decisions", **asked.model_dump(mode="json", exclude_none=True)}
        before = cursors.read_time(cursor, listed)
        rows = decision_log.page(connection, asked, before, limit + 1, self._by)
        return cursors.page(
            rows,
            limit,
            listed,
            lambda row: (row.decision.at_ms, row.decision.id),
            lambda items: concealed(connection, _views(connection, items, self._by), self._by),
        )

    @answers(DecisionCalls.decision)
    def get(self, decision_id: str) -> DecisionView:
        """Return the decision with that id. Raises NotFound."""
        return self.explained(decision_id).decision

    @reading()
    def explained(self, connection: Connection, decision_id: str) -> Explained:
        """Return it in words as well. Raises NotFound."""
        decision = decision_log.find(connection, decision_id, self._by)
        if decision is None:
            remedy = "List them with `claudomator decisions list`."
            raise NotFound(f"There is no decision {decision_id!r}.", remedy=remedy)
        row = decision.decision
        seen = known_to(connection, [row], self._by)
        earlier = None if row.supersedes is None else decision_log.find(connection, row.supersedes, self._by)
        shape = Explained(
            decision=_views(connection, [decision], self._by)[0],
            sentences=sentences_of(row, seen),
            said=said_of(row, seen),
            supersedes_kept=earlier is not None,
        )
        return concealed(connection, [shape], self._by)[0]


def placements_of(
    connection: Connection, task: Task, decided: Sequence[Decision], by: Principal
) -> tuple[DecisionView, ...]:
    """Return why the task's runs started where they did, newest first, each with what was decided before it on who does
    the task. decided: all decisions on the task, oldest first."""
    rows = decision_log.placements(connection, task.id, by)
    seen = known_to(connection, decided, by)
    views = _views(connection, rows, by)
    return tuple(
        view.model_copy(update=routed_before(row.decision, decided, seen))
        for row, view in zip(rows, views, strict=True)
        if view.placement is not None  # None: it cannot be read
    )


def _task_id(connection: Connection, ref: str, by: Principal) -> str:
    """Return the task's id. A complete id is taken as it is: decisions outlive their tasks."""
    if len(ref) == _ID_CHARS:
        return ref
    try:
        return find_task(connection, ref, by).id
    except (NotFound, Ambiguous) as refusal:
        problem = Problem(field="task", message=refusal.detail.removesuffix("."), remedy=refusal.remedy)
        raise Invalid.of([problem]) from None


def _views(connection: Connection, rows: Sequence[Recorded], by: Principal) -> list[DecisionView]:
    seen = known_to(connection, [row.decision for row in rows], by)
    ids = {about[0] for row in rows if (about := message_of(row.decision.input_ref)) is not None}
    channels = {channel.id: channel.name for ref in ids for channel in channel_rows.find(connection, ref, by)}
    return each_shown(rows, lambda part: [view_of(row, seen, channels) for row in part], _unreadable)


def _unreadable(recorded: Recorded) -> DecisionView:
    row = recorded.decision
    return DecisionView.of(
        None, id=row.id, kind=row.kind, at=row.at_ms, task_id=row.task_id, reason=UNREADABLE.reason.text
    )


def view_of(recorded: Recorded, seen: Set[str], channels: Mapping[str, str]) -> DecisionView:
    """Return the shape. seen: the ids of specialists that exist for the caller; channels: the names of channels that
    do, by id."""
    row = recorded.decision
    record = record_of(row.kind, row.data)
    record = record.model_copy(update={"reason": reason_of(record, seen)})
    changes: dict[str, Any] = {}
    about = message_of(row.input_ref)
    if about is not None and about[0] in channels:
        changes |= {"channel_id": about[0], "channel_name": channels[about[0]], "message_id": about[1]}
    known = row.specialist is None or row.specialist in seen
    if not known:
        changes |= {"specialist": None, "skill": None, "required_capabilities": ()}
    # The best score, and the topic it is for, may reveal a hidden specialist.
    if not known or any(candidate.specialist not in seen for candidate in record.specialist_candidates):
        changes |= {"topic": None, "confidence": None}
    return DecisionView.of(
        recorded,
        row,
        record,
        snapshot=row.snapshot_hash,
        reason=placement_text(record) if isinstance(record, DecisionRecord) else record.reason.text,
        rationale=record.reason,
        cost_usd=record.cost_usd,
        **_part(record, row, seen),
        **changes,
    )


def _part(record: Record, row: Decision, seen: Set[str]) -> dict[str, Any]:
    """Return the fields that decisions of this kind have, by name."""
    match record:
        case DecisionRecord():
            return {"agents": _agents(record.candidates, row.at_ms), "placement": _placement(record, row)}
        case SpecialistRecord():
            return {"specialists": candidate_views(record, seen), "selection": _selection(record, seen)}
        case PolicyRecord():
            return {"verdict": DecidedVerdictView.of(record)}
        case HandoffRecord():
            return {"handoff": _handoff(record, seen)}
        case TriageRecord():
            skipped = {agent: why for agent, why in record.skipped.items() if agent in seen}
            who = tuple(agent for agent in record.agents if agent in seen)
            # The row's agents are specialists, not the daemon's agents of the field of that name.
            return {"agents": (), "triage": DecidedTriageView.of(record, agents=who, skipped=skipped)}
        case ShadowRecord():
            actual = ChosenView.of(record.actual)
            if actual.specialist not in seen:
                actual = actual.model_copy(update={"specialist": None, "skill": None})
            return {
                "shadow": DecidedShadowView.of(record, actual=actual),
                "verdict": None if record.verdict is None else DecidedVerdictView.of(record),
                "specialists": candidate_views(record, seen),
                "agents": _agents(record.candidates, row.at_ms),
            }
    return {}


def _placement(record: DecisionRecord, row: Decision) -> PlacementView:
    hint = record.overridden
    return PlacementView.of(
        record,
        fallback=None if record.fallback is None else record.fallback.words,
        fallback_code=record.fallback,
        overridden_hint=None if hint is None else overridden_text(hint, row.at_ms),
        told=None if row.run_id is None else f"/v1/runs/{row.run_id}/handoff",
    )


def _selection(record: SpecialistRecord, seen: Set[str]) -> SelectionView:
    if record.specialist is None or record.specialist not in seen:
        return SelectionView.of(record, owner=None, expected_output=None, escalation=())
    return SelectionView.of(
        record,
        escalation=tuple(specialist for specialist in record.escalation if specialist in seen or specialist in LABELS),
    )


def _handoff(record: HandoffRecord, seen: Set[str]) -> DecidedHandoffView:
    asked = record.asked
    return DecidedHandoffView.of(
        asked,
        record,
        by=record.by if record.by in seen else None,
        to=asked.to if record.names_nobody or asked.to in seen or asked.to in LABELS else None,
    )


def _agents(candidates: Sequence[Candidate], at_ms: int) -> tuple[CandidateView, ...]:
    """Return the agents as the decision saw them. at_ms: when that was."""
    clock = utc_clock(at_ms)
    return tuple(
        CandidateView.of(
            candidate,
            rejected_because=None if candidate.rejected is None else worded(predicate(candidate.rejected), clock),
        )
        for candidate in candidates
    )
