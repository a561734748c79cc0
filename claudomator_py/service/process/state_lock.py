"""The lock that makes one daemon the only one on a state folder."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from claudomator_py.core.crashpoint import crashpoint

LOCK_FILE = "daemon.lock"


class StateInUse(Exception):
    """Another daemon uses the state folder; the message names it and says what to do."""


@contextmanager
def hold_state(state: Path) -> Iterator[Callable[[], bool]]:
    """Hold the lock; gives a look at whether the folder is still in its place. Raises StateInUse, OSError."""
    path = state / LOCK_FILE
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 64, 0).decode(errors="replace").strip() or "unknown"
            raise StateInUse(
                f"another daemon (pid {holder}) uses {state}; stop it first, or choose another --state-dir"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        crashpoint("daemon-locked")
        yield lambda: _leads_to(path, descriptor)
    finally:
        os.close(descriptor)


def _leads_to(path: Path, descriptor: int) -> bool:
    """Whether the path still leads to the open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except OSError:
        return False
