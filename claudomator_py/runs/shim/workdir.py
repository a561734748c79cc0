"""Opening the working directory, and making sure that what was opened is where it may be."""

from __future__ import annotations

import os


class NotAllowed(Exception):
    """The working directory lies outside the allowed roots."""


def open_checked(path: str, roots: list[str]) -> tuple[int, str]:
    """Open the directory and return it with its real path. Raises OSError, NotAllowed.

    The check is on the opened directory, and the agent is started in that, not in the path: exchanging a symbolic
    link in between leads nowhere.
    """
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    real = os.readlink(f"/proc/self/fd/{fd}")
    if roots and not any(_contains(os.path.realpath(root), real) for root in roots):
        os.close(fd)
        raise NotAllowed(f"the working directory {path} is {real}, which lies in none of: {', '.join(roots)}")
    return fd, real


def _contains(root: str, path: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
