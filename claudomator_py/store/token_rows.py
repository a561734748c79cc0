"""API tokens: what is kept of each, which is never the token itself."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, insert, select, update

from claudomator_py.store.tables import API_TOKEN, ApiToken


def add(connection: Connection, token: ApiToken) -> None:
    """Insert a new one. Raises IntegrityError for a name that was given before."""
    values = {column.name: getattr(token, column.name) for column in API_TOKEN.columns}
    connection.execute(insert(API_TOKEN).values(values))


def all_given(connection: Connection) -> Sequence[ApiToken]:
    """Return every token that was ever given out, the newest first."""
    query = select(API_TOKEN).order_by(API_TOKEN.c.created_ms.desc(), API_TOKEN.c.id)
    return [ApiToken(**row._mapping) for row in connection.execute(query)]


def find(connection: Connection, ref: str) -> ApiToken | None:
    """Return the token of that id, else the one of that name."""
    row = connection.execute(select(API_TOKEN).where(API_TOKEN.c.id == ref)).one_or_none()
    return named(connection, ref) if row is None else ApiToken(**row._mapping)


def named(connection: Connection, name: str) -> ApiToken | None:
    """Return the token of that name."""
    row = connection.execute(select(API_TOKEN).where(API_TOKEN.c.name == name)).one_or_none()
    return None if row is None else ApiToken(**row._mapping)


def change(connection: Connection, token_id: str, **changes: Any) -> None:
    """Write the columns."""
    connection.execute(update(API_TOKEN).where(API_TOKEN.c.id == token_id).values(**changes))
