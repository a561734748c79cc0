"""Copies of a repository's index, in which git caches what it has read for the next look at the same repository.

git examines each file in its index, and each folder. The copy stores the results, including that a folder has no
untracked files, so that the next look is faster. The repository's own index is never written to.

Writing a copy takes half as long as a look. It is written only after an index has stayed the same during a run, because
the next commit makes it worthless.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

from claudomator_py.hosts.git.shadow import copy_index

_VARIABLES: Final = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "core.untrackedCache",
    "GIT_CONFIG_VALUE_0": "true",
    # The cache of folders is used only by commands that list them in the same way, which this defines.
    "GIT_CONFIG_KEY_1": "status.showUntrackedFiles",
    "GIT_CONFIG_VALUE_1": "all",
}
"""Options with which git uses the caches in an index."""
_INDEX, _MARK = "index", "index.of"
_READ: Final = " read"
"""Suffix of the mark of a copy that contains git's caches."""
_MAX_RUNS: Final = 8
"""Maximum number of runs for which git reads again what has changed since a copy was written."""
KEPT = "index.kept"
"""File in the directory of the last run in a repository: the copy with which the next run begins."""


class Indexes:
    """The latest copy of each repository's index. Safe to use from many threads."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[str, Path, int]] = {}
        """By git directory: mark of the index, path of the copy, and number of runs since the copy was written."""

    def bring(self, git_dir: str, folder: Path) -> dict[str, str]:
        """Copy the current index to that folder. Return the variables with which git uses the copy. Raises OSError."""
        index, mark = folder / _INDEX, folder / _MARK
        current, own = _mark_of(Path(git_dir) / "index"), {"GIT_INDEX_FILE": str(index)}
        here = mark.read_text() if index.exists() and mark.exists() else ""
        if here == current + _READ:
            return {**_VARIABLES, **own}
        if here != current or not current:
            index.unlink(missing_ok=True)
            of, kept, runs = self._kept.get(git_dir, ("", None, 0))
            if kept is not None and of == current + _READ:
                with suppress(OSError):  # the run directory may have been removed
                    copy_index(kept, index)
            if not index.exists():
                copy_index(Path(git_dir) / "index", index)
                mark.write_text(current)
                return own
            if runs < _MAX_RUNS:
                mark.write_text(current + _READ)
                return {**_VARIABLES, **own}
            if kept is not None:
                self._kept[git_dir] = of, kept, -1
        mark.write_text(current + _READ)
        return {**_VARIABLES, **own, "GIT_OPTIONAL_LOCKS": "1"}

    def keep(self, git_dir: str, folder: Path, run_dir: Path) -> None:
        """Keep the copy in that folder of the run directory for the next run. Raises OSError."""
        if not (folder / _INDEX).exists() or not (folder / _MARK).read_text().endswith(_READ):
            return
        (folder / _INDEX).rename(run_dir / KEPT)
        of, before, runs = self._kept.get(git_dir, ("", None, 0))
        text = (folder / _MARK).read_text()
        self._kept[git_dir] = text, run_dir / KEPT, runs + 1 if of == text else 0
        if before is not None and before != run_dir / KEPT:
            before.unlink(missing_ok=True)


def _mark_of(path: Path) -> str:
    """Return a mark that changes whenever the file does; empty if there is none."""
    with suppress(FileNotFoundError):
        status = path.stat()
        return f"{status.st_ino} {status.st_size} {status.st_mtime_ns}"
    return ""
