"""The shapes and operations of tasks' changes and branches. Field order is the order of the JSON."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Annotated

from pydantic import Field

from claudomator_py.domain.changes import MAX_FILES, MergeMethod, RunChanges
from claudomator_py.domain.fields import Flag, Strict
from claudomator_py.domain.lifecycle import StateName
from claudomator_py.domain.shape import Instant, View
from claudomator_py.domain.worktree import TreeStanding
from claudomator_py.resources.tasks import Ref
from claudomator_py.surface import OPERATE, READ, Calls, InPath, JsonBody, operation
from claudomator_py.surface.table import Column, Table


class ChangesView(View):
    """What one run changed."""

    run_id: str
    number: int
    """Of the run: 1 is the task's first."""
    agent: str
    started_at: Instant
    summary: str
    """The changes in one line; ``not recorded`` if there is no record, ``recorded when the run ends`` before that."""
    is_doubtful: bool = False
    """True if it succeeded, although something speaks against its result: its text, a check that it changed, tests that
    it deleted or skipped, or that nothing was changed."""
    changes: RunChanges | None = None
    """Null: nothing was recorded, as while it runs, on a remote agent, and in an empty folder of its own."""


class TaskChangesView(View):
    """What the runs of a task changed."""

    task_id: str
    task_name: str
    runs: tuple[ChangesView, ...]
    """Oldest first."""


class PatchView(View):
    """The changes of a run as a patch, as far as it was kept, with ``[redacted]`` in place of secrets."""

    run_id: str
    text: str
    """In the form of ``git diff``; empty if no file was changed, or there is no repository."""
    is_whole: bool = True
    """Whether it has all files that the run changed."""


class ChangeCalls(Calls):
    """The operations on changes, as the client calls them."""

    @operation("GET /v1/tasks/{ref}/changes", "listChanges", READ, "What a task's runs changed")
    def changes(self, ref: Ref) -> TaskChangesView:
        """Commits, references and files, compared before and after each run."""

    @operation("GET /v1/runs/{run_id}/patch", "getPatch", READ, "The patch of a run")
    def patch(self, run_id: Annotated[str, InPath("A run's id, or the beginning of it.", ambiguous=True)]) -> PatchView:
        """Its changes line by line. It is removed with the run's directory by a cleanup."""


class BranchView(View):
    """The branch of a task with a work tree of its own, as last seen."""

    task_id: str
    task_name: str
    state: StateName
    branch: str
    repository: str
    """The folder of the repository."""
    onto: str | None = None
    """The branch that it began at; null: none was checked out."""
    path: str
    """The folder of the work tree."""
    standing: TreeStanding
    """Whether all of it is in the branch that it began at, or in the upstream of that."""
    commits: int
    """Commits since it began."""
    changed: int
    """Uncommitted files."""
    by_check: Annotated[tuple[str, ...], Field(max_length=MAX_FILES)] = ()
    """Which of them only checks have left, not the agent: the first 100 names."""
    seen_at: Instant | None = None
    """When that was: after its last run, or by a cleanup or merge; null: not yet."""
    is_current: bool = True
    """Whether merging or discarding the task's branch means this one; false: a restart has begun another."""
    unready: str | None = None
    """Why it should be looked at before it is merged, such as `no check passed`. Null: its task has completed, a check
    has passed on everything in it, and nothing speaks against the result."""


BRANCHES = Table[BranchView](
    Column("TASK", lambda view: view.task_name, flexible=True, least=20),
    Column("STATE", lambda view: view.state),
    Column("BRANCH", lambda view: view.branch, flexible=True, least=24, spare=1),
    Column("INTO", lambda view: view.onto),
    Column("STANDING", lambda view: view.standing, spare=2),
    Column("COMMITS", lambda view: view.commits, right=True),
    Column("UNCOMMITTED", lambda view: view.changed, right=True, spare=3),
    Column("READY", lambda view: "yes" if view.unready is None else f"no: {view.unready}", flexible=True, least=16),
    Column("REPOSITORY", lambda view: PurePath(view.repository).name, flexible=True),
    Column("PATH", lambda view: view.repository, wide=True),
)


class MergeRequest(Strict):
    """How to merge the branch of a task."""

    into: str | None = Field(default=None, min_length=1, max_length=250)
    """A branch of the same repository. Default: the one that was checked out when the task began."""
    method: MergeMethod = MergeMethod.MERGE
    """`merge` moves the branch forward if that is enough, `squash` makes one commit, `rebase` repeats each commit."""
    commit: Flag = False
    """First commit, on the task's branch, the uncommitted files of its work tree."""
    dry_run: Flag = False
    """Only report what would happen. Nothing is written."""


class DiscardRequest(Strict):
    """How to discard the branch of a task."""

    dry_run: Flag = False
    """Only report what would happen. Nothing is written."""


class MergeView(View):
    """What was merged, or would be."""

    task_id: str
    task_name: str
    branch: str
    into: str
    method: MergeMethod
    commits: int
    """How many the target lacked; 0: there was nothing to do."""
    files: int
    """How many files changed in the target."""
    added: int
    """Added lines."""
    removed: int
    before: str
    """The target's commit before."""
    after: str | None = None
    """The target's commit after; null: a dry run."""
    place: str | None = None
    """The work tree with the target checked out, whose files follow; null: there is none."""
    undo: str | None = None
    """The command to undo it, on the daemon's machine; null: nothing was changed."""
    notes: tuple[str, ...] = ()
    """Further remarks."""


def undos_of(merges: Sequence[MergeView]) -> list[str]:
    """Return the commands that undo all of them, in the order in which they have to be run. In a work tree, undoing the
    first merge also undoes those after it."""
    places = [merged.place for merged in merges]
    return [
        merged.undo
        for index, merged in reversed([*enumerate(merges)])
        if merged.undo is not None and (merged.place is None or merged.place not in places[:index])
    ]


class DiscardView(View):
    """What was discarded, or would be."""

    task_id: str
    task_name: str
    branch: str
    path: str
    """The folder of the work tree."""
    commits: int
    changed: int
    """Uncommitted files."""
    kept: str | None = None
    """The reference under which everything is kept in the repository; null: a dry run."""
    undo: str | None = None
    """The command to restore the branch, on the daemon's machine; null: nothing was changed."""
    notes: tuple[str, ...] = ()
    """Further remarks: which tasks will begin without it."""


_MERGED = {"default": {}, "tried": {"into": "main", "method": "squash", "dry_run": True}}
_DISCARDED = {"default": {}, "tried": {"dry_run": True}}


class BranchCalls(Calls):
    """The operations on the branches of tasks, as the client calls them."""

    @operation("GET /v1/branches", "listBranches", READ, "The branches of tasks")
    def branches(self) -> list[BranchView]:
        """Of all tasks with a work tree, by repository and branch. As last seen: this runs no git."""

    @operation("POST /v1/tasks/{ref}/merge", "mergeTask", OPERATE, "Merge the branch of a task")
    def merge(self, ref: Ref, wanted: Annotated[MergeRequest | None, JsonBody(_MERGED)] = None) -> MergeView:
        """Merge the task's branch into another branch of the repository, completely or not at all.
        409 for a conflict, with the files that have one; if the target has uncommitted changes, or somebody works in
        it; and for a task that has not ended, or has no work tree of its own.
        """

    @operation("POST /v1/tasks/{ref}/discard", "discardTask", OPERATE, "Discard the branch of a task")
    def discard(self, ref: Ref, wanted: Annotated[DiscardRequest | None, JsonBody(_DISCARDED)] = None) -> DiscardView:
        """Remove its work tree and its branch. Everything in them, committed or not, is kept under a reference.
        409 if somebody works in it, and for a task that has not ended, or has no work tree of its own.
        """
