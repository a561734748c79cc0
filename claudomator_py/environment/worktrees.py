"""Work trees for tasks that ask for one: created before their run and outside the loop, as a checkout may take
minutes."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection
from tenacity import Retrying, retry_if_exception_cause_type, stop_after_delay, wait_fixed

from claudomator_py.domain.changes import Commit, NotMerged, RunChanges
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.worktree import (
    BRANCHES,
    HEADS,
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
"""The event that reports the tree, its branch and what is not in it, recorded with the first run of a generation."""
_CONCURRENCY = 2
_BUSY_S = 30
"""Seconds for which another user of a tree, such as the repair after a crash, is waited for before its uncommitted
files are left as they are."""


def tree_request(
    connection: Connection, task: Task, spec: TaskSpec, working_dir: str, earlier: Run | None
) -> WorktreeRequest:
    """Return the tree of the task's current generation: that of its earlier runs, and of the conversation it is in.

    earlier: the run, of any task, whose conversation or work the next one continues; its tree is taken over only in the
    same repository. Raises TreeFault if the directory cannot be examined.
    """
    try:
        folder, top = str(resolve(working_dir)), directory_key(working_dir)
    except (OSError, RuntimeError) as error:
        remedy = "correct the folder and restart the task"
        raise TreeFault(f"no work tree of {working_dir}, which cannot be examined: {error}; {remedy}") from error
    runs = [run for run in run_rows.of_generation(connection, task.id, task.generation) if run.dir_key]
    before = runs[0] if runs else earlier
    if before is not None and before.task_id != task.id:
        assigned = task_rows.spec_of(connection, before.task_id, before.revision)
        before = before if _works_at(assigned.working_dir, top) else None
    owner = None if before is None else _owner(connection, before)
    if before is None or owner is None:
        owner = task
        name = tree_name(Path(top).name, task.name, task.id, task.generation)
    else:
        name = Path(before.dir_key).name
    needed = {dependency.name: dependency for dependency in dependency_rows.dependencies(connection, task.id)}
    if spec.base is not None and spec.base not in spec.depends_on:
        return WorktreeRequest(name, branch_name(owner.name, name), owner.id, folder, base=spec.base)
    chosen = [needed[spec.base]] if spec.base in needed else [*needed.values()]
    after = tuple(_worked_in(connection, chosen, top))
    return WorktreeRequest(name, branch_name(owner.name, name), owner.id, folder, after=after)


def _worked_in(connection: Connection, tasks: Sequence[Task], top: str) -> Iterator[str]:
    """Names of the folders in which these tasks last worked. For a task that worked elsewhere than in the repository at
    ``top``, those of the tasks that it waited for, whose work it has passed on."""
    ahead, seen = [*tasks], {item.id for item in tasks}
    while ahead:
        task = ahead.pop(0)
        runs = run_rows.of_task(connection, task.id)
        if runs and runs[-1].dir_key:
            yield Path(runs[-1].dir_key).name
        if not _works_at(task_rows.specs_shown(connection, [task])[task.id].working_dir, top):
            further = [item for item in dependency_rows.dependencies(connection, task.id) if item.id not in seen]
            ahead += further
            seen |= {item.id for item in further}


def _works_at(working_dir: str | None, top: str) -> bool:
    try:
        return directory_key(working_dir) == top
    except (OSError, RuntimeError):
        return False


def _owner(connection: Connection, run: Run) -> Task | None:
    """The task for which the run's tree was created, if any: its own task, or one that it continues."""
    name = Path(run.dir_key).name
    data = _tree_data(connection, run)
    for task_id in (run.task_id, *([data["of"]] if data and "of" in data else [])):
        if is_tree_of(name, task_id):
            return task_rows.find(connection, task_id)
    return None


def with_branch_made(connection: Connection, run: Run, changes: RunChanges) -> RunChanges:
    """Return the changes with the branch of the run's tree marked as created for its task, if it was and had no commits
    before the run: the tree is created before its state is recorded."""
    if not any(ref.name.startswith(f"{HEADS}{BRANCHES}") for ref in changes.refs):
        return changes
    data = _tree_data(connection, run)
    return changes if data is None or "of" in data else changes.with_new_branch(data["branch"], data["base"])


def _tree_data(connection: Connection, run: Run) -> dict[str, Any] | None:
    """The event data about the tree that the run works in."""
    records = (event.data for event in reversed(events.of_task(connection, run.task_id)) if event.kind == TREE_USED)
    return next((data for data in records if data["path"] == run.dir_key), None)


def folder_in_tree(working_dir: str, tree: str) -> str:
    """Return the folder in which a run in that tree works: the counterpart of the working directory in its
    repository."""
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
    data = _tree_data(connection, run)
    return None if data is None else str(data["branch"])


def record_tree(connection: Connection, run: Run, tree: Tree) -> None:
    """Record the tree that the run works in, unless it was already recorded for an earlier run."""
    recorded = [event.data for event in events.of_task(connection, run.task_id) if event.kind == TREE_USED]
    if recorded and recorded[-1]["path"] == tree.path:
        return
    data: dict[str, object] = {"path": tree.path, "branch": tree.branch, "base": tree.base}
    if tree.task_id != run.task_id:
        data["of"] = tree.task_id
    used = {
        "uncommitted_left_out": tree.left_out,
        "submodules_left_out": tree.submodules,
        "filters_left_out": list(tree.filters),
        "begun_at": tree.begun_at,
        "passed_over": list(tree.passed_over),
        "left_behind": tree.left_behind,
        "unexamined": list(tree.unexamined),
    }
    data |= {key: value for key, value in used.items() if value}
    events.record(connection, run.started_ms, TREE_USED, task_id=run.task_id, run_id=run.id, data=data)


class WorktreeManager:
    """Creates and examines trees, a few at a time. made: called, on any thread, when an operation has finished or
    failed."""

    def __init__(
        self,
        trees: Trees,
        branches: Branches | None = None,
        recorded: Callable[[str], RunChanges | None] = lambda _: None,
    ) -> None:
        """branches: commits what is left in a tree; None leaves it as it is. recorded: returns the whole record of what
        a run changed."""
        self.trees = trees
        self._branches = branches
        self._recorded = recorded
        self.made: Callable[[], None] = lambda: None
        self._pool: Executor = ThreadPoolExecutor(_CONCURRENCY, thread_name_prefix="worktree")
        # The end of a run waits for an examination, which must not wait for other tasks' checkouts.
        self._lookers: Executor = ThreadPoolExecutor(_CONCURRENCY, thread_name_prefix="worktree-look")
        self._making: dict[str, Future[Tree]] = {}
        self._looking: dict[str, Future[TreeState]] = {}
        self._leaving: set[str] = set()
        self._committed: dict[str, Commit | NotMerged] = {}
        self._lock = threading.Lock()

    def tree(self, order: WorktreeRequest) -> Tree | None:
        """Return the tree and the folder in which its runs work; None while it is being created or removed: ask again
        after ``made`` is called.

        Raises TreeFault, TreeBusy or whatever else prevented its creation; the next call tries again.
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
        """Inspect the trees whose state is unknown, such as those of earlier versions."""
        for tree in self.trees.all():
            if self.trees.seen(tree.name) is None:
                self._lookers.submit(self.trees.look, tree)

    def looked_after_run(
        self,
        path: str,
        title: str | None,
        left_at: str | None,
        checked: str | None,
    ) -> bool:
        """Return whether the tree in that folder has been examined since a run in it ended; ask again after ``made`` is
        called.

        title: of a commit of uncommitted changes made first; None for no commit. left_at: the commit at which the run
        left its branch. checked: id of the run, if a check followed it, so that what that wrote is not committed. Each
        True is valid for one run. Also True if the folder is not a tree.
        """
        tree = self.trees.find(Path(path).name) if path else None  # a folder of the run's own has no path here
        if tree is None or tree.path != path:
            return True
        with self._lock:
            looking = self._looking.get(path)
            if looking is None:
                self._looking[path] = looking = self._lookers.submit(self._look, tree, title, left_at, checked)
                looking.add_done_callback(lambda _: self.made())
                return False
            if not looking.done():
                return False
            del self._looking[path]
        return True

    def committed(self, path: str, changes: RunChanges, redact: Callable[[str], str]) -> RunChanges:
        """Return the changes of the latest run in that folder, with the commit that was made after it, or why none
        could be made. redact: removes secrets from that."""
        made = self._committed.pop(path, None)
        if isinstance(made, NotMerged):
            fault = f"{made}; {made.remedy}".encode(errors="replace").decode()
            return changes.model_copy(update={"commit_fault": redact(fault)})
        return changes if made is None else changes.committed(made)

    def _look(self, tree: Tree, title: str | None, left_at: str | None, checked: str | None) -> TreeState:
        only = None if checked is None else self._left_by_agent(tree, checked)
        if title is not None and self._branches is not None:
            again = Retrying(
                retry=retry_if_exception_cause_type(TreeBusy),
                stop=stop_after_delay(_BUSY_S),
                wait=wait_fixed(0.1),
                reraise=True,
            )
            try:
                if (made := again(self._branches.commit, tree.name, title, left_at, only)) is not None:
                    self._committed[tree.path] = made
            except NotMerged as refused:
                # The changes stay in the tree.
                self._committed[tree.path] = refused
                log.warning("not_committed", path=tree.path, problem=str(refused), remedy=refused.remedy)
        return self.trees.look(tree, only)

    def _left_by_agent(self, tree: Tree, run_id: str) -> frozenset[str] | None:
        """Return the files that the run's agent, or one before it in the tree, left uncommitted, without those of the
        checks of earlier runs; None if that was not recorded exactly."""
        record = self._recorded(run_id)
        if record is None or record.left is None:
            return None
        changed = {path for file in record.files for path in (file.path, file.old_path)}
        return frozenset(record.left) - (self.trees.by_check(tree.name) - changed)

    @contextmanager
    def leaving(self, name: str) -> Iterator[bool]:
        """Keep runs from using the tree while it is removed. Yields False if it is being created for a run."""
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
        """Stop git's work on trees; the next daemon detects what is half done."""
        self.trees.close()
        for pool in (self._pool, self._lookers):
            pool.shutdown(wait=True, cancel_futures=True)
