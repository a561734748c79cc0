"""What a run changed in the place where it worked: recorded before and after it, and never guessed."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from claudomator_py.domain.units import counted

MAX_FILES = 100
"""Named in the outcome of a run; the record in its directory names more."""
MAX_RECORDED = 1_000
MAX_COMMITS = 50
MAX_REFS = 50


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
    """The hash that it named; None: it was not there."""
    after: str | None = None
    """The hash that it names; None: it is not there any more."""

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
        parts = []
        if self.commit_count:
            parts.append(counted(self.commit_count, "commit"))
        if self.file_count:
            lines = f" (+{self.added} -{self.removed})" if self.is_repository else ""
            parts.append(counted(self.file_count, "file") + lines)
        for word, found in (
            ("made", [ref for ref in self.refs if ref.before is None]),
            ("deleted", [ref for ref in self.refs if ref.after is None]),
        ):
            for kind, prefix in (("branch", "refs/heads/"), ("tag", "refs/tags/")):
                if some := [ref for ref in found if ref.name.startswith(prefix)]:
                    parts.append(f"{counted(len(some), kind)} {word}")
        if self.head != self.head_before and not self.commit_count:
            parts.append("another commit is checked out")
        if self.uncommitted_count or self.untracked_count:
            parts.append(f"{self.uncommitted_count + self.untracked_count} not committed")
        return parts

    def committed(self, commit: Commit) -> "RunChanges":
        """Return it as it is once all that was not committed is, by that commit on its branch."""
        branch = None if self.branch is None else f"refs/heads/{self.branch}"
        known = next((ref for ref in self.refs if ref.name == branch), None)
        others = [ref for ref in self.refs if ref is not known]
        moved = [] if branch is None else [RefChange(name=branch, before=self.head, after=commit.id)]
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
