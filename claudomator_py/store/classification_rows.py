"""Rows of classification: questions about a task's tier, with their deadlines and answers."""

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, bindparam, func, insert, select, update

from claudomator_py.domain.agent import Tier
from claudomator_py.store import task_rows
from claudomator_py.store.tables import CLASSIFICATION, TIER_ANSWER, ClassificationRow

NEXT_DEADLINE = select(func.min(CLASSIFICATION.c.deadline_ms)).where(
    CLASSIFICATION.c.answered_ms.is_(None), CLASSIFICATION.c.deadline_ms > bindparam("now")
)
"""The next deadline of an open question, in epoch milliseconds; see ``tick_rows.next_times``."""

OPEN = "open"
DEFAULT = "default"
"""What a task's row says for an open question, and for one answered without a tier."""


def find(connection: Connection, task_id: str, generation: int) -> ClassificationRow | None:
    """Return the question for this generation of the task, or None."""
    return ClassificationRow.find(
        connection, CLASSIFICATION.c.task_id == task_id, CLASSIFICATION.c.generation == generation
    )


def of_tasks(connection: Connection, task_ids: Collection[str]) -> Mapping[tuple[str, int], ClassificationRow]:
    """Return the questions for these tasks, by task id and generation."""
    query = select(CLASSIFICATION).where(CLASSIFICATION.c.task_id.in_(sorted(task_ids)))
    rows = ClassificationRow.rows(connection, query)
    return {(row.task_id, row.generation): row for row in rows}


def add(connection: Connection, row: ClassificationRow) -> None:
    """Insert the question. A generation has at most one."""
    row.insert(connection)
    task_rows.note_asked_tier(connection, row.task_id, row.generation, OPEN)


def answer(
    connection: Connection,
    task_id: str,
    generation: int,
    *,
    source: str,
    tier: Tier | None,
    cause: str | None,
    detail: str | None,
    said_agent: str | None,
    now_ms: int,
) -> bool:
    """Record the answer to the question. Return False if one was recorded before."""
    written = connection.execute(
        update(CLASSIFICATION)
        .where(
            CLASSIFICATION.c.task_id == task_id,
            CLASSIFICATION.c.generation == generation,
            CLASSIFICATION.c.answered_ms.is_(None),
        )
        .values(
            answered_ms=now_ms,
            source=source,
            tier=tier.value if tier is not None else None,
            cause=cause,
            detail=detail,
            said_agent=said_agent,
        )
    )
    if written.rowcount != 1:
        return False
    task_rows.note_asked_tier(connection, task_id, generation, DEFAULT if tier is None else tier.value)
    return True


def cached(connection: Connection, key: str) -> tuple[Tier, str] | None:
    """Return the cached tier and reason for the same question, or None."""
    row = connection.execute(
        select(TIER_ANSWER.c.tier, TIER_ANSWER.c.reason).where(TIER_ANSWER.c.key == key)
    ).one_or_none()
    return None if row is None else (Tier(row.tier), row.reason)


def remember(connection: Connection, key: str, tier: Tier, reason: str, now_ms: int) -> None:
    """Cache the answer for the same question, replacing an older one."""
    values = {"tier": tier.value, "reason": reason, "created_ms": now_ms}
    replaced = connection.execute(update(TIER_ANSWER).where(TIER_ANSWER.c.key == key).values(**values))
    if replaced.rowcount == 0:
        connection.execute(insert(TIER_ANSWER).values(key=key, **values))
