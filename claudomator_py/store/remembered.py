"""Named values that no other row holds, such as sums of removed rows."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from claudomator_py.store.statement import Statement
from claudomator_py.store.tables import REMEMBERED

# Compiled once, as each decision on a task runs it.
_FIND = Statement(select(REMEMBERED.c.data).where(REMEMBERED.c.name == bindparam("of")))


def find(connection: Connection, name: str) -> Mapping[str, Any]:
    """Return the value with this name; empty if there is none."""
    data: Mapping[str, Any] | None = _FIND.value(connection, of=name)
    return data or {}


def keep(connection: Connection, name: str, data: Mapping[str, Any]) -> None:
    """Store the value under this name, replacing the former one."""
    changed = connection.execute(update(REMEMBERED).where(REMEMBERED.c.name == name).values(data=dict(data)))
    if changed.rowcount == 0:
        connection.execute(insert(REMEMBERED).values(name=name, data=dict(data)))
