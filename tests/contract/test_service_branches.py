"""Merging and leaving by the service: whose tasks, in which states, and what is told of it. Repositories are real."""

from pathlib import Path
from typing import Any

import pytest

from claudomator_py.domain.errors import Conflict, NotFound
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.hosts.git.merging import LocalBranches
from claudomator_py.hosts.git.worktrees import LocalTrees
from claudomator_py.resources.branches import DiscardRequest, MergeRequest
from claudomator_py.resources.branches.service import BranchService
from claudomator_py.store.database import Database
from tests.contract.test_service_worktrees import begun, ended
from tests.fakes.world import World
from tests.integration.hosts.repository import Repository

NOW = MergeRequest()
TRIED = MergeRequest(dry_run=True)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    (tmp_path / "home").mkdir()
    return Repository(tmp_path / "shop", tmp_path / "home")


@pytest.fixture
def world(database: Database, tmp_path: Path, repository: Repository) -> World:
    trees = LocalTrees(tmp_path / "trees", repository.environ)
    return World(database, trees=trees, branches=LocalBranches(trees))


def asked(world: World, by: Principal = OPERATOR) -> BranchService:
    return world.access.as_(by)[BranchService]


def done(world: World, repository: Repository, name: str, file: str = "new", **fields: Any) -> None:
    """A task that has committed one file on its branch, and ended. With a check, this passed."""
    world.submit(name, working_dir=str(repository.path), isolation="worktree", **fields)
    begun(world, name)
    run = world.live(name)
    repository.commit(file, f"{name}\n", at=run.dir_key)
    if "check" in fields:
        world.succeed(name)
        world.tick()
        world.host.end(run.id, 0, step=1)
        world.tick()
    else:
        world.succeed(name)
    ended(world, name)


def test_what_is_merged_is_told_and_by_whom(world: World, repository: Repository) -> None:
    done(world, repository, "fix")
    assert asked(world).merge("fix", TRIED).after is None
    merged = asked(world).merge("fix", NOW)
    assert (merged.commits, merged.files, merged.into) == (1, 1, "main")
    assert (repository.path / "new").exists()
    assert asked(world).merge("fix", NOW).commits == 0
    (event,) = [event for event in world.service.why("fix").events if event.kind == "merged"]
    assert (event.by, event.data["after"]) == (OPERATOR.id, merged.after)


def test_branches_are_listed_with_what_is_not_merged(world: World, repository: Repository) -> None:
    done(world, repository, "fix")
    (view,) = asked(world).all()
    assert (view.task_name, view.onto, view.standing, view.commits) == ("fix", "main", "ahead", 1)
    asked(world).merge("fix", NOW)
    assert [view.standing for view in asked(world).all()] == ["merged"]
    assert asked(world, Principal("p", Role.READ, "elsewhere")).all() == []


def test_what_a_check_proved_is_ready_and_what_is_not_says_why(world: World, repository: Repository) -> None:
    done(world, repository, "proved", "a", check=["true"])
    done(world, repository, "unchecked", "b")
    done(world, repository, "left", "c", check=["true"])
    view = next(view for view in asked(world).all() if view.task_name == "left")
    (Path(view.path) / "draft").touch()
    world.trees.look(next(tree for tree in world.trees.all() if tree.path == view.path))
    done(world, repository, "again", "d", check=["true"])
    world.restart("again")
    begun(world, "again")
    world.fail("again", "agent_error")
    ended(world, "again")
    unready = [(view.task_name, view.unready) for view in asked(world).all()]
    assert sorted(unready, key=str) == [
        ("again", "not succeeded"),
        ("again", "restarted since"),
        ("left", "1 file not committed"),
        ("proved", None),
        ("unchecked", "no check passed"),
    ]
    asked(world).merge("proved", NOW)
    assert next(view.unready for view in asked(world).all() if view.task_name == "proved") == "merged"


def test_of_a_state_folder_that_was_moved_trees_are_refused_with_the_way_to_their_commits(
    database: Database, world: World, repository: Repository, tmp_path: Path
) -> None:
    done(world, repository, "fix", check=["true"])
    before = asked(world).all()[0].path
    (tmp_path / "trees").rename(tmp_path / "moved")
    trees = LocalTrees(tmp_path / "moved", repository.environ)
    moved = World(database, trees=trees, branches=LocalBranches(trees))
    (view,) = asked(moved).all()
    assert (view.task_name, view.unready) == ("fix", "the state folder was moved since")
    with pytest.raises(Conflict, match=f"made at {before}, and the state folder was moved since") as refused:
        asked(moved).merge("fix", NOW)
    assert refused.value.remedy.endswith(f"git -C {repository.path} merge {view.branch}")


def test_a_branch_is_ready_by_the_last_run_in_its_tree_whichever_task_it_was_of(
    world: World, repository: Repository
) -> None:
    done(world, repository, "fix", "a", check=["true"], agent={"type": "claude"})
    world.now_ms += 1
    world.submit("polish", continues="fix")
    begun(world, "polish")
    world.succeed("polish")
    ended(world, "polish")
    assert [view.unready for view in asked(world).all()] == ["no check passed"]


def test_after_a_restart_only_the_branch_of_the_last_run_is_the_one_to_merge(
    world: World, repository: Repository
) -> None:
    done(world, repository, "fix", "first")
    world.restart("fix")
    begun(world, "fix")
    repository.commit("second", "fix\n", at=world.live("fix").dir_key)
    world.succeed("fix")
    ended(world, "fix")
    views = asked(world).all()
    assert [(view.branch.endswith(".2"), view.is_current) for view in views] == [(False, False), (True, True)]
    assert asked(world).merge("fix", NOW).branch == views[1].branch
    assert (repository.path / "second").exists()
    assert not (repository.path / "first").exists()


def test_what_is_left_is_told(world: World, repository: Repository) -> None:
    done(world, repository, "fix")
    assert asked(world).discard("fix", DiscardRequest(dry_run=True)).kept is None
    left = asked(world).discard("fix", DiscardRequest())
    assert left.kept is not None
    assert [event.kind for event in world.service.why("fix").events][-1] == "discarded"
    for again in (asked(world).discard, asked(world).merge):
        with pytest.raises(Conflict, match="no branch of its own, or no longer"):
            again("fix", DiscardRequest() if again == asked(world).discard else NOW)  # type: ignore[arg-type]


def test_not_before_its_end_and_not_for_those_who_have_none(world: World, repository: Repository) -> None:
    world.submit("fix", working_dir=str(repository.path), isolation="worktree")
    begun(world, "fix")
    with pytest.raises(Conflict, match="RUNNING"):
        asked(world).merge("fix", NOW)
    with pytest.raises(Conflict, match="Task fix runs"):
        asked(world).merge("fix", TRIED)
    world.submit("plain", working_dir=str(repository.path))
    begun(world, "plain")
    world.succeed("plain")
    world.tick()
    with pytest.raises(Conflict, match="no branch of its own"):
        asked(world).merge("plain", NOW)


def test_not_while_a_run_works_in_the_target(world: World, repository: Repository) -> None:
    done(world, repository, "fix")
    world.submit("build", working_dir=str(repository.path / "."))
    begun(world, "build")
    with pytest.raises(Conflict, match="Task build runs"):
        asked(world).merge("fix", NOW)
    repository.git("branch", "other")
    assert asked(world).merge("fix", MergeRequest(into="other")).place is None


def test_conflicts_are_named_and_the_task_of_another_organisation_is_not_there(
    world: World, repository: Repository
) -> None:
    done(world, repository, "one", "same")
    done(world, repository, "two", "same")
    asked(world).merge("one", NOW)
    with pytest.raises(Conflict, match=r"^The branch claudomator/two.* would conflict with main in same") as refused:
        asked(world).merge("two", NOW)
    assert f"git -C {repository.path} merge claudomator/two" in str(refused.value.remedy)
    stranger = Principal("p", role=Role.OPERATE, organisation="elsewhere")
    with pytest.raises(NotFound):
        asked(world, stranger).merge("two", NOW)
