"""Whether a state folder is this user's own: whoever could exchange what is in it would command the daemon."""

import os
import shlex
import stat
from pathlib import Path

from claudomator_py.domain.errors import Problem
from claudomator_py.schema.trust import ROOT, Exposure, Trust, user_name

_DATABASE = "claudomator.db"
ENTRIES = (
    *("daemon.lock", "token", "endpoint", "api.sock", "agents.json", "runs", "worktrees", "backups"),
    *(f"{_DATABASE}{side}" for side in ("", "-wal", "-shm", "-journal")),
)
"""What the daemon keeps in it."""


def exposed_state(folder: Path, own: int | None = None) -> Problem | None:
    """Why no daemon may use that absolute path, which may be missing, as its state folder. Raises OSError.

    own: the daemon's user; None: that of this process.
    """
    user = os.geteuid() if own is None else own
    exposure = Trust(own=user).way(str(folder))
    if exposure is not None:
        return _above(exposure, folder)
    try:
        found = folder.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISDIR(found.st_mode):
        return Problem(message=f"{folder} is not a folder", remedy="remove it, or choose another state_dir")
    if found.st_uid != user:
        message = f"{folder} belongs to {user_name(found.st_uid)}, and this is {user_name(user)}"
        return Problem(message=message, remedy=f"run as {user_name(found.st_uid)}, or choose another state_dir")
    return next((problem for name in ENTRIES if (problem := _entry(folder / name, user)) is not None), None)


def _above(exposure: Exposure, folder: Path) -> Problem:
    message = f"{folder} could be exchanged by other users: {exposure.of(str(folder))}"
    return Problem(message=message, remedy=f"run `{exposure.command}`, or choose another state_dir")


def _entry(path: Path, user: int) -> Problem | None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(found.st_mode):
        message = f"{path} is a symbolic link, and none is followed there"
        return Problem(message=message, remedy="put what it leads to in its place, or mount it there")
    if found.st_uid not in (user, ROOT):
        message = f"{path} belongs to {user_name(found.st_uid)}"
        remedy = f"look at it, and run `chown {shlex.quote(user_name(user))} {shlex.quote(str(path))}`"
        return Problem(message=message, remedy=remedy)
    return None
