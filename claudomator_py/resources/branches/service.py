"""Branches of tasks: merging and leaving them, unless somebody is at work."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from claudomator_py.domain.changes import MergeOrder, NotMerged
from claudomator_py.domain.errors import Conflict, NotFound, ended, sentence
from claudomator_py.domain.lifecycle import ENDED
from claudomator_py.domain.worktree import Tree, TreeStanding, TreeState
from claudomator_py.ports import Branches, Clock, Trees
from claudomator_py.resources.branches.shape import (
    BranchCalls,
    BranchView,
    DiscardRequest,
    DiscardView,
    MergeRequest,
    MergeView,
)
from claudomator_py.resources.session import Service, find_task
from claudomator_py.store import events, run_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Task
from claudomator_py.surface.operation import answers


class BranchService(Service):
    """What can be asked about branches. Every method may raise ``domain.errors.ServiceError``: NotFound, and Conflict
    where it is not possible now."""

    def __init__(self, database: Database, branches: Branches, trees: Trees, clock: Clock) -> None:
        super().__init__(database)
        self._branches = branches
        self._trees = trees
        self._clock = clock

    @answers(BranchCalls.branches)
    def all(self) -> list[BranchView]:
        """Return the branches of all tasks that exist for who asks."""
        trees = sorted(self._trees.all(), key=lambda tree: (tree.repository, tree.branch))
        return self._read(lambda connection: [*self._views(connection, trees)])

    @answers(BranchCalls.merge)
    def merge(self, ref: str, wanted: MergeRequest) -> MergeView:
        """Merge the branch of the task."""
        task, tree = self._read(lambda connection: self._found(connection, ref, wanted.dry_run))
        order = MergeOrder(
            tree, wanted.into, wanted.method, title=task.name, commit=wanted.commit, dry_run=wanted.dry_run
        )
        with _refused():
            merged = self._branches.merge(order, self._who_works_in)
        view = MergeView(
            task_id=task.id,
            task_name=task.name,
            method=wanted.method,
            **{name: _text(value) for name, value in asdict(merged).items() if name != "notes"},
            notes=tuple(map(_text, merged.notes)),
        )
        if view.after is not None and view.after != view.before:
            told = view.model_dump(mode="json", include={"branch", "into", "method", "commits", "before", "after"})
            self._tell(task, "merged", told)
            if (seen := self._trees.find(tree)) is not None:
                self._trees.look(seen)
        return view

    @answers(BranchCalls.discard)
    def discard(self, ref: str, wanted: DiscardRequest) -> DiscardView:
        """Leave the branch of the task."""
        task, tree = self._read(lambda connection: self._found(connection, ref, wanted.dry_run))
        with _refused():
            left = self._branches.discard(tree, dry_run=wanted.dry_run)
        told = {name: _text(value) for name, value in asdict(left).items()}
        view = DiscardView(task_id=task.id, task_name=task.name, **told)
        if view.kept is not None:
            included = {"branch", "commits", "changed", "kept"}
            self._tell(task, "discarded", view.model_dump(mode="json", include=included))
        return view

    def _views(self, connection: Connection, trees: Sequence[Tree]) -> Iterator[BranchView]:
        for tree in trees:
            try:
                task = find_task(connection, tree.task_id, self._by)
            except NotFound:
                continue
            state = self._trees.seen(tree.name) or TreeState(TreeStanding.UNKNOWN)
            yield BranchView.of(
                state,
                task_id=task.id,
                task_name=task.name,
                state=task.state,
                branch=tree.branch,
                repository=_text(tree.repository),
                onto=_text(tree.onto and tree.onto.removeprefix("refs/heads/")),
                path=_text(tree.path),
                seen_at=state.seen_ms or None,
            )

    def _found(self, connection: Connection, ref: str, dry_run: bool) -> tuple[Task, str]:
        """Return the task, and the name of its tree."""
        task = find_task(connection, ref, self._by)
        if task.state not in ENDED and not dry_run:
            remedy = f"Wait for its end, or cancel it: claudomator cancel {task.name}"
            raise Conflict(f"{task.name} is {task.state}, and may still work on its branch.", remedy=remedy)
        runs = [run for run in run_rows.of_task(connection, task.id) if run.dir_key]
        tree = None if not runs else self._branches.tree_in(runs[-1].dir_key)
        if tree is None:
            remedy = f"See what it changed: claudomator diff {task.name}"
            raise Conflict(f"{task.name} has no branch of its own, or no longer.", remedy=remedy)
        if (busy := self._named(connection, runs[-1].dir_key)) is not None:
            raise Conflict(f"{sentence(busy)[:-1]} in its work tree.", remedy="Wait for its end, or cancel it.")
        return task, tree

    def _who_works_in(self, place: str) -> str | None:
        return self._read(lambda connection: self._named(connection, place))

    def _named(self, connection: Connection, place: str) -> str | None:
        """Return who runs in a folder, in a clause."""
        for run in run_rows.live(connection):
            if run.dir_key and Path(run.dir_key) == Path(place):
                try:
                    return f"task {find_task(connection, run.task_id, self._by).name} runs"
                except NotFound:
                    return "a task runs"
        return None

    def _tell(self, task: Task, kind: str, data: dict[str, object]) -> None:
        self._write(lambda connection: events.record(connection, self._clock(), kind, task_id=task.id, data=data))


@contextmanager
def _refused() -> Iterator[None]:
    try:
        yield
    except NotMerged as refused:
        raise Conflict(sentence(_text(str(refused))), remedy=ended(sentence(_text(refused.remedy)))) from refused


def _text(value: Any) -> Any:
    """Return names as text: bytes that are none are marked."""
    return value.encode(errors="surrogateescape").decode(errors="replace") if isinstance(value, str) else value
