"""Whether a run lives, and how it ended: decided only while holding the run's lock."""

import fcntl
import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from claudomator_py.core.crashpoint import crashpoint
from claudomator_py.core.run import ExitRecord
from claudomator_py.runs.durable import flush_directory, write_new
from claudomator_py.runs.shim import procfs, record

log = logging.getLogger(__name__)

_BUSY_SECONDS = 2.0
_BUSY_PAUSE = 0.01


class RunState(StrEnum):
    """What a run directory says about its run.

    NOT_STARTED: a shim may still start it. ALIVE: a shim has it, even if it is not known which. ENDED: there is an
    exit record. REVOKED: never started, and never will be. UNFINISHED: started, its shim is gone without a record;
    its processes may live on, and its output may hold a terminal event.
    """

    NOT_STARTED = "not_started"
    ALIVE = "alive"
    ENDED = "ended"
    REVOKED = "revoked"
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class Settled:
    """The state, the exit record when it has ENDED, and the shim's pid when it is ALIVE and known."""

    state: RunState
    exit: ExitRecord | None = None
    shim_pid: int | None = None


@dataclass(frozen=True, slots=True)
class ShimIdentity:
    """A shim that is alive now; start_time in clock ticks since boot."""

    pid: int
    start_time: int


def settle(path: Path) -> Settled:
    """Decide what became of the run in that directory. A run that was not started is revoked: a shim that wakes late
    leaves. So ask only about a run whose shim is gone, or whose shim you have lost sight of.

    Never NOT_STARTED; safe to call again and at the same time. A directory that is missing counts as UNFINISHED, for
    nothing proves that the run was not started. Raises OSError.
    """
    return _look(path, revoke=True)


def status(path: Path) -> Settled:
    """What is known about the run, without deciding anything. Raises OSError."""
    return _look(path, revoke=False)


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


def _look(path: Path, *, revoke: bool) -> Settled:
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            with held_lock(path) as held:
                if held:
                    return _decide(path, revoke=revoke)
        except FileNotFoundError:
            return Settled(RunState.UNFINISHED)
        # Somebody has the lock: a shim, which says so in a moment, or another caller, who decides in a moment.
        identity = shim_identity(path)
        if identity is not None:
            return Settled(RunState.ALIVE, shim_pid=identity.pid)
        if time.monotonic() > deadline:
            return Settled(RunState.ALIVE)
        time.sleep(_BUSY_PAUSE)


def _decide(path: Path, *, revoke: bool) -> Settled:
    """The lock is held."""
    exit_record = read_exit(path)
    if exit_record is not None:
        return Settled(RunState.ENDED, exit=exit_record)
    if (path / record.STARTED).exists() or (path / record.EXIT).exists():
        return Settled(RunState.UNFINISHED)
    if (path / record.REVOKED).exists():
        return Settled(RunState.REVOKED)
    if not revoke:
        return Settled(RunState.NOT_STARTED)
    write_revoked(path)
    return Settled(RunState.REVOKED)


def write_revoked(path: Path) -> None:
    """Give the run up for good; the caller holds its lock. Raises OSError."""
    write_new(path / record.REVOKED)
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
