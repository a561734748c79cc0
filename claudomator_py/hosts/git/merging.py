"""Merging and discarding the branch of a work tree: all new objects are first created in the object database.

Conflicts are detected there, too (``git merge-tree``), so that a work tree never has one. git runs with our
configuration: hooks and merge drivers of the repository are not used (see ``shadow``).
"""

import os
import shlex
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from claudomator_py.domain.changes import Commit, Discarded, Merged, MergeMethod, MergeOrder, NotMerged
from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.units import are
from claudomator_py.domain.worktree import HEADS, Tree, TreeBusy, TreeFault, short_ref
from claudomator_py.hosts.git import GitRefused, is_true
from claudomator_py.hosts.git.committing import OpenTree, nested_in
from claudomator_py.hosts.git.look import FIND_RENAMES, numbered
from claudomator_py.hosts.git.moving import BranchMover, IsBusy, Move, checkout_of
from claudomator_py.hosts.git.shadow import POINTER, deinit_command
from claudomator_py.hosts.git.worktrees import LocalTrees

DISCARDED = "refs/claudomator/discarded/"
"""Prefix of the references that keep discarded work."""
MAX_REBASED = 500
_MERGE_S = 120.0
_UNCOMMITTED = "Work that was not committed"


class LocalBranches:
    """The ``Branches`` of the work trees on this machine. Safe to use from many threads."""

    def __init__(self, trees: LocalTrees) -> None:
        self._trees = trees
        self._mover = BranchMover(trees.git, trees.path("moves"))

    def tree_in(self, path: str) -> str | None:
        tree = self._trees.find(Path(path).name)
        return None if tree is None or tree.path != path else tree.name

    def recover(self) -> None:
        self._mover.recover()

    def merge(self, order: MergeOrder, is_busy: IsBusy) -> Merged:
        with self._at(order.tree, dry_run=order.dry_run) as at:
            if not order.dry_run:
                self._mover.recover()
            return at.merge(order, self._mover, is_busy, self._trees.by_check(order.tree))

    def discard(self, name: str, *, dry_run: bool = False) -> Discarded:
        if dry_run:
            with self._at(name, dry_run=True) as at:
                return at.keep()
        discarded: list[Discarded] = []
        with _explained(name):
            tree = self._trees.find(name)
            if tree is None:
                raise TreeFault(f"the work tree {name} is not there any more")
            if self._trees.users(tree):
                raise NotMerged(f"a process works in {tree.path}", "end it first")
            self._trees.remove(tree, lambda tree, shadow: discarded.append(_MergeTree(tree, shadow, False).keep()))
        if not discarded:
            raise NotMerged(f"the work tree {name} is not there any more", "there is nothing left to discard")
        return discarded[0]

    def commit(
        self, name: str, title: str, left_at: str | None = None, only: Collection[str] | None = None
    ) -> Commit | None:
        with self._at(name, dry_run=False) as at:
            return at.commit(title, left_at, only)

    @contextmanager
    def _at(self, name: str, *, dry_run: bool) -> Iterator["_MergeTree"]:
        with _explained(name), self._trees.opened(name) as (tree, shadow):
            yield _MergeTree(tree, shadow, dry_run)


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Raise faults of git and of the disk as NotMerged."""
    try:
        yield
    except TreeBusy as busy:
        raise NotMerged(str(busy), "try again in a moment") from busy
    except GitRefused as refused:
        words = " ".join(refused.words.split()).removeprefix("fatal: ").removeprefix("error: ")
        raise NotMerged(words or "git refused", "correct it, and try again") from refused
    except TreeFault as fault:
        raise NotMerged(str(fault), "check the repository with git") from fault
    except OSError as error:
        raise NotMerged(f"{name}: {error}", "correct it, and try again") from error


class _MergeTree(OpenTree):
    """Merging and discarding the branch of one tree."""

    # --- merging ----------------------------------------------------------------------------------------------------

    def merge(self, order: MergeOrder, mover: BranchMover, is_busy: IsBusy, by_check: Collection[str]) -> Merged:
        """Merge its branch. by_check: uncommitted files that are no work of the agent."""
        tree = self.tree
        ref = self._target(order.into)
        before, begun = self._commit(ref), self._tip()
        self._require_on_branch(begun, before)
        changed = self._changed()
        tip = begun
        if changed and order.commit:
            tip = self._snapshot(order.title)
        elif mine := [path for path in changed if path not in by_check]:
            raise NotMerged(
                f"{are(len(mine), 'file')} not committed in {tree.path}: {', '.join(mine[:5])}",
                "have them committed first (`--commit`), or commit or remove them there",
            )
        commits = int(self._git("rev-list", "--count", f"{before}..{tip}"))
        after = self._merged(before, tip, order, ref) if commits else before
        checkout = checkout_of(ref, tree)
        files, added, removed = self._size(before, after)
        top = None if checkout is None else checkout.top
        merged = Merged(
            branch=tree.branch,
            into=short_ref(ref),
            commits=commits,
            before=before,
            after=None if order.dry_run else after,
            files=files,
            added=added,
            removed=removed,
            place=top,
            undo=None if order.dry_run or after == before else _undo(tree, ref, before, after, top),
            notes=(*self._notes(before, after, top), *self._left_out(changed, () if order.commit else by_check)),
        )
        if after == before:
            return merged
        if checkout is None:
            if not order.dry_run:
                self._advance(begun, tip)
                self._git("update-ref", ref, after, before)
            return merged
        move = Move(ref, before, after, tree.common_dir, checkout.top, checkout.git_dir)
        with mover.shadow(tree.common_dir) as shadow:
            if order.dry_run:
                mover.check(shadow, move, is_busy, self._tried)
            else:
                self._advance(begun, tip)
                mover.move(shadow, move, is_busy)
        return merged

    def _target(self, into: str | None) -> str:
        ref = self.tree.onto if into is None else f"{HEADS}{short_ref(into)}"
        if ref is None or not ref.startswith(HEADS):
            raise NotMerged(
                f"no branch was checked out in {self.tree.repository} when {self.tree.branch} began",
                "name one with --into BRANCH",
            )
        name = short_ref(ref)
        if not self._shadow.has(ref):
            raise NotMerged(f"there is no branch {name} in {self.tree.repository}", "name another with --into BRANCH")
        if name == self.tree.branch:
            raise NotMerged(f"the branch to merge is {name} itself", "name another with --into BRANCH")
        return ref

    def _merged(self, before: str, tip: str, order: MergeOrder, ref: str) -> str:
        """Create the target's new commit. Return it."""
        if is_true(self._git, "merge-base", "--is-ancestor", before, tip) and order.method is MergeMethod.MERGE:
            return tip
        if order.method is MergeMethod.REBASE:
            return self._rebased(before, tip)
        into, branch = short_ref(ref), self.tree.branch
        tree = self._merge_tree(before, tip, f"the branch {branch} would conflict with {into}")
        if order.method is MergeMethod.MERGE:
            return self._new(tree, [before, tip], f"Merge branch '{branch}' into {into}")
        subjects = self._git("log", "--reverse", "--format=%s", f"{before}..{tip}").splitlines()
        if len(subjects) == 1:
            return self._again(tip, tree, before)
        body = "\n".join(f"* {subject}" for subject in subjects)
        author = self._git("log", "-1", "--no-show-signature", "--format=%an%x00%ae%x00%ad", "--date=raw", tip)
        return self._new(tree, [before], f"{order.title}\n\n{body}", author.split("\0"))

    def _rebased(self, before: str, tip: str) -> str:
        onto = before
        commits = self._git("rev-list", "--reverse", "--topo-order", "--parents", f"{before}..{tip}").splitlines()
        if len(commits) > MAX_REBASED:
            raise NotMerged(f"{len(commits)} commits are too many for a rebase", "merge them, or use --squash")
        for commit, *parents in map(str.split, commits):
            if len(parents) != 1:
                raise NotMerged(
                    f"commit {commit[:10]} is itself a merge, or has no parent", "merge it, or use --squash"
                )
            if parents[0] == onto:
                onto = commit
                continue
            # A commit with the current content and this one's parent as history, so that the parent is the merge base.
            there = self._tree_of(onto)
            based = self._new(there, parents, "base")
            tree = self._merge_tree(based, commit, f"commit {commit[:10]} would conflict")
            if tree != there or tree == self._tree_of(parents[0]):
                onto = self._again(commit, tree, onto)
        return onto

    def _merge_tree(self, ours: str, theirs: str, words: str) -> str:
        try:
            return self._shadow.merge_tree(ours, theirs, variables=self._tried, timeout_s=_MERGE_S)
        except GitRefused as refused:
            if refused.code != 1:
                raise
            listed = self._conflicts(ours, theirs)
            more = f" and {len(listed) - 10} more" if len(listed) > 10 else ""
            command = shlex.join(("git", "-C", self.tree.repository, "merge", self.tree.branch))
            raise NotMerged(
                f"{words} in {', '.join(listed[:10])}{more}",
                f"restart the task, which then begins where the repository is now, or merge by hand: {command}",
                listed,
            ) from refused

    def _conflicts(self, ours: str, theirs: str) -> tuple[str, ...]:
        try:
            self._shadow.merge_tree(ours, theirs, "--name-only", "-z", variables=self._tried, timeout_s=_MERGE_S)
        except GitRefused as refused:
            return tuple(dict.fromkeys(filter(None, refused.printed.split("\0")[1:])))
        return ()

    # --- discarding -------------------------------------------------------------------------------------------------

    def keep(self) -> Discarded:
        """Keep the whole content of the tree under a reference."""
        tree = self.tree
        ref = f"{DISCARDED}{tree.name}"
        changed = self._changed()
        if nested := nested_in(changed):
            raise NotMerged(f"a repository in {tree.path}/{nested[0]} would be lost", "move it away first")
        if self._is_there and (submodule := self._shadow.submodule(tree.git_dir, tree.path)) is not None:
            # Its own repository lies in the git directory of the tree, and goes with it.
            raise NotMerged(
                f"what was done in its submodule {submodule} would be lost",
                f"push it from there, then: {deinit_command(tree.path, submodule)}",
            )
        self._tip()
        if (other := self._other_checkout()) is not None:
            raise NotMerged(
                f"the branch {tree.branch} is checked out in {other}", "switch that to another branch first"
            )
        whole = self._whole(changed)
        if not self._dry_run:
            self._git("update-ref", ref, whole)
            crashpoint("discard-kept")
        command = ("git", "-C", tree.repository, "branch", tree.branch, ref)
        return Discarded(
            branch=tree.branch,
            path=tree.path,
            commits=int(self._git("rev-list", "--count", f"{tree.base}..{whole}")) - bool(changed),
            changed=len(changed),
            kept=None if self._dry_run else ref,
            undo=None if self._dry_run else shlex.join(command),
        )

    def _other_checkout(self) -> str | None:
        for git_dir in Path(self.tree.common_dir, "worktrees").glob("*"):
            if str(git_dir) != self.tree.git_dir and (git_dir / "HEAD").read_text().strip() == f"ref: {self.tree.ref}":
                return str(git_dir)
        return None

    def _whole(self, changed: list[str]) -> str:
        """Return a commit that contains the tree's branch, checkout and uncommitted changes."""
        tip = self._commit(self.tree.ref)
        head = self._commit("HEAD") if self._is_there else tip
        ends = [head] if self._shadow.contains(head, tip) else [head, tip]
        if not changed and len(ends) == 1:
            return head
        return self._new(self._files(head) if changed else self._tree_of(head), ends, _UNCOMMITTED)

    def _again(self, commit: str, tree: str, parent: str) -> str:
        """Create a commit with the message and author of another one."""
        head, _, message = self._git("cat-file", "commit", commit).partition("\n\n")
        kept = [line for line in head.split("\n") if line.startswith(("author ", "encoding "))]
        committer = self._git("var", "GIT_COMMITTER_IDENT")
        lines = [f"tree {tree}", f"parent {parent}", kept[0], f"committer {committer}", *kept[1:]]
        text = "\n".join(lines) + f"\n\n{message}\n"
        return self._git("hash-object", "-t", "commit", "-w", "--stdin", stdin=text.encode(errors="surrogateescape"))

    def _size(self, before: str, after: str) -> tuple[int, int, int]:
        shown = ("-r", "-z", "--raw", "--numstat", *FIND_RENAMES, "--no-ext-diff")
        files = numbered(self._git("diff-tree", *shown, before, after).split("\0"))
        return len(files), sum(file.added or 0 for file in files), sum(file.removed or 0 for file in files)

    def _notes(self, before: str, after: str, top: str | None) -> tuple[str, ...]:
        if top is None or after == before:
            return ()
        listed = self._git("diff-tree", "-r", "-z", "--raw", "--no-renames", before, after).split("\0")
        links = [path for entry, path in zip(listed[::2], listed[1::2], strict=False) if " 160000 " in f" {entry[1:]} "]
        if not links:
            return ()
        own = [path for path in links if self._is_there and os.path.lexists(Path(self.tree.path, path, POINTER))]
        push = f"push what was committed in {', '.join(own)} of {self.tree.path}, then: " if own else ""
        return (f"submodules are not touched: {push}git -C {shlex.quote(top)} submodule update",)

    def _left_out(self, changed: list[str], by_check: Collection[str]) -> Iterator[str]:
        nested = nested_in(changed)
        if files := [path for path in changed if path in by_check and path not in nested]:
            listed = ", ".join(files[:5]) + (f" and {len(files) - 5} more" if len(files) > 5 else "")
            yield f"what only the check left stays in {self.tree.path}: {listed}"
        for path in nested:
            yield f"the repository {path} in {self.tree.path} is left out; remove its .git to have its files committed"


def _undo(tree: Tree, ref: str, before: str, after: str, top: str | None) -> str:
    if top is not None:
        return shlex.join(("git", "-C", top, "reset", "--keep", before))
    return shlex.join(("git", "-C", tree.repository, "update-ref", ref, before, after))
