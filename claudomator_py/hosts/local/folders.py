"""The directories of runs as folders that take room: which there are, who works in them, and what they take."""

from pathlib import Path

from claudomator_py.hosts import leftovers
from claudomator_py.hosts.git.worktrees import working_in
from claudomator_py.hosts.local.directory import SCRATCH, TRASH_SUFFIX, RunDirectory


class RunFolders:
    """The folders under the root of all runs. Safe to use from many threads."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    def path(self, run_id: str) -> Path:
        """The directory of that run."""
        return self._root / run_id

    def ids(self) -> list[str]:
        """The runs that have a directory."""
        if not self._root.is_dir():
            return []
        return sorted(path.name for path in self._root.iterdir() if not path.name.startswith(".") and path.is_dir())

    def users(self, run_id: str) -> list[int]:
        """The processes that work in it, as far as they can be seen."""
        return working_in(self.path(run_id))

    def size(self, run_id: str) -> int:
        """The bytes that it takes on the disk."""
        return leftovers.size_of(self.path(run_id))

    def give_up_scratch(self, run_id: str) -> None:
        """Take its scratch folder out of reach, at once: no run can be started in it any more. Raises OSError."""
        scratch = self.path(run_id) / SCRATCH
        if scratch.is_dir():
            scratch.rename(scratch.with_name(f".{SCRATCH}{TRASH_SUFFIX}"))

    def remove(self, run_id: str) -> None:
        """Remove it with all that is in it. Raises RunConflict if its run is alive; OSError."""
        RunDirectory(self.path(run_id)).remove()
