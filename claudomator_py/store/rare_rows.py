"""Which rows that are rarely there a tick has to read: asked by one statement, where reading each kind takes one."""

from typing import Any, NamedTuple

from sqlalchemy import Connection, exists, select

from claudomator_py.store import hold_rows, queue, run_rows, specialist_rows
from claudomator_py.store.statement import Statement
from claudomator_py.store.tables import SWITCH


class RareRows(NamedTuple):
    """Whether there are any rows of each kind."""

    holds: bool
    """See ``hold_rows.in_force_and_over``."""
    warned: bool
    """See ``run_rows.warned``."""
    specialists: bool
    drained: bool
    """Whether nothing is to be started anywhere."""
    kept: bool
    """See ``queue.kept``."""
    in_turn: bool
    """See ``queue.in_turn``."""
    due: bool
    """See ``queue.due``."""
    intent: bool
    """See ``queue.with_intent``."""


_KINDS: tuple[Any, ...] = (
    exists().where(hold_rows.IN_FORCE_OR_OVER),
    exists().where(run_rows.NEAR_LIMIT),
    exists().where(specialist_rows.REGISTERED),
    exists().where(SWITCH.c.name == hold_rows.DRAIN),
    exists().where(*queue.STILL_KEPT),
    queue.select_in_turn().exists(),
    exists().where(queue.DUE[0]) | exists().where(queue.DUE[1]),
    exists().where(queue.WITH_INTENT),
)
_PRESENT = Statement(select(*_KINDS))


def present(connection: Connection, now_ms: int) -> RareRows:
    """Return which of these rows there are."""
    return RareRows(*_PRESENT.rows(connection, now=now_ms)[0])
