"""Whether a database has the schema of this version, told without alembic: importing that costs a tenth of a start."""

from sqlalchemy import Connection, column, inspect, select, table

from claudomator_py.store.database import Database

SCHEMA = "0012_replay"
"""The newest migration."""

_STAMP = table("alembic_version", column("version_num"))


def is_current(database: Database) -> bool:
    """Whether there is nothing to migrate. Raises StoreUnavailable."""
    return database.read(_stamped) == SCHEMA


def _stamped(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_STAMP.name):
        return None
    found: str | None = connection.execute(select(_STAMP.c.version_num)).scalar()
    return found
