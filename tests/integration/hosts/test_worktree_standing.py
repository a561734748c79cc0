"""How a work tree stands, and what is never removed."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.domain.worktree import Tree, TreeFault, TreeStanding
from claudomator_py.hosts.git.worktrees import LocalTrees
from tests.integration.hosts.repository import Repository, order, standing


def kept(trees: LocalTrees, tree: Tree, why: TreeStanding) -> None:
    assert standing(trees, tree) is why
    with pytest.raises(TreeFault):
        trees.remove(tree)
    assert Path(tree.path).is_dir()
    assert [other.name for other in trees.all()] == [tree.name]


def test_an_unchanged_tree_is_removed_with_its_branch(trees: LocalTrees, repository: Repository) -> None:
    tree = trees.ensure(order(repository.path))
    trees.remove(tree)
    assert (repository.trees, repository.branches, trees.all()) == (1, ["main"], [])
    assert list(Path(tree.path).parent.iterdir()) == []


def test_a_tree_with_folders_that_nobody_may_write_to_is_removed(repository: Repository, tmp_path: Path) -> None:
    """As in the module cache of Go. git deletes what it can, forgets the tree, and fails."""
    environ = dict(repository.environ)
    if os.geteuid() == 0:  # to whom permissions do not apply
        (command := tmp_path / "bin/git").parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec setpriv --bounding-set=-all -- {shutil.which("git")} "$@"\n')
        command.chmod(0o755)
        environ["PATH"] = f"{command.parent}:{environ['PATH']}"
    trees = LocalTrees(tmp_path / "trees", environ)
    repository.commit(".gitignore", "cache\n")
    tree = trees.ensure(order(repository.path))
    (module := Path(tree.path) / "cache/module").mkdir(parents=True)
    (module / "file").write_text("of a dependency")
    module.chmod(0o555)
    trees.remove(tree)
    assert (repository.trees, repository.branches, trees.all()) == (1, ["main"], [])
    assert not Path(tree.path).exists()


def test_a_folder_into_which_git_cannot_look_keeps_a_tree(
    trees: LocalTrees, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = trees.ensure(order(repository.path))
    (closed := Path(tree.path) / "closed/folder").mkdir(parents=True)
    scandir = os.scandir

    def closed_to_us(path: str | int) -> Any:  # for root, there is no such folder
        if path == str(closed):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed_to_us)
    for keep in (None, lambda *_: None):
        with pytest.raises(TreeFault, match=f"^{closed} cannot be read"):
            trees.remove(tree, keep)
    assert (closed.is_dir(), repository.trees, standing(trees, tree)) == (True, 2, TreeStanding.UNCHANGED)


def test_changes_and_new_files_keep_a_tree(trees: LocalTrees, repository: Repository) -> None:
    tree = trees.ensure(order(repository.path))
    (Path(tree.path) / "new").write_text("untracked")
    kept(trees, tree, TreeStanding.DIRTY)
    (Path(tree.path) / "new").unlink()
    (Path(tree.path) / "readme").write_text("changed")
    kept(trees, tree, TreeStanding.DIRTY)


def test_commits_keep_a_tree_until_they_are_merged(trees: LocalTrees, repository: Repository) -> None:
    tree = trees.ensure(order(repository.path))
    repository.commit("work", "done", at=tree.path)
    assert trees.look(tree).commits == 1
    kept(trees, tree, TreeStanding.AHEAD)
    repository.git("merge", "-q", "--no-ff", "-m", "merge", "claudomator/fix-1")
    assert standing(trees, tree) is TreeStanding.MERGED
    trees.remove(tree)
    assert repository.branches == ["main"]
    assert (repository.path / "work").read_text() == "done"


def test_commits_in_the_upstream_are_merged(trees: LocalTrees, repository: Repository, tmp_path: Path) -> None:
    repository.git("clone", "-q", str(repository.path), str(tmp_path / "clone"))
    tree = trees.ensure(order(tmp_path / "clone"))
    repository.commit("work", "done", at=tree.path)
    repository.git("push", "-q", "origin", "claudomator/fix-1:refs/heads/pushed", at=tree.path)
    kept(trees, tree, TreeStanding.AHEAD)
    repository.git("merge", "-q", "pushed")
    repository.git("fetch", "-q", at=tmp_path / "clone")
    assert standing(trees, tree) is TreeStanding.MERGED


def takes_over(repository: Repository, how: str) -> None:
    """Have main take over what the task's branch has, by other commits."""
    branch = "claudomator/fix-1"
    match how:
        case "squash":
            repository.git("merge", "-q", "--squash", branch)
            repository.git("commit", "-q", "-m", "squashed")
        case "pick" | "pick and go on":
            repository.git("cherry-pick", f"main..{branch}")
            if how == "pick and go on":
                repository.commit("work", "changed since\n")
        case "half":
            repository.git("cherry-pick", f"{branch}~1")
        case "revert":
            takes_over(repository, "squash")
            repository.git("revert", "--no-edit", "HEAD")
        case "other":
            repository.commit("work", "something else\n")


@pytest.mark.parametrize(
    ("how", "is_merged"),
    [
        ("squash", True),
        ("pick", True),
        ("pick and go on", True),
        ("half", False),
        ("revert", False),
        ("other", False),
    ],
)
def test_a_branch_that_was_squashed_or_rebased_onto_its_target_is_merged(
    trees: LocalTrees, repository: Repository, how: str, is_merged: bool
) -> None:
    tree = trees.ensure(order(repository.path))
    repository.commit("work", "done\n", at=tree.path)
    repository.commit("more", "2\n", at=tree.path)
    repository.commit("meanwhile", "main goes on\n")
    kept(trees, tree, TreeStanding.AHEAD)
    takes_over(repository, how)
    before = repository.git("count-objects")
    assert standing(trees, tree) is (TreeStanding.MERGED if is_merged else TreeStanding.AHEAD)
    assert repository.git("count-objects") == before, "a look writes nothing to the repository"
    if is_merged:
        trees.remove(tree)
        assert repository.branches == ["main"]


def test_commits_that_come_to_nothing_keep_a_tree(trees: LocalTrees, repository: Repository) -> None:
    tree = trees.ensure(order(repository.path))
    repository.commit("tried", "1\n", at=tree.path)
    repository.git("revert", "--no-edit", "HEAD", at=tree.path)
    repository.commit("meanwhile", "main goes on\n")
    kept(trees, tree, TreeStanding.AHEAD)


def test_a_commit_beside_the_branch_keeps_a_tree(trees: LocalTrees, repository: Repository) -> None:
    tree = trees.ensure(order(repository.path))
    repository.git("checkout", "-q", "--detach", at=tree.path)
    repository.commit("work", "done", at=tree.path)
    kept(trees, tree, TreeStanding.AHEAD)


def test_a_lock_keeps_a_tree_and_says_why(trees: LocalTrees, repository: Repository) -> None:
    tree = trees.ensure(order(repository.path))
    repository.git("worktree", "lock", "--reason", "on my stick", tree.path)
    assert trees.look(tree).words == "on my stick"
    kept(trees, tree, TreeStanding.LOCKED)


def test_words_that_an_agent_wrote_are_kept_short_clean_and_fit_to_be_shown(
    repository: Repository, tmp_path: Path
) -> None:
    root, environ = tmp_path / "trees", repository.environ
    trees = LocalTrees(root, environ, lambda: 7, clean=lambda words: words.replace("hunter2", "***"))
    tree = trees.ensure(order(repository.path))
    (Path(tree.git_dir) / "locked").write_bytes(b"\xff with hunter2 " + b"x" * 100_000)
    state = trees.look(tree)
    assert (state.standing, state.seen_ms) == (TreeStanding.LOCKED, 7)
    assert "with ***" in state.words
    assert len(state.words.encode()) <= 2_000
    assert trees.seen(tree.name) == state


def test_a_folder_that_is_no_work_tree_any_more_is_left_alone(trees: LocalTrees, repository: Repository) -> None:
    tree = trees.ensure(order(repository.path))
    (Path(tree.path) / ".git").unlink()
    kept(trees, tree, TreeStanding.UNKNOWN)
    with pytest.raises(TreeFault, match="move it away"):
        trees.ensure(order(repository.path))
    assert (Path(tree.path) / "readme").exists()


def test_without_its_folder_a_tree_comes_back_from_its_branch(trees: LocalTrees, repository: Repository) -> None:
    tree = trees.ensure(order(repository.path))
    repository.commit("work", "done", at=tree.path)
    repository.git("worktree", "remove", tree.path)
    assert standing(trees, tree) is TreeStanding.AHEAD
    with pytest.raises(TreeFault):
        trees.remove(tree)
    assert "claudomator/fix-1" in repository.branches
    trees.ensure(order(repository.path))
    assert (Path(tree.path) / "work").read_text() == "done"


@pytest.mark.parametrize("moved", [False, True])
def test_a_branch_that_is_checked_out_elsewhere_stays_that_of_its_tree(
    trees: LocalTrees, repository: Repository, tmp_path: Path, moved: bool
) -> None:
    tree = trees.ensure(order(repository.path))
    repository.commit("work", "done", at=tree.path)
    elsewhere = tmp_path / "elsewhere" if moved else repository.path
    if moved:
        repository.git("worktree", "move", tree.path, str(elsewhere))
    else:
        repository.git("worktree", "remove", tree.path)
        repository.git("checkout", "-q", tree.branch)
    for _ in range(2):
        with pytest.raises(TreeFault, match=rf"{elsewhere}(/\.git)?'; check out another branch there, then restart"):
            trees.ensure(order(repository.path))
        assert standing(trees, tree) is TreeStanding.AHEAD
    repository.git("checkout", "-q", "--detach", at=elsewhere)
    assert trees.ensure(order(repository.path)).branch == tree.branch
    assert (Path(tree.path) / "work").read_text() == "done"


def test_without_its_repository_nothing_is_removed(trees: LocalTrees, repository: Repository, tmp_path: Path) -> None:
    tree = trees.ensure(order(repository.path))
    repository.path.rename(tmp_path / "moved")
    assert standing(trees, tree) is TreeStanding.UNKNOWN
    with pytest.raises(TreeFault):
        trees.remove(tree)
    assert Path(tree.path).is_dir()
    with pytest.raises(TreeFault, match=r"its repository .*shop is not there any more.*; move it back$"):
        trees.ensure(order(repository.path))
    (tmp_path / "moved").rename(repository.path)
    assert trees.ensure(order(repository.path)) == tree


def test_the_trees_of_others_are_not_forgotten(trees: LocalTrees, repository: Repository, tmp_path: Path) -> None:
    """Such as one on a disk that is not there at the moment."""
    repository.git("worktree", "add", "-q", "-b", "mine", str(tmp_path / "stick"))
    (tmp_path / "stick").rename(tmp_path / "drawer")
    tree = trees.ensure(order(repository.path))
    trees.remove(tree)
    assert repository.trees == 2


def test_who_works_in_a_tree_is_seen(trees: LocalTrees, repository: Repository) -> None:
    tree = trees.ensure(order(repository.path))
    assert trees.users(tree) == []
    (Path(tree.path) / "deep").mkdir()
    with subprocess.Popen(["cat"], cwd=Path(tree.path) / "deep", stdin=subprocess.PIPE) as process:
        assert trees.users(tree) == [process.pid]
        process.communicate()


def test_the_size_is_that_of_its_files(trees: LocalTrees, repository: Repository) -> None:
    tree = trees.ensure(order(repository.path))
    before = trees.size(tree)
    (Path(tree.path) / "big").write_bytes(b"x" * 1_000_000)
    assert trees.size(tree) - before >= 1_000_000
