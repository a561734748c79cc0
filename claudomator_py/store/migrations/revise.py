"""For developers: write the next migration from the tables. ``python -m claudomator_py.store.migrations.revise TEXT``.

With ``--replace`` the newest migration is rewritten, unless it has been released. Review the result: a renamed column
looks like one dropped and one added.

When it is final, name it in ``store.schema.SCHEMA``, and run ``store.migrations.snapshot`` for the schema of new
databases.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Literal

from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import JSON, String, TypeDecorator

from claudomator_py.store.database import Database
from claudomator_py.store.migrate import alembic_config, migrate
from claudomator_py.store.tables import Task

# The newest released migration: it and earlier ones must not change.
FROZEN = "0020_tenants"


def revise(message: str, *, replace: bool = False) -> Path:
    """Write the migration from the newest revision to the current tables, and return its file."""
    config = alembic_config()
    script = ScriptDirectory.from_config(config)
    newest = script.get_current_head()
    if replace and newest is not None and newest > FROZEN:
        Path(script.get_revision(newest).path).unlink()
        script = ScriptDirectory.from_config(config)
    number = 1 + max((int(one.revision[:4]) for one in script.walk_revisions()), default=0)
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("message", help="what changes, in a few words")
    parser.add_argument("--replace", action="store_true", help=f"write the newest again, if it is after {FROZEN}")
    arguments = parser.parse_args()
    sys.stdout.write(f"{revise(arguments.message, replace=arguments.replace)}\n")
