"""Recording decisions about a task, and applying the route that a decision gives it, each in a transaction."""

from collections.abc import Mapping

from sqlalchemy import Connection

from claudomator_py.domain.decision import message_ref
from claudomator_py.domain.lifecycle import STATE_NAMES, NeedsInput, Queued, Waiting
from claudomator_py.domain.routing import TaskRoute
from claudomator_py.scheduler.records import (
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
"""Event whose data has those of ``specialist``, ``skill``, ``risk`` and ``constraints`` that are set."""
_BEFORE_A_RUN = frozenset(STATE_NAMES[state] for state in (Waiting, Queued, NeedsInput))


def route(
    connection: Connection, task: Task, routing: TaskRoute, now_ms: int, *, lane: Mapping[str, str] | None = None
) -> Task:
    """Write the route of the task's current generation, and move the task to the lane that follows from it.

    lane: columns of the new lane, see ``scheduler.lanes``; None: the lane is unchanged. task: as it was when the
    decision was made. Its version rises, which voids anything planned for the old lane; the returned task still shows
    the old lane, see ``task_rows.change``. Raises VersionConflict if the task has changed since, or waits neither for
    its run nor for a person.
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
    """Record why the run starts where it does. digest: address of the snapshot, which is already stored."""
    placed = {"run_id": run.id, "snapshot_hash": digest, "specialist": record.specialist, "skill": record.skill}
    _record(connection, task, DecisionKind.PLACEMENT, run.id, record, run.started_ms, **placed)


def record_tier(connection: Connection, task: Task, revision: int, record: TierRecord, now_ms: int) -> None:
    """Record the tier decision (how strong a model is needed) for the task's current generation. revision: the
    content that was judged."""
    about, of = f"{task.id}/{task.generation}", f"task:{task.id}/{revision}"
    _record(connection, task, DecisionKind.TIER, about, record, now_ms, input_ref=of)


def record_specialist(connection: Connection, task: Task, record: SpecialistRecord, now_ms: int) -> None:
    """Record which specialist does the task's current generation, or must be asked for."""
    about = f"{task.id}/{task.generation}/{task.version}"
    routed = {"specialist": record.specialist, "skill": record.skill}
    _record(connection, task, DecisionKind.SPECIALIST, about, record, now_ms, **routed)


def record_triage(
    connection: Connection, message: ChannelMessage, organisation: str | None, record: TriageRecord, now_ms: int
) -> None:
    """Record who answers a message. organisation: the channel's organisation."""
    about = message_ref(message.channel_id, message.id)
    decision = Decision(
        # With the channel: SQLite gives the ids of a deleted channel's last messages again.
        id=decision_rows.identity(DecisionKind.TRIAGE, about),
        kind=DecisionKind.TRIAGE.value,
        organisation=organisation,
        at_ms=now_ms,
        input_ref=about,
        specialist=record.agents[0] if len(record.agents) == 1 else None,
        confidence=record.confidence,
        latency_ms=record.latency_ms,
        data=record.model_dump(mode="json"),
    )
    decision_rows.add(connection, decision)


def record_handoff(connection: Connection, task: Task, record: HandoffRecord, now_ms: int) -> None:
    """Record the specialist to which a run hands off the task: at most one decision per run."""
    handed = {"run_id": record.run_id, "specialist": record.specialist, "input_ref": f"run:{record.run_id}"}
    _record(connection, task, DecisionKind.HANDOFF, record.run_id, record, now_ms, **handed)


def record_policy(connection: Connection, task: Task, record: PolicyRecord, now_ms: int) -> None:
    """Record what the policy allows the task's current generation."""
    about = f"{task.id}/{task.generation}/{task.version}/{record.verdict.value}"
    _record(connection, task, DecisionKind.POLICY, about, record, now_ms)


def record_shadow(connection: Connection, beside: Decision, record: ShadowRecord, now_ms: int) -> bool:
    """Record what another configuration would have decided instead; return False if that is already recorded."""
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
    """Return the policy rules whose demand for approval a person has met, for the task's current content."""
    decision = decision_rows.current(connection, task.id, DecisionKind.POLICY)
    if decision is None or (decision.generation, decision.input_ref) != (task.generation, _input_ref(task)):
        return frozenset()
    return frozenset(PolicyRecord.model_validate(decision.data).approved)


def _input_ref(task: Task) -> str:
    return f"task:{task.id}/{task.revision}"


def _record(
    connection: Connection,
    task: Task,
    kind: DecisionKind,
    about: str,
    record: Record,
    now_ms: int,
    **others: str | None,
) -> None:
    """Record the decision. others: columns specific to the kind, or that the task does not determine."""
    is_first = kind is DecisionKind.PLACEMENT and task.last_run_id is None
    decision = Decision(
        id=decision_rows.identity(kind, about),
        kind=kind.value,
        task_id=task.id,
        generation=task.generation,
        supersedes=None if is_first else decision_rows.current_id(connection, task.id, kind),
        organisation=task.organisation,
        at_ms=now_ms,
        topic=record.topic,
        confidence=record.confidence,
        latency_ms=record.latency_ms,
        cost_usd=record.cost_usd,
        data=record.model_dump(mode="json"),
        **{"input_ref": _input_ref(task), **others},
    )
    decision_rows.add(connection, decision)
