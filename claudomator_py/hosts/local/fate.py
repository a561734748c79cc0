"""Deciding whether a run lives and how it ended, only while holding the run's lock."""

import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.run import EndedBy, ExitRecord, RunFate, RunStatus
from claudomator_py.hosts.shim import procfs, record
from claudomator_py.private_files import flush_path, write_new
from claudomator_py.values import dataclass

log = logging.getLogger(__name__)

AnyPath = str | Path
"""Path of a run directory. A string costs a fraction of a ``Path``, and each tick uses it for each live run."""

_BUSY_S = 2.0
_RECORDED_S = 0.005
_BUSY_PAUSE_S = 0.002
_MAX_NUMBER = 2**53


@dataclass(frozen=True, slots=True)
class ShimIdentity:
    """A live shim; start_time in clock ticks since boot."""

    pid: int
    start_time: int


def decide_fate(path: AnyPath, *, awaited: Callable[[], bool] = lambda: False) -> RunStatus:
    """Decide the fate of the run in that directory. A run that has not started and whose lock is free is revoked, so
    that a shim that wakes late exits.

    awaited: returns whether the run's shim was launched and is alive; such a run is STARTING instead. Not called for an
    ended run. Safe to repeat and to call concurrently. Raises OSError.
    """
    began = time.monotonic()
    while True:
        try:
            with held_lock(path) as held:
                if held:
                    crashpoint("lock-held")
                    return _decide(path, awaited=awaited)
        except FileNotFoundError:
            return RunStatus(RunFate.MISSING)
        # The lock is held by a shim, which writes its identity soon and releases the lock at the end, or by another
        # caller, which releases it soon.
        has_recorded = os.path.exists(f"{path}/{record.EXIT}")
        patience = _RECORDED_S if has_recorded else _BUSY_S
        is_there = not has_recorded and (awaited() or shim_identity(path) is not None)
        if is_there or time.monotonic() > began + patience:
            return RunStatus(RunFate.ALIVE if os.path.exists(f"{path}/{record.STARTED}") else RunFate.STARTING)
        time.sleep(_BUSY_PAUSE_S)


def shim_identity(path: AnyPath) -> ShimIdentity | None:
    """Return the run's shim if it is alive, that is, its boot id, pid and start time match. None otherwise, before the
    shim has written them, and after it has recorded the end, because it may have another run then."""
    if os.path.exists(f"{path}/{record.EXIT}"):
        return None
    try:
        pid, start_time, boot = record.identity(record.read(f"{path}/{record.SHIM}"))
    except (OSError, ValueError):
        return None
    if boot != procfs.boot_id() or not procfs.is_same(pid, start_time):
        return None
    return ShimIdentity(pid, start_time)


@contextmanager
def held_lock(path: AnyPath) -> Iterator[bool]:
    """Try to take the run's lock; yield False if it is held. Raises FileNotFoundError if there is no directory."""
    fd = os.open(f"{path}/{record.LOCK}", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        if os.fstat(fd).st_nlink == 0:
            raise FileNotFoundError(f"{path} has been removed")
        yield True
    finally:
        os.close(fd)


def _decide(path: AnyPath, *, awaited: Callable[[], bool]) -> RunStatus:
    """Decide while holding the lock."""
    # Network file systems may answer what is there from a cache, but not this.
    names = frozenset(os.listdir(path))
    exit_record = read_exit(path)
    if exit_record is not None:
        return RunStatus(RunFate.ENDED, exit_record)
    if record.EXIT in names and not os.path.lexists(f"{path}/{record.EXIT}"):
        return RunStatus(RunFate.ALIVE)  # it can be read as soon as the cache is renewed
    if not names.isdisjoint((record.STARTED, record.EXIT)):
        return RunStatus(RunFate.ORPHANED if _has_orphan(path) else RunFate.UNFINISHED)
    if record.REVOKED in names:
        return RunStatus(RunFate.REVOKED)
    if awaited():
        return RunStatus(RunFate.STARTING)
    write_revoked(path)
    return RunStatus(RunFate.REVOKED)


def _has_orphan(path: AnyPath) -> bool:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return record.orphan(directory) is not None
    finally:
        os.close(directory)


def write_revoked(path: AnyPath) -> None:
    """Revoke the run permanently; the caller holds its lock. Raises OSError."""
    mark(f"{path}/{record.REVOKED}")
    crashpoint("revoked-made")
    flush_path(path)
    crashpoint("revoked-written")


def mark(path: AnyPath) -> None:
    """Create the empty file, whose existence is its meaning; whatever an agent has put in its place counts, too. Raises
    OSError."""
    try:
        write_new(path)
    except OSError:
        if not os.path.lexists(path):
            raise


def read_exit(path: AnyPath) -> ExitRecord | None:
    """Return the exit record; None if there is none, or it cannot be read."""
    try:
        return _exit_record(record.read(f"{path}/{record.EXIT}"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        log.warning("the exit record in %s cannot be read: %s", path, problem)
        return None


_ENDED_BY: Mapping[str | None, EndedBy | None] = {None: None} | {word: word for word in get_args(EndedBy)}


def _exit_record(data: dict[str, object]) -> ExitRecord:
    """Raise ValueError for data that no shim wrote."""
    match data:
        case {
            "exit_code": int() | None as exit_code,
            "ended_by": str() | None as ended_by,
            "started_ms": int(started_ms),
            "ended_ms": int(ended_ms),
            "error": str() | None as error,
            "step": int(step),
        } if (
            max(abs(exit_code or 0), abs(started_ms), abs(ended_ms), abs(step)) <= _MAX_NUMBER
            and ended_by in _ENDED_BY
            and "\0" not in (error or "")
        ):
            (error or "").encode()  # ValueError for a lone surrogate, which no database stores
            return ExitRecord(exit_code, _ENDED_BY[ended_by], started_ms, ended_ms, error, step)
    raise ValueError("not an exit record of a shim")
