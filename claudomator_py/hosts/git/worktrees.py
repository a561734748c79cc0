"""Work trees on this machine: creating, recovering after a crash, examining, and removing them if nothing is lost.

Next to the folder ``<name>`` of a tree is its record, ``<name>.json``. It is written before git is called and removed
last, so that a record exists for everything that a crash leaves; ``made`` in it means that the tree is complete.
``<name>.lock`` is held by the process that uses the tree and by the git that it calls: after a crash, the next daemon
waits for a git that is still running. ``<name>.state`` is the result of the last look.

The record also has the tree's git directories. They are never read from the tree, to which an agent can write; and git
sees only the data of the repository, see ``shadow``.
"""

import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from claudomator_py.domain.changes import MAX_RECORDED
from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.worktree import (
    Tree,
    TreeBusy,
    TreeFault,
    TreeStanding,
    TreeState,
    WorktreeRequest,
    short_ref,
)
from claudomator_py.hosts import leftovers
from claudomator_py.hosts.git import CHECKOUT_S, Git, GitRefused, fault_of, uncommitted
from claudomator_py.hosts.git.branches import begun, is_absorbed
from claudomator_py.hosts.git.records import TreeRecords, back_pointer, finding, require_sound, suspicious
from claudomator_py.hosts.git.shadow import POINTER, Repository, ShadowRepository, deinit_command, discover
from claudomator_py.hosts.shim.record import now_ms
from claudomator_py.values import dataclass

STATUS_S = 60.0
_MAX_WORDS = 2_000


class LocalTrees:
    """The ``Trees`` under one folder, which is created with the first one (0700). Safe to use from many threads."""

    def __init__(
        self,
        root: Path,
        environ: Mapping[str, str],
        clock: Callable[[], int] = now_ms,
        umask: int = -1,
        clean: Callable[[str], str] = str,
    ) -> None:
        """umask: for files in repositories and trees; -1 for that of this process. clean: redacts stored messages."""
        self._root = root.resolve()
        self._records = TreeRecords(self._root)
        self.git = Git(environ, umask)
        self._clock = clock
        self._clean = clean
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()

    def path(self, name: str) -> Path:
        """Return the folder of the tree with that name."""
        return self._root / name

    def ensure(self, order: WorktreeRequest) -> Tree:
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._records.held(order.name) as lock:
                record = self._records.read(order.name)
                if record is None:
                    return self._create(order, lock)
                tree, made = record
                if tree.task_id != order.task_id:
                    raise TreeFault(f"{tree.path} belongs to task {tree.task_id}; move it away")
                if not made or not Path(tree.path).exists():
                    return self._recreate(tree, made, order, lock)
                tree = self._located(tree)
                require_sound(tree)
                self._records.forget_state(order.name)
                return tree
        except GitRefused as refused:
            raise fault_of(refused, order.folder) from refused
        except OSError as error:
            raise TreeFault(f"{self.path(order.name)} cannot be made ({error.strerror})") from error

    def all(self) -> list[Tree]:
        """Return all trees by name, including those left incomplete by a crash."""
        records = (self._records.read(name) for name in self._records.names())
        return [tree for tree, _ in filter(None, records)]

    def find(self, name: str) -> Tree | None:
        record = self._records.read(name) if name else None
        return None if record is None else record[0]

    def seen(self, name: str) -> TreeState | None:
        state = self._records.state(name)
        return state if state is not None and state.seen_ms else None

    def by_check(self, name: str) -> frozenset[str]:
        state = self._records.state(name)
        return frozenset(() if state is None else state.by_check)

    def look(self, tree: Tree, by_agent: Collection[str] | None = None) -> TreeState:
        with self._serialised(tree.path):
            state = self._look(tree, by_agent)
            # An agent may have written the text, such as the reason of a lock.
            words = self._clean(state.words.encode(errors="replace").decode()[:_MAX_WORDS])
            state = replace(state, words=words, seen_ms=self._clock())
            if not self.git.closed and self._records.read(tree.name) is not None:
                with suppress(OSError):
                    self._records.keep_state(tree.name, state)
        return state

    def users(self, tree: Tree) -> list[int]:
        return leftovers.working_in(Path(tree.path))

    def size(self, tree: Tree) -> int:
        return leftovers.size_of(Path(tree.path))

    @contextmanager
    def opened(self, name: str) -> Iterator[tuple[Tree, ShadowRepository]]:
        """Yield the tree with that name and git with our configuration, for exclusive use. Raises TreeBusy; TreeFault
        for a tree that is not as git created it; GitRefused; OSError."""
        with self._records.held(name):
            found, made = self._records.read(name) or (None, False)
            if found is None or not made:
                raise TreeFault(f"{self.path(name)} is not there any more")
            tree = self._located(found)
            require_sound(tree)
            with self._git_in(tree) as git, self._serialised(tree.common_dir):
                yield tree, git.shadow

    def remove(self, tree: Tree, keep: Callable[[Tree, ShadowRepository], None] | None = None) -> None:
        """Remove the tree and its branch, which must be spent; this is checked again directly before.

        keep: stores the whole tree in the repository, so that it need not be spent; its exceptions are propagated.
        Raises TreeBusy; TreeFault, and then nothing is lost that is not in the repository.
        """
        try:
            with self._records.held(tree.name):
                found, made = self._records.read(tree.name) or (None, False)
                if found is None:
                    return
                tree = self._located(found)
                with self._git_in(tree) as git, self._serialised(tree.common_dir):
                    tip = git.shadow.tip(tree.ref)
                    is_whole = made and Path(tree.path).exists()
                    if is_whole and (closed := leftovers.unreadable(Path(tree.path))) is not None:
                        # git passes over it with a warning.
                        raise TreeFault(f"{closed} cannot be read; make it readable, or remove it by hand")
                    if keep is not None:
                        require_sound(tree)
                        keep(tree, git.shadow)
                    elif not (state := git.state(made=made)).standing.is_spent:
                        raise TreeFault(f"{tree.path} is {state.standing.value}")
                    if is_whole:
                        git.remove()
                    else:
                        git.forget()
                    crashpoint("worktree-removed")
                    git.delete_branch(tip)
                self._records.forget(tree.name)
        except GitRefused as refused:
            raise TreeFault(f"{tree.path} cannot be removed: {refused.words}") from refused
        except OSError as error:
            remedy = f"remove {os.fsdecode(error.filename or tree.path)} by hand, then try again"
            raise TreeFault(f"{tree.path} cannot be removed ({error.strerror}); {remedy}") from error

    def close(self) -> None:
        """End running git commands, and start no more."""
        self.git.close()

    # --- creating ---------------------------------------------------------------------------------------------------

    def _create(self, order: WorktreeRequest, lock: int) -> Tree:
        """Create a new tree. Raises GitRefused; OSError."""
        source = discover(self.git, order.folder)
        tree = Tree(
            name=order.name,
            path=str(self.path(order.name)),
            branch=order.branch,
            task_id=order.task_id,
            repository=source.top,
            base="",
            onto=None,
            left_out=False,
            submodules=False,
            common_dir=source.common_dir,
            source_dir=source.git_dir,
        )
        with self._git_in(tree) as git:
            tree = begun(git.shadow, git.survey(source), order, self._records)
        return self._add(tree, lock)

    def _add(self, tree: Tree, lock: int, *, branch_is_there: bool = False) -> Tree:
        self._records.forget_state(tree.name)
        self._records.write(tree, made=False)
        crashpoint("worktree-intended")
        what = ["--", tree.path, tree.branch] if branch_is_there else ["-b", tree.branch, "--", tree.path, tree.base]
        with self._git_in(tree) as git, self._serialised(tree.common_dir):
            try:
                made = git.shadow.add(tree.path, *what, source_dir=tree.source_dir, timeout_s=CHECKOUT_S, keep=[lock])
            except (GitRefused, OSError):
                git.forget()
                if branch_is_there:
                    self._records.write(tree, made=True)  # without it nobody would find the commits on the branch
                else:
                    git.delete_branch(tree.base)
                    self._records.forget(tree.name)
                raise
        crashpoint("worktree-added")
        tree = replace(tree, git_dir=made)
        self._records.write(tree, made=True)
        crashpoint("worktree-made")
        return tree

    def _recreate(self, tree: Tree, made: bool, order: WorktreeRequest, lock: int) -> Tree:
        """Create a tree again that a crash left incomplete before any run, or whose folder was removed by somebody."""
        tree = self._located(tree)
        with self._git_in(tree) as git, self._serialised(tree.common_dir):
            git.forget()
            if not made:
                git.delete_branch(tree.base)
            branch_is_there = git.shadow.tip(tree.ref) is not None
        if branch_is_there:
            return self._add(tree, lock, branch_is_there=True)
        return self._create(order, lock)

    # --- examining --------------------------------------------------------------------------------------------------

    def _look(self, tree: Tree, by_agent: Collection[str] | None) -> TreeState:
        known = self.by_check(tree.name)
        try:
            with self._records.held(tree.name):
                found, made = self._records.read(tree.name) or (None, False)
                if found is None:
                    return TreeState(TreeStanding.GONE)
                tree = self._located(found)
                with self._git_in(tree) as git:
                    state = git.state(made=made)
                    return replace(state, by_check=git.left_by_check(by_agent, known)) if state.changed else state
        except GitRefused as refused:
            return TreeState(TreeStanding.UNKNOWN, by_check=tuple(known), words=refused.words)
        except (OSError, TreeBusy) as error:
            return TreeState(TreeStanding.UNKNOWN, by_check=tuple(known), words=str(error))

    def _located(self, tree: Tree) -> Tree:
        """Return the tree with its git directories, which records of earlier versions lack: read from the repository,
        not from the tree. Raises GitRefused."""
        if tree.common_dir:
            return tree
        if not Path(tree.repository).is_dir():
            raise GitRefused(f"its repository {tree.repository} is not there any more")
        source = discover(self.git, tree.repository)
        known = Path(source.common_dir).glob("worktrees/*")
        git_dir = next((str(path) for path in known if back_pointer(path) == f"{tree.path}/{POINTER}"), "")
        return replace(tree, git_dir=git_dir, common_dir=source.common_dir, source_dir=source.git_dir)

    @contextmanager
    def _git_in(self, tree: Tree) -> Iterator["_TreeGit"]:
        """Yield git in the tree, whose lock is held. Raises GitRefused; OSError."""
        shadow = ShadowRepository(self.git, self._root / f".{tree.name}{POINTER}", tree.common_dir)
        try:
            yield _TreeGit(shadow, tree)
        finally:
            shadow.remove()

    @contextmanager
    def _serialised(self, path: str) -> Iterator[None]:
        """Serialise the threads that look at a tree or change a repository's list of trees, which git itself does not
        do."""
        with self._guard:
            lock = self._locks.setdefault(path, threading.Lock())
        with lock:
            yield


@dataclass(frozen=True, slots=True)
class _TreeGit:
    """git in one tree. All methods raise GitRefused."""

    shadow: ShadowRepository
    tree: Tree

    def survey(self, source: Repository) -> Tree:
        """Return the tree with the commit and branch from which it is created."""
        git_dir = source.git_dir
        base = self.shadow("rev-parse", "--verify", "HEAD^{commit}", git_dir=git_dir)
        onto = self.shadow("rev-parse", "--symbolic-full-name", "HEAD", git_dir=git_dir)
        return replace(
            self.tree,
            base=base,
            onto=onto if onto.startswith("refs/") else None,
            left_out=bool(self._status(git_dir, source.top)),
            submodules=bool(self.shadow("ls-tree", "--name-only", base, "--", ".gitmodules")),
            filters=self.shadow.filters_left_out(),
        )

    def state(self, *, made: bool) -> TreeState:
        """Return its state."""
        tree = self.tree
        tip = self.shadow.tip(tree.ref)
        if not made or not os.path.lexists(tree.path):
            if tip is None or self._is_merged(tip):
                return TreeState(TreeStanding.GONE)
            return TreeState(TreeStanding.AHEAD, self._commits(tip), words="its folder is gone, its branch is not")
        if (wrong := finding(tree)) is not None:
            return TreeState(TreeStanding.UNKNOWN, words=suspicious(tree, wrong))
        lock = self._lock_reason()
        head = self.shadow("rev-parse", "HEAD", git_dir=tree.git_dir)
        ends = {head} if tip is None else {head, tip}
        commits = max(self._commits(end) for end in ends)
        changed = len(self._status(tree.git_dir, tree.path).splitlines())
        if lock is not None:
            return TreeState(TreeStanding.LOCKED, commits, changed, words=lock)
        if changed:
            return TreeState(TreeStanding.DIRTY, commits, changed)
        if not all(self._is_merged(end) for end in ends):
            return TreeState(TreeStanding.AHEAD, commits)
        if (submodule := self.shadow.submodule(tree.git_dir, tree.path)) is not None:
            release = deinit_command(tree.path, submodule)
            words = f"git is not run in its submodule {submodule}: push what was done there, then: {release}"
            return TreeState(TreeStanding.UNKNOWN, commits, words=words)
        return TreeState(TreeStanding.MERGED if commits else TreeStanding.UNCHANGED, commits)

    def remove(self) -> None:
        """Remove a complete tree with its folder. Raises OSError, too."""
        path = self.tree.path
        try:
            # Forced because git would otherwise look for changes itself, in a directory that the tree names.
            self.shadow("worktree", "remove", "--force", "--", path, timeout_s=CHECKOUT_S)
        except GitRefused:
            # git forgets a tree even if it could not delete all of it, such as folders without write permission.
            if f"worktree {path}" in self._listed():
                raise
            leftovers.remove(Path(path))

    def forget(self) -> None:
        """Make git forget an incomplete or missing tree. Its branch stays."""
        # Not `prune`, which would also forget the user's trees on disks that are currently missing. An incomplete tree
        # is locked, hence forced twice.
        path = self.tree.path
        command = ("worktree", "remove", "--force", "--force", "--", path)
        if Path(path).exists():
            try:
                self.shadow(*command)
            except GitRefused:
                leftovers.remove(Path(path))
        if f"worktree {path}" in self._listed():
            self.shadow(*command)

    def delete_branch(self, tip: str | None) -> None:
        """Delete the branch if it still exists and is not checked out anywhere."""
        ref = self.tree.ref
        if tip is not None and tip == self.shadow.tip(ref) and f"branch {ref}" not in self._listed():
            self.shadow.delete(ref, tip)

    def _status(self, git_dir: str, work_tree: str) -> str:
        """Return changes and new files, one per line. Submodules count only by commit: git does not enter them."""
        asked = ("status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=dirty")
        return self.shadow(*asked, git_dir=git_dir, work_tree=work_tree, timeout_s=STATUS_S)

    def left_by_check(self, by_agent: Collection[str] | None, known: Collection[str]) -> tuple[str, ...]:
        """Return the uncommitted files that only checks have left; none if there are too many to name. by_agent: what
        the agent left; None if that is unknown, and then only those are meant that are known as a check's."""
        if by_agent is None and not known:
            return ()
        asked = partial(self.shadow, git_dir=self.tree.git_dir, work_tree=self.tree.path, timeout_s=STATUS_S)
        paths = uncommitted(asked, "all")
        left = [path for path in paths if (path in known if by_agent is None else path not in by_agent)]
        return tuple(left) if len(left) <= MAX_RECORDED else ()

    def _commits(self, end: str) -> int:
        return int(self.shadow("rev-list", "--count", f"{self.tree.base}..{end}"))

    def _is_merged(self, commit: str) -> bool:
        base, *targets = self._targets()
        if any(self.shadow.contains(target, commit) for target in (base, *targets)):
            return True
        return any(is_absorbed(self.shadow, commit, target) for target in targets)

    def _targets(self) -> Iterator[str]:
        """Yield where its commits may have gone: the commit and branch of its origin, and that branch's upstream."""
        onto = self.tree.onto
        yield self.tree.base
        names = ["HEAD"] if onto is None else [onto, f"{short_ref(onto)}@{{upstream}}"]
        for name in names:
            asked = ("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
            try:
                yield self.shadow(*asked, git_dir=self.tree.source_dir)
            except GitRefused:
                continue

    def _listed(self) -> list[str]:
        return self.shadow("worktree", "list", "--porcelain").splitlines()

    def _lock_reason(self) -> str | None:
        """Return why git has locked it; None if it is not locked."""
        here = False
        for line in self._listed():
            key, _, value = line.partition(" ")
            if key == "worktree":
                here = value == self.tree.path
            elif here and key == "locked":
                return value
        return None
