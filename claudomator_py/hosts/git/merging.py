"""Merging and discarding the branch of a work tree: all new objects are first created in the object database.

Conflicts are detected there, too (``git merge-tree``), so that a work tree never has one. git runs with our
configuration: hooks and merge drivers of the repository are not used (see ``shadow``).
"""

import shlex
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NoReturn

from claudomator_py.domain.changes import Commit, Discarded, Merged, MergeMethod, MergeOrder, NotMerged
from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.units import counted
from claudomator_py.domain.worktree import HEADS, Tree, TreeBusy, TreeFault, short_ref
from claudomator_py.hosts.git import GitRefused, is_true, standings, uncommitted
from claudomator_py.hosts.git.look import FIND_RENAMES, numbered
from claudomator_py.hosts.git.moving import CHECKOUT_S, BranchMover, IsBusy, Move, checkout_of, refuse_under_way
from claudomator_py.hosts.git.shadow import ShadowRepository, copy_index
from claudomator_py.hosts.git.worktrees import LocalTrees

DISCARDED = "refs/claudomator/discarded/"
"""Prefix of the references that keep discarded work."""
MAX_REBASED = 500
_MERGE_S = 120.0
_SELF = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "claudomator"), ("EMAIL", "claudomator@localhost"))
}
"""Author and committer if the user has not configured any."""
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


class _MergeTree:
    """git in one tree. Methods raise NotMerged, GitRefused, OSError. dry_run: objects are written to a folder that is
    removed."""

    def __init__(self, tree: Tree, shadow: ShadowRepository, dry_run: bool) -> None:
        self.tree = tree
        self._shadow = shadow
        self._dry_run = dry_run
        self._tried: Mapping[str, str] = {}
        if dry_run:
            (objects := shadow.path / "tried").mkdir()
            self._tried = shadow.writing_to(objects)
        self._who: Mapping[str, str] = {}
        try:
            self._git("var", "GIT_COMMITTER_IDENT")
            self._git("var", "GIT_AUTHOR_IDENT")
        except GitRefused:
            self._who = _SELF

    # --- merging ----------------------------------------------------------------------------------------------------

    def merge(self, order: MergeOrder, mover: BranchMover, is_busy: IsBusy, by_check: Collection[str]) -> Merged:
        """Merge its branch. by_check: uncommitted files that are no work of the agent."""
        tree, own = self.tree, self.tree.ref
        ref = self._target(order.into)
        before, begun = self._commit(ref), self._tip()
        self._require_on_branch(begun, before)
        changed = self._changed()
        tip = begun
        if changed and order.commit:
            tip = self._snapshot(order.title)
        elif mine := [path for path in changed if path not in by_check]:
            raise NotMerged(
                f"{_are(len(mine), 'file')} not committed in {tree.path}: {', '.join(mine[:5])}",
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
                self._advance(own, begun, tip)
                self._git("update-ref", ref, after, before)
            return merged
        move = Move(ref, before, after, tree.common_dir, checkout.top, checkout.git_dir)
        with mover.shadow(tree.common_dir) as shadow:
            if order.dry_run:
                mover.check(shadow, move, is_busy, self._tried)
            else:
                self._advance(own, begun, tip)
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
            return self._git("merge-tree", "--write-tree", "--no-messages", ours, theirs, timeout_s=_MERGE_S)
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
        asked = ("merge-tree", "--write-tree", "--no-messages", "--name-only", "-z", ours, theirs)
        try:
            self._git(*asked, timeout_s=_MERGE_S)
        except GitRefused as refused:
            return tuple(dict.fromkeys(filter(None, refused.printed.split("\0")[1:])))
        return ()

    # --- discarding -------------------------------------------------------------------------------------------------

    def keep(self) -> Discarded:
        """Keep the whole content of the tree under a reference."""
        tree = self.tree
        ref = f"{DISCARDED}{tree.name}"
        changed = self._changed()
        if nested := _nested(changed):
            raise NotMerged(f"a repository in {tree.path}/{nested[0]} would be lost", "move it away first")
        if self._is_there and (submodule := self._shadow.submodule(tree.git_dir, tree.path)) is not None:
            # Its own repository lies in the git directory of the tree, and goes with it.
            release = shlex.join(("git", "-C", tree.path, "submodule", "deinit", "--force", "--", submodule))
            raise NotMerged(
                f"what was done in its submodule {submodule} would be lost", f"push it from there, then: {release}"
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

    # --- common -----------------------------------------------------------------------------------------------------

    @property
    def _is_there(self) -> bool:
        return Path(self.tree.path).is_dir()

    def _changed(self) -> list[str]:
        """Return the uncommitted files of the tree."""
        if not self._is_there:
            return []
        return uncommitted(partial(self._git, timeout_s=CHECKOUT_S), "all")

    def _tip(self) -> str:
        """Return the commit of its branch."""
        tree = self.tree
        tip = self._shadow.tip(tree.ref)
        if tip is None:
            remedy = "remove the tree with `claudomator cleanup`"
            if self._is_there:
                command = shlex.join(("git", "-C", tree.path, "switch", "-c", tree.branch))
                remedy = f"make it of what is checked out: {command}"
            raise NotMerged(f"there is no branch {tree.branch} any more", remedy)
        return tip

    def _require_on_branch(self, tip: str, *targets: str) -> None:
        """Raise NotMerged if git is in the middle of something in the tree, or if commits that are checked out there
        are neither on its branch nor in a target: an agent may have made a branch of its own."""
        tree = self.tree
        if not self._is_there:
            return
        refuse_under_way(Path(tree.git_dir), tree.path)
        beside = int(self._git("rev-list", "--count", "HEAD", *(f"^{commit}" for commit in (tip, *targets))))
        if beside:
            self._refuse(f"{_are(beside, 'commit')} {self._where()} in {tree.path}, and not on {tree.branch}", tip)

    def _where(self) -> str:
        """Return what is checked out in the tree, as the end of a clause."""
        here = self._git("rev-parse", "--symbolic-full-name", "HEAD")
        return f"on {short_ref(here)}" if here.startswith(HEADS) else "on no branch"

    def _refuse(self, words: str, tip: str) -> NoReturn:
        """Raise NotMerged for a tree that is not on its branch."""
        tree = self.tree
        command = shlex.join(("git", "-C", tree.path, "switch", "-C", tree.branch))
        remedy = f"put that branch there: {command}"
        if not self._shadow.contains(self._commit("HEAD"), tip):
            remedy = f"merge by hand there, as {tree.branch} has commits that are not checked out"
        raise NotMerged(words, remedy)

    def _snapshot(self, title: str, only: Collection[str] | None = None) -> str:
        """Commit the uncommitted changes in the object database. Return the commit, or that of the branch if there is
        nothing that can be committed. only: see ``Branches.commit``."""
        tip = self._tip()
        self._require_on_branch(tip)
        if (where := self._where()) != f"on {self.tree.branch}":
            self._refuse(f"{self.tree.path} is {where}, and not on {self.tree.branch}", tip)
        files = self._files(tip, only)
        return tip if files == self._tree_of(tip) else self._new(files, [tip], title)

    def commit(self, title: str, left_at: str | None, only: Collection[str] | None) -> Commit | None:
        """Commit the uncommitted changes to its branch. Return None if there are none, unless a daemon that crashed
        after the run has committed them. only: see ``Branches.commit``."""
        changed = self._changed()
        if self._shadow.tip(self.tree.ref) is None and not changed:
            return None
        made = tip = self._tip()
        if changed:
            made = self._snapshot(title, only)
            if made == tip:
                # Committed by a daemon that crashed before it updated the index.
                self._reset_index()
            self._advance(self.tree.ref, tip, made)
        if made == tip and (left_at is None or not self._is_on(left_at, tip, title)):
            return None
        author = self._git("show", "-s", "--no-show-signature", "--format=%an", made)
        return Commit(id=made, subject=title, author=author)

    def _is_on(self, parent: str, commit: str, title: str) -> bool:
        shown = self._git("show", "-s", "--no-show-signature", "--format=%P%n%s", commit)
        return shown == f"{parent}\n{title}"

    def _files(self, tip: str, only: Collection[str] | None = None) -> str:
        """Return a tree of all files in the work tree that are not ignored, without repositories in it: git would
        commit a link to a commit that nobody else has. tip: the commit that the tree is at. only: the changed files to
        take, instead of all."""
        index = self._shadow.path / "index.all"
        copy_index(Path(self.tree.git_dir) / "index", index)
        own = {"GIT_INDEX_FILE": str(index)}
        files = standings(partial(self._git, timeout_s=CHECKOUT_S), "all")
        nested = _nested([path for _, _, path in files])
        taken, left = list[str](), list[str]()
        for staged, unstaged, path in files:
            if only is not None and path not in only:
                if staged.strip(" ?"):
                    left.append(path)
            elif path not in nested and unstaged.strip():
                # What is staged already is as it should be: git knows no path that was removed, and adds none that it
                # is to ignore from now on.
                taken.append(path)
        literal = {"GIT_LITERAL_PATHSPECS": "1", **own}
        # --sparse: an agent may write outside of what a sparse checkout has.
        for paths, command in (left, ("reset", "--quiet", "--no-refresh", tip)), (taken, ("add", "--all", "--sparse")):
            if paths:
                given = (*command, "--pathspec-from-file=-", "--pathspec-file-nul")
                named = "\0".join(paths).encode(errors="surrogateescape")
                self._git(*given, variables=literal, stdin=named, timeout_s=CHECKOUT_S)
        return self._git("write-tree", variables=own)

    def _advance(self, own: str, begun: str, tip: str) -> None:
        """Move the tree's branch and index to its new commit, without touching files."""
        if tip == begun:
            return
        self._git("update-ref", own, tip, begun)
        crashpoint("worktree-committed")
        self._reset_index()

    def _reset_index(self) -> None:
        self._git("reset", "--quiet", "--mixed", "--no-refresh", timeout_s=CHECKOUT_S)

    def _again(self, commit: str, tree: str, parent: str) -> str:
        """Create a commit with the message and author of another one."""
        head, _, message = self._git("cat-file", "commit", commit).partition("\n\n")
        kept = [line for line in head.split("\n") if line.startswith(("author ", "encoding "))]
        committer = self._git("var", "GIT_COMMITTER_IDENT")
        lines = [f"tree {tree}", f"parent {parent}", kept[0], f"committer {committer}", *kept[1:]]
        text = "\n".join(lines) + f"\n\n{message}\n"
        return self._git("hash-object", "-t", "commit", "-w", "--stdin", stdin=text.encode(errors="surrogateescape"))

    def _new(self, tree: str, parents: list[str], message: str, author: list[str] | None = None) -> str:
        given = [word for parent in parents for word in ("-p", parent)]
        names = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE")
        text = message.encode(errors="replace")
        return self._git(
            "commit-tree", tree, *given, stdin=text, variables=dict(zip(names, author or (), strict=False))
        )

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
        return (f"submodules are not touched: git -C {shlex.quote(top)} submodule update",)

    def _left_out(self, changed: list[str], by_check: Collection[str]) -> Iterator[str]:
        nested = _nested(changed)
        if files := [path for path in changed if path in by_check and path not in nested]:
            listed = ", ".join(files[:5]) + (f" and {len(files) - 5} more" if len(files) > 5 else "")
            yield f"what only the check left stays in {self.tree.path}: {listed}"
        for path in nested:
            yield f"the repository {path} in {self.tree.path} is left out; remove its .git to have its files committed"

    def _commit(self, name: str) -> str:
        return self._git("rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}")

    def _tree_of(self, commit: str) -> str:
        return self._git("rev-parse", "--verify", f"{commit}^{{tree}}")

    def _git(
        self, *arguments: str, variables: Mapping[str, str] | None = None, stdin: bytes = b"", timeout_s: float = 30.0
    ) -> str:
        own = {**self._who, **self._tried, **(variables or {})}
        git_dir, work_tree = (self.tree.git_dir, self.tree.path) if self._is_there else (None, None)
        return self._shadow(
            *arguments, git_dir=git_dir, work_tree=work_tree, timeout_s=timeout_s, variables=own, stdin=stdin
        )


def _are(number: int, noun: str) -> str:
    return f"{counted(number, noun)} {'is' if number == 1 else 'are'}"


def _nested(changed: list[str]) -> list[str]:
    """Return the uncommitted paths that are repositories which git does not know."""
    return [path for path in changed if path.endswith("/")]


def _undo(tree: Tree, ref: str, before: str, after: str, top: str | None) -> str:
    if top is not None:
        return shlex.join(("git", "-C", top, "reset", "--keep", before))
    return shlex.join(("git", "-C", tree.repository, "update-ref", ref, before, after))
