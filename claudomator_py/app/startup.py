"""What the daemon does at its start before anything is assembled: configuration, service manager, token, database."""

import faulthandler
import os
import sys
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection

from claudomator_py import __version__
from claudomator_py.api.guard.operator_token import credential_token, ensure_token
from claudomator_py.app.configured import load_trusted, now_ms
from claudomator_py.daemon.reload import ConfigurationRefused
from claudomator_py.daemon.systemd import VARIABLES, Notifier
from claudomator_py.domain.redaction import Redactor
from claudomator_py.environment.secrets import token_file
from claudomator_py.imports import bulk_import
from claudomator_py.log import get_logger
from claudomator_py.schema.cardfile import files_hash, shipped_cards, shipped_files
from claudomator_py.schema.configfile import ConfigError, LoadedConfig, load_config
from claudomator_py.schema.configpath import CONFIG_VARIABLE, find_config
from claudomator_py.store import remembered
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.events import record
from claudomator_py.store.migrations import begin, is_current
from claudomator_py.tasks.specialists import ship
from claudomator_py.texts import escaped

log = get_logger("claudomator")

SHIPPED_CARDS = "shipped_cards"
"""Name under which the hash of the cards shipped with the last version is stored."""
MIGRATION_S = 600


def load(named: Path | None) -> LoadedConfig:
    """Return the named configuration, else a discovered one, else the defaults. Raises ConfigError."""
    path = find_config(named, os.environ, Path.cwd())
    is_named = named is not None or bool(os.environ.get(CONFIG_VARIABLE))
    return load_config(None) if path is None else load_trusted(path, named=is_named)


def read_again(path: Path | None) -> LoadedConfig:
    """Return the configuration of the file used at the start or, if there was none, of one created since.

    Raises ConfigurationRefused.
    """
    try:
        return load(path)
    except ConfigError as error:
        raise ConfigurationRefused(str(error)) from error


def service_manager() -> Notifier:
    """Return the notifier of the service manager; its address is hidden from everything that the daemon starts."""
    notifier = Notifier.from_environ(os.environ)
    for name in VARIABLES:
        os.environ.pop(name, None)
    if notifier.watchdog_s is not None:
        faulthandler.enable()  # systemd's watchdog sends SIGABRT to a daemon that hangs: log where it hung
    return notifier


def migrate_database(database: Database, notifier: Notifier) -> None:
    """Migrate the database unless it already has this version. Raises StoreUnavailable."""
    # A new database starts from a stored schema; if that is older than this version, it is migrated like any other.
    if not (is_current(database) or (begin(database) and is_current(database))):
        notifier.status("migrating the database")
        notifier.extend_timeout(MIGRATION_S)
        with bulk_import():
            from claudomator_py.store.migrate import migrate  # imported late, as it loads alembic

        report = migrate(database)
        if report.before is not None:
            log.info("database_migrated", before=report.before, after=report.after, backup=str(report.backup or "none"))


def ship_cards(database: Database, *, wanted: bool) -> None:
    """Bring the registry's shipped cards to this version. wanted: if false, remove them all."""
    contents = shipped_files() if wanted else {}
    shipped = {"hash": files_hash(contents)}
    try:
        there = database.read(lambda connection: remembered.find(connection, SHIPPED_CARDS))
        if there == shipped or not (there or wanted):
            return
        cards = shipped_cards(contents)

        def put(connection: Connection) -> None:
            ship(connection, cards, now_ms())
            remembered.keep(connection, SHIPPED_CARDS, shipped)

        database.write(put)
    except StoreUnavailable as error:
        # A full disk must not keep the daemon from starting and reporting it: the next start ships the cards.
        log.warning("cards_not_shipped", problem=str(error))


def operator_token(state: Path) -> str:
    """Return the operator's token: the service manager's credential, else the one in the state folder."""
    credential = token_file(os.environ)
    return ensure_token(state) if credential is None else credential_token(credential)


def note_start(database: Database) -> None:
    """Record that a daemon has started; if the store fails, the ticks report it."""
    with suppress(StoreUnavailable):
        database.write(lambda connection: record(connection, now_ms(), "daemon_started", data={"version": __version__}))


def print_refusal(text: str) -> None:
    """Say on stderr why the daemon does not start, with secrets removed from the text."""
    sys.stderr.write(f"{escaped(Redactor().redact(text))}\n")
