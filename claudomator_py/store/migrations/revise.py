"""For developers: write the next migration from the tables. ``python -m claudomator_py.store.migrations.revise TEXT``.

With ``--replace`` the newest migration is rewritten, unless it has been released. Review the result: a renamed column
looks like one dropped and one added.

When it is final, name it in ``store.migrations.SCHEMA``, and run this with ``--snapshot``, which writes the schema from
which new SQLite databases start.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import JSON, Connection, String, TypeDecorator

from claudomator_py.store.database import Database
from claudomator_py.store.migrate import alembic_config, migrate
from claudomator_py.store.migrations import NEW_DATABASE
from claudomator_py.store.tables import Task

# The newest released migration: it and earlier ones must not change.
FROZEN = "0023_run_ends"


def revise(message: str, *, replace: bool = False) -> Path:
    """Write the migration from the newest revision to the current tables, and return its file."""
    config = alembic_config()
    script = ScriptDirectory.from_config(config)
    newest = script.get_current_head()
    if replace and newest is not None and newest > FROZEN:
        Path(script.get_revision(newest).path).unlink()
        script = ScriptDirectory.from_config(config)
    number = 1 + max((int(revision.revision[:4]) for revision in script.walk_revisions()), default=0)
    name = f"{number:04}_{re.sub(r'[^a-z0-9]+', '_', message.lower()).strip('_')}"
    with tempfile.TemporaryDirectory() as folder, Database.open("sqlite", state_dir=Path(folder)) as database:
        if number > 1:
            migrate(database)
        with database.exclusive() as connection:
            config.attributes.update(
                connection=connection,
                metadata=Task.metadata,
                render_item=_render_item,
                render_as_batch=number > 1,  # SQLite changes a table by copying it; new tables need no copy
            )
            command.revision(config, message, autogenerate=True, rev_id=name)
    file = Path(script.versions) / f"{name}.py"
    file.write_text(re.sub(r"^ *# ### .*\n", "", file.read_text(), flags=re.MULTILINE))
    for tool in (["format"], ["check", "--fix"]):
        subprocess.run([sys.executable, "-m", "ruff", *tool, "--quiet", str(file)], check=True)
    return file


def _render_item(kind: str, item: Any, _context: object) -> str | Literal[False]:
    """Render a custom type as its plain SQL type, so that migrations do not change when custom types do."""
    plain = item.impl_instance if kind == "type" and isinstance(item, TypeDecorator) else None
    if isinstance(plain, JSON):
        return "sa.JSON()"
    return f"sa.String({plain.length or ''})" if isinstance(plain, String) else False


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


def main(arguments: Sequence[str] | None = None) -> None:
    """Write what the command line asks for, and print its path."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("message", nargs="?", help="what changes, in a few words")
    asked.add_argument("--snapshot", action="store_true", help="write the schema of new databases")
    parser.add_argument("--replace", action="store_true", help=f"write the newest again, if it is after {FROZEN}")
    given = parser.parse_args(arguments)
    if given.snapshot:
        NEW_DATABASE.write_text(snapshot(), encoding="utf-8")
    file = NEW_DATABASE if given.snapshot else revise(given.message, replace=given.replace)
    sys.stdout.write(f"{file}\n")


if __name__ == "__main__":
    main()
