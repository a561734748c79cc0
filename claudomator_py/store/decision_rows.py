"""Rows of decisions, which are immutable, and of the snapshots that they were made from."""

import hashlib
import json
import uuid
import zlib
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Self

from sqlalchemy import Connection, Select, bindparam, exists, insert, select

from claudomator_py.domain.units import named_id
from claudomator_py.scheduler.records import DecisionKind
from claudomator_py.store.statement import Selection, Statement
from claudomator_py.store.stored_json import sound
from claudomator_py.store.tables import DECISION, SNAPSHOT, Decision
from claudomator_py.values import dataclass

_ADD_SNAPSHOT = Statement(
    insert(SNAPSHOT).from_select(
        list(SNAPSHOT.columns),
        select(*(bindparam(column.name, type_=column.type) for column in SNAPSHOT.columns)).where(
            ~exists().where(SNAPSHOT.c.hash == bindparam("hash"))
        ),
    )
)
_ADD = Statement(insert(DECISION))
_FIND = Selection(Decision, select(DECISION).where(DECISION.c.id == bindparam("decision")))
_OF_TASK = Selection(
    Decision,
    select(DECISION)
    .where(DECISION.c.task_id == bindparam("task"), DECISION.c.kind != DecisionKind.SHADOW.value)
    .order_by(DECISION.c.at_ms, DECISION.c.id),
)
_DATA = sound(DECISION.c.data)
_REFERENCES = Statement(
    select(DECISION.c.id, DECISION.c.kind, _DATA["reason"], _DATA["route"].as_string())
    .where(
        DECISION.c.task_id == bindparam("task"),
        DECISION.c.generation == bindparam("of_generation"),
        DECISION.c.kind.not_in([DecisionKind.PLACEMENT.value, DecisionKind.TRIAGE.value, DecisionKind.SHADOW.value]),
    )
    .order_by(DECISION.c.at_ms, DECISION.c.id)
)
# By kind, as a constant: see ``statement``.
_LATEST = {
    kind: Selection(
        Decision,
        select(DECISION)
        .where(
            DECISION.c.task_id == bindparam("task"),
            DECISION.c.kind == kind.value,
            DECISION.c.generation == bindparam("of_generation"),
        )
        .order_by(DECISION.c.at_ms.desc(), DECISION.c.id.desc())
        .limit(1),
    )
    for kind in DecisionKind
}
_DECISIONS = uuid.UUID("0d0f5a52-5f0e-5c38-9c4e-6f6d0a1b7e55").bytes


def identity(kind: DecisionKind, about: str) -> str:
    """Return a decision's id, which is the same however often the same question is decided. about: identifies the
    question, such as the id of a run."""
    return named_id(_DECISIONS, f"{kind.value}/{about}")


@dataclass(frozen=True, slots=True)
class PackedSnapshot:
    """A tick's snapshot as it is stored: the SHA-256 of its JSON, and the JSON compressed."""

    digest: str
    packed: bytes

    @classmethod
    def of(cls, text: str) -> Self:
        """Pack the JSON of a snapshot."""
        data = text.encode()
        # The fastest level, as each start waits for it; the slowest would be half a percent smaller. The usual window
        # and memory would take 120 µs to set up, ten times as long as compressing a snapshot, and make none smaller.
        packing = zlib.compressobj(1, wbits=13, memLevel=5)
        return cls(hashlib.sha256(data).hexdigest(), packing.compress(data) + packing.flush())


_MAX_SNAPSHOT_BYTES: Final = 256 * 1024 * 1024
"""Maximum size unpacked: far more than a tick with the maximum of tasks and runs needs."""


class Reference(NamedTuple):
    """What a run is told of a decision. reason: as it is stored, None if the row is damaged."""

    id: str
    kind: str
    reason: object
    route: str | None


def add_snapshot(connection: Connection, packed: PackedSnapshot, now_ms: int) -> None:
    """Store a tick's snapshot, once per content."""
    _ADD_SNAPSHOT.run(connection, hash=packed.digest, packed=packed.packed, created_ms=now_ms)


def snapshot(connection: Connection, digest: str) -> dict[str, Any] | None:
    """Return the snapshot with this hash, or None if retention removed it. Raises ValueError if it is damaged."""
    packed = connection.execute(select(SNAPSHOT.c.packed).where(SNAPSHOT.c.hash == digest)).scalar_one_or_none()
    if packed is None:
        return None
    try:
        unpacking = zlib.decompressobj()
        data = json.loads(unpacking.decompress(packed, _MAX_SNAPSHOT_BYTES))
    except (zlib.error, ValueError, RecursionError) as error:
        raise ValueError(f"the snapshot {digest[:12]} is damaged: {error}") from None
    if unpacking.unconsumed_tail or not isinstance(data, dict):
        raise ValueError(f"the snapshot {digest[:12]} is damaged: not an object, or too large")
    return data


def add(connection: Connection, decision: Decision) -> None:
    """Insert a decision. Raises IntegrityError if it, or another that supersedes the same one, exists."""
    _ADD.run_all(connection, [decision.stored()])


def current_id(connection: Connection, task_id: str, kind: DecisionKind) -> str | None:
    """Return the id of the task's decision of a kind that is not superseded, or None."""
    decision_id: str | None = _CURRENT[kind].value(connection, task=task_id)
    return decision_id


def _current(kind: DecisionKind) -> Select[str]:
    later = DECISION.alias()
    query = select(DECISION.c.id).where(
        DECISION.c.task_id == bindparam("task"),
        DECISION.c.kind == kind.value,
        ~exists().where(later.c.supersedes == DECISION.c.id),
    )
    # If retention removed a decision, the one that it superseded looks current again, but is older.
    return query.order_by(DECISION.c.at_ms.desc(), DECISION.c.id.desc()).limit(1)


_CURRENT = {kind: Statement(_current(kind)) for kind in DecisionKind}


def find(connection: Connection, decision_id: str) -> Decision | None:
    """Return the decision with this id, or None."""
    return _FIND.first(connection, decision=decision_id)


def current(connection: Connection, task_id: str, kind: DecisionKind) -> Decision | None:
    """Return the decision whose id ``current_id`` returns, or None."""
    decision_id = current_id(connection, task_id, kind)
    return None if decision_id is None else find(connection, decision_id)


def latest(connection: Connection, task_id: str, kind: DecisionKind, generation: int) -> Decision | None:
    """Return the last decision of a kind about a generation of the task, or None."""
    return _LATEST[kind].first(connection, task=task_id, of_generation=generation)


def of_task(connection: Connection, task_id: str) -> Sequence[Decision]:
    """Return the task's decisions of every kind but shadows, oldest first."""
    return _OF_TASK.all(connection, task=task_id)


def references(connection: Connection, task_id: str, generation: int) -> Sequence[Reference]:
    """Return the decisions on a generation of the task that are not about single runs, oldest first."""
    rows = _REFERENCES.rows(connection, task=task_id, of_generation=generation)
    return [Reference(*row) for row in rows]
