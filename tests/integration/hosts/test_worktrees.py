"""Work trees on real repositories: what is made, and what is found again."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from claudomator_py.domain import crashpoint
from claudomator_py.domain.worktree import TreeBusy, TreeFault, TreeStanding, WorktreeRequest
from claudomator_py.hosts.git.worktrees import LocalTrees
from tests.integration.hosts.repository import Repository, order, shown, standing


def test_a_tree_is_made_of_the_last_commit_on_a_branch_of_its_own(trees: LocalTrees, repository: Repository) -> None:
    tree = trees.ensure(order(repository.path))
    assert (Path(tree.path) / "readme").read_text() == "hello\n"
    assert repository.git("branch", "--show-current", at=tree.path) == "claudomator/fix-1"
    assert (tree.onto, tree.left_out, tree.submodules) == ("refs/heads/main", False, False)
    assert repository.git("branch", "--show-current") == "main"


def test_the_repository_stays_open_to_whom_it_was_open(repository: Repository, tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        tree = LocalTrees(tmp_path / "trees", repository.environ, umask=0o022).ensure(order(repository.path))
    finally:
        os.umask(old)
    for path in (Path(tree.git_dir), *Path(tree.git_dir).parents[:2]):
        assert path.stat().st_mode & 0o777 == 0o755, path
    assert (Path(tree.path) / "readme").stat().st_mode & 0o777 == 0o644


def test_what_is_not_committed_stays_where_it_is_and_is_said(trees: LocalTrees, repository: Repository) -> None:
    (repository.path / "readme").write_text("mine\n")
    tree = trees.ensure(order(repository.path))
    assert tree.left_out
    assert (Path(tree.path) / "readme").read_text() == "hello\n"
    assert (repository.path / "readme").read_text() == "mine\n"


def test_a_tree_that_is_there_is_found_again_with_all_that_was_done_in_it(
    trees: LocalTrees, repository: Repository
) -> None:
    tree = trees.ensure(order(repository.path))
    (Path(tree.path) / "new").write_text("work")
    assert trees.ensure(order(repository.path)) == tree
    assert (Path(tree.path) / "new").read_text() == "work"


def test_a_process_that_is_just_starting_keeps_nobody_from_a_tree_that_was_in_use(
    trees: LocalTrees, repository: Repository, tmp_path: Path
) -> None:
    """Between its fork and its exec it has a copy of every descriptor, the lock's included."""
    tree = trees.ensure(order(repository.path))
    lock = tmp_path / "state" / "worktrees" / f"{tree.name}.lock"
    for _ in range(3):
        with trees.opened(tree.name):
            copies = [
                os.dup(int(fd.name)) for fd in Path("/proc/self/fd").iterdir() if fd.exists() and fd.samefile(lock)
            ]
            with pytest.raises(TreeBusy), trees.opened(tree.name):
                pytest.fail("it is in use")
        try:
            assert copies
            assert standing(trees, tree) is TreeStanding.UNCHANGED
        finally:
            for fd in copies:
                os.close(fd)


def test_hooks_and_the_environment_of_the_daemon_have_no_part_in_it(
    trees: LocalTrees, repository: Repository, tmp_path: Path
) -> None:
    hook = repository.path / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
    hook.chmod(0o755)
    repository.git("branch", "before")
    LocalTrees(tmp_path / "others", {**repository.environ, "GIT_DIR": "/nowhere"}).ensure(order(repository.path))
    assert not (tmp_path / "hooked").exists()


def test_a_detached_head_a_shallow_clone_and_a_linked_tree_are_fine(
    trees: LocalTrees, repository: Repository, tmp_path: Path
) -> None:
    repository.commit("second", "2")
    repository.git("clone", "-q", "--depth", "1", f"file://{repository.path}", str(tmp_path / "shallow"))
    shallow = trees.ensure(WorktreeRequest("a", "claudomator/a-1", "task", str(tmp_path / "shallow")))
    repository.git("worktree", "add", "-q", "-b", "linked", str(tmp_path / "linked"))
    linked = trees.ensure(WorktreeRequest("b", "claudomator/b-1", "task", str(tmp_path / "linked")))
    repository.git("checkout", "-q", "--detach")
    detached = trees.ensure(WorktreeRequest("c", "claudomator/c-1", "task", str(repository.path)))
    assert [tree.onto for tree in (shallow, linked, detached)] == ["refs/heads/main", "refs/heads/linked", None]
    assert standing(trees, detached) is TreeStanding.UNCHANGED
    repository.commit("third", "3", at=detached.path)
    assert standing(trees, detached) is TreeStanding.AHEAD


def test_submodules_are_said_not_to_be_checked_out(trees: LocalTrees, repository: Repository, tmp_path: Path) -> None:
    part = Repository(tmp_path / "part", tmp_path / "home")
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(part.path), "part")
    repository.git("commit", "-q", "-m", "part")
    tree = trees.ensure(order(repository.path))
    assert tree.submodules
    assert not (Path(tree.path) / "part" / "readme").exists()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        # Git says why it looks no further: above is nothing, or another file system.
        ("nothing", r"(directories\): \.git|FILESYSTEM not set\)\.); choose a folder in a git repository"),
        ("missing", "choose an existing folder"),
        ("empty", "it has no commit to begin at: make one, or write `isolation: none`"),
        ("bare", "it is a bare repository: choose a work tree or a clone of it"),
        ("in the way", "rename the branch that is in the way"),
        ("locked ref", "remove that lock file"),
    ],
)
def test_a_refusal_holds_gits_words_and_what_to_do(
    trees: LocalTrees, repository: Repository, tmp_path: Path, kind: str, words: str
) -> None:
    folder = tmp_path / "folder"
    match kind:
        case "nothing":
            folder.mkdir()
        case "empty":
            Repository(folder, tmp_path / "home", commit=False)
        case "bare":
            repository.git("clone", "-q", "--bare", str(repository.path), str(folder))
        case "in the way":
            folder = repository.path
            repository.git("branch", "claudomator")
        case "locked ref":
            folder = repository.path
            lock = folder / ".git" / "refs" / "heads" / "claudomator" / "fix-1.lock"
            lock.parent.mkdir()
            lock.touch()
    with pytest.raises(TreeFault, match="no work tree of") as caught:
        trees.ensure(order(folder))
    assert re.search(words, str(caught.value))
    assert str(tmp_path / "state") not in str(caught.value), "what is there no longer when it is read"
    # The reason comes first, not what git was doing: overviews show one line.
    assert str(caught.value).startswith(f"no work tree of {folder}: fatal: ")
    assert trees.all() == []
    assert repository.trees == 1


def test_without_git_the_remedy_is_to_install_it(tmp_path: Path, repository: Repository) -> None:
    trees = LocalTrees(tmp_path / "trees", {"PATH": str(tmp_path)})
    with pytest.raises(TreeFault, match="install git"):
        trees.ensure(order(repository.path))


def crash_at(point: str, action: Callable[[], object]) -> None:
    """Let a child pass through action, and end at the point as by kill -9."""
    pid = os.fork()
    if pid == 0:
        crashpoint.install(lambda name: os.kill(os.getpid(), 9) if name == point else None)
        try:
            action()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -9, "the crash point was not passed"


@pytest.mark.parametrize("point", ["worktree-intended", "worktree-added", "worktree-made"])
def test_after_a_crash_there_is_one_tree_and_it_is_whole(trees: LocalTrees, repository: Repository, point: str) -> None:
    crash_at(point, lambda: trees.ensure(order(repository.path)))
    assert len(trees.all()) == 1, "it is known, whatever comes next"
    tree = trees.ensure(order(repository.path))
    assert (Path(tree.path) / "readme").exists()
    assert (repository.trees, repository.branches) == (2, ["claudomator/fix-1", "main"])
    assert standing(trees, tree) is TreeStanding.UNCHANGED


@pytest.mark.parametrize("point", ["worktree-intended", "worktree-added"])
def test_what_a_crash_left_unfinished_can_be_removed_without_a_trace(
    trees: LocalTrees, repository: Repository, point: str
) -> None:
    crash_at(point, lambda: trees.ensure(order(repository.path)))
    (tree,) = trees.all()
    trees.remove(tree)
    assert (repository.trees, repository.branches, trees.all()) == (1, ["main"], [])
    assert not Path(tree.path).exists()


def test_a_removal_that_a_crash_broke_off_is_finished_by_the_next(trees: LocalTrees, repository: Repository) -> None:
    tree = trees.ensure(order(repository.path))
    crash_at("worktree-removed", lambda: trees.remove(tree))
    assert standing(trees, tree) is TreeStanding.GONE
    trees.remove(tree)
    assert (repository.trees, repository.branches, trees.all()) == (1, ["main"], [])


def test_while_somebody_is_at_a_tree_nobody_else_is(trees: LocalTrees, repository: Repository, tmp_path: Path) -> None:
    tree = trees.ensure(order(repository.path))
    lock = f"""
import fcntl, sys
with open({tree.path + ".lock"!r}) as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    print("locked", flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(TreeBusy):
            trees.ensure(order(repository.path))
        with pytest.raises(TreeBusy):
            trees.remove(tree)
        other.communicate()
    trees.remove(tree)


@pytest.mark.parametrize("is_linked", [False, True])
def test_a_tree_is_as_sparse_as_the_one_it_is_made_from(
    trees: LocalTrees, repository: Repository, tmp_path: Path, is_linked: bool
) -> None:
    repository.commit("a/file", "a")
    repository.commit("b/file", "b")
    source = repository.path
    if is_linked:
        source = tmp_path / "linked"
        repository.git("worktree", "add", "-q", "-b", "linked", str(source))
    repository.git("sparse-checkout", "set", "a", at=source)
    repository.git("config", "--worktree", "user.email", 'a "b" \\ c', at=source)
    tree = trees.ensure(order(source))
    assert (Path(tree.path) / "a").is_dir()
    assert not (Path(tree.path) / "b").exists()
    assert standing(trees, tree) is TreeStanding.UNCHANGED
    assert shown(repository, tree.path) == ""
    assert repository.git("sparse-checkout", "list", at=tree.path) == "a"
    assert repository.git("config", "--worktree", "user.email", at=tree.path) == 'a "b" \\ c'
    # An agent writes outside of what is checked out, and finds and commits it as in any other tree.
    (Path(tree.path) / "b").mkdir()
    (Path(tree.path) / "b/file").write_text("changed")
    assert trees.look(tree).changed == 1
    assert shown(repository, tree.path) == "M b/file"


def test_a_tree_is_whole_if_only_another_one_is_sparse(
    trees: LocalTrees, repository: Repository, tmp_path: Path
) -> None:
    repository.commit("a/file", "a")
    repository.git("worktree", "add", "-q", "-b", "linked", str(tmp_path / "linked"))
    repository.git("sparse-checkout", "set", "--no-cone", "/readme")
    tree = trees.ensure(order(tmp_path / "linked"))
    assert (Path(tree.path) / "a/file").exists()
    (Path(tree.path) / "a/file").write_text("changed")
    assert trees.look(tree).changed == 1
