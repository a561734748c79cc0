"""Changes as they are shown, and what can be asked about them. Field order is the order of the JSON."""

from typing import Annotated

from claudomator_py.domain.changes import RunChanges
from claudomator_py.domain.shape import Instant, View
from claudomator_py.resources.tasks.shape import Ref
from claudomator_py.surface.operation import READ, Calls, PathText, operation


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
