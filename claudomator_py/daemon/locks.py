"""The lock that makes one daemon the only one on a state folder."""

import fcntl
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.errors import CannotServe
from claudomator_py.store import remembered
from claudomator_py.store.database import Database

LOCK_FILE = "daemon.lock"
_PROBED_S = (0.01, 0.03, 0.1)


class StateInUse(CannotServe):
    """Another daemon uses the state folder; the message names it and says what to do."""


@contextmanager
def hold_state(state: Path, announced: Iterable[str] = ()) -> Iterator[Callable[[], bool]]:
    """Hold the lock; gives a look at whether the folder is still in its place. Raises StateInUse, OSError.

    announced: files by which a daemon says where it listens. Those of a killed one are removed before the lock names
    this process, so what is announced is always by the process that the lock names.
    """
    path = state / LOCK_FILE
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        if not _locked(descriptor):
            raise StateInUse(
                f"another daemon (pid {_holder(descriptor)}) uses {state}; stop it first, or choose another --state-dir"
            )
        os.ftruncate(descriptor, 0)
        for name in announced:
            (state / name).unlink(missing_ok=True)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        crashpoint("daemon-locked")
        yield lambda: _leads_to(path, descriptor)
    finally:
        os.close(descriptor)


def holder(state: Path) -> str | None:
    """Return the pid of the daemon that holds a state folder, or ``unknown``; None: no daemon of this machine does."""
    try:
        descriptor = os.open(state / LOCK_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder(descriptor)
    finally:
        os.close(descriptor)
    return None


def _locked(descriptor: int) -> bool:
    """Whether the lock is ours now. Whoever only asks for its holder has it for an instant, which is waited for."""
    for pause_s in (*_PROBED_S, None):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if pause_s is not None:
                time.sleep(pause_s)
        else:
            return True
    return False


def _holder(descriptor: int) -> str:
    return os.pread(descriptor, 64, 0).decode(errors="replace").strip() or "unknown"


def _leads_to(path: Path, descriptor: int) -> bool:
    """Whether the path still leads to the open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except OSError:
        return False


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
