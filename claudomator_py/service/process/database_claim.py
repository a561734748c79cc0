"""Whose the database is: two daemons, on it and on a copy, or from two state folders, would start the same runs."""

from functools import partial
from pathlib import Path

from claudomator_py.service.process.state_lock import StateInUse, holder
from claudomator_py.store import remembered
from claudomator_py.store.database import Database

_HOME = "home"


def claim_database(database: Database, state: Path) -> None:
    """Write down that the daemon on this state folder works on it. Raises StateInUse where one of this machine, on
    another folder, has the same database or that of which it is a copy; StoreUnavailable."""
    here = {"state_dir": str(state.resolve())}
    claimed = database.read(partial(remembered.find, name=_HOME))
    if claimed == here:
        return
    there = claimed.get("state_dir")
    pid = None if there is None else holder(Path(there))
    if pid is not None:
        raise StateInUse(
            f"the database is that of the daemon on {there} (pid {pid}), or a copy of it; stop that one first: "
            "both would start what is queued, and end each other's runs"
        )
    database.write(partial(remembered.keep, name=_HOME, data=here))
