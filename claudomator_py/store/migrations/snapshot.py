"""For developers: write what all migrations make of an empty SQLite file, which is what a new database begins with.
``python -m claudomator_py.store.migrations.snapshot``, once a migration is as it is to be."""

import re
import sys
import tempfile
from pathlib import Path

from sqlalchemy import Connection

from claudomator_py.store.database import Database
from claudomator_py.store.migrate import migrate
from claudomator_py.store.schema import NEW_DATABASE

# Not what SQLite makes by itself: its own tables, and those in which a virtual table keeps what it holds.
_MADE = """
    SELECT sql FROM sqlite_master
    WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
      AND name NOT IN (SELECT name FROM pragma_table_list WHERE type = 'shadow')
    ORDER BY type = 'trigger', type = 'index', name
"""


def snapshot() -> str:
    """Return the statements that make it."""
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
