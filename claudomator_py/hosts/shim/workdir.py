"""Opening the folders of a run, and making sure that what was opened is where it may be."""

from __future__ import annotations

import os

_SYSTEM, _ORDINARY = "/dev", "/dev/shm"  # noqa: S108 - allowed, not written to


class NotAllowed(Exception):
    """A folder lies outside of the allowed roots, or where no task may be."""


class WorkdirBounds:
    """Where a folder may lie. roots: in one of them; none: anywhere. reserved: neither in nor around one of them."""

    __slots__ = ("reserved", "roots")

    def __init__(self, roots: list[str], reserved: list[str]) -> None:
        self.roots = roots
        self.reserved = reserved

    def check(self, path: str, real: str) -> None:
        """Raise NotAllowed. path: as it was given; real: of the folder that this has led to."""
        if self.roots and not any(_contains(os.path.realpath(root), real) for root in self.roots):
            raise NotAllowed(f"{path} is {real}, which lies in none of: {', '.join(self.roots)}")
        for folder in self.reserved:
            own = os.path.realpath(folder)
            if own == _SYSTEM and _contains(_ORDINARY, real):
                continue
            if _contains(own, real) or _contains(real, own):
                raise NotAllowed(f"{path} is {real}, which contains or lies in {folder}, where no task may be")


def open_checked(path: str, bounds: WorkdirBounds) -> tuple[int, str]:
    """Open the working directory and return it with its real path. Raises OSError, NotAllowed.

    The check is on the opened directory, and the agent is started in that, not in the path: exchanging a symbolic
    link in between leads nowhere.
    """
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    real = os.readlink(f"/proc/self/fd/{fd}")
    try:
        bounds.check(f"the working directory {path}", real)
    except NotAllowed:
        os.close(fd)
        raise
    return fd, real


def check_further(path: str, bounds: WorkdirBounds) -> None:
    """See that a further folder, which the agent is given by its real path, is still that. Raises OSError, NotAllowed.

    One that is not there is nobody's concern.
    """
    try:
        fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        real = os.readlink(f"/proc/self/fd/{fd}")
        if real != path:
            raise NotAllowed(f"the further folder {path} is {real} by now: a link was put in its place")
        bounds.check(f"the further folder {path}", real)
    finally:
        os.close(fd)


def _contains(root: str, path: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
