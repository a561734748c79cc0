"""What the runs of tasks changed, as it was recorded; and merging or discarding the branches of tasks, unless somebody
is at work."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from claudomator_py.domain.changes import MAX_FILES, MergeOrder, NotMerged
from claudomator_py.domain.errors import Conflict, NotFound, ended, sentence
from claudomator_py.domain.lifecycle import ENDED
from claudomator_py.domain.outcome import Outcome, OutcomeStatus
from claudomator_py.domain.redaction import replaced
from claudomator_py.domain.units import counted
from claudomator_py.domain.worktree import Isolation, Tree, TreeStanding, TreeState, short_ref
from claudomator_py.environment.secrets import Secrets
from claudomator_py.ports import Branches, Clock, RunHost, Trees
from claudomator_py.resources.branches import (
    BranchCalls,
    BranchView,
    ChangeCalls,
    ChangesView,
    DiscardRequest,
    DiscardView,
    MergeRequest,
    MergeView,
    PatchView,
    TaskChangesView,
)
from claudomator_py.resources.concealment import without_hidden
from claudomator_py.resources.session import Service, find_run, find_task, reading, writing
from claudomator_py.store import dependency_rows, events, run_rows, task_rows
from claudomator_py.store.stored_json import readable
from claudomator_py.store.tables import Run, Task
from claudomator_py.surface import answers
from claudomator_py.values import dataclass

UNKNOWN = "not recorded"
UNENDED = "recorded when the run ends"


@dataclass(eq=False, repr=False)
class Changes(Service):
    """The service of changes. Every method may raise ``domain.errors.ServiceError``, mostly NotFound."""

    host: RunHost
    secrets: Secrets

    @reading(ChangeCalls.changes)
    def of_task(self, connection: Connection, ref: str) -> TaskChangesView:
        """Return everything that is kept of what the task's runs changed."""
        task = find_task(connection, ref, self._by)
        runs = without_hidden(connection, run_rows.of_task(connection, task.id), self._by)
        views = tuple(self._view(connection, number, run) for number, run in enumerate(runs, start=1))
        return TaskChangesView(task_id=task.id, task_name=task.name, runs=views)

    @answers(ChangeCalls.patch)
    def patch(self, run_id: str) -> PatchView:
        """Return the patch of a run."""

        def read(connection: Connection) -> tuple[Run, dict[str, str]]:
            run = find_run(connection, run_id, self._by)
            return run, task_rows.spec_of(connection, run.task_id, run.revision).env

        run, env = self._read(read)
        record = self.host.changes(run.id)
        text = self.secrets.redactor(env, run.id).redact(self.host.patch(run.id))
        return PatchView(run_id=run.id, text=text, is_whole=record is None or record.is_patch_whole)

    def _view(self, connection: Connection, number: int, run: Run) -> ChangesView:
        outcome = readable(Outcome, run.outcome)
        changes = None if outcome is None else outcome.changes
        if changes is not None and changes.file_count > len(changes.files):
            record = self.host.changes(run.id)
            if record is not None:
                env = task_rows.spec_of(connection, run.task_id, run.revision).env
                shown = replaced(record, self.secrets.redactor(env, run.id).redact)
                changes = changes.model_copy(update={"files": shown.files})
        unrecorded = UNENDED if run.live else UNKNOWN
        summary = unrecorded if outcome is None else outcome.changes_text or UNKNOWN
        doubtful = outcome is not None and outcome.is_doubtful
        return ChangesView.of(run, run_id=run.id, number=number, summary=summary, is_doubtful=doubtful, changes=changes)


@dataclass(eq=False, repr=False)
class BranchService(Service):
    """The service of branches. Every method may raise ``domain.errors.ServiceError``: NotFound, or Conflict if it is
    not possible now."""

    branches: Branches
    trees: Trees
    clock: Clock

    @answers(BranchCalls.branches)
    def all(self) -> list[BranchView]:
        """Return the branches of all tasks that exist for the caller."""
        trees = sorted(self.trees.all(), key=lambda tree: (tree.repository, tree.branch))
        return self._read(lambda connection: [*self._views(connection, trees)])

    @answers(BranchCalls.merge)
    def merge(self, ref: str, wanted: MergeRequest) -> MergeView:
        """Merge the branch of the task."""
        task, tree = self._read(lambda connection: self._finished_task(connection, ref, wanted.dry_run))
        order = MergeOrder(
            tree, wanted.into, wanted.method, title=task.name, commit=wanted.commit, dry_run=wanted.dry_run
        )
        with _refused():
            merged = self.branches.merge(order, self._who_works_in)
        view = MergeView(
            task_id=task.id,
            task_name=task.name,
            method=wanted.method,
            **{name: _text(value) for name, value in asdict(merged).items() if name != "notes"},
            notes=tuple(map(_text, merged.notes)),
        )
        if view.after is not None and view.after != view.before:
            fields = view.model_dump(
                mode="json", include={"branch", "into", "method", "commits", "before", "after", "undo"}
            )
            self._record(task, "merged", fields)
            if (seen := self.trees.find(tree)) is not None:
                self.trees.look(seen)
        return view

    @answers(BranchCalls.discard)
    def discard(self, ref: str, wanted: DiscardRequest) -> DiscardView:
        """Remove the branch of the task."""
        task, tree = self._read(lambda connection: self._finished_task(connection, ref, wanted.dry_run))
        waiting = self._read(lambda connection: self._would_begin_there(connection, task))
        with _refused():
            left = self.branches.discard(tree, dry_run=wanted.dry_run)
        values = {name: _text(value) for name, value in asdict(left).items()}
        notes = tuple(f"{name} depends on {task.name} and will begin without these changes" for name in waiting)
        view = DiscardView(task_id=task.id, task_name=task.name, notes=notes, **values)
        if view.kept is not None:
            included = {"branch", "commits", "changed", "kept", "undo"}
            self._record(task, "discarded", view.model_dump(mode="json", include=included))
        return view

    def _views(self, connection: Connection, trees: Sequence[Tree]) -> Iterator[BranchView]:
        newest = run_rows.newest_in(connection, [tree.path for tree in trees])
        for tree in trees:
            try:
                task = find_task(connection, tree.task_id, self._by)
            except NotFound:
                continue
            state = self.trees.seen(tree.name) or TreeState(TreeStanding.UNKNOWN)
            place = _place_of(connection, task)
            yield BranchView.of(
                state,
                task_id=task.id,
                task_name=task.name,
                state=task.state,
                branch=tree.branch,
                repository=_text(tree.repository),
                onto=_text(tree.onto and short_ref(tree.onto)),
                path=_text(tree.path),
                by_check=tuple(map(_text, state.by_check[:MAX_FILES])),
                seen_at=state.seen_ms or None,
                is_current=place == tree.path,
                unready=_unready(tree, state, newest.get(tree.path), place),
            )

    def _would_begin_there(self, connection: Connection, task: Task) -> list[str]:
        """Return the names of the visible tasks that depend on it and whose own work tree has yet to begin."""
        others = [
            other for other in dependency_rows.dependents(connection, task.id) if self._by.sees(other.organisation)
        ]
        unbegun = [other for other in others if other.state not in ENDED and other.last_run_id is None]
        specs = task_rows.specs_shown(connection, unbegun)
        return [other.name for other in unbegun if specs[other.id].isolation is Isolation.WORKTREE]

    def _finished_task(self, connection: Connection, ref: str, dry_run: bool) -> tuple[Task, str]:
        """Return the task and the name of its tree."""
        task = find_task(connection, ref, self._by)
        if task.state not in ENDED and not dry_run:
            remedy = f"Wait for it to end, or cancel it: claudomator cancel {task.name}"
            raise Conflict(f"{task.name} has not ended; it is {task.state}.", remedy=remedy)
        place = _place_of(connection, task)
        tree = None if place is None else self.branches.tree_in(place)
        moved = None if place is None or tree is not None else self.trees.find(Path(place).name)
        if moved is not None and _is_moved(place, moved):
            remedy = f"Move it back, or merge by hand: git -C {moved.repository} merge {moved.branch}"
            message = f"The work tree of {task.name} was made at {place}, and the state folder was moved since."
            raise Conflict(_text(message), remedy=_text(remedy))
        if place is None or tree is None:
            remedy = f"See what it changed: claudomator diff {task.name}"
            raise Conflict(f"{task.name} has no branch of its own, or no longer has one.", remedy=remedy)
        if (busy := self._named(connection, place)) is not None:
            raise Conflict(f"{sentence(busy)[:-1]} in its work tree.", remedy="Wait for it to end, or cancel it.")
        return task, tree

    @reading()
    def _who_works_in(self, connection: Connection, place: str) -> str | None:
        return self._named(connection, place)

    def _named(self, connection: Connection, place: str) -> str | None:
        """Return who is running in a directory, as a clause."""
        for run in run_rows.live(connection):
            if run.dir_key and Path(run.dir_key) == Path(place):
                try:
                    return f"task {find_task(connection, run.task_id, self._by).name} runs"
                except NotFound:
                    return "a task runs"
        return None

    @writing()
    def _record(self, connection: Connection, task: Task, kind: str, data: dict[str, object]) -> None:
        events.record(connection, self.clock(), kind, task_id=task.id, data=data)


def _unready(tree: Tree, state: TreeState, last: Run | None, place: str | None) -> str | None:
    """Return why the tree's branch should be looked at before it is merged, in a clause; None if its last run, of
    whichever task, has proved all that is in it. place: where the task's last run worked."""
    outcome = None if last is None else readable(Outcome, last.outcome)
    if place != tree.path:
        return "the state folder was moved since" if _is_moved(place, tree) else "restarted since"
    if outcome is None or outcome.status is not OutcomeStatus.SUCCEEDED:
        return "not succeeded"
    if state.standing not in (TreeStanding.AHEAD, TreeStanding.DIRTY):
        return state.standing.value
    if (left := state.changed - len(state.by_check)) > 0:
        return f"{counted(left, 'file')} not committed"
    if not state.commits:
        return "nothing committed"
    if not outcome.is_checked:
        return "no check passed"
    if outcome.is_doubtful:
        return "doubtful result"
    return "no target" if tree.onto is None else None


def _place_of(connection: Connection, task: Task) -> str | None:
    """Return the directory that its last run worked in."""
    places = [run.dir_key for run in run_rows.of_task(connection, task.id) if run.dir_key]
    return places[-1] if places else None


def _is_moved(place: str | None, tree: Tree) -> bool:
    """Return whether the tree has the name of that place, of which there is one in a state folder, and another path."""
    return place is not None and place != tree.path and Path(place).name == tree.name


@contextmanager
def _refused() -> Iterator[None]:
    try:
        yield
    except NotMerged as refused:
        raise Conflict(sentence(_text(str(refused))), remedy=ended(sentence(_text(refused.remedy)))) from refused


def _text(value: Any) -> Any:
    """Return names as text; bytes that are not UTF-8 are marked."""
    return value.encode(errors="surrogateescape").decode(errors="replace") if isinstance(value, str) else value
