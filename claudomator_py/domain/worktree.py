"""Work trees: a task's own copy of a git repository, on its own branch, in which its runs work."""

import re
from enum import StrEnum

from claudomator_py.values import dataclass

BRANCHES = "claudomator/"
HEADS = "refs/heads/"
"""How the full name of each branch begins."""
_ID = 8
_MAX_LENGTH = 60


class Isolation(StrEnum):
    """Where a task's changes are isolated: nowhere, or in a git work tree of its own."""

    NONE = "none"
    WORKTREE = "worktree"


@dataclass(frozen=True, slots=True)
class WorktreeRequest:
    """A tree that a task needs."""

    name: str
    """Name of its folder, the same for all runs that share it."""
    branch: str
    task_id: str
    folder: str
    """A folder in the repository."""
    base: str | None = None
    """The branch, tag or commit to start from; None for where the trees in ``after`` ended, or else what is checked
    out."""
    after: tuple[str, ...] = ()
    """Names of the trees of the tasks that it waited for."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree that was created."""

    name: str
    path: str
    """Its folder."""
    branch: str
    task_id: str
    repository: str
    """Top of the work tree that it was created from."""
    base: str
    """The commit that it started from."""
    onto: str | None
    """The full ref of the branch that was checked out there; None if none was."""
    left_out: bool
    """True if the repository then had uncommitted changes, which are not in the tree."""
    submodules: bool
    """True if there are submodules, which are not checked out."""
    filters: tuple[str, ...] = ()
    """Content filters defined only in the repository's own configuration, which were not run."""
    git_dir: str = ""
    """Where git keeps what belongs to this tree alone."""
    common_dir: str = ""
    """Where git keeps what all trees of the repository share."""
    source_dir: str = ""
    """Like git_dir, for the work tree that it was created from. All three are empty in records of earlier versions."""
    begun_at: str | None = None
    """The branch, tag or commit that it started from; None for what was checked out in the repository."""
    passed_over: tuple[str, ...] = ()
    """Branches of the tasks that it waited for, if none of them contains all the others and so none was the start."""
    left_behind: int = 0
    """Number of uncommitted files left by the tasks that it waited for, which are not in the tree."""
    unexamined: tuple[str, ...] = ()
    """Branches of such tasks whose trees could not be examined, so that nobody knows what they left uncommitted."""

    @property
    def ref(self) -> str:
        """The full name of its branch."""
        return f"{HEADS}{self.branch}"


class TreeStanding(StrEnum):
    """How a tree relates to what it was created from. A tree that is unchanged, merged or gone holds nothing of its
    own.

    UNCHANGED: no commit and no change. MERGED: all of its commits, or their changes, are in the branch that it was
    created from, or in that branch's upstream. AHEAD: it has commits that are not. DIRTY: uncommitted changes or new
    files. LOCKED: by ``git worktree lock``. GONE: the folder no longer exists, and its branch, if there is one, is
    merged. UNKNOWN: git could not tell, or was not asked, as the tree is no longer as it was created.
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
        """True if removing the tree loses nothing."""
        return self in (TreeStanding.UNCHANGED, TreeStanding.MERGED, TreeStanding.GONE)


@dataclass(frozen=True, slots=True)
class TreeState:
    """State of a tree when it was examined."""

    standing: TreeStanding
    commits: int = 0
    """Commits since its base."""
    changed: int = 0
    """Number of uncommitted files."""
    by_check: tuple[str, ...] = ()
    """Paths of uncommitted files that only checks have left, not the agent."""
    words: str = ""
    """Why the state is unknown, or the reason for a lock."""
    seen_ms: int = 0
    """Time of the examination, in epoch milliseconds."""


class TreeBusy(Exception):
    """The tree is in use: by a git process of an earlier daemon, or by another request."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the work tree {name} is in use by another process")


class TreeFault(Exception):
    """git could not do it; the message contains git's words and what to do."""


def short_ref(ref: str) -> str:
    """Return the name of a branch, given that or its full name."""
    return ref.removeprefix(HEADS)


def tree_name(repository: str, task_name: str, task_id: str, generation: int) -> str:
    """Return the folder name of the tree for this generation of a task. repository: name of the repository's folder."""
    return f"{_plain(repository) or 'repository'}-{_own(task_name, task_id, generation)}"


def branch_name(task_name: str, tree: str) -> str:
    """Return the branch of the tree with that name: a valid ref whatever the task's name."""
    return f"{BRANCHES}{_plain(task_name) or 'task'}-{shared_mark(tree)}"


def shared_mark(name: str) -> str:
    """Return the last part of the name of a tree or of its branch, which only these two have in common."""
    return name.rpartition("-")[2]


def is_tree_branch(name: str) -> bool:
    """Return whether the name of a branch is one that ``branch_name`` gives."""
    return name.startswith(BRANCHES) and re.fullmatch(rf"[0-9a-f]{{{_ID}}}(\.\d+)?", shared_mark(name)) is not None


def is_tree_of(name: str, task_id: str) -> bool:
    """Return whether a folder name is that of one of the task's trees."""
    return bool(name) and shared_mark(name).partition(".")[0] == task_id.replace("-", "")[:_ID]


def _own(task_name: str, task_id: str, generation: int) -> str:
    again = f".{generation}" if generation > 1 else ""
    return f"{_plain(task_name) or 'task'}-{task_id.replace('-', '')[:_ID]}{again}"


def _plain(text: str) -> str:
    """The text as a valid part of both refs and folder names: no dots in a row or at an end, nothing special to git or
    a shell."""
    return re.sub(r"\.{2,}", ".", re.sub(r"[^A-Za-z0-9._-]+", "-", text))[:_MAX_LENGTH].strip(".-")
