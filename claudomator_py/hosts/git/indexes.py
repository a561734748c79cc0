"""Copies of a repository's index, in which git keeps what it has read for the next look at the same repository.

git looks at each file that its index knows, and at each folder. What it finds is kept in the copy, that a folder has no
more files than known ones included, so the next look takes less; the repository's own index is never written to.

To write a copy takes as long as half a look. That is done once an index has stayed the same through a run: what the
next commit makes worthless is not written.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

from claudomator_py.hosts.git.shadow import copy_index

_VARIABLES: Final = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "core.untrackedCache",
    "GIT_CONFIG_VALUE_0": "true",
    # What is kept of folders is of use only to whoever lists them likewise, and this says how.
    "GIT_CONFIG_KEY_1": "status.showUntrackedFiles",
    "GIT_CONFIG_VALUE_1": "all",
}
"""With which git makes use of what is kept in an index."""
_INDEX, _MARK = "index", "index.of"
_READ: Final = " read"
"""At the end of the mark of a copy in which git keeps what it has read."""
_MAX_RUNS: Final = 8
"""For so many runs git reads again what has changed since it wrote to a copy."""
KEPT = "index.kept"
"""In the directory of the last run in a repository: the copy with which the next run there begins."""


class Indexes:
    """Knows the copy that was made last of each repository's index. Safe to use from many threads."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[str, Path, int]] = {}
        """By git directory: which index it is of, where it is, and for how many runs git has written nothing to it."""

    def bring(self, git_dir: str, folder: Path) -> dict[str, str]:
        """Return the variables by which git uses a copy in that folder of the index as it is now. Raises OSError."""
        index, mark = folder / _INDEX, folder / _MARK
        found, own = _mark_of(Path(git_dir) / "index"), {"GIT_INDEX_FILE": str(index)}
        here = mark.read_text() if index.exists() and mark.exists() else ""
        if here == found + _READ:
            return {**_VARIABLES, **own}
        if here != found or not found:
            index.unlink(missing_ok=True)
            of, kept, runs = self._kept.get(git_dir, ("", None, 0))
            if kept is not None and of == found + _READ:
                with suppress(OSError):  # its run's directory may have been removed
                    copy_index(kept, index)
            if not index.exists():
                copy_index(Path(git_dir) / "index", index)
                mark.write_text(found)
                return own
            if runs < _MAX_RUNS:
                mark.write_text(found + _READ)
                return {**_VARIABLES, **own}
            if kept is not None:
                self._kept[git_dir] = of, kept, -1
        mark.write_text(found + _READ)
        return {**_VARIABLES, **own, "GIT_OPTIONAL_LOCKS": "1"}

    def keep(self, git_dir: str, folder: Path, run_dir: Path) -> None:
        """Keep the copy in that folder, in the run's directory, for the next run. Raises OSError."""
        if not (folder / _INDEX).exists() or not (folder / _MARK).read_text().endswith(_READ):
            return
        (folder / _INDEX).rename(run_dir / KEPT)
        of, before, runs = self._kept.get(git_dir, ("", None, 0))
        said = (folder / _MARK).read_text()
        self._kept[git_dir] = said, run_dir / KEPT, runs + 1 if of == said else 0
        if before is not None and before != run_dir / KEPT:
            before.unlink(missing_ok=True)


def _mark_of(path: Path) -> str:
    """Return what is another whenever the file is; empty: there is none."""
    with suppress(FileNotFoundError):
        status = path.stat()
        return f"{status.st_ino} {status.st_size} {status.st_mtime_ns}"
    return ""
