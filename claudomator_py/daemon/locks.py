"""The lock that allows only one daemon per state folder."""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.errors import CannotServe
from claudomator_py.log import get_logger
from claudomator_py.private_files import replacing
from claudomator_py.schema.configfile import LoadedConfig
from claudomator_py.schema.configpath import DaemonRecord, digest_of, records_folder
from claudomator_py.store import remembered
from claudomator_py.store.database import Database

log = get_logger("claudomator")


class PublishedRecord:
    """The published record of the daemon on a state folder. If the home is not writable, the record is skipped and
    logged."""

    def __init__(self, state: Path, environ: Mapping[str, str]) -> None:
        self._state = state
        self._folder = records_folder(environ)
        self._path = self._folder / f"{digest_of(os.fsencode(state))[:32]}.json"

    def publish(self, loaded: LoadedConfig) -> None:
        """Write the record atomically, and remove those of daemons that were killed. loaded: the configuration in
        force."""
        record = DaemonRecord(self._state, loaded.path, loaded.digest)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._remove_stale()
            with replacing(self._path) as file:
                file.write(record.to_text().encode(errors="surrogateescape"))
        except OSError as error:
            log.info("daemon_not_recorded", problem=str(error), note="only its configuration or --state-dir leads here")

    def withdraw(self) -> None:
        """Remove the record: the daemon ends."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _remove_stale(self) -> None:
        for path in self._folder.glob("*.json"):
            with contextlib.suppress(OSError, ValueError):
                record = DaemonRecord.from_text(path.read_text(encoding="utf-8", errors="surrogateescape"))
                if record is None or holder(record.state_dir) is None:
                    path.unlink()


LOCK_FILE = "daemon.lock"
_PROBED_S = (0.01, 0.03, 0.1)


class StateInUse(CannotServe):
    """Another daemon uses the state folder; the message names that daemon and the remedy."""


@contextmanager
def hold_state(state: Path, announced: Iterable[str] = ()) -> Iterator[Callable[[], bool]]:
    """Hold the lock; yields a function that tells whether the folder is still in its place. Raises StateInUse, OSError.

    announced: files in which a daemon publishes where it listens. Those of a killed daemon are removed before the lock
    names this process, so they always belong to the process that the lock names.
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
    """Return the pid of the daemon that holds a state folder, or ``unknown``; None: no daemon on this machine does."""
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
    """Take the lock, if possible. ``holder`` takes it for an instant when probing, so a short wait is allowed for."""
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
    """Whether the path still refers to the open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except OSError:
        return False


_HOME = "home"


def claim_database(database: Database, state: Path) -> None:
    """Write down in the database that the daemon on this state folder uses it.

    Raises StateInUse if a daemon of this machine on another folder uses the same database or the original of this copy;
    StoreUnavailable.
    """
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
