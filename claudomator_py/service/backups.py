"""Copies of the database, made while the daemon works: each is the state at one moment, and whole."""

from pathlib import Path

from claudomator_py.domain.units import format_instant
from claudomator_py.domain.views import BackupView
from claudomator_py.ports import Clock
from claudomator_py.store import transactions
from claudomator_py.store.database import Database

FOLDER = "backups"


def make_backup(database: Database, clock: Clock) -> BackupView:
    """A new file (0600) in the folder of backups. Raises Unavailable: no room, or PostgreSQL, which has its own way."""
    made = format_instant(clock())
    stamp = made.translate({ord(mark): None for mark in "-:."})
    target = Path(database.state_dir, FOLDER, f"claudomator-{stamp}.db")
    with transactions.or_unavailable():
        database.backup(target)
    return BackupView(path=str(target), bytes=target.stat().st_size, created_at=made)
