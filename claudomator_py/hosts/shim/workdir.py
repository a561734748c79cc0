"""Opening the folders of a run, and checking that they are in permitted places."""

from __future__ import annotations

import os

_SYSTEM, _ORDINARY = "/dev", "/dev/shm"  # noqa: S108 - permitted, not written to

OWN_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "claudomator"), ("EMAIL", "claudomator@localhost"))
}
"""Author and committer of commits in a work tree, if the user has not configured any."""


class NotAllowed(Exception):
    """A folder is outside of the permitted roots, or in a place where no task may work."""


class WorkdirBounds:
    """Permitted places of a folder. roots: inside one of these; empty for anywhere. reserved: neither inside nor around
    these."""

    __slots__ = ("reserved", "roots")

    def __init__(self, roots: list[str], reserved: list[str]) -> None:
        self.roots = roots
        self.reserved = reserved

    def check(self, path: str, real: str) -> None:
        """Raise NotAllowed if the folder is not permitted. path: as given; real: its real path."""
        if self.roots and not any(_contains(os.path.realpath(root), real) for root in self.roots):
            raise NotAllowed(f"{path} is {real}, which lies in none of: {', '.join(self.roots)}")
        for folder in self.reserved:
            own = os.path.realpath(folder)
            if own == _SYSTEM and _contains(_ORDINARY, real):
                continue
            if _contains(own, real) or _contains(real, own):
                raise NotAllowed(f"{path} is {real}, which contains or lies in {folder}, where no task may be")


def open_checked(path: str, bounds: WorkdirBounds) -> tuple[int, str]:
    """Open the working directory. Return its descriptor and real path. Raises OSError, NotAllowed. The opened directory
    is checked, and the agent is started in it, not in the path: replacing a symbolic link in between has no effect."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    real = os.readlink(f"/proc/self/fd/{fd}")
    try:
        bounds.check(f"the working directory {path}", real)
    except NotAllowed:
        os.close(fd)
        raise
    return fd, real


def check_further(path: str, bounds: WorkdirBounds) -> None:
    """Check that the real path of an additional folder is still that. Raises OSError, NotAllowed. A missing folder is
    ignored."""
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
