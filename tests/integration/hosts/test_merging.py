"""Merging and leaving the branches of work trees, in real repositories: what comes of it, and what keeps it."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from claudomator_py.domain.changes import NotMerged
from claudomator_py.domain.worktree import Tree
from claudomator_py.hosts.git.merging import LocalBranches
from claudomator_py.hosts.git.worktrees import LocalTrees
from tests.integration.hosts.repository import Repository, nobody, order, ordered, shown
from tests.warm import bare


def undone(repository: Repository, command: str | None) -> None:
    assert command is not None
    subprocess.run(shlex.split(command), env=repository.environ, check=True, capture_output=True)


def test_commits_get_to_the_branch_and_its_files_follow(
    branches: LocalBranches, repository: Repository, tree: Tree
) -> None:
    repository.commit("a/new", "x\n", at=tree.path)
    before = repository.git("rev-parse", "main")
    merged = branches.merge(ordered(tree), nobody)
    assert (merged.commits, merged.files, merged.added, merged.into) == (1, 1, 1, "main")
    assert repository.git("rev-parse", "main") == merged.after == repository.git("rev-parse", tree.branch)
    assert (repository.path / "a" / "new").read_text() == "x\n"
    assert shown(repository) == ""
    undone(repository, merged.undo)
    assert repository.git("rev-parse", "main") == before
    assert not (repository.path / "a" / "new").exists()
    assert branches.merge(ordered(tree), nobody).after == merged.after
    assert branches.merge(ordered(tree), nobody).commits == 0


def test_files_that_only_have_other_times_than_in_the_index_are_not_in_the_way(
    branches: LocalBranches, repository: Repository, tree: Tree
) -> None:
    repository.commit("readme", "x\n", at=tree.path)
    for path in (repository.path / "readme", Path(tree.path) / "readme"):
        os.utime(path, (1, 1))  # as in a repository that was copied, or restored from a backup
    assert branches.merge(ordered(tree, dry_run=True), nobody).files == 1
    assert branches.merge(ordered(tree), nobody).files == 1
    assert (repository.path / "readme").read_text() == "x\n"
    assert shown(repository) == ""


@pytest.mark.parametrize(("method", "parents", "count"), [("merge", 2, 4), ("squash", 1, 3), ("rebase", 1, 4)])
def test_each_method_where_both_branches_have_commits(
    branches: LocalBranches, repository: Repository, tree: Tree, method: str, parents: int, count: int
) -> None:
    repository.commit("one", "1\n", at=tree.path)
    repository.git("commit", "-q", "--allow-empty", "--author", "Zoë <z@x>", "-m", "two\n\nBody", at=tree.path)
    repository.commit("two", "2\n", at=tree.path)
    repository.commit("mine", "m\n")
    count += 1
    merged = branches.merge(ordered(tree, method), nobody)
    assert len(repository.git("log", "-1", "--format=%P", "main").split()) == parents
    assert {path.name for path in repository.path.iterdir()} == {".git", "readme", "mine", "one", "two"}
    assert shown(repository) == ""
    assert merged.commits == 3
    if method == "squash":
        assert "fix the login" in repository.git("log", "-1", "--format=%B", "main")


def test_a_dry_run_tells_all_of_it_and_writes_nothing(
    branches: LocalBranches, repository: Repository, tree: Tree
) -> None:
    repository.commit("new", "x\n", at=tree.path)
    repository.commit("mine", "m\n")

    def everything() -> list[tuple[str, int]]:
        return sorted((str(path), path.lstat().st_mtime_ns) for path in repository.path.rglob("*") if path.is_file())

    before = everything()
    for method in ("merge", "squash", "rebase"):
        merged = branches.merge(ordered(tree, method, dry_run=True), nobody)
        assert (merged.after, merged.undo, merged.files) == (None, None, 1)
    assert branches.discard(tree.name, dry_run=True).kept is None
    assert everything() == before


@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
@pytest.mark.parametrize("kind", ["content", "rename/delete", "modify/delete", "add/add", "file/folder"])
def test_conflicts_are_named_beforehand_and_nothing_is_touched(
    branches: LocalBranches, repository: Repository, tree: Tree, method: str, kind: str
) -> None:
    theirs, mine = Path(tree.path), repository.path
    if kind == "content":
        repository.commit("readme", "theirs\n", at=theirs)
        repository.commit("readme", "mine\n")
    elif kind == "rename/delete":
        repository.git("mv", "readme", "docs", at=theirs)
        repository.git("commit", "-q", "-m", "rename", at=theirs)
        repository.git("rm", "-q", "readme")
        repository.git("commit", "-q", "-m", "delete")
    elif kind == "modify/delete":
        repository.commit("readme", "theirs\n", at=theirs)
        repository.git("rm", "-q", "readme")
        repository.git("commit", "-q", "-m", "delete")
    elif kind == "add/add":
        repository.commit("ä b", "theirs\n", at=theirs)
        repository.commit("ä b", "mine\n")
    else:
        repository.commit("x", "theirs\n", at=theirs)
        repository.commit("x/y", "mine\n")
    before = (repository.git("rev-parse", "main", tree.branch), sorted(mine.iterdir()))
    for dry_run in (True, False):
        with pytest.raises(NotMerged, match="would conflict") as refused:
            branches.merge(ordered(tree, method, dry_run=dry_run), nobody)
        name = {"add/add": "ä b", "rename/delete": "docs", "file/folder": "x"}.get(kind, "readme")
        assert any(conflict.startswith(name) for conflict in refused.value.conflicts)
    assert (repository.git("rev-parse", "main", tree.branch), sorted(mine.iterdir())) == before
    assert shown(repository) == ""


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("changed", "not committed: readme"),
        ("staged", "not committed: other"),
        ("untracked", "in the way"),
        ("locked", "another git is at work"),
        ("merging", "under way"),
        ("busy", "task build runs"),
        ("uncommitted", "1 file is not committed"),
        ("filter", "content filter zip"),
    ],
)
def test_nothing_is_done_where_somebody_is_at_work(
    branches: LocalBranches, repository: Repository, tree: Tree, case: str, words: str
) -> None:
    repository.commit("new", "x\n", at=tree.path)
    git = repository.path / ".git"
    if case == "changed":
        (repository.path / "readme").write_text("mine\n")
    elif case == "staged":
        (repository.path / "other").write_text("mine\n")
        repository.git("add", "other")
    elif case == "untracked":
        (repository.path / "new").write_text("mine\n")
    elif case == "locked":
        (git / "index.lock").write_text("")
    elif case == "merging":
        (git / "MERGE_HEAD").write_text("")
    elif case == "uncommitted":
        (Path(tree.path) / "rest").write_text("r\n")
    elif case == "filter":
        repository.git("config", "filter.zip.smudge", "gunzip")
    before = (repository.git("rev-parse", "main"), shown(repository))
    for dry_run in (True, False):
        with pytest.raises(NotMerged, match=words):
            branches.merge(ordered(tree, dry_run=dry_run), lambda _: "task build runs" if case == "busy" else None)
    assert (repository.git("rev-parse", "main"), shown(repository)) == before
    assert (git / "index.lock").exists() == (case == "locked")


@pytest.mark.parametrize("kind", ["branch", "detached", "deleted", "parted"])
@pytest.mark.parametrize("commit", [False, True])
def test_commits_beside_the_branch_are_not_passed_over_as_merged(
    branches: LocalBranches, repository: Repository, tree: Tree, kind: str, commit: bool
) -> None:
    if kind == "parted":
        repository.commit("first", "1\n", at=tree.path)
        repository.git("checkout", "-q", "-b", "mine", "main", at=tree.path)
    else:
        repository.git("checkout", "-q", *(["-b", "mine"] if kind == "branch" else ["--detach"]), at=tree.path)
    repository.commit("new", "x\n", at=tree.path)
    if kind == "deleted":
        repository.git("branch", "-q", "-D", tree.branch, at=tree.path)
    if commit:
        (Path(tree.path) / "rest").write_text("r\n")
    with pytest.raises(NotMerged) as refused:
        branches.merge(ordered(tree, commit=commit), nobody)
    says = {"branch": "1 commit is on mine", "detached": "1 commit is on no branch", "deleted": "there is no branch"}
    assert says.get(kind, "1 commit is on mine") in str(refused.value)
    if kind == "parted":
        assert "by hand" in refused.value.remedy
        return
    if kind == "deleted":
        with pytest.raises(NotMerged, match="there is no branch"):
            branches.discard(tree.name)
    undone(repository, refused.value.remedy.partition(": ")[2])
    assert branches.merge(ordered(tree, commit=commit), nobody).commits == 1 + commit
    assert (repository.path / "new").exists()


def test_what_is_checked_out_and_merged_already_is_nothing_beside_the_branch(
    branches: LocalBranches, repository: Repository, tree: Tree
) -> None:
    repository.commit("new", "x\n", at=tree.path)
    repository.commit("mine", "m\n")
    repository.git("checkout", "-q", "--detach", "main", at=tree.path)  # to have a look at it
    assert branches.merge(ordered(tree), nobody).commits == 1


def test_a_linked_tree_that_has_the_target_follows_and_one_that_has_not_is_left(
    branches: LocalBranches, repository: Repository, tree: Tree, tmp_path: Path
) -> None:
    repository.git("worktree", "add", "-q", "-b", "next", str(tmp_path / "linked"))
    repository.git("branch", "other")
    repository.commit("new", "x\n", at=tree.path)
    merged = branches.merge(ordered(tree, into="next"), nobody)
    assert merged.place == str(tmp_path / "linked")
    assert (tmp_path / "linked" / "new").read_text() == "x\n"
    assert shown(repository, tmp_path / "linked") == ""
    other = branches.merge(ordered(tree, into="other"), nobody)
    assert other.place is None
    assert repository.git("rev-parse", "other") == repository.git("rev-parse", tree.branch)
    undone(repository, other.undo)
    assert repository.git("rev-parse", "other") == repository.git("rev-parse", "main")
    assert not (repository.path / "new").exists()


def test_a_detached_head_needs_a_name_and_a_shallow_clone_none(
    trees: LocalTrees, branches: LocalBranches, repository: Repository, tmp_path: Path
) -> None:
    repository.commit("more", "m\n")
    repository.git("checkout", "-q", "--detach")
    tree = trees.ensure(order(repository.path))
    repository.commit("new", "x\n", at=tree.path)
    with pytest.raises(NotMerged, match="no branch was checked out"):
        branches.merge(ordered(tree), nobody)
    assert branches.merge(ordered(tree, into="main"), nobody).place is None
    clone = tmp_path / "clone"
    repository.git("clone", "-q", "--depth=1", f"file://{repository.path}", str(clone), "-b", "main")
    shallow = trees.ensure(order(clone, "clone-fix-2"))
    repository.commit("x", "x\n", at=shallow.path)
    repository.commit("y", "y\n", at=clone)
    merged = branches.merge(ordered(shallow, "squash"), nobody)
    assert (clone / "x").exists()
    assert merged.commits == 1


def test_odd_names_of_files_branches_and_folders(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    repository = Repository(tmp_path / "a 'b' \udcff", tmp_path / "home")
    repository.git("checkout", "-q", "-b", "fe'at;x")
    trees = LocalTrees(tmp_path / "trees", repository.environ)
    tree = trees.ensure(order(repository.path))
    for name in ("new\nline", "\udcfe", "-rf", ":(glob)*", 'q"uote'):
        repository.commit(name, "x\n", at=tree.path)
    (Path(tree.path) / "rest\udcfd").write_text("r")
    merged = LocalBranches(trees).merge(ordered(tree, commit=True), nobody)
    assert merged.files == 6
    assert (repository.path / "rest\udcfd").exists()
    assert shown(repository) == ""
    undone(repository, merged.undo)
    assert not (repository.path / "-rf").exists()


def test_submodules_are_merged_by_their_commit_and_not_entered(
    branches: LocalBranches, repository: Repository, trees: LocalTrees, tmp_path: Path
) -> None:
    library = Repository(tmp_path / "library", tmp_path / "home")
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library.path), "lib")
    repository.git("commit", "-q", "-m", "lib")
    library.commit("more", "m\n")
    newer = library.git("rev-parse", "HEAD")
    tree = trees.ensure(order(repository.path))
    repository.git("update-index", "--cacheinfo", f"160000,{newer},lib", at=tree.path)
    repository.git("commit", "-q", "-m", "newer", at=tree.path)
    repository.commit("mine", "m\n")
    merged = branches.merge(ordered(tree), nobody)
    assert merged.notes == (f"submodules are not touched: git -C {repository.path} submodule update",)
    assert repository.git("rev-parse", "main:lib") == newer
    assert (repository.path / "lib" / "readme").exists()


def test_a_tree_with_a_submodule_checked_out_is_discarded_only_without_it(
    branches: LocalBranches, repository: Repository, trees: LocalTrees, tmp_path: Path
) -> None:
    allowed = ("-c", "protocol.file.allow=always", "submodule", "--quiet")
    library = Repository(tmp_path / "library", tmp_path / "home")
    repository.git(*allowed, "add", str(library.path), "lib")
    repository.git("commit", "-q", "-m", "lib")
    tree = trees.ensure(order(repository.path))
    repository.git(*allowed, "update", "--init", at=tree.path)
    repository.commit("done", "d\n", at=f"{tree.path}/lib")
    lost = "done in its submodule lib would be lost"
    with pytest.raises(NotMerged, match=lost):
        branches.discard(tree.name, dry_run=True)
    with pytest.raises(NotMerged, match=lost) as caught:
        branches.discard(tree.name)
    assert (Path(tree.path) / "lib" / "done").exists()
    repository.git("commit", "-q", "-a", "-m", "lib", at=tree.path)
    (note,) = branches.merge(ordered(tree), nobody).notes
    assert f"push what was committed in lib of {tree.path}" in note
    subprocess.run(shlex.split(caught.value.remedy.partition(": ")[2]), env=repository.environ, check=True)
    assert branches.discard(tree.name).kept is not None


def test_no_hook_driver_or_monitor_of_the_repository_is_run(
    branches: LocalBranches, repository: Repository, tree: Tree, tmp_path: Path
) -> None:
    text = tmp_path / "told"
    for name in ("post-merge", "pre-commit", "commit-msg", "reference-transaction", "post-checkout", "post-rewrite"):
        hook = repository.path / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\necho {name} >> {text}\n")
        hook.chmod(0o755)
    repository.commit(".gitattributes", "readme merge=mine\n", at=tree.path)
    repository.git("config", "merge.mine.driver", f"touch {text}")
    repository.commit("readme", "theirs\n", at=tree.path)
    repository.commit("other", "mine\n")
    repository.git("config", "core.fsmonitor", f"touch {text}")
    text.unlink(missing_ok=True)
    branches.merge(ordered(tree), nobody)
    branches.discard(tree.name)
    assert not text.exists()


@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
@pytest.mark.parametrize("gone", [False, True])
def test_the_attributes_of_the_target_say_how_lines_merge(
    trees: LocalTrees, branches: LocalBranches, repository: Repository, method: str, gone: bool
) -> None:
    repository.commit("notes/.gitattributes", "log merge=union\n")
    repository.commit("notes/log", "begun\n")
    tree = trees.ensure(order(repository.path))
    repository.commit("notes/log", "begun\ntheirs\n", at=tree.path)
    repository.commit("notes/log", "begun\nmine\n")
    if gone:
        shutil.rmtree(tree.path)
    branches.merge(ordered(tree, method), nobody)
    assert (repository.path / "notes" / "log").read_text() == "begun\nmine\ntheirs\n"


def test_an_agent_does_not_say_how_its_lines_merge(branches: LocalBranches, repository: Repository, tree: Tree) -> None:
    repository.commit(".gitattributes", "* merge=union\n", at=tree.path)
    repository.commit("readme", "theirs\n", at=tree.path)
    repository.commit("readme", "mine\n")
    with pytest.raises(NotMerged, match="would conflict with main in readme"):
        branches.merge(ordered(tree), nobody)


def test_what_is_left_is_removed_and_comes_back_whole(
    trees: LocalTrees, branches: LocalBranches, repository: Repository, tree: Tree
) -> None:
    repository.commit("new", "x\n", at=tree.path)
    (Path(tree.path) / "rest\udcfe").write_text("r\n")
    left = branches.discard(tree.name)
    assert (left.commits, left.changed) == (1, 1)
    assert not Path(tree.path).exists()
    assert repository.branches == ["main"]
    assert trees.find(tree.name) is None
    undone(repository, left.undo)
    assert "rest" in repository.git("ls-tree", "-r", "--name-only", tree.branch)
    with pytest.raises(NotMerged, match="not there any more"):
        branches.discard(tree.name)


def test_what_would_be_lost_is_not_left(branches: LocalBranches, repository: Repository, tree: Tree) -> None:
    Repository(Path(tree.path) / "inner", Path(repository.environ["HOME"]))
    with pytest.raises(NotMerged, match="a repository in"):
        branches.discard(tree.name)
    assert Path(tree.path, "inner", "readme").exists()


_KILLED = """
import os, signal, sys
from pathlib import Path
from claudomator_py.domain import crashpoint
from claudomator_py.domain.changes import MergeMethod, MergeOrder
from claudomator_py.hosts.git.merging import LocalBranches
from claudomator_py.hosts.git.worktrees import LocalTrees
root, name, point = sys.argv[1:]
crashpoint.install(lambda passed: os.kill(os.getpid(), signal.SIGKILL) if passed == point else None)
branches = LocalBranches(LocalTrees(Path(root), os.environ))
if point.startswith("merge"):
    branches.merge(MergeOrder(name, None, MergeMethod.MERGE, "t", commit=True), lambda _: None)
else:
    branches.discard(name)
"""


def killed(repository: Repository, trees: LocalTrees, tree: Tree, point: str) -> None:
    command = [sys.executable, "-c", _KILLED, str(trees.path("")), tree.name, point]
    process = bare.of_daemons().read(command, given=b"", environ=repository.environ)
    _, errors = process.communicate()
    assert process.returncode == -9, errors.decode()


@pytest.mark.parametrize("point", ["noted", "locked", "checked", "moved", "files", "indexed"])
@pytest.mark.parametrize("partly", [False, True])
def test_a_kill_leaves_it_as_before_or_as_after(
    trees: LocalTrees, repository: Repository, tree: Tree, point: str, partly: bool
) -> None:
    repository.commit("mine", "m\n") if partly else None
    repository.git("rm", "-q", "readme", at=tree.path)
    repository.commit("readme/deep", "x\n" * 1000, at=tree.path)
    repository.commit("new", "x\n", at=tree.path)
    (Path(tree.path) / "rest").write_text("r\n")
    before = repository.git("rev-parse", "main")
    killed(repository, trees, tree, f"merge-{point}")
    if partly and point == "moved":
        (repository.path / "readme").unlink()
        (repository.path / "readme").mkdir()
        (repository.path / "readme" / "deep").write_text("x\n" * 10)
    LocalBranches(LocalTrees(trees.path(""), repository.environ)).recover()
    is_before = point in ("noted", "locked", "checked")
    assert (repository.git("rev-parse", "main") == before) == is_before
    assert shown(repository) == ""
    assert (repository.path / "readme").is_dir() != is_before
    assert not (repository.path / ".git" / "index.lock").exists()
    repository.commit("after", "a\n")
    LocalBranches(trees).merge(ordered(tree, commit=True), nobody)
    assert (repository.path / "rest").exists()
    assert (repository.path / "readme" / "deep").stat().st_size == 2000


def test_what_somebody_wrote_after_a_kill_is_not_overwritten(
    trees: LocalTrees, repository: Repository, tree: Tree
) -> None:
    repository.commit("readme", "theirs\n", at=tree.path)
    killed(repository, trees, tree, "merge-moved")
    (repository.path / "readme").write_text("mine\n")
    LocalBranches(trees).recover()
    assert (repository.path / "readme").read_text() == "mine\n"


def test_a_kill_while_it_is_left_loses_nothing(trees: LocalTrees, repository: Repository, tree: Tree) -> None:
    (Path(tree.path) / "rest").write_text("r\n")
    killed(repository, trees, tree, "discard-kept")
    assert (Path(tree.path) / "rest").exists()
    LocalBranches(trees).discard(tree.name)
    assert not Path(tree.path).exists()
