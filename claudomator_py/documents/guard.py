"""Which inboxes, task files and configurations are obeyed: what nobody but a trusted user can have written."""

import os
from pathlib import Path

from claudomator_py.core.problem import Problem
from claudomator_py.core.settings import Inbox
from claudomator_py.documents.trust import Exposure, Trust


class InboxGuard:
    """Judges inboxes and their files by the configuration. Safe to use from many threads."""

    def __init__(self, wanted: Inbox, own: int | None = None) -> None:
        """own: the daemon's user; None: that of this process."""
        self._trust = Trust(wanted.trusted_users, wanted.trusted_groups, own)
        self.unknown = tuple(self._trust.unknown)
        """Trusted users and groups that this machine does not know."""

    def folder(self, path: str) -> Problem | None:
        """Why the inbox at that absolute path is not read. Raises OSError, also if there is none."""
        return _problem(self._trust.place(path), path)

    def place_for(self, path: str) -> Problem | None:
        """Why no inbox is to be made at that absolute path. Raises OSError."""
        return _problem(self._trust.way(path), path)

    def file(self, path: str, found: os.stat_result, fd: int | None = None) -> Problem | None:
        """Why a file in an inbox that is read is not taken. found: its status; fd: it, if it is open."""
        return _problem(self._trust.entry(path, found, fd), path)


def exposed_config(path: Path, *, named: bool, own: int | None = None) -> Problem | None:
    """Why no daemon is to be commanded by the configuration at that absolute path. Raises OSError.

    named: by whoever starts the daemon, who answers for its owner with that. own: the daemon's user; None: that of this
    process.
    """
    owners = (str(path.stat().st_uid),) if named else ()
    exposure = Trust(owners, own=own).place(str(path))
    if exposure is None:
        return None
    message = f"could have been written by other users: {exposure.of(str(path))}"
    return Problem(message=message, remedy=f"look through it, and run `{exposure.command}`")


def _problem(exposure: Exposure | None, path: str) -> Problem | None:
    if exposure is None:
        return None
    remedy = f"run `{exposure.command}`"
    if exposure.user is not None:
        remedy += f", or name {exposure.user} in inbox.trusted_users if you trust that user"
    elif exposure.group is not None:
        remedy += f", or name {exposure.group} in inbox.trusted_groups if you trust all of its members"
    return Problem(message=exposure.of(path), remedy=remedy)
