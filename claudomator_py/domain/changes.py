"""What a run changed where it worked: recorded before and after the run, never guessed."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from claudomator_py.domain.units import counted
from claudomator_py.domain.worktree import BRANCHES, HEADS
from claudomator_py.values import dataclass


class MergeMethod(StrEnum):
    """How commits get onto another branch. MERGE: with a merge commit, or none if the target has nothing of its own.
    SQUASH: all as a single commit. REBASE: one by one, on top of the target."""

    MERGE = "merge"
    SQUASH = "squash"
    REBASE = "rebase"


@dataclass(frozen=True, slots=True)
class MergeOrder:
    """What to merge."""

    tree: str
    """Name of the work tree."""
    into: str | None
    """Target branch; None for the one that the tree was made from."""
    method: MergeMethod
    title: str
    """Title of the commit, if one is needed."""
    commit: bool = False
    """True to commit uncommitted changes first."""
    dry_run: bool = False
    """True to report only what would happen."""


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of a merge, or what it would be."""

    branch: str
    into: str
    commits: int
    """Commits of the branch that were not in the target; 0 if there was nothing to do."""
    before: str
    """The target's commit before the merge."""
    after: str | None
    """The target's commit after the merge; None for a dry run."""
    files: int
    added: int
    removed: int
    place: str | None
    """The work tree that has the target checked out and whose files are updated; None if none has."""
    undo: str | None
    """The command that reverts the merge."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Discarded:
    """What was given up, or would be."""

    branch: str
    path: str
    commits: int
    changed: int
    """Number of files with uncommitted changes."""
    kept: str | None
    """The reference under which everything is kept; None for a dry run."""
    undo: str | None
    """The command that brings the branch back."""


class NotMerged(Exception):
    """The operation was refused and nothing was changed; the message says why. remedy: what to do. conflicts: the
    files."""

    def __init__(self, message: str, remedy: str, conflicts: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.remedy = remedy
        self.conflicts = conflicts


MAX_FILES = 100
"""Maximum number of files named in a run's outcome; the record in the run directory names more."""
MAX_RECORDED = 1_000
MAX_COMMITS = 50
MAX_REFS = 50
_TAG = "refs/tags/"
STASH = "refs/stash"
"""Reference to the latest stash."""


class ChangeRecord(BaseModel):
    """Base of the parts of the record."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class FileChange(ChangeRecord):
    """A file that differs after the run."""

    path: str
    """Relative to the top of the repository, or else to the working directory."""
    old_path: str | None = None
    """Path before the run, if it was renamed."""
    change: Literal["added", "modified", "deleted", "renamed"]
    modes: str | None = None
    """Mode before and after the run, as git writes them, if they differ, such as ``100644 -> 100755``."""
    added: int | None = None
    """Number of lines; None if it is not text or there is no repository."""
    removed: int | None = None
    """Number of lines, likewise."""

    @property
    def words(self) -> str:
        """What happened to it, such as ``renamed from old.py`` or ``modified, mode 100644 -> 100755``."""
        what = self.change if self.old_path is None else f"{self.change} from {self.old_path}"
        return what if self.modes is None else f"{what}, mode {self.modes}"


class Commit(ChangeRecord):
    """A commit that is new in the repository."""

    id: str
    """Full hash."""
    subject: str
    author: str


class RefChange(ChangeRecord):
    """A branch, a tag or another reference that was created, moved or deleted."""

    name: str
    """Full name, such as ``refs/heads/main``."""
    before: str | None = None
    """The hash before the run; None if the reference did not exist or was made for the task."""
    after: str | None = None
    """The hash after the run; None if the reference no longer exists."""
    is_pushed: bool = False
    """True for a remote's branch that moved because of a push."""

    @property
    def word(self) -> str:
        """What happened to it: ``made``, ``moved`` or ``deleted``."""
        return "made" if self.before is None else "deleted" if self.after is None else "moved"

    @property
    def moved(self) -> str:
        """From where to where, such as ``made at 1a2b3c4d``."""
        pushed = "pushed, " if self.is_pushed else ""
        if self.before is None:
            return f"{pushed}made at {str(self.after)[:8]}"
        if self.after is None:
            return f"deleted, was at {self.before[:8]}"
        return f"{pushed}{self.before[:8]} -> {self.after[:8]}"


def net_changes(refs: Iterable[RefChange]) -> tuple[RefChange, ...]:
    """Return each reference from before its first change to after its last, without those that are back where they
    were. refs: oldest first."""
    changed: dict[str, RefChange] = {}
    for ref in refs:
        before = changed[ref.name].before if ref.name in changed else ref.before
        changed[ref.name] = ref.model_copy(update={"before": before})
    return tuple(ref for ref in changed.values() if ref.before != ref.after)


class RunChanges(ChangeRecord):
    """Differences in a run's working directory, and in the repository around it, from before the run."""

    place: str
    """The top of the work tree, or the working directory if there is no repository."""
    repository: str | None = None
    """The repository that the work tree belongs to: the folder that its work trees lie next to, or the bare repository;
    None if there is no repository or an earlier version wrote the record."""
    is_repository: bool = True
    branch: str | None = None
    """The branch checked out after the run; None if none is."""
    branch_before: str | None = None
    head: str | None = None
    """Hash of the commit checked out after the run; None if there is none."""
    head_before: str | None = None
    commits: tuple[Commit, ...] = Field((), max_length=MAX_COMMITS)
    """Newest first."""
    commit_count: int = 0
    cancels_out: bool = False
    """True if all its commits together leave the files as they were."""
    refs: tuple[RefChange, ...] = Field((), max_length=MAX_REFS)
    ref_count: int = 0
    files: tuple[FileChange, ...] = Field((), max_length=MAX_RECORDED)
    file_count: int = 0
    added: int = 0
    """Lines in all files."""
    removed: int = 0
    uncommitted: tuple[str, ...] = Field((), max_length=MAX_RECORDED)
    """Paths of tracked files that differ from the checked-out commit."""
    uncommitted_count: int = 0
    untracked: tuple[str, ...] = Field((), max_length=MAX_RECORDED)
    """Paths of untracked files."""
    untracked_count: int = 0
    left_as_before: int = 0
    """Number of these files, tracked or not, that were so before the run and that it did not change."""
    skips: tuple[str, ...] = Field((), max_length=MAX_FILES)
    """Paths of tests, and of settings of what runs them, that were there before and skip more since."""
    patch_bytes: int | None = None
    """Size of the patch in the run directory; None if there is none."""
    is_patch_whole: bool = True
    fault: str | None = None
    """Why the record is incomplete; None if it is complete."""
    commit_fault: str | None = None
    """Why what was left uncommitted could not be committed, with the remedy; None if it was, or was to stay so."""

    @property
    def is_empty(self) -> bool:
        """True if nothing was changed."""
        moved = self.head != self.head_before or self.branch != self.branch_before
        return not (moved or self.commit_count or self.ref_count or self.file_count)

    @property
    def is_only_stashed(self) -> bool:
        """True if all that is left of its work is what it put aside with ``git stash``."""
        is_stash = self.ref_count == 1 and [ref.name for ref in self.refs] == [STASH]
        return is_stash and self.model_copy(update={"ref_count": 0}).is_empty

    @property
    def has_content(self) -> bool:
        """True if something was changed that remains."""
        return not (self.is_empty or self.cancels_out or self.is_only_stashed)

    @property
    def left_count(self) -> int:
        """Number of files that the run itself left uncommitted or untracked; a renamed file is one."""
        names = {*self.uncommitted, *self.untracked}
        renamed = sum({file.old_path, file.path} <= names for file in self.files)
        return self.uncommitted_count + self.untracked_count - self.left_as_before - renamed

    @property
    def summary(self) -> str:
        """Summary in one line, such as ``2 commits, 3 files (+40 -2), 1 branch deleted``."""
        if self.fault is not None and self.is_empty:
            return f"not recorded: {self.fault}"
        return "no changes" if self.is_empty else ", ".join(self._parts())

    def _parts(self) -> list[str]:
        parts: list[str] = []
        if self.commit_count:
            change_nothing = f" that change{'s' if self.commit_count == 1 else ''} no file" if self.cancels_out else ""
            parts.append(counted(self.commit_count, "commit") + change_nothing)
        if self.file_count:
            lines = f" (+{self.added} -{self.removed})" if self.added or self.removed else ""
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
        if self.left_count:
            parts.append(f"{self.left_count} not committed")
        return parts

    def _parts_of_refs(self) -> list[str]:
        renamed = self._renamed()
        words = {ref.name: ref.word for ref in self.refs} | dict.fromkeys(renamed, "renamed")
        for name in renamed.values():
            del words[name]
        if self.commit_count:  # a branch moves with each commit, and a task's own branch exists for them
            own = f"{HEADS}{self.branch}" if str(self.branch).startswith(BRANCHES) else None
            words = {name: word for name, word in words.items() if word != "moved" or not name.startswith(HEADS)}
            words.pop(own or "", None)
        parts = [
            f"{counted(some, kind)} {word}"
            for word in ("made", "moved", "renamed", "deleted")
            for kind, prefix in (("branch", HEADS), ("tag", _TAG), ("stash", STASH))
            if (some := sum(status == word and name.startswith(prefix) for name, status in words.items()))
        ]
        pushed = sum(ref.is_pushed for ref in self.refs)
        return [*parts, f"{counted(pushed, 'branch')} pushed"] if pushed else parts

    def _renamed(self) -> dict[str, str]:
        """Return the new name of each renamed branch and tag, by its old name, where the match is unambiguous."""
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
            if len(names) == len(after[key]) == 1 and key[0] in (HEADS[:-1], _TAG[:-1])
        }

    @property
    def ref_changes(self) -> list[tuple[str, str]]:
        """Each reference's name, with what happened to it in words; a renamed reference appears once."""
        renamed = self._renamed()
        return [
            (ref.name, f"renamed to {renamed[ref.name]}" if ref.name in renamed else ref.moved)
            for ref in self.refs
            if ref.name not in renamed.values()
        ]

    @property
    def checked_out(self) -> str | None:
        """What is checked out, such as ``on branch topic (before: main)``; None if nothing is, or there is no
        repository."""
        if not self.is_repository or (self.branch is None and self.branch_before is None):
            return None
        now = "HEAD is detached" if self.branch is None else f"on branch {self.branch}"
        return now if self.branch_before in (None, self.branch) else f"{now} (before: {self.branch_before})"

    def _ref(self, branch: str) -> RefChange | None:
        return next((ref for ref in self.refs if ref.name == f"{HEADS}{branch}"), None)

    def with_earlier(self, earlier: Sequence["RunChanges"]) -> "RunChanges":
        """Return what it and earlier runs in the same place changed together, as far as they name it. A line that
        several runs changed counts for each of them."""
        every = [*earlier, self]
        commits = {commit.id: commit for made in every for commit in made.commits}
        files = {file.path: file for made in every for file in made.files}
        refs = net_changes(ref for made in every for ref in made.refs)
        return self.model_copy(
            update={
                "head_before": every[0].head_before,
                "branch_before": every[0].branch_before,
                "commits": tuple(commits.values()),
                "commit_count": len(commits) + sum(made.commit_count - len(made.commits) for made in every),
                "cancels_out": all(made.cancels_out for made in every),
                "files": tuple(files.values()),
                "file_count": len(files) + sum(made.file_count - len(made.files) for made in every),
                "added": sum(made.added for made in every),
                "removed": sum(made.removed for made in every),
                "skips": tuple({path: None for made in every for path in made.skips})[:MAX_FILES],
                "refs": refs,
                "ref_count": len(refs),
                "left_as_before": min(made.left_as_before for made in every),
            }
        )

    def with_new_branch(self, branch: str, base: str) -> "RunChanges":
        """Return a copy in which that branch counts as new, unless a run has deleted it, or moved it from elsewhere."""
        made = self._ref(branch)
        if made is None or made.before != base or made.after is None:
            return self
        refs = tuple(ref.model_copy(update={"before": None}) if ref is made else ref for ref in self.refs)
        return self.model_copy(update={"refs": refs})

    def committed(self, commit: Commit) -> "RunChanges":
        """Return a copy as of after committing all uncommitted changes on the branch with that commit, without
        repositories that git does not know."""
        known = None if self.branch is None else self._ref(self.branch)
        others = [ref for ref in self.refs if ref is not known]
        nested = tuple(path for path in self.untracked if path.endswith("/"))
        branch = [] if self.branch is None else [f"{HEADS}{self.branch}"]
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
                "uncommitted": (),
                "uncommitted_count": 0,
                "untracked": nested,
                "untracked_count": len(nested),
                "left_as_before": 0,
            }
        )

    @property
    def left(self) -> tuple[str, ...] | None:
        """Paths of all files that it left uncommitted; None if the record does not name them all, or not exactly, as
        in an outcome, which is shortened."""
        names = (*self.uncommitted, *self.untracked)
        is_whole = self.fault is None and len(names) == self.uncommitted_count + self.untracked_count
        return names if is_whole and not any("\ufffd" in name for name in names) else None

    def shortened(self) -> "RunChanges":
        """Return a copy with only as many file names as an outcome may have."""
        return self.model_copy(
            update={name: getattr(self, name)[:MAX_FILES] for name in ("files", "uncommitted", "untracked")}
        )
