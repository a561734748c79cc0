"""Work trees for tasks that ask for one: made beside the loop, since a checkout may take minutes, before their run."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from claudomator_py.domain.changes import Commit, NotMerged, RunChanges
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.worktree import (
    BRANCHES,
    Isolation,
    Tree,
    TreeBusy,
    TreeFault,
    TreeState,
    WorktreeRequest,
    branch_name,
    is_tree_of,
    tree_name,
)
from claudomator_py.environment.workdirs import directory_key, place_in_repository, resolve
from claudomator_py.log import get_logger
from claudomator_py.ports import Branches, Trees
from claudomator_py.store import dependency_rows, events, run_rows, task_rows
from claudomator_py.store.tables import Run, Task

log = get_logger("claudomator.worktree")

TREE_USED = "worktree"
"""The event: the tree, its branch and what is not in it, told with the first run of a generation."""
_CONCURRENCY = 2
_BUSY_S = 30
"""So long somebody else may be at a tree, such as the repair after a crash, before what is left in it stays."""


def _was_busy(error: BaseException) -> bool:
    return isinstance(error.__cause__, TreeBusy)


def isolated(spec: TaskSpec) -> str | None:
    """Return the working directory of a task that has a work tree of its own; None: it has none."""
    return spec.working_dir if spec.isolation is Isolation.WORKTREE else None


def tree_wanted(
    connection: Connection, task: Task, spec: TaskSpec, working_dir: str, earlier: Run | None
) -> WorktreeRequest:
    """Return the tree of the task's present generation: that of its earlier runs, and of the conversation it is in.

    earlier: the run whose conversation or work the next one continues with, of whichever task. Raises TreeFault for a
    directory that cannot be examined.
    """
    try:
        folder, top = str(resolve(working_dir)), directory_key(working_dir)
    except (OSError, RuntimeError) as error:
        remedy = "correct the folder and restart the task"
        raise TreeFault(f"no work tree of {working_dir}, which cannot be examined: {error}; {remedy}") from error
    runs = [run for run in run_rows.of_task(connection, task.id) if run.generation == task.generation and run.dir_key]
    before = runs[0] if runs else earlier
    owner = None if before is None else _owner(connection, before)
    if before is None or owner is None:
        owner = task
        name = tree_name(Path(top).name, task.name, task.id, task.generation)
    else:
        name = Path(before.dir_key).name
    needed = {one.name: one for one in dependency_rows.dependencies(connection, task.id)}
    if spec.base is not None and spec.base not in spec.depends_on:
        return WorktreeRequest(name, branch_name(owner.name, name), owner.id, folder, base=spec.base)
    chosen = [needed[spec.base]] if spec.base in needed else [*needed.values()]
    after = tuple(_worked_in(connection, chosen, top))
    return WorktreeRequest(name, branch_name(owner.name, name), owner.id, folder, after=after)


def _worked_in(connection: Connection, tasks: Sequence[Task], top: str) -> Iterator[str]:
    """The names of the folders in which these tasks worked last; for one that worked elsewhere than in the repository
    at ``top``, those of the tasks that it waited for itself, as it has passed on what they did there."""
    ahead, seen = [*tasks], {one.id for one in tasks}
    while ahead:
        task = ahead.pop(0)
        runs = run_rows.of_task(connection, task.id)
        if runs and runs[-1].dir_key:
            yield Path(runs[-1].dir_key).name
        if not _works_at(task_rows.specs_shown(connection, [task])[task.id].working_dir, top):
            further = [one for one in dependency_rows.dependencies(connection, task.id) if one.id not in seen]
            ahead += further
            seen |= {one.id for one in further}


def _works_at(working_dir: str | None, top: str) -> bool:
    try:
        return directory_key(working_dir) == top
    except (OSError, RuntimeError):
        return False


def _owner(connection: Connection, run: Run) -> Task | None:
    """The task that the run's tree was made for, if it has one: its own, or one that it continues."""
    name = Path(run.dir_key).name
    told = _told_of(connection, run)
    for task_id in (run.task_id, *([told["of"]] if told and "of" in told else [])):
        if is_tree_of(name, task_id):
            return task_rows.find(connection, task_id)
    return None


def with_branch_made(connection: Connection, run: Run, changes: RunChanges) -> RunChanges:
    """Return them with the branch of the run's tree as made for its task, if it was and had no commit before the run:
    the tree is made before it is looked at."""
    if not any(ref.name.startswith(f"refs/heads/{BRANCHES}") for ref in changes.refs):
        return changes
    told = _told_of(connection, run)
    return changes if told is None or "of" in told else changes.made_for_it(told["branch"], told["base"])


def _told_of(connection: Connection, run: Run) -> dict[str, Any] | None:
    """What was told about the tree that the run works in."""
    told = (event.data for event in reversed(events.of_task(connection, run.task_id)) if event.kind == TREE_USED)
    return next((data for data in told if data["path"] == run.dir_key), None)


def folder_in_tree(working_dir: str, tree: str) -> str:
    """Return where a run in that tree works: as deep in it as the working directory lies in its repository."""
    try:
        return str(Path(tree) / place_in_repository(working_dir))
    except (OSError, RuntimeError):
        return tree


def branch_of(connection: Connection, task: Task, run: Run | None) -> str | None:
    """Return the branch that the run works on, if it has a tree."""
    tree = "" if run is None else Path(run.dir_key).name
    if is_tree_of(tree, task.id):
        return branch_name(task.name, tree)
    if run is None or task.thread is None or not tree:
        return None
    told = _told_of(connection, run)
    return None if told is None else str(told["branch"])


def tell_tree(connection: Connection, run: Run, tree: Tree) -> None:
    """Record which tree the run works in, unless that was told about an earlier one."""
    told_before = [event.data for event in events.of_task(connection, run.task_id) if event.kind == TREE_USED]
    if told_before and told_before[-1]["path"] == tree.path:
        return
    data: dict[str, object] = {"path": tree.path, "branch": tree.branch, "base": tree.base}
    if tree.task_id != run.task_id:
        data["of"] = tree.task_id
    told = {
        "uncommitted_left_out": tree.left_out,
        "submodules_left_out": tree.submodules,
        "filters_left_out": list(tree.filters),
        "begun_at": tree.begun_at,
        "passed_over": list(tree.passed_over),
        "left_behind": tree.left_behind,
    }
    data |= {key: value for key, value in told.items() if value}
    events.record(connection, run.started_ms, TREE_USED, task_id=run.task_id, run_id=run.id, data=data)


def _tell_nobody() -> None:
    pass


class WorktreeManager:
    """Makes and looks at trees, a few at a time. made: called, on any thread, when that is done or has failed."""

    def __init__(self, trees: Trees, branches: Branches | None = None) -> None:
        """branches: has what is left in a tree committed; None: it stays as it is."""
        self.trees = trees
        self._branches = branches
        self.made: Callable[[], None] = _tell_nobody
        self._pool: Executor = ThreadPoolExecutor(_CONCURRENCY, thread_name_prefix="worktree")
        # The end of a run waits for a look, which must not wait for others' checkouts.
        self._lookers: Executor = ThreadPoolExecutor(_CONCURRENCY, thread_name_prefix="worktree-look")
        self._making: dict[str, Future[Tree]] = {}
        self._looking: dict[str, Future[TreeState]] = {}
        self._leaving: set[str] = set()
        self._committed: dict[str, Commit] = {}
        self._lock = threading.Lock()

    def tree(self, order: WorktreeRequest) -> Tree | None:
        """Return the tree, with the folder that its runs work in; None: it is being made, or removed; ask again once
        told.

        Raises TreeFault, TreeBusy or whatever else kept it from being made, and the next call tries again.
        """
        with self._lock:
            if order.name in self._leaving:
                return None
            making = self._making.get(order.name)
            if making is None:
                self._making[order.name] = making = self._pool.submit(self.trees.ensure, order)
                making.add_done_callback(lambda _: self.made())
                return None
            if not making.done():
                return None
            del self._making[order.name]
        tree = making.result()
        return tree if Path(tree.path).is_dir() else None

    def begin(self) -> None:
        """Look at the trees of which it is not known how they stand, such as those of earlier versions."""
        for tree in self.trees.all():
            if self.trees.seen(tree.name) is None:
                self._lookers.submit(self.trees.look, tree)

    def looked_after_run(self, path: str, title: str | None = None, left_at: str | None = None) -> bool:
        """Return whether the tree in that folder was looked at after a run in it has ended; ask again once told.

        title: of a commit that is made before of what is not committed; None: none is. left_at: the commit at which the
        run left its branch. Each True is for one run. Also True where that folder is no tree.
        """
        tree = self.trees.find(Path(path).name)
        if tree is None or tree.path != path:
            return True
        with self._lock:
            looking = self._looking.get(path)
            if looking is None:
                self._looking[path] = looking = self._lookers.submit(self._look, tree, title, left_at)
                looking.add_done_callback(lambda _: self.made())
                return False
            if not looking.done():
                return False
            del self._looking[path]
        return True

    def committed(self, path: str) -> Commit | None:
        """Return the commit that was made after the run in that folder that was just looked at; None: none was."""
        return self._committed.pop(path, None)

    def _look(self, tree: Tree, title: str | None, left_at: str | None) -> TreeState:
        if title is not None and self._branches is not None:
            again = Retrying(
                retry=retry_if_exception(_was_busy), stop=stop_after_delay(_BUSY_S), wait=wait_fixed(0.1), reraise=True
            )
            try:
                if (made := again(self._branches.commit, tree.name, title, left_at)) is not None:
                    self._committed[tree.path] = made
            except NotMerged as refused:
                # It stays in the tree, as the look says.
                log.warning("not_committed", path=tree.path, problem=str(refused), remedy=refused.remedy)
        return self.trees.look(tree)

    @contextmanager
    def leaving(self, name: str) -> Iterator[bool]:
        """Keep runs from the tree while it is removed. False: it is being made for one."""
        with self._lock:
            free = name not in self._making and name not in self._leaving
            if free:
                self._leaving.add(name)
        try:
            yield free
        finally:
            if free:
                with self._lock:
                    self._leaving.discard(name)
                self.made()

    def close(self) -> None:
        """End what git is doing for it; what is half made is found again by the next daemon."""
        self.trees.close()
        for pool in (self._pool, self._lookers):
            pool.shutdown(wait=True, cancel_futures=True)
