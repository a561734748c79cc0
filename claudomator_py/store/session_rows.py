"""Browsers that are logged in: what is kept of each, which is never what is in its cookie."""

from collections.abc import Collection, Sequence

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, not_, select, update

from claudomator_py.store.tables import BROWSER_SESSION, BrowserSession


def current(connection: Connection, issuer: str, now_ms: int) -> Sequence[BrowserSession]:
    """Return the sessions of that issuer which have neither ended nor expired."""
    query = select(BROWSER_SESSION).where(_is_current(issuer, now_ms))
    return [BrowserSession(**row._mapping) for row in connection.execute(query)]


def add(connection: Connection, session: BrowserSession) -> None:
    """Insert a new one, and let go of those that are over, or of another issuer."""
    connection.execute(delete(BROWSER_SESSION).where(not_(_is_current(session.issuer, session.created_ms))))
    values = {column.name: getattr(session, column.name) for column in BROWSER_SESSION.columns}
    connection.execute(insert(BROWSER_SESSION).values(values))


def note_use(connection: Connection, session_id: str, used_ms: int, expires_ms: int) -> None:
    """Write when it was last seen, and when it expires then."""
    changed = update(BROWSER_SESSION).where(BROWSER_SESSION.c.id == session_id)
    connection.execute(changed.values(used_ms=used_ms, expires_ms=expires_ms))


def end(connection: Connection, session_ids: Collection[str], now_ms: int) -> Sequence[BrowserSession]:
    """End them, permanently; those that had not ended before."""
    changed = update(BROWSER_SESSION).where(BROWSER_SESSION.c.id.in_(session_ids), BROWSER_SESSION.c.ended_ms.is_(None))
    ended = connection.execute(changed.values(ended_ms=now_ms).returning(*BROWSER_SESSION.c))
    return [BrowserSession(**row._mapping) for row in ended]


def _is_current(issuer: str, now_ms: int) -> ColumnElement[bool]:
    table = BROWSER_SESSION.c
    return and_(table.issuer == issuer, table.ended_ms.is_(None), table.expires_ms > now_ms)
