"""What a run changed in the place where it worked: recorded before and after it, and never guessed."""

from collections import defaultdict
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from claudomator_py.domain.units import counted
from claudomator_py.domain.worktree import BRANCHES
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


MAX_FILES = 100
"""Named in the outcome of a run; the record in its directory names more."""
MAX_RECORDED = 1_000
MAX_COMMITS = 50
MAX_REFS = 50
_BRANCH, _TAG = "refs/heads/", "refs/tags/"


class ChangeRecord(BaseModel):
    """A part of the record."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class FileChange(ChangeRecord):
    """A file that was other after the run than before it."""

    path: str
    """From the top of the repository, or from the working directory."""
    change: Literal["added", "modified", "deleted"]
    added: int | None = None
    """Lines; None: it is no text, or there is no repository."""
    removed: int | None = None
    """Lines, as above."""


class Commit(ChangeRecord):
    """A commit that was not in the repository before."""

    id: str
    """Its whole hash."""
    subject: str
    author: str


class RefChange(ChangeRecord):
    """A branch, a tag or another reference that was made, moved or deleted."""

    name: str
    """Such as ``refs/heads/main``."""
    before: str | None = None
    """The hash that it named; None: it was not there, or was made for the task."""
    after: str | None = None
    """The hash that it names; None: it is not there any more."""

    @property
    def word(self) -> str:
        """What became of it: ``made``, ``moved`` or ``deleted``."""
        return "made" if self.before is None else "deleted" if self.after is None else "moved"

    @property
    def moved(self) -> str:
        """From where to where, such as ``made at 1a2b3c4d``."""
        if self.before is None:
            return f"made at {str(self.after)[:8]}"
        if self.after is None:
            return f"deleted, was at {self.before[:8]}"
        return f"{self.before[:8]} -> {self.after[:8]}"


class RunChanges(ChangeRecord):
    """What is other in a run's working directory, or in the repository around it, than it was before the run."""

    place: str
    """The top of the work tree, or the working directory where there is no repository."""
    repository: str | None = None
    """Whose work tree it is: the folder beside which all its work trees are, or the bare repository; None: there is no
    repository, or the record is of an earlier version."""
    is_repository: bool = True
    branch: str | None = None
    """The branch that is checked out after the run; None: none is."""
    branch_before: str | None = None
    head: str | None = None
    """The hash of the commit that is checked out after the run; None: there is none."""
    head_before: str | None = None
    commits: tuple[Commit, ...] = Field((), max_length=MAX_COMMITS)
    """The newest first."""
    commit_count: int = 0
    refs: tuple[RefChange, ...] = Field((), max_length=MAX_REFS)
    ref_count: int = 0
    files: tuple[FileChange, ...] = Field((), max_length=MAX_RECORDED)
    file_count: int = 0
    added: int = 0
    """Lines in all files."""
    removed: int = 0
    uncommitted: tuple[str, ...] = Field((), max_length=MAX_RECORDED)
    """Files that git knows, and that are other than in the commit that is checked out, by their paths."""
    uncommitted_count: int = 0
    untracked: tuple[str, ...] = Field((), max_length=MAX_RECORDED)
    """Files that git does not know."""
    untracked_count: int = 0
    patch_bytes: int | None = None
    """The size of the patch in the run's directory; None: there is none."""
    is_patch_whole: bool = True
    fault: str | None = None
    """Why not all of it could be recorded."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was changed."""
        moved = self.head != self.head_before or self.branch != self.branch_before
        return not (moved or self.commit_count or self.ref_count or self.file_count)

    @property
    def summary(self) -> str:
        """All of it in one line, such as ``2 commits, 3 files (+40 -2), 1 branch deleted``."""
        if self.fault is not None and self.is_empty:
            return f"not recorded: {self.fault}"
        return "no changes" if self.is_empty else ", ".join(self._parts())

    def _parts(self) -> list[str]:
        parts: list[str] = []
        if self.commit_count:
            parts.append(counted(self.commit_count, "commit"))
        if self.file_count:
            lines = f" (+{self.added} -{self.removed})" if self.is_repository else ""
            parts.append(counted(self.file_count, "file") + lines)
        parts += self._parts_of_refs()
        known = None if self.branch is None else self._ref(self.branch)
        if self.branch is None and self.branch_before is not None:
            parts.append("HEAD is detached")
        elif (
            self.branch not in (None, self.branch_before)
            and (known is None or known.before is not None)
            and (self.branch_before is not None or not parts)
        ):
            parts.append(f"{self.branch} is checked out")
        elif self.head != self.head_before and not self.commit_count:
            parts.append("another commit is checked out")
        if not parts and self.ref_count:
            parts.append(f"{counted(self.ref_count, 'reference')} changed")
        if self.uncommitted_count or self.untracked_count:
            parts.append(f"{self.uncommitted_count + self.untracked_count} not committed")
        return parts

    def _parts_of_refs(self) -> list[str]:
        renamed = self._renamed()
        words = {ref.name: ref.word for ref in self.refs} | dict.fromkeys(renamed, "renamed")
        for name in renamed.values():
            del words[name]
        if self.commit_count:  # a branch moves with each of them, and a task's own is there for them
            own = f"{_BRANCH}{self.branch}" if str(self.branch).startswith(BRANCHES) else None
            words = {name: word for name, word in words.items() if word != "moved" or not name.startswith(_BRANCH)}
            words.pop(own or "", None)
        return [
            f"{counted(some, kind)} {word}"
            for word in ("made", "moved", "renamed", "deleted")
            for kind, prefix in (("branch", _BRANCH), ("tag", _TAG))
            if (some := sum(told == word and name.startswith(prefix) for name, told in words.items()))
        ]

    def _renamed(self) -> dict[str, str]:
        """Return the new name of each branch and tag by its former one, where only one can have become the other."""
        before: dict[tuple[str, str | None], list[str]] = defaultdict(list)
        after: dict[tuple[str, str | None], list[str]] = defaultdict(list)
        for ref in self.refs:
            kind = "/".join(ref.name.split("/")[:2])
            if ref.after is None:
                before[kind, ref.before].append(ref.name)
            elif ref.before is None:
                after[kind, ref.after].append(ref.name)
        return {
            names[0]: after[key][0]
            for key, names in before.items()
            if len(names) == len(after[key]) == 1 and key[0] in (_BRANCH[:-1], _TAG[:-1])
        }

    @property
    def refs_told(self) -> list[tuple[str, str]]:
        """The name of each reference, and what became of it in words; one that was renamed is told once."""
        renamed = self._renamed()
        return [
            (ref.name, f"renamed to {renamed[ref.name]}" if ref.name in renamed else ref.moved)
            for ref in self.refs
            if ref.name not in renamed.values()
        ]

    @property
    def checked_out(self) -> str | None:
        """What is checked out, such as ``on branch topic (before: main)``; None: nothing is, or was."""
        if not self.is_repository or (self.branch is None and self.branch_before is None):
            return None
        now = "HEAD is detached" if self.branch is None else f"on branch {self.branch}"
        return now if self.branch_before in (None, self.branch) else f"{now} (before: {self.branch_before})"

    def _ref(self, branch: str) -> RefChange | None:
        return next((ref for ref in self.refs if ref.name == f"{_BRANCH}{branch}"), None)

    def made_for_it(self, branch: str, base: str) -> "RunChanges":
        """Return it with that branch as one that was not there before, if no run has moved it from where it began."""
        made = self._ref(branch)
        if made is None or made.before != base:
            return self
        refs = tuple(ref.model_copy(update={"before": None}) if ref is made else ref for ref in self.refs)
        return self.model_copy(update={"refs": refs})

    def committed(self, commit: Commit) -> "RunChanges":
        """Return it as it is once all that was not committed is, by that commit on its branch."""
        known = None if self.branch is None else self._ref(self.branch)
        others = [ref for ref in self.refs if ref is not known]
        branch = [] if self.branch is None else [f"{_BRANCH}{self.branch}"]
        moved = [RefChange(name=name, before=self.head, after=commit.id) for name in branch]
        if known is not None:
            moved = [known.model_copy(update={"after": commit.id})]
        return self.model_copy(
            update={
                "head": commit.id,
                "commits": (commit, *self.commits)[:MAX_COMMITS],
                "commit_count": self.commit_count + 1,
                "refs": (*moved, *others)[:MAX_REFS],
                "ref_count": self.ref_count + (known is None and bool(moved)),
                **dict.fromkeys(("uncommitted", "untracked"), ()),
                **dict.fromkeys(("uncommitted_count", "untracked_count"), 0),
            }
        )

    def shortened(self) -> "RunChanges":
        """Return it with as many names as an outcome may have."""
        return self.model_copy(
            update={name: getattr(self, name)[:MAX_FILES] for name in ("files", "uncommitted", "untracked")}
        )
