"""Named points at which a test may have the shim killed; outside tests they do nothing."""

from __future__ import annotations

import os
import signal

VARIABLE = "CLAUDOMATOR_CRASH_SHIM"

POINTS = (
    "session-made",
    "subreaper-set",
    "lock-opened",
    "lock-taken",
    "exit-reserved",
    "shim-written",
    "shim-renamed",
    "started-made",
    "started-synced",
    "cwd-opened",
    "output-opened",
    "agent-spawned",
    "agent-recorded",
    "term-sent",
    "kill-sent",
    "orphan-ended",
    "agent-ended",
    "stragglers-ended",
    "exit-written",
    "exit-renamed",
    "exit-synced",
    "exit-directory-synced",
)

_armed: str | None = None
_is_known = False
"""Whether it was said which point it is, if any."""
_passed: set[str] = set()
"""Before that was known: a process goes through these once, and through the others with each of its runs."""


def arm(name: str | None) -> None:
    """Kill this process when it passes the point of that name, or now if it has. Raises ValueError for a name that is
    not a point.
    """
    global _armed, _is_known
    if name is not None and name not in POINTS:
        raise ValueError(f"{name!r} is not a crash point of the shim")
    _armed, _is_known = name, True
    if name in _passed:
        _die()


def crash(name: str) -> None:
    """Mark a line after which the process may be gone."""
    if not _is_known:
        _passed.add(name)
    if name == _armed:
        _die()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
