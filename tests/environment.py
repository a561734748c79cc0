"""The environment of the suite: the same for whoever runs it, on whatever machine.

A shell, a CI or a person sets variables, a time zone and a umask that change what programs do: Python flushes what is
printed, git signs commits, requests go to a proxy. Of all that, only PATH stays, and TMPDIR as the place below which
each run of the suite makes a home and a temporary folder of its own, so two runs at a time share nothing. A test about
what a user may set, sets it itself.

What takes effect as Python starts cannot be changed here: the Makefile has Python ignore its own variables.
"""

import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_KEPT = ("PATH", "CLAUDOMATOR_CHAOS_SEED")
_SET_BY_READLINE = ("COLUMNS", "LINES")
"""Behind Python's back: they are not in ``os.environ``, and yet inherited."""
_IN_A_WORKER = "PYTEST_XDIST_WORKER"
_MAX_PARENT_BYTES = 32
"""Tests make sockets far below the folder, and the address of a socket has no more than 107 bytes."""
_ANYBODY_ENTERS = 0o711
_IN_MEMORY = "/dev/shm"
"""A file system in memory, on most machines."""
_MIN_FREE_BYTES, _MIN_MEMORY_BYTES = 4 << 30, 8 << 30
"""What has to be free of it and of the memory as a whole: more than 1 GiB is written, and stays until a run ends."""


class Place:
    """The temporary folder of a run of the suite."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def base(self) -> Path:
        """Return the folder below which pytest makes one for each test."""
        return self.folder / "t"

    def remove(self) -> None:
        """Remove it with all that was left in it."""
        shutil.rmtree(self.folder, ignore_errors=True)


def stand_alone() -> Place:
    """Give this process, and whatever it starts, that environment; a worker has inherited it."""
    if _IN_A_WORKER in os.environ:
        return Place(Path(tempfile.gettempdir()))
    place = Place(Path(tempfile.mkdtemp(prefix="claudomator-", dir=_parent())))
    # Run as root, PostgreSQL and the second user of some tests change to somebody who has to come through here.
    place.folder.chmod(_ANYBODY_ENTERS)
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    os.environ.clear()
    for name in _SET_BY_READLINE:
        os.unsetenv(name)
    os.environ.update(kept | {"LANG": "C.UTF-8", "TZ": "UTC", "TMPDIR": str(place.folder)})
    for name, folder in (("HOME", "home"), ("XDG_RUNTIME_DIR", "run")):
        (place.folder / folder).mkdir(mode=0o700)
        os.environ[name] = str(place.folder / folder)
    tempfile.tempdir = str(place.folder)
    time.tzset()
    os.umask(0o022)
    return place


def made_once(name: str, make: Callable[[], Any]) -> Any:
    """Return what that makes, of types of JSON; of all workers of a run only the first that asks makes it. name: that
    of its file in the folder of the run.

    A process that is no worker makes its own: its temporary folder may be the system's, with what others have left.
    """
    if _IN_A_WORKER not in os.environ:
        return make()
    file = Path(tempfile.gettempdir(), name)
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            file.write_text(json.dumps(make()))
    return json.loads(file.read_text())


def _parent() -> str | None:
    """Return where temporary folders are made by default, unless that is too long a path for sockets below it.

    Where nobody has named a folder, a run is in memory if there is room: nothing of it is read after a crash, and on a
    disk its commits and flushes take a tenth more CPU, and wait.
    """
    is_named = any(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    given = _IN_MEMORY if not is_named and _is_room_in_memory() else tempfile.gettempdir()
    return given if len(os.fsencode(given)) <= _MAX_PARENT_BYTES else "/tmp"


def _is_room_in_memory() -> bool:
    """Return whether a whole run fits there, and programs that tests write can be run."""
    try:
        there = os.statvfs(_IN_MEMORY)
        _, _, rest = Path("/proc/meminfo").read_text().partition("MemAvailable:")
        memory_bytes = int(rest.split()[0]) << 10
    except (OSError, IndexError):
        return False
    return (
        os.access(_IN_MEMORY, os.W_OK | os.X_OK)
        and not there.f_flag & os.ST_NOEXEC
        and there.f_bavail * there.f_frsize >= _MIN_FREE_BYTES
        and memory_bytes >= _MIN_MEMORY_BYTES
    )
