"""git in one work tree, and committing what the tree holds: in the object database, without touching its files."""

import shlex
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import NoReturn

from claudomator_py.domain.changes import Commit, NotMerged
from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.units import are
from claudomator_py.domain.worktree import HEADS, Tree, short_ref
from claudomator_py.hosts.git import CHECKOUT_S, GitRefused, standings, uncommitted
from claudomator_py.hosts.git.moving import refuse_locked, refuse_under_way
from claudomator_py.hosts.git.shadow import ShadowRepository, copy_index
from claudomator_py.hosts.shim.workdir import OWN_IDENTITY


class OpenTree:
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
            self._who = OWN_IDENTITY

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
            self._advance(tip, made)
        if made == tip and (left_at is None or not self._is_on(left_at, tip, title)):
            return None
        author = self._git("show", "-s", "--no-show-signature", "--format=%an", made)
        return Commit(id=made, subject=title, author=author)

    def _snapshot(self, title: str, only: Collection[str] | None = None) -> str:
        """Commit the uncommitted changes in the object database. Return the commit, or that of the branch if there is
        nothing that can be committed. only: see ``Branches.commit``."""
        tip = self._tip()
        self._require_on_branch(tip)
        if self._is_there:
            # Else the branch would have the commit, and the index would not.
            refuse_locked(Path(self.tree.git_dir), self.tree.path)
        if (where := self._where()) != f"on {self.tree.branch}":
            self._refuse(f"{self.tree.path} is {where}, and not on {self.tree.branch}", tip)
        files = self._files(tip, only)
        return tip if files == self._tree_of(tip) else self._new(files, [tip], title)

    def _files(self, tip: str, only: Collection[str] | None = None) -> str:
        """Return a tree of all files in the work tree that are not ignored, without repositories in it: git would
        commit a link to a commit that nobody else has. tip: the commit that the tree is at. only: the changed files to
        take, instead of all."""
        index = self._shadow.path / "index.all"
        copy_index(Path(self.tree.git_dir) / "index", index)
        own = {"GIT_INDEX_FILE": str(index)}
        files = standings(partial(self._git, timeout_s=CHECKOUT_S), "all")
        nested = nested_in([path for _, _, path in files])
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

    def _advance(self, begun: str, tip: str) -> None:
        """Move the tree's branch and index to its new commit, without touching files."""
        if tip == begun:
            return
        self._git("update-ref", self.tree.ref, tip, begun)
        crashpoint("worktree-committed")
        self._reset_index()

    def _reset_index(self) -> None:
        self._git("reset", "--quiet", "--mixed", "--no-refresh", timeout_s=CHECKOUT_S)

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
            self._refuse(f"{are(beside, 'commit')} {self._where()} in {tree.path}, and not on {tree.branch}", tip)

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

    def _is_on(self, parent: str, commit: str, title: str) -> bool:
        shown = self._git("show", "-s", "--no-show-signature", "--format=%P%n%s", commit)
        return shown == f"{parent}\n{title}"

    def _new(self, tree: str, parents: list[str], message: str, author: list[str] | None = None) -> str:
        given = [word for parent in parents for word in ("-p", parent)]
        names = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE")
        text = message.encode(errors="replace")
        return self._git(
            "commit-tree", tree, *given, stdin=text, variables=dict(zip(names, author or (), strict=False))
        )

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


def nested_in(changed: list[str]) -> list[str]:
    """Return the uncommitted paths that are repositories which git does not know."""
    return [path for path in changed if path.endswith("/")]
