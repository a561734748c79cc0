"""What is decided about a task: records of decisions, and the route that a decision gives it, each in a transaction."""

from collections.abc import Mapping

from sqlalchemy import Connection

from claudomator_py.domain.decision import message_ref
from claudomator_py.domain.lifecycle import STATE_NAMES, NeedsInput, Queued, Waiting
from claudomator_py.domain.routing import Routing
from claudomator_py.domain.transcript import intent_of
from claudomator_py.scheduler.decision import (
    DecisionKind,
    DecisionRecord,
    HandoffRecord,
    PolicyRecord,
    Record,
    ShadowRecord,
    SpecialistRecord,
    TierRecord,
    TriageRecord,
)
from claudomator_py.store import decision_rows, events, task_rows
from claudomator_py.store.tables import ChannelMessage, Decision, Run, Task

ROUTED = "routed"
"""The event: ``specialist``, ``skill``, ``risk`` and ``constraints``, as far as there are any."""
_BEFORE_A_RUN = frozenset(STATE_NAMES[state] for state in (Waiting, Queued, NeedsInput))


def route(
    connection: Connection, task: Task, routing: Routing, now_ms: int, *, lane: Mapping[str, str] | None = None
) -> Task:
    """Write where the task was routed in its present generation; it is in the lane that follows from that.

    lane: what follows for the agents that can take it, see ``scheduler.lanes``; None: nothing. task: as it was
    when it was decided. What was planned for its former lane is void, as its version rises; the lane of the task that
    this returns is still that one, see ``task_rows.change``. Raises
    VersionConflict if it has changed since, or neither waits for its run nor for a person.
    """
    if task.state not in _BEFORE_A_RUN:
        raise task_rows.VersionConflict(task.id, task.version)
    columns = {
        "specialist": routing.specialist,
        "skill": routing.skill,
        "risk": None if routing.risk is None else routing.risk.value,
        "constraints": routing.constraints.text,
    }
    changes = {**columns, **(lane or {})}
    if all(getattr(task, name) == value for name, value in changes.items()):
        return task
    changed = task_rows.change(connection, task, now_ms, **changes)
    data = {name: value for name, value in columns.items() if value not in (None, "{}")}
    events.record(connection, now_ms, ROUTED, task_id=task.id, data=data)
    return changed


def record_placement(connection: Connection, task: Task, run: Run, record: DecisionRecord, digest: str) -> None:
    """Record why the run starts where it does. digest: the address of the snapshot, which is stored already."""
    placed = {"run_id": run.id, "snapshot_hash": digest, "specialist": record.specialist, "skill": record.skill}
    decision = _decision(connection, task, DecisionKind.PLACEMENT, run.id, record, run.started_ms, **placed)
    decision_rows.add(connection, decision)


def record_tier(connection: Connection, task: Task, revision: int, record: TierRecord, now_ms: int) -> None:
    """Record what came of asking how strong a model the task needs in its present generation. revision: of which
    content."""
    about, of = f"{task.id}/{task.generation}", f"task:{task.id}/{revision}"
    decision = _decision(connection, task, DecisionKind.TIER, about, record, now_ms, input_ref=of)
    decision_rows.add(connection, decision)


def record_specialist(connection: Connection, task: Task, record: SpecialistRecord, now_ms: int) -> None:
    """Record who does the task in its present generation, or is to be asked for; with its intent, by fixed rules."""
    if record.intent is None:
        spec = task_rows.spec_of(connection, task.id, task.revision)
        record = record.model_copy(update={"intent": intent_of(spec.instructions) or None})
    about = f"{task.id}/{task.generation}/{task.version}"
    routed = {"specialist": record.specialist, "skill": record.skill}
    decision = _decision(connection, task, DecisionKind.SPECIALIST, about, record, now_ms, **routed)
    decision_rows.add(connection, decision)


def record_triage(
    connection: Connection, message: ChannelMessage, organisation: str | None, record: TriageRecord, now_ms: int
) -> None:
    """Record who answers a message. organisation: the channel's."""
    decision = Decision(
        id=decision_rows.identity(DecisionKind.TRIAGE, f"message:{message.id}"),
        kind=DecisionKind.TRIAGE.value,
        organisation=organisation,
        at_ms=now_ms,
        input_ref=message_ref(message.channel_id, message.id),
        specialist=record.agents[0] if len(record.agents) == 1 else None,
        confidence=record.confidence,
        latency_ms=record.latency_ms,
        data=record.model_dump(mode="json"),
    )
    decision_rows.add(connection, decision)


def record_handoff(connection: Connection, task: Task, record: HandoffRecord, now_ms: int) -> Decision:
    """Record to whom a run hands the task on: decided once for each run."""
    handed = {"run_id": record.run_id, "specialist": record.specialist, "input_ref": f"run:{record.run_id}"}
    decision = _decision(connection, task, DecisionKind.HANDOFF, record.run_id, record, now_ms, **handed)
    decision_rows.add(connection, decision)
    return decision


def record_policy(connection: Connection, task: Task, record: PolicyRecord, now_ms: int) -> None:
    """Record what the policy allows the task in its present generation."""
    about = f"{task.id}/{task.generation}/{task.version}/{record.verdict.value}"
    decision_rows.add(connection, _decision(connection, task, DecisionKind.POLICY, about, record, now_ms))


def record_shadow(connection: Connection, beside: Decision, record: ShadowRecord, now_ms: int) -> bool:
    """Record what another configuration would have decided in place of that decision; return whether it was not there
    yet."""
    about = f"{beside.id}/{record.about.value}/{record.versions.configuration}"
    identity = decision_rows.identity(DecisionKind.SHADOW, about)
    if decision_rows.find(connection, identity) is not None:
        return False
    decision = Decision(
        id=identity,
        kind=DecisionKind.SHADOW.value,
        task_id=beside.task_id,
        generation=beside.generation,
        organisation=beside.organisation,
        at_ms=now_ms,
        input_ref=beside.input_ref,
        specialist=record.specialist,
        skill=record.skill,
        topic=record.topic,
        confidence=record.confidence,
        latency_ms=record.latency_ms,
        data=record.model_dump(mode="json"),
    )
    decision_rows.add(connection, decision)
    return True


def approved_rules(connection: Connection, task: Task) -> frozenset[str]:
    """Return the rules of the policy whose demand for approval a person has met, for the task's present content."""
    standing = decision_rows.standing(connection, task.id, DecisionKind.POLICY)
    decision = None if standing is None else decision_rows.find(connection, standing)
    if decision is None or (decision.generation, decision.input_ref) != (task.generation, _input_ref(task)):
        return frozenset()
    return frozenset(PolicyRecord.model_validate(decision.data).approved)


def _input_ref(task: Task) -> str:
    return f"task:{task.id}/{task.revision}"


def _decision(
    connection: Connection,
    task: Task,
    kind: DecisionKind,
    about: str,
    record: Record,
    now_ms: int,
    **others: str | None,
) -> Decision:
    """others: columns that are of this kind, or that the task does not say."""
    return Decision(
        id=decision_rows.identity(kind, about),
        kind=kind.value,
        task_id=task.id,
        generation=task.generation,
        supersedes=decision_rows.standing(connection, task.id, kind),
        organisation=task.organisation,
        at_ms=now_ms,
        topic=record.topic,
        confidence=record.confidence,
        latency_ms=record.latency_ms,
        cost_usd=record.cost_usd,
        data=record.model_dump(mode="json"),
        **{"input_ref": _input_ref(task), **others},
    )
