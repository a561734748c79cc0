"""What was decided about a task, written in the transaction in which it takes effect."""

from sqlalchemy import Connection

from claudomator_py.scheduler.decision import DecisionKind, DecisionRecord, Record, TierRecord
from claudomator_py.store import decision_rows
from claudomator_py.store.tables import Decision, Run, Task


def record_placement(connection: Connection, task: Task, run: Run, record: DecisionRecord, digest: str) -> None:
    """Why the run starts where it does. digest: the address of the snapshot, which is stored already."""
    decision = _decision(connection, task, DecisionKind.PLACEMENT, run.id, record, run.started_ms)
    decision.run_id, decision.snapshot_hash = run.id, digest
    decision.specialist, decision.skill = record.specialist, record.skill
    decision_rows.add(connection, decision)


def record_tier(connection: Connection, task: Task, revision: int, record: TierRecord, now_ms: int) -> None:
    """What came of asking how strong a model the task needs in its present generation. revision: of which content."""
    decision = _decision(connection, task, DecisionKind.TIER, f"{task.id}/{task.generation}", record, now_ms)
    decision.input_ref = f"task:{task.id}/{revision}"
    decision_rows.add(connection, decision)


def _decision(
    connection: Connection, task: Task, kind: DecisionKind, about: str, record: Record, now_ms: int
) -> Decision:
    return Decision(
        id=decision_rows.identity(kind, about),
        kind=kind.value,
        task_id=task.id,
        generation=task.generation,
        supersedes=decision_rows.standing(connection, task.id, kind),
        organisation=task.organisation,
        at_ms=now_ms,
        input_ref=f"task:{task.id}/{task.revision}",
        topic=record.topic,
        confidence=record.confidence,
        latency_ms=record.latency_ms,
        cost_usd=record.cost_usd,
        data=record.model_dump(mode="json"),
    )
