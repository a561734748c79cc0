"""Handing a task on to another specialist, inside one transaction: when the run ends, or announced during the run."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection

from claudomator_py.domain.card import SUCCESSOR_FIELDS
from claudomator_py.domain.errors import ended
from claudomator_py.domain.inputs import InputRequest
from claudomator_py.domain.lifecycle import InputKind
from claudomator_py.domain.outcome import HandoffRequest, Outcome, OutcomeStatus, Reason, RefusedHandoff
from claudomator_py.domain.principal import Principal, Role, creator_of
from claudomator_py.domain.rationale import RationaleCode, rationale
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.task import OnInput, TaskSpec
from claudomator_py.prompts.conversations import columns_of
from claudomator_py.routing.handing_on import decide, fall_back
from claudomator_py.scheduler.records import DecisionKind, HandoffRecord, Route
from claudomator_py.store import decision_rows, events, run_rows, specialist_rows
from claudomator_py.store.tables import Run, Task
from claudomator_py.store.task_rows import resumption_of
from claudomator_py.tasks.decisions import record_handoff
from claudomator_py.tasks.inputs import current_request

HANDED_ON = "handed_on"
"""Event: ``from`` and ``to`` are specialists, or ``to`` is ``default``; ``hop`` counts the handoffs including this
one."""

FAILURES = 2
"""Number of times a specialist fails at a task before its fallback takes over."""
_SPEAKS_AGAINST = frozenset({Reason.AGENT_ERROR, Reason.REFUSED, Reason.HANDOFF_REFUSED})


def accepted_handoffs(connection: Connection, task_id: str, generation: int) -> list[HandoffRecord]:
    """Return the accepted handoffs of the task in that generation, in order."""
    records = [
        HandoffRecord.model_validate(decision.data)
        for decision in decision_rows.of_task(connection, task_id)
        if decision.kind == DecisionKind.HANDOFF.value and decision.generation == generation
    ]
    return sorted((record for record in records if record.accepted), key=lambda record: record.hop)


def decided(connection: Connection, run_id: str) -> HandoffRecord | None:
    """Return the decision about the run's handoff request; None: it has made none."""
    decision = decision_rows.find(connection, decision_rows.identity(DecisionKind.HANDOFF, run_id))
    return None if decision is None else HandoffRecord.model_validate(decision.data)


def evaluate_request(
    connection: Connection,
    task: Task,
    run: Run,
    request: HandoffRequest,
    max_handoffs: int,
    *,
    by: Principal | None = None,
) -> HandoffRecord:
    """Return the decision about the request, without storing it. by: who makes the request for the run, if
    anybody."""
    creator = creator_of(task)
    may = specialist_rows.is_assignable(connection, request.to, creator)
    # A run must not learn of cards that its task may not be given to, whatever the task's creator sees.
    is_run = by is not None and by.role is Role.RUN
    seen = not is_run and specialist_rows.find(connection, request.to, by or creator) is not None
    if by is not None and not is_run:
        may = may and seen
    cards = specialist_rows.cards(connection, [request.to]) if may else {}
    before = accepted_handoffs(connection, task.id, run.generation)
    risk = None if run.risk is None else Risk(run.risk)
    return decide(request, run.id, run.specialist, before, cards, risk=risk, max_handoffs=max_handoffs, seen=seen)


def handoff_at_end(
    connection: Connection, task: Task, run: Run, outcome: Outcome, max_handoffs: int
) -> HandoffRecord | None:
    """Return the decision about handing on the task now that its run has ended; None: no handoff was requested. A
    handoff accepted during the run stays accepted. Nothing is written: see ``store_decision``."""
    announced = decided(connection, run.id)
    if announced is not None or outcome.handoff is None:
        return announced
    return evaluate_request(connection, task, run, outcome.handoff, max_handoffs)


def fallback_handoff(
    connection: Connection, task: Task, run: Run, outcome: Outcome, spec: TaskSpec, max_handoffs: int
) -> HandoffRecord | None:
    """Return the handoff of a task whose specialist has failed ``FAILURES`` times, to the specialist or route that its
    card names as fallback; None: the task stays where it is.

    Only failures that speak against the specialist count. If the fallback may not be given the task, a person decides,
    unless the task asks nobody. Nothing is written: see ``store_decision``.
    """
    if run.specialist is None or outcome.reason not in _SPEAKS_AGAINST or outcome.status is not OutcomeStatus.FAILED:
        return None
    runs = run_rows.of_generation(connection, task.id, run.generation)
    failed = [other for other in runs if other.specialist == run.specialist and other.reason in _SPEAKS_AGAINST]
    before = sum(other.id != run.id for other in failed)
    card = specialist_rows.cards(connection, [run.specialist]).get(run.specialist)
    if before + 1 < FAILURES or card is None or card.fallback is None:
        return None
    if card.fallback in SUCCESSOR_FIELDS["fallback"]:
        label, risk = Route(card.fallback), None if run.risk is None else Risk(run.risk)
        earlier = accepted_handoffs(connection, task.id, run.generation)
        record = fall_back(label, run.id, run.specialist, earlier, risk=risk, max_handoffs=max_handoffs)
    else:
        record = evaluate_request(connection, task, run, HandoffRequest(to=card.fallback), max_handoffs)
        record = record.model_copy(update={"fallback": True})
        if record.accepted:
            why = rationale(RationaleCode.FAILED_TWICE, by=run.specialist, specialist=card.fallback)
            record = record.model_copy(update={"reason": why})
    return record if record.accepted or spec.on_input is OnInput.WAIT else None


def request_after_fallback(record: HandoffRecord, outcome: Outcome, run: Run, now_ms: int) -> InputRequest:
    """Return the request to a person about a task that has fallen back to them, see ``fallback_handoff``."""
    failed = f"failed twice. {ended(outcome.error or 'Its agent did not say why')}"
    if record.route is Route.CLARIFY:
        text = f"It {failed} Which specialist should do it, or what should be done differently?"
        return InputRequest(kind=InputKind.CLARIFICATION, text=text, since_ms=now_ms)
    approval = partial(InputRequest, kind=InputKind.APPROVAL, since_ms=now_ms, agent=run.agent, run_id=run.id)
    if record.asked.to not in SUCCESSOR_FIELDS["fallback"]:
        refused = RefusedHandoff(to=record.asked.to, why=record.reason, fallback=True)
        return approval(text=failed, refused_handoff=refused)
    why = "Its card has a person decide"
    if record.asked.to != record.route:
        risky = record.risk not in (None, Risk.LOW)
        because = f"its risk is {record.risk}" if risky else f"it was handed on {record.hop} times"
        why = f"Nobody takes it over by default, as {because}"
    text = f"{failed} {why}. If you approve, {run.agent} continues with it"
    return approval(text=text, handoff=record.route.value)


def store_decision(connection: Connection, task: Task, record: HandoffRecord, now_ms: int) -> None:
    """Store the decision, unless one is already stored for the run."""
    if decided(connection, record.run_id) is None:
        record_handoff(connection, task, record, now_ms)


def apply_handoff_verdict(outcome: Outcome, record: HandoffRecord, spec: TaskSpec) -> Outcome:
    """Return the run's outcome given the handoff decision: if the handoff was refused, a person is asked or the run
    fails."""
    changes: dict[str, Any] = {"handoff": record.asked}
    if record.accepted:
        return outcome.model_copy(update=changes)
    changes |= {
        "refused_handoff": RefusedHandoff(to=record.asked.to, why=record.reason, fallback=record.fallback),
        "detail": None,
    }
    if spec.on_input is OnInput.WAIT:
        changes |= {"status": OutcomeStatus.NEEDS_INPUT, "reason": None, "question": None, "denied": ()}
    else:
        changes |= {"status": OutcomeStatus.FAILED, "reason": Reason.HANDOFF_REFUSED}
    return outcome.model_copy(update=changes)


def reassign_columns(
    connection: Connection, task: Task, spec: TaskSpec, record: HandoffRecord, now_ms: int
) -> dict[str, Any]:
    """Return the columns that have the task routed again, leaving the previous specialist's conversation, and whoever
    a person chose before; records the event."""
    data = {"from": record.by, "to": record.asked.to, "hop": record.hop}
    events.record(connection, now_ms, HANDED_ON, task_id=task.id, run_id=record.run_id, data=data)
    columns, request = rerouting_columns(task, spec), current_request(task)
    if request is not None and request.answer is not None:
        columns["asks"] = request.model_copy(update={"answer": None}).model_dump(mode="json")
    return columns


def rerouting_columns(task: Task, spec: TaskSpec) -> dict[str, Any]:
    """Return the columns that have another specialist found for the task; its conversation is given up."""
    before = resumption_of(task)
    kept = before is not None and (before.heard or before.follows is not None)
    resumption = before.model_copy(update={"given_up": True}) if before is not None and kept else None
    routed: Sequence[str] = ("specialist", "skill", "constraints", "tier", "asked_tier")
    return {**dict.fromkeys(routed), **columns_of(resumption, spec)}
