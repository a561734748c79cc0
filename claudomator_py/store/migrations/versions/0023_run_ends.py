"""The whole schema as it was before the first release: what every database begins with, and no older one exists."""

from pathlib import Path

from alembic import op

from claudomator_py.store.migrations import statements

revision = "0023_run_ends"
down_revision = None

_SCHEMA = Path(__file__).with_suffix(".sql")
# The text stays where it is; the triggers tell the index, in the words of SQLite's own documentation of FTS5.
_SQLITE = (
    """
    CREATE VIRTUAL TABLE specialist_text USING fts5(
        title, body, content='specialist_skill', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2'
    )
    """,
    """
    CREATE TRIGGER specialist_text_added AFTER INSERT ON specialist_skill BEGIN
        INSERT INTO specialist_text (rowid, title, body) VALUES (new.id, new.title, new.body);
    END
    """,
    """
    CREATE TRIGGER specialist_text_removed AFTER DELETE ON specialist_skill BEGIN
        INSERT INTO specialist_text (specialist_text, rowid, title, body)
        VALUES ('delete', old.id, old.title, old.body);
    END
    """,
    """
    CREATE TRIGGER specialist_text_changed AFTER UPDATE ON specialist_skill BEGIN
        INSERT INTO specialist_text (specialist_text, rowid, title, body)
        VALUES ('delete', old.id, old.title, old.body);
        INSERT INTO specialist_text (rowid, title, body) VALUES (new.id, new.title, new.body);
    END
    """,
)
_POSTGRESQL = (
    "CREATE INDEX specialist_text ON specialist_skill USING gin (to_tsvector('english', title || ' ' || body))",
)


def upgrade() -> None:
    """Bring the schema here from nothing."""
    dialect = op.get_bind().dialect.name
    for statement in statements(_for_dialect(_SCHEMA.read_text(encoding="utf-8"), dialect)):
        op.execute(statement)
    for statement in _POSTGRESQL if dialect == "postgresql" else _SQLITE:
        op.execute(statement)


def _for_dialect(script: str, dialect: str) -> str:
    """Return the lines for all databases and those for this one, without the names of databases."""
    lines = (line.partition(" -- ") for line in script.splitlines())
    return "\n".join(line for line, _, only in lines if line and only in ("", dialect))
