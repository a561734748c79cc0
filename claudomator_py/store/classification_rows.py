"""Classification rows: what was asked about a task's tier, until when an answer counts, and what came of it."""

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, bindparam, func, insert, select, update

from claudomator_py.domain.agent import Tier
from claudomator_py.store import task_rows
from claudomator_py.store.tables import CLASSIFICATION, TIER_ANSWER, ClassificationRow

NEXT_DEADLINE = select(func.min(CLASSIFICATION.c.deadline_ms)).where(
    CLASSIFICATION.c.answered_ms.is_(None), CLASSIFICATION.c.deadline_ms > bindparam("now")
)
"""When the next open question is given up, in epoch milliseconds; see ``queue.next_times``."""

OPEN = "open"
DEFAULT = "default"
"""What a task's row says of a question without an answer, and of one that was answered with no tier."""


def find(connection: Connection, task_id: str, generation: int) -> ClassificationRow | None:
    """Return what was asked for this generation of the task, or None."""
    query = select(CLASSIFICATION).where(CLASSIFICATION.c.task_id == task_id, CLASSIFICATION.c.generation == generation)
    row = connection.execute(query).one_or_none()
    return None if row is None else ClassificationRow(**row._mapping)


def of_tasks(connection: Connection, task_ids: Collection[str]) -> Mapping[tuple[str, int], ClassificationRow]:
    """Return what was asked for these tasks, by task and generation."""
    query = select(CLASSIFICATION).where(CLASSIFICATION.c.task_id.in_(sorted(task_ids)))
    found = [ClassificationRow(**row._mapping) for row in connection.execute(query)]
    return {(row.task_id, row.generation): row for row in found}


def add(connection: Connection, row: ClassificationRow) -> None:
    """Insert the question; there is at most one for a generation."""
    values = {column.name: getattr(row, column.name) for column in CLASSIFICATION.columns}
    connection.execute(insert(CLASSIFICATION).values(values))
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
    """Record what came of the question. False: that was recorded before."""
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
    """Return the tier and the reason that were given for the same question before, or None."""
    row = connection.execute(
        select(TIER_ANSWER.c.tier, TIER_ANSWER.c.reason).where(TIER_ANSWER.c.key == key)
    ).one_or_none()
    return None if row is None else (Tier(row.tier), row.reason)


def remember(connection: Connection, key: str, tier: Tier, reason: str, now_ms: int) -> None:
    """Keep the answer for the same question; a newer one replaces it."""
    values = {"tier": tier.value, "reason": reason, "created_ms": now_ms}
    replaced = connection.execute(update(TIER_ANSWER).where(TIER_ANSWER.c.key == key).values(**values))
    if replaced.rowcount == 0:
        connection.execute(insert(TIER_ANSWER).values(key=key, **values))
