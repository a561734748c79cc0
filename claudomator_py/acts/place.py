"""Where a command runs: its folder, the folders that it may change, and what can be known of variables and files."""

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import field
from fnmatch import fnmatchcase

from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command runs. The default knows nothing: paths with ``..``, ``~`` or a leading ``/`` are outside."""

    folder: str | None = None
    """The working directory, absolute."""
    trees: tuple[str, ...] = ()
    """Folders in which it may write, absolute. Empty: ``folder``."""
    home: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    read: Callable[[str], str | None] = field(default=lambda _: None)
    """The text of the file with that absolute path, bounded; None: it cannot be read."""

    def absolute(self, path: str) -> str:
        """Return the path from the root, or from ``~`` where the home is not known; relative if the folder is not."""
        if path == "~" or path.startswith("~/"):
            path = (self.home or "~") + path[1:]
        if not path.startswith(("/", "~")):
            path = posixpath.join(self.folder or "", path)
        return posixpath.normpath(path) if path else path

    def is_inside(self, path: str, scratch: tuple[str, ...]) -> bool:
        """Return whether what is there may be changed by a run that keeps to its folders. scratch: as in the data."""
        whole = self.absolute(path)
        temporary = self.variables.get("TMPDIR", "")
        if temporary.startswith("/") and not _is_below(self.home or "/", posixpath.normpath(temporary)):
            scratch = (*scratch, temporary)
        if any(_is_below(whole, self.absolute(folder)) for folder in scratch):
            return True
        if self.folder is None:
            return not whole.startswith(("/", "~", ".."))
        return any(_is_below(whole, tree) for tree in self.trees or (self.folder,))

    def is_one_of(self, path: str, patterns: tuple[str, ...]) -> bool:
        """Return whether the path is, or lies below, one of these, which may hold ``*`` for anything."""
        whole = self.absolute(path)
        for pattern in patterns:
            known = self.absolute(pattern)
            if whole == known or fnmatchcase(whole, known) or whole.startswith(f"{known}/"):
                return True
        return False

    def is_home(self, path: str) -> bool:
        """Return whether it is the home folder, the root, or all that is in one of them."""
        whole = self.absolute(path.removesuffix("*") or path)
        top = {"/", "//", "~", "/home", "/root", "/Users", "/etc", "/usr", "/var"}
        return whole in top or (self.home is not None and whole == posixpath.normpath(self.home))


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
