"""Work trees on this machine: made, found again after a crash, looked at and, when nothing is lost by it, removed.

Beside the folder ``<name>`` of a tree lies its record, ``<name>.json``. It is written before git is asked for anything
and removed after everything else, so what a crash leaves is known by its record; ``made`` in it says that the tree is
whole. ``<name>.lock`` is held by whoever is at a tree, and by the git that it called: after a crash of the daemon the
next one waits for a git that is still at work.
"""

import fcntl
import json
import os
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from claudomator_py.core.crashpoint import crashpoint
from claudomator_py.core.worktree import Tree, TreeBusy, TreeFault, TreeOrder, TreeStanding, TreeState
from claudomator_py.runs.durable import flush_directory, write_new
from claudomator_py.runs.git import Git, GitRefused
from claudomator_py.runs.git_remedies import fault_of

CHECKOUT_S = 600.0
STATUS_S = 60.0
_RECORD = ".json"
_LOCK = ".lock"
_BLOCK = 512


class LocalTrees:
    """Trees under one folder, which is made with the first (0700). Safe to use from many threads."""

    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        self._root = root.resolve()
        self._git = Git(environ)
        self._repositories: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()

    def path(self, name: str) -> Path:
        """The folder of the tree of that name."""
        return self._root / name

    def ensure(self, order: TreeOrder) -> Tree:
        """The tree, made now unless it is there. Raises TreeBusy; TreeFault, with git's words and what to do."""
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._held(order.name) as lock:
                record = self._read(order.name)
                if record is not None:
                    tree, made = record
                    if tree.task_id != order.task_id:
                        raise TreeFault(f"{tree.path} belongs to task {tree.task_id}; move it away")
                    if made and self._stands(tree):
                        return tree
                    if made and Path(tree.path).exists():
                        raise TreeFault(f"{tree.path} is no work tree of git any more; move it away")
                    return self._again(tree, made, order, lock)
                return self._make(self._survey(order), lock)
        except GitRefused as refused:
            raise fault_of(refused, order.folder) from refused
        except OSError as error:
            raise TreeFault(f"{self.path(order.name)} cannot be made ({error.strerror})") from error

    def all(self) -> list[Tree]:
        """The trees that there are, those that a crash left unfinished included, by name."""
        if not self._root.is_dir():
            return []
        names = sorted(path.name.removesuffix(_RECORD) for path in self._root.glob(f"*{_RECORD}"))
        records = (self._read(name) for name in names)
        return [record[0] for record in records if record is not None]

    def find(self, name: str) -> Tree | None:
        """The tree of that name, or None."""
        record = self._read(name) if name else None
        return None if record is None else record[0]

    def state(self, tree: Tree) -> TreeState:
        """How it stands at present. Never raises."""
        record = self._read(tree.name)
        if record is None:
            return TreeState(TreeStanding.GONE)
        try:
            return self._state(tree, made=record[1])
        except GitRefused as refused:
            return TreeState(TreeStanding.UNKNOWN, words=refused.words)
        except OSError as error:
            return TreeState(TreeStanding.UNKNOWN, words=str(error))

    def users(self, tree: Tree) -> list[int]:
        """The processes that work in its folder, as far as they can be seen."""
        return working_in(Path(tree.path))

    def size(self, tree: Tree) -> int:
        """The bytes that its folder takes on the disk."""
        return size_of(Path(tree.path))

    def remove(self, tree: Tree) -> None:
        """Remove the tree and its branch, which must be spent: git is asked once more, and not to force anything.

        Raises TreeBusy; TreeFault, and then nothing that is not in the repository is lost.
        """
        try:
            with self._held(tree.name):
                record = self._read(tree.name)
                if record is None:
                    return
                tip = self._tip(tree)
                state = self._state(tree, made=record[1])
                if not state.standing.is_spent:
                    raise TreeFault(f"{tree.path} is {state.standing.value}")
                with self._alone(tree.repository):
                    if record[1] and Path(tree.path).exists():
                        self._git(tree.repository, "worktree", "remove", "--", tree.path, timeout_s=CHECKOUT_S)
                    else:
                        self._clear(tree)
                crashpoint("worktree-removed")
                self._delete_branch(tree, tip)
                self._forget(tree.name)
        except GitRefused as refused:
            raise fault_of(refused, tree.path) from refused
        except OSError as error:
            raise TreeFault(f"{tree.path} cannot be removed ({error.strerror})") from error

    def close(self) -> None:
        """End what git is doing, and do nothing more."""
        self._git.close()

    # --- making -----------------------------------------------------------------------------------------------------

    def _survey(self, order: TreeOrder) -> Tree:
        """What the tree is made from. Raises GitRefused."""
        git, folder = self._git, order.folder
        top = git(folder, "rev-parse", "--show-toplevel")
        base = git(top, "rev-parse", "--verify", "HEAD^{commit}")
        onto = git(top, "rev-parse", "--symbolic-full-name", "HEAD")
        return Tree(
            name=order.name,
            path=str(self.path(order.name)),
            branch=order.branch,
            task_id=order.task_id,
            repository=top,
            base=base,
            onto=onto if onto.startswith("refs/") else None,
            left_out=bool(git(top, "status", "--porcelain", timeout_s=STATUS_S)),
            submodules=bool(git(top, "ls-tree", "--name-only", base, "--", ".gitmodules")),
        )

    def _make(self, tree: Tree, lock: int, *, branch_is_there: bool = False) -> Tree:
        self._write(tree, made=False)
        crashpoint("worktree-intended")
        what = ["--", tree.path, tree.branch] if branch_is_there else ["-b", tree.branch, "--", tree.path, tree.base]
        with self._alone(tree.repository):
            try:
                self._git(tree.repository, "worktree", "add", *what, timeout_s=CHECKOUT_S, keep=[lock])
            except GitRefused:
                self._clear(tree)
                if not branch_is_there:
                    self._delete_branch(tree, tree.base)
                self._forget(tree.name)
                raise
        crashpoint("worktree-added")
        self._write(tree, made=True)
        crashpoint("worktree-made")
        return tree

    def _again(self, tree: Tree, made: bool, order: TreeOrder, lock: int) -> Tree:
        """A crash left it unfinished, and no run has been in it; or its folder was removed by somebody."""
        self._clear(tree)
        if not made:
            self._delete_branch(tree, tree.base)
        if self._tip(tree) is not None:
            return self._make(tree, lock, branch_is_there=True)
        return self._make(self._survey(order), lock)

    def _clear(self, tree: Tree) -> None:
        """Have git forget a tree that is not whole, or not there. Its branch stays."""
        # Not pruned: that would make git forget the user's trees on disks that are not there at the moment, too. What
        # is only half made is locked, so forced twice.
        forget = ("worktree", "remove", "--force", "--force", "--", tree.path)
        if Path(tree.path).exists():
            try:
                self._git(tree.repository, *forget)
            except GitRefused:
                shutil.rmtree(tree.path)
        if f"worktree {tree.path}" in self._listed(tree):
            self._git(tree.repository, *forget)

    def _delete_branch(self, tree: Tree, tip: str | None) -> None:
        """Delete the branch if it is still there, and nobody has it checked out."""
        if tip is not None and tip == self._tip(tree) and f"branch refs/heads/{tree.branch}" not in self._listed(tree):
            self._git(tree.repository, "update-ref", "-d", f"refs/heads/{tree.branch}", tip)

    def _listed(self, tree: Tree) -> list[str]:
        return self._git(tree.repository, "worktree", "list", "--porcelain").splitlines()

    # --- looking ----------------------------------------------------------------------------------------------------

    def _state(self, tree: Tree, *, made: bool) -> TreeState:
        if not Path(tree.repository).is_dir():
            raise GitRefused(f"its repository {tree.repository} is not there any more")
        tip = self._tip(tree)
        if not made or not Path(tree.path).exists():
            if tip is None or self._is_merged(tree, tip):
                return TreeState(TreeStanding.GONE)
            return TreeState(
                TreeStanding.AHEAD, self._commits(tree, tip), words="its folder is gone, its branch is not"
            )
        if not self._stands(tree):
            raise GitRefused("its folder is no work tree of git any more")
        lock = self._lock_reason(tree)
        head = self._git(tree.path, "rev-parse", "HEAD")
        ends = {head} if tip is None else {head, tip}
        commits = max(self._commits(tree, end) for end in ends)
        status = self._git(
            tree.path,
            "status",
            "--porcelain",
            "--untracked-files=normal",
            "--ignore-submodules=none",
            timeout_s=STATUS_S,
        )
        changed = len(status.splitlines())
        if lock is not None:
            return TreeState(TreeStanding.LOCKED, commits, changed, lock)
        if changed:
            return TreeState(TreeStanding.DIRTY, commits, changed)
        if not all(self._is_merged(tree, end) for end in ends):
            return TreeState(TreeStanding.AHEAD, commits)
        return TreeState(TreeStanding.MERGED if commits else TreeStanding.UNCHANGED, commits)

    def _stands(self, tree: Tree) -> bool:
        """Whether its folder is a work tree that git knows."""
        path = Path(tree.path)
        if not (path / ".git").is_file():
            return False
        try:
            return self._git(path, "rev-parse", "--show-toplevel") == str(path.resolve())
        except GitRefused:
            return False

    def _tip(self, tree: Tree) -> str | None:
        """The commit that its branch is at; None: there is no such branch."""
        ref = f"refs/heads/{tree.branch}"
        if not self._git.says(tree.repository, "show-ref", "--verify", "--quiet", "--", ref):
            return None
        return self._git(tree.repository, "rev-parse", "--verify", ref)

    def _commits(self, tree: Tree, end: str) -> int:
        return int(self._git(tree.repository, "rev-list", "--count", f"{tree.base}..{end}"))

    def _is_merged(self, tree: Tree, commit: str) -> bool:
        return any(
            self._git.says(tree.repository, "merge-base", "--is-ancestor", commit, target)
            for target in self._targets(tree)
        )

    def _targets(self, tree: Tree) -> Iterator[str]:
        """Where its commits may have gone: what it was made from, the branch there, and that one's upstream."""
        yield tree.base
        names = ["HEAD"] if tree.onto is None else [tree.onto, f"{tree.onto.removeprefix('refs/heads/')}@{{upstream}}"]
        for name in names:
            try:
                yield self._git(tree.repository, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
            except GitRefused:
                continue

    def _lock_reason(self, tree: Tree) -> str | None:
        """None: it is not locked."""
        here = False
        for line in self._listed(tree):
            key, _, value = line.partition(" ")
            if key == "worktree":
                here = value == tree.path
            elif here and key == "locked":
                return value
        return None

    # --- records ----------------------------------------------------------------------------------------------------

    def _read(self, name: str) -> tuple[Tree, bool] | None:
        """The record, and whether the tree was whole. One that cannot be read is none."""
        try:
            data = json.loads((self._root / f"{name}{_RECORD}").read_bytes())
            made = data.pop("made")
            return Tree(**(data | {"name": name, "path": str(self.path(name))})), bool(made)
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None

    def _write(self, tree: Tree, *, made: bool) -> None:
        new = self._root / f".{tree.name}{_RECORD}"
        data = {key: value for key, value in asdict(tree).items() if key not in ("name", "path")}
        write_new(new, json.dumps({**data, "made": made}, indent=2).encode())
        new.rename(self._root / f"{tree.name}{_RECORD}")
        flush_directory(self._root)

    def _forget(self, name: str) -> None:
        for suffix in (_RECORD, _LOCK):
            (self._root / f"{name}{suffix}").unlink(missing_ok=True)
        flush_directory(self._root)

    @contextmanager
    def _held(self, name: str) -> Iterator[int]:
        """Hold the tree's lock; its descriptor. Raises TreeBusy."""
        path = self._root / f"{name}{_LOCK}"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise TreeBusy(name) from None
            if not path.exists() or path.stat().st_ino != os.fstat(fd).st_ino:
                raise TreeBusy(name)
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def _alone(self, repository: str) -> Iterator[None]:
        """One at a time adds to or takes from a repository's list of trees: git itself does not see to that."""
        with self._guard:
            lock = self._repositories.setdefault(repository, threading.Lock())
        with lock:
            yield


def size_of(path: Path) -> int:
    """The bytes that a folder takes on the disk, as far as it can be read; links are not followed."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += Path(folder, name).lstat().st_blocks * _BLOCK
            except OSError:
                continue
    return total


def working_in(path: Path) -> list[int]:
    """The processes whose working directory is that folder or lies in it, as far as they can be seen."""
    real = path.resolve()
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if (process / "cwd").readlink().is_relative_to(real):
                    found.append(int(process.name))
            except OSError:
                continue
    return sorted(found)
