"""Cleans up after ended tasks: spent work trees with their branches, and directories of old runs.

Whether something may be removed is decided again at the last moment, in a safe order: first keep new runs from getting
it, then see that the task has ended, then remove it. A restart in between finds it gone, never half removed.
"""

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from sqlalchemy import Connection

from claudomator_py.domain.errors import Conflict
from claudomator_py.domain.lifecycle import ENDED
from claudomator_py.domain.retention import CleanupItemView, CleanupRequest, CleanupView
from claudomator_py.domain.run import RunConflict
from claudomator_py.domain.units import format_duration, short_id
from claudomator_py.domain.worktree import Tree, TreeFault, TreeStanding, TreeState, short_ref
from claudomator_py.environment.worktrees import WorktreeManager
from claudomator_py.faults import Activity, Faults, Item, error_text
from claudomator_py.log import get_logger
from claudomator_py.ports import Clock, RunHost
from claudomator_py.prompts.conversations import still_needed_by
from claudomator_py.store import run_rows, task_rows
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.tables import Run, Task

log = get_logger("claudomator.cleanup")

MAX_AT_ONCE = 500
MAX_S = 20.0
PATIENCE_S = 2.0
"""How long one cleanup waits for another to finish."""


class Cleaner:
    """Cleans up on request, one request at a time. Safe to call from many threads."""

    def __init__(self, database: Database, host: RunHost, worktrees: WorktreeManager, clock: Clock) -> None:
        self._database = database
        self._host = host
        self._worktrees = worktrees
        self._clock = clock
        self._one_at_a_time = threading.Lock()

    def clean(self, request: CleanupRequest) -> CleanupView:
        """Remove what may go, or with ``dry_run`` list it; takes about 20 seconds at most. Raises Conflict if
        another cleanup is running and does not finish within ``PATIENCE_S``, as the daemon's own mostly does."""
        if not self._one_at_a_time.acquire(timeout=PATIENCE_S):
            raise Conflict("A cleanup is already running.", remedy="Wait for it to finish, then try again.")
        try:
            return self._clean(request)
        finally:
            self._one_at_a_time.release()

    def remove_old_runs(self, before_ms: int, most: int, faults: Faults) -> int:
        """Remove at most ``most`` directories of runs that ended before then, by the same rules; return how many.

        faults: records directories that cannot be removed, which block no others. Raises StoreUnavailable.
        """
        gone: set[str] = set()
        with self._one_at_a_time:
            for run in self._old_runs(before_ms):
                if len(gone) >= most:
                    break
                item = Item(Activity.CLEAN, run.id, self._host.place(run.id))
                result = faults.attempt(item, partial(self._run, run, gone, dry_run=False))
                if result is not None and result.removed:
                    gone.add(run.id)
        return len(gone)

    def _clean(self, request: CleanupRequest) -> CleanupView:
        end_s = time.monotonic() + MAX_S
        items: list[CleanupItemView] = []
        remains = False
        for item in self._items(request):
            items.append(item)
            removed = sum(item.removed for item in items)
            if removed >= MAX_AT_ONCE or time.monotonic() > end_s:
                remains = True
                break
        freed = sum(item.bytes for item in items if item.removed)
        if freed and not request.dry_run:
            log.info("cleaned_up", bytes=freed, number=sum(item.removed for item in items))
        return CleanupView(dry_run=request.dry_run, items=tuple(items), freed_bytes=freed, more=remains)

    def _items(self, request: CleanupRequest) -> Iterator[CleanupItemView]:
        before_ms = self._clock() - request.older_than
        too_young = f"it ended less than {format_duration(request.older_than)} ago"
        gone: set[str] = set()
        for run in self._old_runs(before_ms):
            path = self._host.place(run.id)
            item = self._guarded("run", path, run.task_id, partial(self._run, run, gone, dry_run=request.dry_run))
            if item.removed:
                gone.add(run.id)
            yield item
        for tree in self._worktrees.trees.all():
            looking = partial(self._tree, tree, before_ms, too_young, dry_run=request.dry_run)
            yield self._guarded("worktree", tree.path, tree.task_id, looking)

    def _guarded(self, kind: str, path: str, task_id: str, look: Callable[[], CleanupItemView]) -> CleanupItemView:
        """Return the result of ``look``; if it raises, an item that is kept. Raises StoreUnavailable."""
        try:
            return look()
        except StoreUnavailable:
            raise
        except Exception as error:
            log.warning("not_cleaned_up", path=path, problem=error_text(error))
            entry = {"path": path, "task_id": task_id, "task": None, "bytes": 0}
            return CleanupItemView.model_validate({"kind": kind, "removed": False, "why": error_text(error), **entry})

    # --- work trees -------------------------------------------------------------------------------------------------

    def _tree(self, tree: Tree, before_ms: int, too_young: str, *, dry_run: bool) -> CleanupItemView:
        task = self._database.read(lambda connection: task_rows.find(connection, tree.task_id))

        def item(why: str, *, removed: bool = False, size: int = 0) -> CleanupItemView:
            name = None if task is None else task.name
            entry = {"path": tree.path, "task_id": tree.task_id, "task": name, "branch": tree.branch, "bytes": size}
            return CleanupItemView.model_validate({"kind": "worktree", "removed": removed, "why": why, **entry})

        if task is None:
            return item("this daemon does not know its task")
        if task.state not in ENDED:
            return item(f"{task.name} is {task.state}")
        other = self._database.read(lambda connection: still_needed_by(connection, task))
        if other is not None:
            return item(f"{other.name}, which continues {task.name}, is {other.state}")
        if self._database.read(lambda connection: _last_used_ms(connection, task, tree)) > before_ms:
            return item(too_young)
        users = self._worktrees.trees.users(tree)
        if users:
            return item(f"process {users[0]} works in it")
        state = self._worktrees.trees.look(tree)
        if not state.standing.is_spent:
            return item(_why_kept(tree, state))
        size = self._worktrees.trees.size(tree)
        if dry_run:
            return item(_why_spent(state), removed=True, size=size)
        with self._worktrees.leaving(tree.name) as free:
            current = self._database.read(lambda connection: task_rows.find(connection, tree.task_id))
            if not free or current is None or current.state not in ENDED:
                return item(f"{task.name} was restarted just now")
            if self._database.read(lambda connection: still_needed_by(connection, task)) is not None:
                return item(f"a task that continues {task.name} arrived just now")
            try:
                self._worktrees.trees.remove(tree)
            except TreeFault as fault:
                return item(str(fault))
            except Exception as error:
                # Somebody may be using the tree, or it is broken: continue with the others.
                log.warning("tree_not_removed", tree=tree.path, problem=repr(error))
                return item("it is in use")
        return item(_why_spent(state), removed=True, size=size)

    # --- directories of runs ----------------------------------------------------------------------------------------

    def _old_runs(self, before_ms: int) -> list[Run]:
        """Ended runs that have a directory, newest first: a run that continues in another's directory is removed
        before it."""
        there = self._host.run_ids()

        def read(connection: Connection) -> list[Run]:
            runs = (run_rows.find(connection, run_id) for run_id in there)
            old = [run for run in runs if run and not run.live and (run.ended_ms or run.started_ms) <= before_ms]
            return sorted(old, key=lambda run: (run.started_ms, run.generation, run.seq), reverse=True)

        return self._database.read(read)

    def _run(self, run: Run, gone: set[str], *, dry_run: bool) -> CleanupItemView:
        """Remove the run's directory if it may go. Raises OSError if it cannot be removed."""
        path = self._host.place(run.id)
        task = self._database.read(lambda connection: task_rows.get(connection, run.task_id))

        def item(why: str, *, removed: bool = False, size: int = 0) -> CleanupItemView:
            entry = {"path": path, "task_id": task.id, "task": task.name, "bytes": size}
            return CleanupItemView.model_validate({"kind": "run", "removed": removed, "why": why, **entry})

        if task.state not in ENDED:
            return item(f"{task.name} is {task.state}")
        needing = self._database.read(lambda connection: still_needed_by(connection, task))
        if needing is not None:
            return item(f"{needing.name}, which continues {task.name}, is {needing.state}")
        sharing = self._database.read(lambda connection: run_rows.in_scratch_of(connection, run.id))
        there = set(self._host.run_ids()) - gone if sharing else set()
        for other in sharing:
            if other in there:
                return item(f"run {short_id(other)} worked in its scratch folder, and is kept")
        users = self._host.users(run.id)
        if users:
            return item(f"process {users[0]} works in it")
        size = self._host.size(run.id)
        if dry_run:
            return item("its task has ended", removed=True, size=size)

        def give_up(connection: Connection) -> bool:
            # All writes are serial: a restart comes either before this, so the task has not ended, or after, so the
            # folder is gone.
            current = task_rows.get(connection, run.task_id)
            if current.state not in ENDED or still_needed_by(connection, current) is not None:
                return False
            self._host.give_up_scratch(run.id)
            return True

        try:
            if not self._database.write(give_up):
                return item(f"{task.name} was restarted just now")
            self._host.remove(run.id)
        except RunConflict as conflict:
            return item(str(conflict))
        return item("its task has ended", removed=True, size=size)


def _last_used_ms(connection: Connection, task: Task, tree: Tree) -> int:
    """When the last run in the tree ended; if there was none, when the task last changed."""
    runs = [run for run in run_rows.of_task(connection, task.id) if Path(run.dir_key).name == tree.name]
    return max((run.ended_ms or run.started_ms for run in runs), default=task.updated_ms)


def _why_kept(tree: Tree, state: TreeState) -> str:
    match state.standing:
        case TreeStanding.DIRTY:
            return f"{'1 file is' if state.changed == 1 else f'{state.changed} files are'} not committed"
        case TreeStanding.AHEAD:
            onto = "the commit that was checked out" if tree.onto is None else short_ref(tree.onto)
            number = "1 commit is" if state.commits == 1 else f"{state.commits} commits are"
            return f"{number} not in {onto}{f' ({state.words})' if state.words else ''}"
        case TreeStanding.LOCKED:
            return f"it is locked{f': {state.words}' if state.words else ''}"
        case _:
            return state.words


def _why_spent(state: TreeState) -> str:
    match state.standing:
        case TreeStanding.MERGED:
            return f"{'its commit is' if state.commits == 1 else f'its {state.commits} commits are'} merged"
        case TreeStanding.GONE:
            return "its folder no longer exists"
        case _:
            return "it has no changes"
