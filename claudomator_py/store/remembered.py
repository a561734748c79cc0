"""What is to be known and no other row says, by name: sums of rows that were removed, and where the daemon works."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from claudomator_py.store.statement import Statement
from claudomator_py.store.tables import REMEMBERED

# Asked with each decision on a task.
_FIND = Statement(select(REMEMBERED.c.data).where(REMEMBERED.c.name == bindparam("of")))


def find(connection: Connection, name: str) -> Mapping[str, Any]:
    """Return what is kept under that name; empty: nothing."""
    data: Mapping[str, Any] | None = _FIND.value(connection, of=name)
    return data or {}


def keep(connection: Connection, name: str, data: Mapping[str, Any]) -> None:
    """Keep this under that name, instead of what was."""
    changed = connection.execute(update(REMEMBERED).where(REMEMBERED.c.name == name).values(data=dict(data)))
    if changed.rowcount == 0:
        connection.execute(insert(REMEMBERED).values(name=name, data=dict(data)))
