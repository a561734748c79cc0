"""Copies of a repository's index, in which git keeps what it has read for the next look at the same repository.

git looks at each file that its index knows, and at each folder. What it finds is kept in the copy, that a folder has no
more files than known ones included, so the next look takes less; the repository's own index is never written to.
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
KEPT = "index.kept"
"""In the directory of the last run in a repository: the copy with which the next run there begins."""


class Indexes:
    """Knows the copy that was made last of each repository's index. Safe to use from many threads."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[str, Path]] = {}
        """By git directory: which index it is of, and where it is."""

    def bring(self, git_dir: str, folder: Path) -> dict[str, str]:
        """Return the variables by which git uses a copy in that folder of the index as it is now. Raises OSError.

        One that is there stays as it is: to write it again would take longer than what the next look has of it.
        """
        index, mark = folder / _INDEX, folder / _MARK
        found = _mark_of(Path(git_dir) / "index")
        if index.exists() and mark.exists() and mark.read_text() == found:
            return {**_VARIABLES, "GIT_INDEX_FILE": str(index)}
        index.unlink(missing_ok=True)
        of, kept = self._kept.get(git_dir, ("", None))
        if kept is not None and of == found:
            with suppress(OSError):  # its run's directory may have been removed
                copy_index(kept, index)
        if not index.exists():
            copy_index(Path(git_dir) / "index", index)
        mark.write_text(found)
        return {**_VARIABLES, "GIT_INDEX_FILE": str(index), "GIT_OPTIONAL_LOCKS": "1"}

    def keep(self, git_dir: str, folder: Path, run_dir: Path) -> None:
        """Keep the copy in that folder, in the run's directory, for the next run. Raises OSError."""
        if not (folder / _INDEX).exists():
            return
        (folder / _INDEX).rename(run_dir / KEPT)
        _, before = self._kept.get(git_dir, ("", None))
        self._kept[git_dir] = (folder / _MARK).read_text(), run_dir / KEPT
        if before is not None and before != run_dir / KEPT:
            before.unlink(missing_ok=True)


def _mark_of(path: Path) -> str:
    """Return what is another whenever the file is; empty: there is none."""
    with suppress(FileNotFoundError):
        status = path.stat()
        return f"{status.st_ino} {status.st_size} {status.st_mtime_ns}"
    return ""
