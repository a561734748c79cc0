"""Committing what runs leave in work trees, in real repositories: what becomes part of a commit, and what does not."""

from dataclasses import replace
from pathlib import Path

import pytest

from claudomator_py.domain.changes import NotMerged
from claudomator_py.domain.worktree import Tree, TreeStanding
from claudomator_py.hosts.git.merging import LocalBranches
from claudomator_py.hosts.git.worktrees import LocalTrees
from tests.integration.hosts.repository import Repository, nobody, order, ordered, shown


def test_what_is_not_committed_is_committed_on_the_branch_when_asked(
    branches: LocalBranches, repository: Repository, tree: Tree
) -> None:
    (Path(tree.path) / "readme").write_text("more\n")
    (Path(tree.path) / ".gitignore").write_text("junk\n")
    (Path(tree.path) / "junk").write_text("j\n")
    merged = branches.merge(ordered(tree, commit=True), nobody)
    assert merged.commits == 1
    assert repository.git("log", "-1", "--format=%s", tree.branch) == "fix the login"
    assert shown(repository, tree.path) == ""
    assert (repository.path / "readme").read_text() == "more\n"
    assert not (repository.path / "junk").exists()


def test_what_a_check_has_staged_is_not_committed_with_the_work(
    branches: LocalBranches, repository: Repository, tree: Tree
) -> None:
    (Path(tree.path) / "work").write_text("w\n")
    repository.git("add", "work", at=tree.path)
    (Path(tree.path) / "work").write_text("more\n")
    (Path(tree.path) / "junk").write_text("j\n")
    repository.git("mv", "readme", "docs", at=tree.path)
    repository.git("add", "junk", at=tree.path)
    assert branches.commit(tree.name, "fix", only={"work"}) is not None
    assert repository.git("ls-tree", "-r", "--name-only", tree.branch).split() == ["readme", "work"]
    assert repository.git("show", f"{tree.branch}:work") == "more"
    assert shown(repository, tree.path).split("\n") == ["D readme", "?? docs", "?? junk"]


@pytest.mark.parametrize("only", [None, {"docs", "old", "readme"}])
def test_what_git_has_moved_or_removed_is_committed(
    branches: LocalBranches, repository: Repository, tree: Tree, only: set[str] | None
) -> None:
    repository.commit("old", "o\n", at=tree.path)
    repository.git("mv", "readme", "docs", at=tree.path)
    repository.git("rm", "-q", "old", at=tree.path)
    assert branches.commit(tree.name, "fix", only=only) is not None
    assert repository.git("ls-tree", "-r", "--name-only", tree.branch) == "docs"
    assert shown(repository, tree.path) == ""


def test_what_git_has_moved_or_removed_is_discarded_whole(
    branches: LocalBranches, repository: Repository, tree: Tree
) -> None:
    repository.git("mv", "readme", "docs", at=tree.path)
    kept = branches.discard(tree.name)
    assert repository.git("ls-tree", "-r", "--name-only", str(kept.kept)) == "docs"


def test_a_file_that_is_no_longer_tracked_is_committed_as_that(
    branches: LocalBranches, repository: Repository, tree: Tree
) -> None:
    repository.git("rm", "-q", "--cached", "readme", at=tree.path)
    (Path(tree.path) / ".gitignore").write_text("readme\n")
    assert branches.commit(tree.name, "fix", only={".gitignore", "readme"}) is not None
    assert repository.git("ls-tree", "-r", "--name-only", tree.branch).split() == [".gitignore"]
    assert (Path(tree.path) / "readme").exists()


def test_what_lies_outside_of_a_sparse_checkout_is_committed_and_kept_as_well(
    trees: LocalTrees, branches: LocalBranches, repository: Repository
) -> None:
    repository.commit("a/one", "1\n")
    repository.commit("b/one", "1\n")
    repository.git("sparse-checkout", "set", "a")
    merged = trees.ensure(order(repository.path))
    discarded = trees.ensure(replace(order(repository.path, "shop-other-2"), branch="claudomator/other-2"))
    for tree in (merged, discarded):
        for folder in ("a", "b"):
            (Path(tree.path) / folder).mkdir(exist_ok=True)
            (Path(tree.path) / folder / "two").write_text("2\n")
    assert branches.merge(ordered(merged, commit=True), nobody).files == 2
    assert repository.git("ls-tree", "-r", "--name-only", "main", "b").split() == ["b/one", "b/two"]
    assert (shown(repository), (repository.path / "b").exists()) == ("", False)
    kept = branches.discard(discarded.name)
    assert repository.git("ls-tree", "-r", "--name-only", str(kept.kept), "b").split() == ["b/one", "b/two"]


def test_a_merge_with_conflicts_in_the_tree_is_not_committed(
    branches: LocalBranches, repository: Repository, tree: Tree
) -> None:
    repository.commit("readme", "theirs\n", at=tree.path)
    repository.commit("readme", "mine\n")
    assert repository.attempt("merge", "-q", "main", at=tree.path).returncode == 1
    with pytest.raises(NotMerged, match="a merge or rebase is under way"):
        branches.merge(ordered(tree, commit=True), nobody)
    with pytest.raises(NotMerged, match="a merge or rebase is under way"):
        branches.commit(tree.name, "left")
    assert "<<<<" not in repository.git("show", f"{tree.branch}:readme")
    assert branches.discard(tree.name).kept is not None


def test_nothing_is_committed_while_the_index_is_locked_and_the_branch_stays(
    branches: LocalBranches, repository: Repository, tree: Tree
) -> None:
    before = repository.git("rev-parse", tree.branch)
    (Path(tree.path) / "work").write_text("w\n")
    lock = Path(tree.git_dir) / "index.lock"
    lock.touch()
    with pytest.raises(NotMerged, match="another git is at work in"):
        branches.commit(tree.name, "fix")
    with pytest.raises(NotMerged, match="another git is at work in"):
        branches.merge(ordered(tree, commit=True), nobody)
    assert repository.git("rev-parse", tree.branch) == before

    lock.unlink()
    assert branches.commit(tree.name, "fix") is not None
    assert shown(repository, tree.path) == ""


def test_a_repository_in_the_tree_is_not_committed_as_a_link_that_leads_nowhere(
    branches: LocalBranches, trees: LocalTrees, repository: Repository, tree: Tree
) -> None:
    Repository(Path(tree.path) / "a" / "in *ner", Path(repository.environ["HOME"]))
    assert branches.commit(tree.name, "left") is None
    (Path(tree.path) / "a" / "new").write_text("n\n")
    merged = branches.merge(ordered(tree, commit=True), nobody)
    assert repository.git("ls-tree", "-r", "--name-only", "main") == "a/new\nreadme"
    assert any("a/in *ner/" in note for note in merged.notes)
    assert trees.look(tree).standing is TreeStanding.DIRTY
