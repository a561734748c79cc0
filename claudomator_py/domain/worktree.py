"""Work trees: a task's own copy of a git repository, on a branch of its own, in which its runs work."""

import re
from enum import StrEnum

from claudomator_py.values import dataclass

BRANCHES = "claudomator/"
_ID = 8
_MAX_LENGTH = 60


class Isolation(StrEnum):
    """Where a task's changes are kept apart: nowhere, or in a work tree of git that is its own."""

    NONE = "none"
    WORKTREE = "worktree"


@dataclass(frozen=True, slots=True)
class WorktreeRequest:
    """A tree that a task needs."""

    name: str
    """Of its folder, the same for all runs that share it."""
    branch: str
    task_id: str
    folder: str
    """In the repository."""
    base: str | None = None
    """The branch, tag or commit that it is to begin at; None: where the trees in ``after`` ended, or else at what is
    checked out."""
    after: tuple[str, ...] = ()
    """Names of the trees of the tasks that it waited for."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree that was made."""

    name: str
    path: str
    """Its folder."""
    branch: str
    task_id: str
    repository: str
    """The top of the work tree that it was made from."""
    base: str
    """The commit that it began at."""
    onto: str | None
    """The branch that was checked out there, as a whole ref; None: none was."""
    left_out: bool
    """The repository had uncommitted changes then, which are not in it."""
    submodules: bool
    """It has some, which are not checked out."""
    filters: tuple[str, ...] = ()
    """The content filters that only the repository's own configuration defines, which were not run."""
    git_dir: str = ""
    """Where git keeps what belongs to this tree alone."""
    common_dir: str = ""
    """Where it keeps what belongs to all trees of the repository."""
    source_dir: str = ""
    """What git_dir is, for the work tree that it was made from. All three are empty in records of earlier versions."""
    begun_at: str | None = None
    """The branch, tag or commit that it began at; None: at what was checked out in the repository."""
    passed_over: tuple[str, ...] = ()
    """The branches of tasks that it waited for of which none has all of the others, so it began at none of them."""
    left_behind: int = 0
    """Files that the tasks that it waited for had left uncommitted, which are not in it."""


class TreeStanding(StrEnum):
    """How a tree stands to what it was made from. Only what is unchanged, merged or gone holds nothing of its own.

    UNCHANGED: no commit and no change. MERGED: all of its commits, or what they bring, are in the branch that it
    was made from, or in that one's upstream. AHEAD: it has commits that are not. DIRTY: uncommitted changes or new
    files. LOCKED: by ``git worktree lock``. GONE: the folder is not there any more, and its branch, if there is
    one, is merged. UNKNOWN: git could not tell, or was not asked, as the tree is not what it made any more.
    """

    UNCHANGED = "unchanged"
    MERGED = "merged"
    AHEAD = "ahead"
    DIRTY = "dirty"
    LOCKED = "locked"
    GONE = "gone"
    UNKNOWN = "unknown"

    @property
    def is_spent(self) -> bool:
        """Whether nothing is lost with the tree."""
        return self in (TreeStanding.UNCHANGED, TreeStanding.MERGED, TreeStanding.GONE)


@dataclass(frozen=True, slots=True)
class TreeState:
    """How it stood."""

    standing: TreeStanding
    commits: int = 0
    """Commits since its base."""
    changed: int = 0
    """Files that are not committed."""
    words: str = ""
    """Why the state is unknown, or the reason of a lock."""
    seen_ms: int = 0
    """When it was looked at, in epoch milliseconds."""


class TreeBusy(Exception):
    """Somebody is at the tree of that name: a git that an earlier daemon called, or another request."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the work tree {name} is in use by another process")


class TreeFault(Exception):
    """git could not do it; the message holds its words and what to do."""


def tree_name(repository: str, task_name: str, task_id: str, generation: int) -> str:
    """Return the name of the folder of the tree that this generation of a task makes. repository: its folder's name."""
    return f"{_plain(repository) or 'repository'}-{_own(task_name, task_id, generation)}"


def branch_name(task_name: str, tree: str) -> str:
    """Return the branch of the tree of that name: valid as a ref, whatever the task is called."""
    return f"{BRANCHES}{_plain(task_name) or 'task'}-{tree.rpartition('-')[2]}"


def is_tree_of(name: str, task_id: str) -> bool:
    """Return whether a folder of that name is that of a tree of the task."""
    return bool(name) and name.rpartition("-")[2].partition(".")[0] == task_id.replace("-", "")[:_ID]


def _own(task_name: str, task_id: str, generation: int) -> str:
    again = f".{generation}" if generation > 1 else ""
    return f"{_plain(task_name) or 'task'}-{task_id.replace('-', '')[:_ID]}{again}"


def _plain(text: str) -> str:
    """What both a ref and a folder may be called: no dots in a row or at an end, nothing that git or a shell reads."""
    return re.sub(r"\.{2,}", ".", re.sub(r"[^A-Za-z0-9._-]+", "-", text))[:_MAX_LENGTH].strip(".-")
