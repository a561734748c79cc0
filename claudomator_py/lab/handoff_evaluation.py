"""Evaluation of handoffs: compare the handoff documents that a task's runs would get with what the task demands.

No run starts. The handoffs that runs would ask for are part of the set, and are decided as for real runs.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import ValidationError

from claudomator_py.domain.budget import Budget
from claudomator_py.domain.card import Card
from claudomator_py.domain.handoff import (
    VERSION,
    Authority,
    BudgetLeft,
    DecisionReference,
    Defect,
    Evidence,
    HandedOn,
    Handoff,
    PermissionScope,
    validity,
)
from claudomator_py.domain.outcome import HandoffRequest
from claudomator_py.domain.routing import Constraints
from claudomator_py.domain.task import Permissions, TaskSpec
from claudomator_py.domain.transcript import extracted, intent_of
from claudomator_py.routing import handing_on
from claudomator_py.routing.role import done_by, escalation_of
from claudomator_py.scheduler.records import HandoffRecord, Route, SpecialistRecord
from claudomator_py.schema.validation import first_problem
from claudomator_py.values import dataclass

MAX_HANDOFFS: Final = 2
"""The default of ``routing.max_handoffs``."""
DEMANDS: Final = ("max_authority", "required_fields", "forbidden_fields", "max_handoffs", "ends_with")
ASKED: Final = ("permissions", "budget", "expected_output")
_RUNS: Final = (Route.SPECIALIST, Route.DEFAULT, Route.HUMAN_REVIEW)
"""Routes by which a run starts, possibly after approval."""
_ANYTHING: Final = Constraints()
_BLANK: Final = Handoff(version=VERSION, task="-", revision=1, run="-", deadline=datetime(2000, 1, 1, tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class HandoffDemand:
    """What a labelled task demands of its handoffs."""

    task: TaskSpec
    """The task with its permissions, budget and expected output."""
    hands_on_to: tuple[str, ...] = ()
    """The specialists to whom successive runs hand the task on."""
    required_fields: tuple[str, ...] = ()
    """Fields that the last owner's handoff must have, as paths such as ``budget_left.usd``."""
    forbidden_fields: tuple[str, ...] = ()
    """Fields that no handoff may have."""
    max_authority: Authority | None = None
    """The greatest authority that any run may have. None: what the task asks for."""
    max_handoffs: int | None = None
    """The maximum number of handoffs. None: not labelled."""
    ends_with: str | None = None
    """The last owner, or ``human_review``. None: not labelled."""


def demand_of(data: Mapping[str, Any], text: str) -> HandoffDemand | None:
    """Return the demand in a line of a set, inside or outside of its label, or None. Raises ValueError."""
    label = data.get("expected")
    document = {**data, **label} if isinstance(label, Mapping) else data
    if not any(document.get(name) is not None for name in (*DEMANDS, "hands_on_to")):
        return None
    authority, most, ends = document.get("max_authority"), document.get("max_handoffs"), document.get("ends_with")
    if authority is not None and authority not in tuple(Authority):
        raise ValueError(f"`max_authority` is none of {', '.join(Authority)}")
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 0):
        raise ValueError("`max_handoffs` is not a whole number from 0 on")
    if ends is not None and not isinstance(ends, str):
        raise ValueError("`ends_with` is not text")
    required, forbidden = _names(document, "required_fields"), _names(document, "forbidden_fields")
    validity(_BLANK, required, forbidden)  # raises for fields that handoffs do not have
    return HandoffDemand(
        task_of(document, text),
        _names(document, "hands_on_to"),
        required,
        forbidden,
        None if authority is None else Authority(authority),
        most,
        ends,
    )


def task_of(document: Mapping[str, Any], text: str) -> TaskSpec:
    """Return the task that a line of a set describes. Raises ValueError."""
    asked = {name: document[name] for name in ASKED if document.get(name) is not None}
    try:
        return TaskSpec.model_validate({"name": "task", "instructions": text, **asked})
    except ValidationError as error:
        raise ValueError(first_problem(TaskSpec, error).render()) from None


def plain(text: str) -> HandoffDemand | None:
    """Return the demand of a task that has only a text, or None if the text is not valid for a task."""
    try:
        return HandoffDemand(TaskSpec(name="task", instructions=text))
    except ValidationError:
        return None


def _names(document: Mapping[str, Any], key: str) -> tuple[str, ...]:
    names = document.get(key) or ()
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"`{key}` is not a list of names")
    return tuple(names)


@dataclass(frozen=True, slots=True)
class HandedOver:
    """The handoffs of one labelled task."""

    owners: tuple[str | None, ...]
    """The task's owners in order. None: no specialist."""
    refused: bool
    """Whether a handoff was refused, so that a person is asked."""
    defects: tuple[tuple[Defect, str], ...]
    """Defects of the runs' handoff documents, with their fields."""

    @property
    def ended_with(self) -> str | None:
        """The last owner, or ``human_review``."""
        return Route.HUMAN_REVIEW.value if self.refused else self.owners[-1]


def handed_over(
    demand: HandoffDemand, record: SpecialistRecord, cards: Mapping[str, Card], constraints: Constraints = _ANYTHING
) -> HandedOver | None:
    """Return the handoffs that follow from the decision, or None if no run starts. constraints: the policy's."""
    if record.route not in _RUNS:
        return None
    owners, hops, defects, refused = [record.specialist], list[HandoffRecord](), list[tuple[Defect, str]](), False
    wanted, most = iter(demand.hands_on_to), demand.max_authority
    if most is None:
        most = _BLANK.model_copy(update={"permissions": _scope(demand.task.permissions)}).authority
    while True:
        following = next(wanted, None)
        hop = None
        if following is not None:
            request = HandoffRequest(to=following, reason="It is not my work.", left="All of it.")
            risk, run = record.risk, f"run-{len(owners)}"
            hop = handing_on.decide(request, run, owners[-1], hops, cards, risk=risk, max_handoffs=MAX_HANDOFFS)
            refused = not hop.accepted
        document = _document(demand, record, cards, owners[-1], hops, constraints)
        last = hop is None or not hop.accepted
        required = demand.required_fields if last else ()
        verdict = validity(document, required, demand.forbidden_fields, most, demand.max_handoffs)
        defects += verdict
        if hop is None or not hop.accepted:
            return HandedOver(tuple(owners), refused, tuple(dict.fromkeys(defects)))
        hops.append(hop)
        owners.append(hop.specialist)


def _document(
    demand: HandoffDemand,
    record: SpecialistRecord,
    cards: Mapping[str, Card],
    owner: str | None,
    hops: Sequence[HandoffRecord],
    constraints: Constraints,
) -> Handoff:
    """Return the handoff document of the run that starts now. Nothing is known of earlier runs' results."""
    card = None if owner is None else cards.get(owner)
    task = done_by(demand.task, card, constraints)
    last = hops[-1] if hops else None
    decided = [("specialist", record.reason.code.value, record.route.value)]
    decided += [("handoff", hop.reason.code.value, hop.route.value) for hop in hops]
    return Handoff(
        version=VERSION,
        task="task",
        revision=1,
        run=f"run-{len(hops) + 1}",
        specialist=owner,
        skill=record.skill if not hops else None,
        risk=record.risk,
        intent=intent_of(task.instructions),
        decisions=tuple(
            DecisionReference(id=f"decision-{number}", kind=kind, code=code, route=route)
            for number, (kind, code, route) in enumerate(decided, 1)
        ),
        extracted=extracted(task.instructions),
        evidence=Evidence(runs=tuple(hop.run_id for hop in hops)),
        permissions=_scope(task.permissions),
        budget_left=_left(task.budget, len(hops)),
        deadline=_BLANK.deadline,
        expected_output=task.expected_output,
        escalation=escalation_of(card),
        handoffs=len(hops),
        max_handoffs=MAX_HANDOFFS,
        before=None
        if last is None
        else HandedOn(run=last.run_id, specialist=last.by, reason=last.asked.reason, left=last.asked.left),
    )


def _scope(asked: Permissions) -> PermissionScope:
    allowed = tuple(tool for tool in asked.allowed_tools if tool not in asked.disallowed_tools)
    return PermissionScope(mode=asked.mode, allowed_tools=allowed, forbidden_tools=asked.disallowed_tools)


def _left(budget: Budget, runs: int) -> BudgetLeft:
    """Return what is left of the budget if no run has spent tokens or dollars."""
    return BudgetLeft(
        usd=budget.usd, tokens=budget.tokens, runs=None if budget.runs is None else max(0, budget.runs - runs)
    )


def figures(
    demands: Sequence[HandoffDemand | None],
    handed: Sequence[HandedOver | None],
    right: Sequence[frozenset[str] | None] = (),
) -> dict[str, float | None]:
    """Return an evaluation's figures for handoffs: shares from 0 to 1, None if the set has no case to measure by.
    right: the right specialists of each task; empty: nobody. Used for completion if no task has ``ends_with``."""
    both = [
        (demand, handoff)
        for demand, handoff in zip(demands, handed, strict=True)
        if demand is not None and handoff is not None
    ]
    # A task that does not run at all does not end where it should.
    wanted = [
        handoff is not None and handoff.ended_with == demand.ends_with
        for demand, handoff in zip(demands, handed, strict=True)
        if demand is not None and demand.ends_with is not None
    ] or [
        handoff is not None and handoff.ended_with in who and not handoff.defects
        for who, handoff in zip(right, handed, strict=False)
        if who
    ]
    return {
        "handoff_validity": share_of([not handoff.defects for _, handoff in both]),
        "authority_expansion": share_of(
            [any(defect is Defect.AUTHORITY_EXPANDED for defect, _ in handoff.defects) for _, handoff in both]
        ),
        "loop_rate": share_of([len(set(handoff.owners)) < len(handoff.owners) for _, handoff in both]),
        "completion_rate": share_of(wanted),
    }


def share_of(hits: Sequence[bool]) -> float | None:
    """Return the share of the true ones, to four digits; None if there are none at all."""
    return round(sum(hits) / len(hits), 4) if hits else None
