"""Named points at which a test can have the shim killed; they do nothing outside tests."""

from __future__ import annotations

import os

from claudomator_py.hosts.shim.builtin import signal

VARIABLE = "CLAUDOMATOR_CRASH_SHIM"

POINTS = (
    "session-made", "subreaper-set", "lock-opened", "lock-taken", "exit-reserved", "shim-written", "shim-renamed",
    "started-made", "started-synced", "cwd-opened", "output-opened", "agent-spawned", "agent-recorded", "term-sent",
    "kill-sent", "orphan-ended", "agent-ended", "stragglers-ended", "exit-written", "exit-renamed", "exit-synced",
    "exit-directory-synced",
)  # fmt: skip

_armed: str | None = None
_is_known = False
"""Whether ``arm`` was called."""
_passed: set[str] = set()
"""Points passed before ``arm``: a process passes them once, and the others with each of its runs."""


def arm(name: str | None) -> None:
    """Kill this process when it passes the point of that name, or now if it already has. Raises ValueError for an
    unknown name."""
    global _armed, _is_known
    if name is not None and name not in POINTS:
        raise ValueError(f"{name!r} is not a crash point of the shim")
    _armed, _is_known = name, True
    if name in _passed:
        _die()


def crash(name: str) -> None:
    """Mark a line after which the process may die."""
    if not _is_known:
        _passed.add(name)
    if name == _armed:
        _die()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
