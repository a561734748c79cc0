"""Whether a run lives, and how it ended: decided only while holding the run's lock."""

import fcntl
import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from claudomator_py.core.crashpoint import crashpoint
from claudomator_py.core.run import ExitRecord, RunFate, RunStatus
from claudomator_py.runs.durable import flush_directory, write_new
from claudomator_py.runs.shim import procfs, record

log = logging.getLogger(__name__)

_BUSY_SECONDS = 2.0
_BUSY_PAUSE = 0.01


@dataclass(frozen=True, slots=True)
class ShimIdentity:
    """A shim that is alive now; start_time in clock ticks since boot."""

    pid: int
    start_time: int


def settle(path: Path, *, awaited: bool = False) -> RunStatus:
    """Decide what became of the run in that directory. One that nobody holds and that was not started is revoked: a
    shim that wakes late leaves.

    awaited: its shim was launched and is known to live, so that it is STARTING instead. Safe to call again and at the
    same time. Raises OSError.
    """
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            with held_lock(path) as held:
                if held:
                    crashpoint("lock-held")
                    return _decide(path, awaited=awaited)
        except FileNotFoundError:
            return RunStatus(RunFate.MISSING)
        # Somebody has the lock: a shim, which says so in a moment, or another caller, who decides in a moment.
        if shim_identity(path) is not None or time.monotonic() > deadline:
            return RunStatus(RunFate.ALIVE if (path / record.STARTED).exists() else RunFate.STARTING)
        time.sleep(_BUSY_PAUSE)


def shim_identity(path: Path) -> ShimIdentity | None:
    """The run's shim, if it is alive: same boot, same pid, same start time. None otherwise, or not known yet."""
    try:
        data = json.loads((path / record.SHIM).read_bytes())
        pid, start_time, boot = int(data["pid"]), int(data["start_time"]), data["boot_id"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if boot != procfs.boot_id() or not procfs.is_same(pid, start_time):
        return None
    return ShimIdentity(pid, start_time)


@contextmanager
def held_lock(path: Path) -> Iterator[bool]:
    """Try to take the run's lock; False if somebody has it. Raises FileNotFoundError when there is no directory."""
    fd = os.open(path / record.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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


def _decide(path: Path, *, awaited: bool) -> RunStatus:
    """The lock is held."""
    exit_record = read_exit(path)
    if exit_record is not None:
        return RunStatus(RunFate.ENDED, exit_record)
    if (path / record.STARTED).exists() or (path / record.EXIT).exists():
        return RunStatus(RunFate.ORPHANED if _has_orphan(path) else RunFate.UNFINISHED)
    if (path / record.REVOKED).exists():
        return RunStatus(RunFate.REVOKED)
    if awaited:
        return RunStatus(RunFate.STARTING)
    write_revoked(path)
    return RunStatus(RunFate.REVOKED)


def _has_orphan(path: Path) -> bool:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return record.orphan(directory) is not None
    finally:
        os.close(directory)


def write_revoked(path: Path) -> None:
    """Give the run up for good; the caller holds its lock. Raises OSError."""
    write_new(path / record.REVOKED)
    crashpoint("revoked-made")
    flush_directory(path)
    crashpoint("revoked-written")


def read_exit(path: Path) -> ExitRecord | None:
    """The exit record; None where there is none that can be read."""
    try:
        data = json.loads((path / record.EXIT).read_bytes())
        return ExitRecord(
            exit_code=data["exit_code"],
            ended_by=data["ended_by"],
            started_ms=data["started_ms"],
            ended_ms=data["ended_ms"],
            error=data["error"],
            step=data["step"],
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as problem:
        log.warning("the exit record in %s cannot be read: %s", path, problem)
        return None
