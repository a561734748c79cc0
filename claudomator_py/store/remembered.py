"""What is still to be known of rows that were removed for their age, by name."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, insert, select, update

from claudomator_py.store.tables import PRUNED


def find(connection: Connection, name: str) -> Mapping[str, Any]:
    """What is kept under that name; empty: nothing."""
    data: Mapping[str, Any] | None = connection.execute(
        select(PRUNED.c.data).where(PRUNED.c.name == name)
    ).scalar_one_or_none()
    return data or {}


def keep(connection: Connection, name: str, data: Mapping[str, Any]) -> None:
    """Keep this under that name, instead of what was."""
    changed = connection.execute(update(PRUNED).where(PRUNED.c.name == name).values(data=dict(data)))
    if changed.rowcount == 0:
        connection.execute(insert(PRUNED).values(name=name, data=dict(data)))
