"""Labels of decisions, and how specialists have done, each for one organisation."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, Select, delete, insert, select, update

from claudomator_py.domain.learning import Verdict
from claudomator_py.store import remembered
from claudomator_py.store.tables import LABEL, STANDING, TASK_REVISION, Label, Standing

_REMEMBERED = "learning"
NO_ORGANISATION = ""
"""Of tasks that belong to none."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far learning has come."""

    event: int
    """The last event that was looked at."""
    version: int
    """Raised by whatever changes what was learned."""


def progress(connection: Connection) -> Progress | None:
    """How far it has come; None: it has not begun."""
    data = remembered.find(connection, _REMEMBERED)
    return Progress(int(data["event"]), int(data["version"])) if data else None


def version(connection: Connection) -> int:
    """Which state of what was learned this is."""
    now = progress(connection)
    return 0 if now is None else now.version


def keep_progress(connection: Connection, now: Progress) -> None:
    """Remember it."""
    remembered.keep(connection, _REMEMBERED, {"event": now.event, "version": now.version})


def label(connection: Connection, decision_id: str) -> Label | None:
    """That of the decision, if it has one."""
    row = connection.execute(select(LABEL).where(LABEL.c.decision_id == decision_id)).one_or_none()
    return None if row is None else Label(**row._mapping)


def put(connection: Connection, row: Label) -> None:
    """Store it in place of the one that the decision had."""
    values = {column.name: getattr(row, column.name) for column in LABEL.columns}
    connection.execute(delete(LABEL).where(LABEL.c.decision_id == row.decision_id))
    connection.execute(insert(LABEL), values)


def unlearned(connection: Connection, limit: int) -> Sequence[Label]:
    """The oldest labels that have moved nothing yet."""
    query = select(LABEL).where(LABEL.c.learned_ms.is_(None)).order_by(LABEL.c.at_ms, LABEL.c.decision_id).limit(limit)
    return [Label(**row._mapping) for row in connection.execute(query)]


def mark(connection: Connection, ids: Sequence[str], now_ms: int, *, forgotten: bool = False) -> None:
    """They were learned, or, if ``forgotten``, never will be."""
    values = {"learned_ms": now_ms} | ({"forgotten_ms": now_ms} if forgotten else {})
    connection.execute(update(LABEL).where(LABEL.c.decision_id.in_(ids)).values(**values))


def forget(connection: Connection, organisation: str | None, specialist: str | None, now_ms: int) -> int:
    """Have nothing count any more that was learned; how many labels that was.

    organisation: only that one's; None: anybody's. specialist: only what says something of this one; None: of anybody.
    """
    which: list[ColumnElement[bool]] = [LABEL.c.forgotten_ms.is_(None)]
    rows: list[ColumnElement[bool]] = []
    if organisation is not None:
        which.append(LABEL.c.organisation == organisation)
        rows.append(STANDING.c.organisation == organisation)
    if specialist is not None:
        which.append((LABEL.c.specialist == specialist) | (LABEL.c.wanted == specialist))
        rows.append(STANDING.c.specialist == specialist)
    connection.execute(delete(STANDING).where(*rows))
    return connection.execute(update(LABEL).where(*which).values(learned_ms=now_ms, forgotten_ms=now_ms)).rowcount


def standing(connection: Connection, organisation: str, specialist: str, topic: str) -> Standing | None:
    """How the specialist has done on that topic, empty for all together, if anything is known of that."""
    query = select(STANDING).where(
        STANDING.c.organisation == organisation, STANDING.c.specialist == specialist, STANDING.c.topic == topic
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else Standing(**row._mapping)


def put_standing(connection: Connection, row: Standing) -> None:
    """Store it in place of what was."""
    values = {column.name: getattr(row, column.name) for column in STANDING.columns}
    key = (
        STANDING.c.organisation == row.organisation,
        STANDING.c.specialist == row.specialist,
        STANDING.c.topic == row.topic,
    )
    connection.execute(delete(STANDING).where(*key))
    connection.execute(insert(STANDING), values)


def standings(connection: Connection, organisation: str | None) -> Sequence[Standing]:
    """All of that organisation, by specialist and topic; None: of all of them."""
    query = select(STANDING)
    if organisation is not None:
        query = query.where(STANDING.c.organisation == organisation)
    query = query.order_by(STANDING.c.specialist, STANDING.c.topic, STANDING.c.organisation)
    return [Standing(**row._mapping) for row in connection.execute(query)]


def overrides(connection: Connection, organisation: str, limit: int) -> Sequence[Label]:
    """The newest learned labels of tasks that an operator gave to another specialist."""
    query = _counting(organisation).where(LABEL.c.wanted.is_not(None))
    return _labels(connection, query, limit)


def confirmations(connection: Connection, organisation: str, limit: int) -> Sequence[Label]:
    """The newest learned labels of tasks that were right where they were."""
    query = _counting(organisation).where(LABEL.c.verdict == Verdict.POSITIVE.value, LABEL.c.specialist.is_not(None))
    return _labels(connection, query, limit)


def specs(connection: Connection, labels: Sequence[Label]) -> dict[str, dict[str, object]]:
    """The contents that were decided on, by decision, as far as their tasks are still there."""
    ids = [one.decision_id for one in labels]
    query = select(LABEL.c.decision_id, TASK_REVISION.c.spec).join(
        TASK_REVISION, (TASK_REVISION.c.task_id == LABEL.c.task_id) & (TASK_REVISION.c.revision == LABEL.c.revision)
    )
    return {row.decision_id: row.spec for row in connection.execute(query.where(LABEL.c.decision_id.in_(ids)))}


def _counting(organisation: str) -> Select[tuple[object, ...]]:
    return select(LABEL).where(
        LABEL.c.organisation == organisation, LABEL.c.learned_ms.is_not(None), LABEL.c.forgotten_ms.is_(None)
    )


def _labels(connection: Connection, query: Select[tuple[object, ...]], limit: int) -> Sequence[Label]:
    query = query.order_by(LABEL.c.at_ms.desc(), LABEL.c.decision_id).limit(limit)
    return [Label(**row._mapping) for row in connection.execute(query)]
