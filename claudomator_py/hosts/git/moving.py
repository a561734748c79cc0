"""Moving a branch, with the files of the work tree that has it checked out, in a way that survives a kill.

The reference is authoritative, and moved by compare-and-swap. Nothing visible is changed before that. The following
changes, to files and index, are first written to a *note*, from which the next process repeats them. Until then the
index is locked as git locks it, so that no other git works on a partial state.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from uuid import uuid4

from claudomator_py.domain.changes import NotMerged
from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.worktree import Tree, short_ref
from claudomator_py.hosts.git import CHECKOUT_S, Git, GitRefused, is_true, uncommitted
from claudomator_py.hosts.git.records import back_pointer
from claudomator_py.hosts.git.shadow import POINTER, ShadowRepository, copy_index
from claudomator_py.private_files import flush_path, write_new
from claudomator_py.values import dataclass

_LOCK = "index.lock"
_NEW = "index.claudomator"
_MARK = b"locked by claudomator: a branch is being moved\n"
_UNDER_WAY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "sequencer")
_MAX_NAMED = 5

IsBusy = Callable[[str], str | None]
"""Returns who works in a folder, as a clause; None if nobody does."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A work tree with a branch checked out. top: its folder. git_dir: its own git directory."""

    top: str
    git_dir: str


@dataclass(frozen=True, slots=True)
class Move:
    """A move of a branch from one commit to another. top, git_dir: see ``Checkout``."""

    ref: str
    before: str
    after: str
    common_dir: str
    top: str
    git_dir: str


def checkout_of(ref: str, tree: Tree) -> Checkout | None:
    """Return the work tree that has the branch checked out. Raises NotMerged if there are several, or its folder is
    missing; OSError."""
    common = Path(tree.common_dir)
    places = []
    for git_dir in (common, *sorted(common.glob("worktrees/*"))):
        _refuse_rebase(git_dir, ref)
        if _text(git_dir / "HEAD") == f"ref: {ref}" and (top := _top(git_dir, tree)) is not None:
            places.append(Checkout(top, str(git_dir)))
    if len(places) > 1:
        tops = " and ".join(place.top for place in places)
        raise NotMerged(f"the branch {short_ref(ref)} is checked out in {tops}", "switch one of them to another branch")
    return places[0] if places else None


def _top(git_dir: Path, tree: Tree) -> str | None:
    """Return the folder of the work tree; None for a bare repository."""
    if str(git_dir) == tree.source_dir:
        return tree.repository
    if str(git_dir) == tree.common_dir:
        if git_dir.name == POINTER:
            return str(git_dir.parent)
        if (git_dir / "index").exists():
            raise NotMerged(f"it is not known where the work tree of {git_dir} is", "merge there by hand")
        return None
    pointer = Path(os.path.normpath(git_dir / (back_pointer(git_dir) or "")))
    if (_text(pointer) or "").removeprefix("gitdir: ") not in (str(git_dir), os.path.relpath(git_dir, pointer.parent)):
        remedy = "check that folder, or have git forget it with `git worktree prune`"
        raise NotMerged(f"the work tree in {pointer.parent} is not there, or leads elsewhere", remedy)
    return str(pointer.parent)


def _refuse_rebase(git_dir: Path, ref: str) -> None:
    for name in ("rebase-merge", "rebase-apply"):
        if _text(git_dir / name / "head-name") == ref:
            raise NotMerged(f"the branch {short_ref(ref)} is being rebased in another work tree", "finish that first")


def refuse_under_way(git_dir: Path, top: str) -> None:
    """Raise NotMerged if git is in the middle of a merge or rebase in that work tree."""
    if any((git_dir / name).exists() for name in _UNDER_WAY):
        raise NotMerged(f"a merge or rebase is under way in {top}", "finish it, or abort it")


def refuse_locked(git_dir: Path, top: str) -> None:
    """Raise NotMerged if another git is at work in that work tree, or was killed there."""
    if os.path.lexists(git_dir / _LOCK):
        raise NotMerged(f"another git is at work in {top}", f"wait for it, or remove {git_dir}/{_LOCK}")


def _text(file: Path) -> str | None:
    try:
        return file.read_text(errors="surrogateescape").strip()
    except OSError:
        return None


class BranchMover:
    """Moves branches, one at a time per repository. folder: for notes."""

    def __init__(self, git: Git, folder: Path) -> None:
        self._git = git
        self._folder = folder

    def move(self, shadow: ShadowRepository, move: Move, is_busy: IsBusy) -> None:
        """Move the branch, then update the files. Raises NotMerged, GitRefused or OSError if the branch was not moved;
        TreeFault if the update has to be finished later."""
        at = _BranchTree(shadow, move)
        note = self._note(move)
        if not at.lock():
            note.unlink()
            remedy = f"wait for it; if there is none, remove {move.git_dir}/{_LOCK}"
            raise NotMerged(f"another git is at work in {move.top}", remedy)
        try:
            crashpoint("merge-locked")
            at.check(is_busy)
            crashpoint("merge-checked")
            shadow("update-ref", move.ref, move.after, move.before)
        except BaseException:
            at.unlock()
            note.unlink()
            raise
        crashpoint("merge-moved")
        at.follow(move.before)
        note.unlink()

    def check(self, shadow: ShadowRepository, move: Move, is_busy: IsBusy, variables: Mapping[str, str]) -> None:
        """Raise NotMerged, GitRefused or OSError if the branch cannot be moved. Changes nothing. variables: locate the
        new objects for git."""
        refuse_locked(Path(move.git_dir), move.top)
        _BranchTree(shadow, move, variables).check(is_busy)

    def recover(self) -> None:
        """Finish moves that a crash has interrupted. Those that cannot be finished now are tried again later."""
        for note in sorted(self._folder.glob("*.json")):
            with suppress(GitRefused, NotMerged, OSError, ValueError, TypeError):
                move = Move(**json.loads(note.read_bytes().decode(errors="surrogateescape")))
                with self.shadow(move.common_dir) as shadow:
                    _BranchTree(shadow, move).finish()
                note.unlink()

    @contextmanager
    def shadow(self, common_dir: str) -> Iterator[ShadowRepository]:
        """Yield a shadow of a repository. Raises GitRefused; OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        shadow = ShadowRepository(self._git, self._folder / f"{uuid4().hex}{POINTER}", common_dir)
        try:
            yield shadow
        finally:
            shadow.remove()

    def _note(self, move: Move) -> Path:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / f"{uuid4().hex}.json"
        new = path.with_suffix(".new")
        write_new(new, json.dumps(asdict(move), ensure_ascii=False).encode(errors="surrogateescape"))
        new.rename(path)
        flush_path(self._folder)
        crashpoint("merge-noted")
        return path


class _BranchTree:
    """git in the work tree whose branch moves. Methods raise GitRefused, NotMerged and OSError."""

    def __init__(self, shadow: ShadowRepository, move: Move, variables: Mapping[str, str] | None = None) -> None:
        self._shadow = shadow
        self._variables = variables or {}
        self._move = move
        self._dir = Path(move.git_dir)
        self._index = shadow.path / "index.new"
        """Copy of the index that git uses."""

    def lock(self) -> bool:
        """Lock the index, as git does. Return False if it is locked already."""
        new = self._dir / _NEW
        new.unlink(missing_ok=True)
        write_new(new, _MARK)
        try:
            os.link(new, self._dir / _LOCK)
        except FileExistsError:
            return self._is_locked()
        finally:
            new.unlink()
        return True

    def unlock(self) -> None:
        """Unlock the index, if it is locked by this program."""
        if self._is_locked():
            (self._dir / _LOCK).unlink()

    def check(self, is_busy: IsBusy) -> None:
        """Raise NotMerged, GitRefused or OSError if the files cannot be updated."""
        move = self._move
        refuse_under_way(self._dir, move.top)
        if _text(self._dir / "HEAD") != f"ref: {move.ref}":
            raise NotMerged(f"{move.top} has another branch checked out by now", "try again")
        if (who := is_busy(move.top)) is not None:
            raise NotMerged(f"{who} in {move.top}", "wait for its end, or merge into another branch with --into")
        if filters := self._shadow.filters_left_out():
            words = f"only the configuration of the repository defines the content filter {filters[0]}"
            raise NotMerged(f"{words}, which is not run here", "merge by hand, or define it in ~/.gitconfig")
        if changed := uncommitted(partial(self._git, index=False), "no"):
            names = ", ".join(changed[:_MAX_NAMED]) + (", ..." if len(changed) > _MAX_NAMED else "")
            raise NotMerged(f"{move.top} has changes that are not committed: {names}", "commit or stash them first")
        self._copy_index()
        # git compares times with the index, which differ in a restored or copied repository, and contents only here.
        self._git("update-index", "-q", "--refresh")
        try:
            self._git("read-tree", "-m", "-u", "--dry-run", move.before, move.after)
        except GitRefused as refused:
            words = " ".join(refused.words.split())
            raise NotMerged(f"the files in {move.top} are in the way: {words}", "move them away first") from refused

    def follow(self, index_tree: str) -> None:
        """Update files and index to the branch. index_tree: current content of the copy of the index."""
        self._git("read-tree", "-m", "-u", index_tree, self._move.after)
        crashpoint("merge-files")
        new = self._dir / _NEW
        new.unlink(missing_ok=True)
        write_new(new, self._index.read_bytes())
        with suppress(FileNotFoundError):
            shutil.copymode(self._dir / "index", new)
        new.rename(self._dir / "index")
        crashpoint("merge-indexed")
        self.unlock()

    def finish(self) -> None:
        """Finish an interrupted update. Raises NotMerged for files that were changed meanwhile, and keeps them."""
        move = self._move
        if self._shadow("rev-parse", "--verify", move.ref) != move.after:
            self.unlock()
            return
        if _text(self._dir / "HEAD") != f"ref: {move.ref}":
            self.unlock()
            return
        if not self.lock():
            raise NotMerged(f"another git is at work in {move.top}", "wait for it")
        self._copy_index()
        if is_true(self._git, "diff-index", "--cached", "--quiet", move.after, "--"):
            self.unlock()
            return
        self.follow(self._current_tree())

    def _current_tree(self) -> str:
        """Return a tree of the current files, partly old and partly new, and load it into the copy of the index."""
        move = self._move
        paths = sorted(self._names(move.before, move.after))
        there = [path for path in paths if _is_file_in(move.top, path)]
        self._git("update-index", "-z", "--force-remove", "--stdin", stdin=paths)
        self._git("update-index", "-z", "--add", "--replace", "--stdin", stdin=there)
        tree = self._git("write-tree")
        others = self._names(tree, move.before) & self._names(tree, move.after)
        for path in there:
            if path in others and not self._is_begun(path):
                raise NotMerged(f"{move.top}/{path} was changed by somebody else", "check it, then merge again")
        return tree

    def _names(self, tree: str, other: str) -> set[str]:
        """Return the names of the files that differ."""
        listed = self._git("diff-tree", "-r", "-z", "--name-only", "--no-renames", tree, other)
        return set(filter(None, listed.split("\0")))

    def _is_begun(self, path: str) -> bool:
        """Return whether git was killed while it wrote the file: its content is a prefix of the new one."""
        with suppress(GitRefused):
            whole = self._git("cat-file", "--filters", f"{self._move.after}:{path}").encode(errors="surrogateescape")
            return whole.startswith((Path(self._move.top) / path).read_bytes().removesuffix(b"\n"))
        return False

    def _copy_index(self) -> None:
        copy_index(Path(self._dir) / "index", self._index)

    def _is_locked(self) -> bool:
        with suppress(OSError):
            return (self._dir / _LOCK).read_bytes() == _MARK
        return False

    def _git(self, *arguments: str, index: bool = True, stdin: list[str] | None = None) -> str:
        """index: use the copy of the index."""
        return self._shadow(
            *arguments,
            git_dir=self._move.git_dir,
            work_tree=self._move.top,
            timeout_s=CHECKOUT_S,
            variables={**self._variables, **({"GIT_INDEX_FILE": str(self._index)} if index else {})},
            stdin="\0".join(stdin or ()).encode(errors="surrogateescape"),
        )


def _is_file_in(top: str, path: str) -> bool:
    """Return whether a file or link exists at the path, without following links to folders."""
    whole = Path(top, path)
    if not os.path.lexists(whole) or (whole.is_dir() and not whole.is_symlink()):
        return False
    return os.path.realpath(whole.parent) == os.path.normpath(Path(os.path.realpath(top), path).parent)
