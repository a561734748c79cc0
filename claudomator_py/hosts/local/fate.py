"""Whether a run lives, and how it ended: decided only while holding the run's lock."""

import fcntl
import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.run import EndedBy, ExitRecord, RunFate, RunStatus
from claudomator_py.hosts.durable import flush_directory, write_new
from claudomator_py.hosts.shim import procfs, record
from claudomator_py.values import dataclass

log = logging.getLogger(__name__)

AnyPath = str | Path
"""Of a run directory. Each tick looks at each live run, and the text of a path is made in a fraction of the time."""

_BUSY_S = 2.0
_RECORDED_S = 0.005
_BUSY_PAUSE_S = 0.002
_MAX_NUMBER = 2**53


@dataclass(frozen=True, slots=True)
class ShimIdentity:
    """A shim that is alive now; start_time in clock ticks since boot."""

    pid: int
    start_time: int


def decide_fate(path: AnyPath, *, awaited: bool = False) -> RunStatus:
    """Decide what became of the run in that directory. One that nobody holds and that was not started is revoked: a
    shim that wakes late leaves.

    awaited: its shim was launched and is known to live, so that it is STARTING instead. Safe to call again and at the
    same time. Raises OSError.
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
        # Somebody has the lock: a shim, which says so in a moment and lets go of it at the end, or another caller, who
        # decides in a moment.
        has_recorded = os.path.exists(f"{path}/{record.EXIT}")
        patience = _RECORDED_S if has_recorded else _BUSY_S
        is_there = not has_recorded and (awaited or shim_identity(path) is not None)
        if is_there or time.monotonic() > began + patience:
            return RunStatus(RunFate.ALIVE if os.path.exists(f"{path}/{record.STARTED}") else RunFate.STARTING)
        time.sleep(_BUSY_PAUSE_S)


def shim_identity(path: AnyPath) -> ShimIdentity | None:
    """Return the run's shim, if it is alive: same boot, same pid, same start time. None otherwise, or not known yet;
    also once it has recorded the end, as it may have another run then."""
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
    """Try to take the run's lock; False if somebody has it. Raises FileNotFoundError when there is no directory."""
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


def _decide(path: AnyPath, *, awaited: bool) -> RunStatus:
    """The lock is held."""
    exit_record = read_exit(path)
    if exit_record is not None:
        return RunStatus(RunFate.ENDED, exit_record)
    if any(os.path.exists(f"{path}/{name}") for name in (record.STARTED, record.EXIT)):
        return RunStatus(RunFate.ORPHANED if _has_orphan(path) else RunFate.UNFINISHED)
    if os.path.exists(f"{path}/{record.REVOKED}"):
        return RunStatus(RunFate.REVOKED)
    if awaited:
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
    """Give the run up permanently; the caller holds its lock. Raises OSError."""
    mark(f"{path}/{record.REVOKED}")
    crashpoint("revoked-made")
    flush_directory(path)
    crashpoint("revoked-written")


def mark(path: AnyPath) -> None:
    """Make the empty file, which says something by being there. Whatever an agent put in its place says the same.
    Raises OSError."""
    try:
        write_new(path)
    except OSError:
        if not os.path.lexists(path):
            raise


def read_exit(path: AnyPath) -> ExitRecord | None:
    """Return the exit record; None where there is none that can be read."""
    try:
        return _exit_record(record.read(f"{path}/{record.EXIT}"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        log.warning("the exit record in %s cannot be read: %s", path, problem)
        return None


_ENDED_BY: Mapping[str | None, EndedBy | None] = {None: None} | {word: word for word in get_args(EndedBy)}


def _exit_record(data: dict[str, object]) -> ExitRecord:
    """Raises ValueError for what no shim has written."""
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
            (error or "").encode()  # a ValueError for half of a surrogate pair, which no database takes
            return ExitRecord(exit_code, _ENDED_BY[ended_by], started_ms, ended_ms, error, step)
    raise ValueError("no shim wrote that")
