"""For developers: write the schema that all migrations produce, from which new SQLite databases start.
``python -m claudomator_py.store.migrations.snapshot``, when a migration is final."""

import re
import sys
import tempfile
from pathlib import Path

from sqlalchemy import Connection

from claudomator_py.store.database import Database
from claudomator_py.store.migrate import migrate
from claudomator_py.store.schema import NEW_DATABASE

# Without SQLite's own tables and the shadow tables of virtual tables.
_MADE = """
    SELECT sql FROM sqlite_master
    WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
      AND name NOT IN (SELECT name FROM pragma_table_list WHERE type = 'shadow')
    ORDER BY type = 'trigger', type = 'index', name
"""


def snapshot() -> str:
    """Return the SQL statements that create the schema."""
    with tempfile.TemporaryDirectory() as folder, Database.open("sqlite", state_dir=Path(folder)) as database:
        migrate(database)
        return database.read(_statements)


def _statements(connection: Connection) -> str:
    made = [re.sub(r" +$", "", statement, flags=re.MULTILINE) for (statement,) in connection.exec_driver_sql(_MADE)]
    stamp = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one()
    stamped = f"INSERT INTO alembic_version (version_num) VALUES ('{stamp}')"  # noqa: S608 - a revision of ours
    return "".join(f"{statement};\n" for statement in [*made, stamped])


if __name__ == "__main__":
    NEW_DATABASE.write_text(snapshot(), encoding="utf-8")
    sys.stdout.write(f"{NEW_DATABASE}\n")
