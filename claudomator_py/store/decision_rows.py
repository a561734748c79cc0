"""Decisions, which are added and never changed, and the snapshots that they were made from."""

import hashlib
import json
import uuid
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from sqlalchemy import Connection, Select, bindparam, exists, insert, select

from claudomator_py.domain.units import named_id
from claudomator_py.scheduler.decision import DecisionKind
from claudomator_py.store.statement import Statement, loader, writer
from claudomator_py.store.tables import DECISION, SNAPSHOT, Decision
from claudomator_py.values import dataclass

decision_from = loader(Decision)
"""The row as a Decision."""
_stored = writer(DECISION)
_HASH = Statement(select(SNAPSHOT.c.hash).where(SNAPSHOT.c.hash == bindparam("digest")))
_ADD_SNAPSHOT = Statement(insert(SNAPSHOT))
_ADD = Statement(insert(DECISION))
_FIND = Statement(select(DECISION).where(DECISION.c.id == bindparam("decision")))
_OF_TASK = Statement(
    select(DECISION)
    .where(DECISION.c.task_id == bindparam("task"), DECISION.c.kind != DecisionKind.SHADOW.value)
    .order_by(DECISION.c.at_ms, DECISION.c.id)
)
_LATEST = Statement(
    select(DECISION)
    .where(
        DECISION.c.task_id == bindparam("task"),
        DECISION.c.kind == bindparam("of_kind"),
        DECISION.c.generation == bindparam("of_generation"),
    )
    .order_by(DECISION.c.at_ms.desc(), DECISION.c.id.desc())
    .limit(1)
)
_DECISIONS = uuid.UUID("0d0f5a52-5f0e-5c38-9c4e-6f6d0a1b7e55").bytes


def identity(kind: DecisionKind, about: str) -> str:
    """Return the id of the decision of that kind: the same for the same question, however often it is answered.

    about: what is decided once, such as the id of a run.
    """
    return named_id(_DECISIONS, f"{kind.value}/{about}")


@dataclass(frozen=True, slots=True)
class PackedSnapshot:
    """What a tick observed, as it is stored: by SHA-256 of its canonical JSON, which is compressed."""

    digest: str
    packed: bytes

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Return what was observed, as plain JSON."""
        canonical = json.dumps(data, sort_keys=True, separators=(",", ":")).encode()
        # The fastest level: on the way of each start, and half a percent larger than the slowest.
        return cls(hashlib.sha256(canonical).hexdigest(), zlib.compress(canonical, 1))


_MAX_SNAPSHOT_BYTES: Final = 256 * 1024 * 1024
"""Unpacked: far more than that of a tick with as many tasks and runs as there may be."""


def add_snapshot(connection: Connection, observed: PackedSnapshot, now_ms: int) -> None:
    """Store what a tick observed, once per content."""
    if _HASH.row(connection, digest=observed.digest) is None:
        _ADD_SNAPSHOT.run(connection, hash=observed.digest, packed=observed.packed, created_ms=now_ms)


def snapshot(connection: Connection, digest: str) -> dict[str, Any] | None:
    """Return what a tick observed, by its hash; None: it was removed for its age. Raises ValueError where it is
    damaged."""
    packed = connection.execute(select(SNAPSHOT.c.packed).where(SNAPSHOT.c.hash == digest)).scalar_one_or_none()
    if packed is None:
        return None
    try:
        unpacking = zlib.decompressobj()
        data = json.loads(unpacking.decompress(packed, _MAX_SNAPSHOT_BYTES))
    except (zlib.error, ValueError, RecursionError) as error:
        raise ValueError(f"the snapshot {digest[:12]} is damaged: {error}") from None
    if unpacking.unconsumed_tail or not isinstance(data, dict):
        raise ValueError(f"the snapshot {digest[:12]} is damaged: it is none")
    return data


def add(connection: Connection, decision: Decision) -> None:
    """Insert it. Raises IntegrityError if it, or another that supersedes the same one, already exists."""
    _ADD.run(connection, **_stored(decision))


def standing(connection: Connection, task_id: str, kind: DecisionKind) -> str | None:
    """Return the id of the task's decision of that kind that nothing has superseded; None: there is none."""
    found: str | None = _STANDING.value(connection, task=task_id, of_kind=kind.value)
    return found


def _standing() -> Select[str]:
    """See ``standing``."""
    later = DECISION.alias()
    query = select(DECISION.c.id).where(
        DECISION.c.task_id == bindparam("task"),
        DECISION.c.kind == bindparam("of_kind"),
        ~exists().where(later.c.supersedes == DECISION.c.id),
    )
    # Where retention has taken one out of the middle, what that had superseded stands again, but is older.
    return query.order_by(DECISION.c.at_ms.desc()).limit(1)


_STANDING = Statement(_standing())


def find(connection: Connection, decision_id: str) -> Decision | None:
    """Return the decision, if it is there."""
    row = _FIND.row(connection, decision=decision_id)
    return None if row is None else decision_from(row)


def latest(connection: Connection, task_id: str, kind: DecisionKind, generation: int) -> Decision | None:
    """Return the last decision of that kind about the task in that generation."""
    row = _LATEST.row(connection, task=task_id, of_kind=kind.value, of_generation=generation)
    return None if row is None else decision_from(row)


def of_task(connection: Connection, task_id: str) -> Sequence[Decision]:
    """Return all that was decided about the task, of every kind but shadows, oldest first."""
    return [decision_from(row) for row in _OF_TASK.rows(connection, task=task_id)]
