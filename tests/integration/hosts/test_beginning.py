"""Where a work tree begins, with real git: where its task says, or where the tasks ended that it waited for."""

from pathlib import Path

import pytest

from claudomator_py.domain.worktree import Tree, TreeFault, TreeStanding, WorktreeRequest
from claudomator_py.hosts.git.worktrees import LocalTrees
from tests.integration.hosts.repository import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "shop", tmp_path / "home")


@pytest.fixture
def trees(tmp_path: Path, repository: Repository) -> LocalTrees:
    return LocalTrees(tmp_path / "trees", repository.environ)


def made(trees: LocalTrees, repository: Repository, name: str, *after: str, base: str | None = None) -> Tree:
    order = WorktreeRequest(f"shop-{name}", f"claudomator/{name}", name, str(repository.path), base, after)
    return trees.ensure(order)


def worked(trees: LocalTrees, repository: Repository, name: str, *after: str) -> Tree:
    """A tree with a commit of its own."""
    tree = made(trees, repository, name, *after)
    repository.commit(name, name, at=tree.path)
    return tree


def files(tree: Tree) -> set[str]:
    return {path.name for path in Path(tree.path).iterdir()} - {".git"}


def test_it_begins_where_the_one_ended_that_it_waited_for(trees: LocalTrees, repository: Repository) -> None:
    first = worked(trees, repository, "first")
    (Path(first.path) / "draft").write_text("later")
    trees.look(first)
    second = made(trees, repository, "second", "shop-first")
    assert files(second) == {"readme", "first"}
    assert (second.begun_at, second.left_behind, second.onto) == ("claudomator/first", 1, "refs/heads/main")
    assert trees.find("shop-second") == second, "as its record has it"
    assert trees.look(second).standing is not TreeStanding.AHEAD
    repository.commit("more", "2", at=second.path)
    assert (trees.look(second).standing, trees.look(second).commits) == (TreeStanding.AHEAD, 1)


@pytest.mark.parametrize("kind", ["own branch", "detached", "other work"])
def test_it_begins_where_the_one_ended_that_has_made_a_branch_of_its_own(
    trees: LocalTrees, repository: Repository, kind: str
) -> None:
    first = worked(trees, repository, "first")
    if kind == "other work":  # that lacks its own
        repository.git("checkout", "-q", "-b", "mine", "main", at=first.path)
    else:
        repository.git("checkout", "-q", *(["-b", "mine"] if kind == "own branch" else ["--detach"]), at=first.path)
    repository.commit("more", "2", at=first.path)
    trees.look(first)
    second = made(trees, repository, "second", "shop-first")
    assert files(second) == {"readme", "first"} | (set() if kind == "other work" else {"more"})
    assert second.begun_at == ("mine" if kind == "own branch" else "claudomator/first")


def test_of_several_it_begins_at_the_one_that_has_the_others(trees: LocalTrees, repository: Repository) -> None:
    worked(trees, repository, "first")
    worked(trees, repository, "second", "shop-first")
    for after in (("shop-first", "shop-second"), ("shop-second", "shop-first")):
        third = made(trees, repository, f"third-{after[0]}", *after)
        assert (third.begun_at, files(third)) == ("claudomator/second", {"readme", "first", "second"})


def test_what_was_not_committed_is_known_where_nothing_was(trees: LocalTrees, repository: Repository) -> None:
    first, second = (made(trees, repository, name) for name in ("first", "second"))
    for left in (first, second):
        (Path(left.path) / "draft").write_text("later")
        trees.look(left)
    third = made(trees, repository, "third", "shop-first", "shop-second")
    assert (third.begun_at, third.passed_over, third.left_behind) == (None, (), 2)


def test_it_is_known_that_nobody_could_examine_what_was_left(trees: LocalTrees, repository: Repository) -> None:
    first = worked(trees, repository, "first")
    (Path(first.path) / "draft").write_text("later")
    (Path(first.path) / ".git").unlink()
    trees.look(first)
    second = made(trees, repository, "second", "shop-first")
    assert (second.begun_at, second.unexamined) == ("claudomator/first", ("claudomator/first",))
    assert trees.find("shop-second") == second, "as its record has it"


def test_where_none_has_the_others_it_begins_at_none_and_knows_it(trees: LocalTrees, repository: Repository) -> None:
    worked(trees, repository, "first")
    worked(trees, repository, "second")
    third = made(trees, repository, "third", "shop-first", "shop-second")
    assert files(third) == {"readme"}
    assert third.begun_at is None
    assert third.passed_over == ("claudomator/first", "claudomator/second")
    assert trees.find("shop-third") == third


def test_what_is_merged_unchanged_gone_or_elsewhere_is_no_place_to_begin_at(
    trees: LocalTrees, repository: Repository, tmp_path: Path
) -> None:
    merged = worked(trees, repository, "merged")
    repository.git("merge", "-q", "--ff-only", merged.branch)
    repository.commit("since", "then")
    made(trees, repository, "idle")
    gone = worked(trees, repository, "gone")
    repository.git("worktree", "remove", gone.path)
    repository.git("branch", "-q", "-D", gone.branch)
    worked(trees, Repository(tmp_path / "other", tmp_path / "home"), "elsewhere")
    names = ("shop-merged", "shop-idle", "shop-gone", "shop-elsewhere", "shop-never", "shop")
    tree = made(trees, repository, "next", *names)
    assert files(tree) == {"readme", "merged", "since"}
    assert (tree.begun_at, tree.passed_over) == (None, ())


@pytest.mark.parametrize("base", ["release-1.2", "v1", "commit"])
def test_it_begins_at_a_branch_a_tag_or_a_commit(trees: LocalTrees, repository: Repository, base: str) -> None:
    repository.git("branch", "release-1.2")
    repository.git("tag", "v1")
    base = repository.git("rev-parse", "HEAD") if base == "commit" else base
    repository.commit("later", "on main")
    tree = made(trees, repository, "fix", base=base)
    assert files(tree) == {"readme"}
    assert tree.onto == ("refs/heads/release-1.2" if base == "release-1.2" else "refs/heads/main")


@pytest.mark.parametrize("base", ["nothing", "main:readme", "--all", "HEAD^{tree}"])
def test_a_base_that_is_none_is_refused(trees: LocalTrees, repository: Repository, base: str) -> None:
    with pytest.raises(TreeFault, match="has no branch, tag or commit"):
        made(trees, repository, "fix", base=base)
    assert repository.branches == ["main"]
    assert trees.all() == []
