"""Migration of a database to this version's schema, after a backup. A newer schema is refused."""

import time
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.store import StoreUnavailable, explain
from claudomator_py.store.database import Database
from claudomator_py.values import dataclass

BACKUPS = "backups"
MAX_COPIES = 3
"""Backups kept per revision, the newest ones."""


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """The result of a migration. before: None for a new database. applied: revisions in order. backup: the copy made
    before; None for a new or unchanged database, or with PostgreSQL."""

    before: str | None
    after: str
    applied: tuple[str, ...]
    backup: Path | None


def alembic_config() -> Config:
    """Return the configuration of Alembic, with the migrations of the installed package."""
    config = Config()
    config.set_main_option("script_location", "claudomator_py.store:migrations")
    config.set_main_option("path_separator", "os")
    config.set_main_option("file_template", "%%(rev)s")
    return config


def is_described(name: str | None, _kind: str, _parents: object) -> bool:
    """Return whether Alembic should compare the table with the code's metadata. The full-text index is not in the
    metadata: migrations create a different kind for each database."""
    return name is None or not name.startswith("specialist_text")


def migrate(database: Database) -> MigrationReport:
    """Migrate the database to the newest revision in one transaction.

    An existing SQLite file is first copied to ``<state_dir>/backups``. Raises StoreUnavailable if the schema is newer
    than this version or too old, the database is locked, the backup has no room, or a migration fails.
    """
    config = alembic_config()
    script = ScriptDirectory.from_config(config)
    known = tuple(reversed([revision.revision for revision in script.walk_revisions()]))
    newest = known[-1]
    if database.read(_revision) == newest:
        return MigrationReport(before=newest, after=newest, applied=(), backup=None)
    backup = None
    with database.exclusive() as connection:
        before = _revision(connection)
        if before is not None and before < known[0]:
            raise StoreUnavailable(
                f"the database has schema {before}, from before the first that this version upgrades ({known[0]})",
                f"start a version that knows both schemas once, or move {database.state_dir} away to start empty",
            )
        if before is not None and before not in known:
            raise StoreUnavailable(
                f"the database has schema {before}, which is newer than this version of Claudomator ({newest})",
                f"install the newer version again, or restore a file of {database.state_dir / BACKUPS}",
            )
        if before is not None and before != newest and database.file is not None:
            backup = _backup(database, before)
        try:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            _check_references(connection)
            crashpoint("schema-changed")
        except DBAPIError as error:
            raise explain(error) or StoreUnavailable(
                f"the schema could not be changed from {before} to {newest} ({error.orig}); nothing was changed",
                "install the version that was used before, and report this",
            ) from error
    start = 0 if before is None else known.index(before) + 1
    return MigrationReport(before=before, after=newest, applied=known[start:], backup=backup)


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _backup(database: Database, revision: str) -> Path:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    target = database.state_dir / BACKUPS / f"claudomator-{revision}-{stamp}.db"
    database.backup(target)
    # A migration that is retried again and again must not fill the disk.
    for former in sorted(target.parent.glob(f"claudomator-{revision}-*.db"))[:-MAX_COPIES]:
        former.unlink(missing_ok=True)
    return target


def _check_references(connection: Connection) -> None:
    """Check SQLite's foreign keys, which are off while tables are rebuilt. Raises StoreUnavailable."""
    if connection.dialect.name != "sqlite":
        return
    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
    if broken is not None:
        raise StoreUnavailable(
            f"the migration would break a reference of table {broken[0]} to {broken[2]}; nothing was changed",
            "install the version that was used before, and report this",
        )
