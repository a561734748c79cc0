"""A git repository of a test, a work tree that is asked for in it, and the merge of that."""

import os
import subprocess
from pathlib import Path

from claudomator_py.domain.changes import MergeMethod, MergeOrder
from claudomator_py.domain.worktree import Tree, TreeStanding, WorktreeRequest
from claudomator_py.hosts.git.worktrees import LocalTrees


class Repository:
    """A repository with one commit on ``main``."""

    def __init__(self, path: Path, home: Path, *, commit: bool = True) -> None:
        self.path = path
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C"}
        path.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        if commit:
            self.commit("readme", "hello\n")

    def git(self, *words: str, at: Path | str | None = None) -> str:
        done = self.attempt(*words, at=at)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def attempt(self, *words: str, at: Path | str | None = None) -> subprocess.CompletedProcess[str]:
        command = ["git", "-C", str(at or self.path), "-c", "user.name=n", "-c", "user.email=n@example.org", *words]
        return subprocess.run(command, env=self.environ, capture_output=True, text=True, check=False)

    def commit(self, name: str, text: str, at: Path | str | None = None) -> None:
        file = Path(at or self.path) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        self.git("add", "--all", at=at)
        self.git("commit", "-q", "-m", name, at=at)

    @property
    def branches(self) -> list[str]:
        return self.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split()

    @property
    def trees(self) -> int:
        return self.git("worktree", "list", "--porcelain").count("worktree ")


def order(folder: Path, name: str = "shop-fix-1") -> WorktreeRequest:
    return WorktreeRequest(name, "claudomator/fix-1", "task", str(folder))


def ordered(tree: Tree, method: str = "merge", into: str | None = None, **more: bool) -> MergeOrder:
    return MergeOrder(tree.name, into, MergeMethod(method), "fix the login", **more)


def shown(repository: Repository, at: Path | str | None = None) -> str:
    return repository.git("status", "--porcelain", at=at)


def nobody(place: str) -> None:
    """Say that nobody works there."""


def standing(trees: LocalTrees, tree: Tree) -> TreeStanding:
    return trees.look(tree).standing
