"""What tasks changed, and their branches, as they are shown; and what can be asked about them. Field order is the order
of the JSON."""

from typing import Annotated

from pydantic import Field

from claudomator_py.domain.changes import MergeMethod, RunChanges
from claudomator_py.domain.fields import Flag, Strict
from claudomator_py.domain.lifecycle import StateName
from claudomator_py.domain.shape import Instant, View
from claudomator_py.domain.worktree import TreeStanding
from claudomator_py.resources.tasks import Ref
from claudomator_py.surface import OPERATE, READ, Calls, JsonBody, PathText, operation
from claudomator_py.surface.table import Column, Table


class ChangesView(View):
    """What one run changed."""

    run_id: str
    number: int
    """Of the run: 1 is the task's first."""
    agent: str
    started_at: Instant
    summary: str
    """All of it in one line; ``not known`` where nothing was recorded."""
    is_doubtful: bool = False
    """Whether it succeeded and changed nothing, although its result says that it did."""
    changes: RunChanges | None = None
    """Null: nothing was recorded, as while it runs, of a remote agent's, and in an empty folder of its own."""


class TaskChangesView(View):
    """What the runs of a task changed."""

    task_id: str
    task_name: str
    runs: tuple[ChangesView, ...]
    """The oldest first."""


class PatchView(View):
    """The changes of a run as a patch, as far as it was kept, with ``[redacted]`` in the place of secrets."""

    run_id: str
    text: str
    """As ``git diff`` writes it; empty where no file was changed, and where there is no repository."""
    is_whole: bool = True
    """Whether all files of the run are in it."""


class ChangeCalls(Calls):
    """Every operation on changes, as the client calls it."""

    @operation("GET /v1/tasks/{ref}/changes", "listChanges", READ, "What a task's runs changed", refuses=(404,))
    def changes(self, ref: Ref) -> TaskChangesView:
        """Commits, references and files, recorded before and after each run."""

    @operation("GET /v1/runs/{run_id}/patch", "getPatch", READ, "The patch of a run", refuses=(404,))
    def patch(self, run_id: Annotated[str, PathText("A run's id, or the beginning of it.", 128)]) -> PatchView:
        """Its changes line by line. It goes with the run's directory, when that is cleaned up."""


class BranchView(View):
    """The branch of a task that has a work tree of its own, as it stood when it was last looked at."""

    task_id: str
    task_name: str
    state: StateName
    branch: str
    repository: str
    """The folder of the repository."""
    onto: str | None = None
    """The branch that it began at; null: none was checked out there."""
    path: str
    """The folder of the work tree."""
    standing: TreeStanding
    """Whether all of it is in the branch that it began at, or in that one's upstream."""
    commits: int
    """Since it began."""
    changed: int
    """Files that are not committed."""
    seen_at: Instant | None = None
    """When it was looked at: after its last run, or by a cleanup or merge; null: not yet."""


BRANCHES = Table[BranchView](
    Column("TASK", lambda view: view.task_name, flexible=True, least=20),
    Column("STATE", lambda view: view.state),
    Column("BRANCH", lambda view: view.branch, flexible=True, least=24, spare=1),
    Column("INTO", lambda view: view.onto),
    Column("IS", lambda view: view.standing),
    Column("COMMITS", lambda view: view.commits, right=True),
    Column("NOT COMMITTED", lambda view: view.changed, right=True),
    Column("REPOSITORY", lambda view: view.repository, flexible=True, spare=1),
)


class MergeRequest(Strict):
    """How to merge the branch of a task."""

    into: str | None = Field(default=None, min_length=1, max_length=250)
    """A branch of the same repository. Default: the one that was checked out there when the task began."""
    method: MergeMethod = MergeMethod.MERGE
    """`merge` moves the branch forward if that is enough, `squash` makes one commit of all, `rebase` repeats each."""
    commit: Flag = False
    """Commit first, on the task's branch, what is not committed in its work tree."""
    dry_run: Flag = False
    """Only say what would become of it. Nothing is written."""


class DiscardRequest(Strict):
    """How to leave the branch of a task."""

    dry_run: Flag = False
    """Only say what would become of it. Nothing is written."""


class MergeView(View):
    """What was merged, or would be."""

    task_id: str
    task_name: str
    branch: str
    into: str
    method: MergeMethod
    commits: int
    """How many the target did not have; 0: there was nothing to do."""
    files: int
    """That are other in the target than before."""
    added: int
    """Lines."""
    removed: int
    before: str
    """The commit that the target was at."""
    after: str | None = None
    """The commit that it is at now; null: it was only tried."""
    place: str | None = None
    """The work tree that has the target checked out, whose files follow; null: none has."""
    undo: str | None = None
    """The command that takes it back, on the machine of the daemon; null: nothing was changed."""
    notes: tuple[str, ...] = ()
    """What else to know."""


class DiscardView(View):
    """What was left, or would be."""

    task_id: str
    task_name: str
    branch: str
    path: str
    """The folder of the work tree."""
    commits: int
    changed: int
    """Files that were not committed."""
    kept: str | None = None
    """The reference under which all of it is kept in the repository; null: it was only tried."""
    undo: str | None = None
    """The command that brings the branch back, on the machine of the daemon; null: nothing was changed."""


_MERGED = {"default": {}, "tried": {"into": "main", "method": "squash", "dry_run": True}}
_DISCARDED = {"default": {}, "tried": {"dry_run": True}}


class BranchCalls(Calls):
    """Every operation on the branches of tasks, as the client calls it."""

    @operation("GET /v1/branches", "listBranches", READ, "The branches of tasks")
    def branches(self) -> list[BranchView]:
        """Of all tasks that have a work tree, by repository and branch. Starts no git: all is as last seen."""

    @operation("POST /v1/tasks/{ref}/merge", "mergeTask", OPERATE, "Merge what a task has done", refuses=(404, 409))
    def merge(self, ref: Ref, wanted: Annotated[MergeRequest | None, JsonBody(_MERGED)] = None) -> MergeView:
        """Merge its branch into another one of the repository. Either all of it is done or nothing.

        409 for a conflict, with the files that have one; where the target has changes that are not committed, or
        somebody works in it; and for a task that has not ended, or has no work tree of its own.
        """

    @operation("POST /v1/tasks/{ref}/discard", "discardTask", OPERATE, "Leave what a task has done", refuses=(404, 409))
    def discard(self, ref: Ref, wanted: Annotated[DiscardRequest | None, JsonBody(_DISCARDED)] = None) -> DiscardView:
        """Remove its work tree and its branch. All that is in them, committed or not, is kept under a reference.

        409 where somebody works in it, and for a task that has not ended, or has no work tree of its own.
        """
