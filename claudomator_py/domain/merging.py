"""Taking over what is on the branch of a task, or leaving it: what is asked for, what comes of it, why not."""

from enum import StrEnum

from claudomator_py.values import dataclass


class MergeMethod(StrEnum):
    """How commits get to another branch. MERGE: by a commit of two parents, or none where the other branch has nothing
    of its own. SQUASH: all as one commit. REBASE: one by one, on top of what is there."""

    MERGE = "merge"
    SQUASH = "squash"
    REBASE = "rebase"


@dataclass(frozen=True, slots=True)
class MergeOrder:
    """What is to be merged."""

    tree: str
    """The name of the work tree."""
    into: str | None
    """A branch; None: the one that it was made from."""
    method: MergeMethod
    title: str
    """Of a commit that needs one."""
    commit: bool = False
    """What is not committed there is committed first."""
    dry_run: bool = False
    """It is only said what would become of it."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What was done, or would be."""

    branch: str
    into: str
    commits: int
    """How many of the branch were not there; 0: there was nothing to do."""
    before: str
    """The commit that the target was at."""
    after: str | None
    """The commit that it is at; None: it was only tried."""
    files: int
    added: int
    removed: int
    place: str | None
    """The work tree that has the target checked out, whose files follow; None: none has."""
    undo: str | None
    """The command that takes it back."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Discarded:
    """What was left, or would be."""

    branch: str
    path: str
    commits: int
    changed: int
    """Files that were not committed."""
    kept: str | None
    """The reference under which all of it is kept; None: it was only tried."""
    undo: str | None
    """The command that brings the branch back."""


class NotMerged(Exception):
    """It is not done, and nothing was changed; the message says why. remedy: what to do. conflicts: the files."""

    def __init__(self, message: str, remedy: str, conflicts: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.remedy = remedy
        self.conflicts = conflicts
