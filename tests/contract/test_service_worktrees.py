"""Tasks with work trees: they share no directory, wait for their tree without a run, and keep it over retries."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.domain.units import MINUTE_MS
from claudomator_py.domain.worktree import Tree, TreeBusy, TreeFault, TreeStanding, TreeState, WorktreeRequest
from claudomator_py.store.database import Database
from tests.fakes.trees import FakeTrees
from tests.fakes.world import World
from tests.patience import PATIENCE_S


@pytest.fixture
def trees(tmp_path: Path) -> FakeTrees:
    (tmp_path / "trees").mkdir()
    return FakeTrees(tmp_path / "trees")


@pytest.fixture
def repository(tmp_path: Path) -> str:
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    return str(tmp_path / "shop")


@pytest.fixture
def world(database: Database, trees: FakeTrees) -> Iterator[World]:
    world = World(database, trees=trees)
    yield world
    world.worktrees.close()


def begun(world: World, *names: str) -> None:
    """Tick until these run."""
    event = threading.Event()
    world.worktrees.made = event.set
    for _ in range(int(2 * PATIENCE_S)):
        world.tick()
        if set(names) <= world.running().keys():
            return
        event.wait(0.5)
        event.clear()
    raise AssertionError({name: world.state(name) for name in names})


def ended(world: World, name: str) -> None:
    """Tick until its run is over: not before its tree was looked at."""
    event = threading.Event()
    world.worktrees.made = event.set
    for _ in range(int(2 * PATIENCE_S)):
        if name not in world.running():
            return
        event.wait(0.5)
        event.clear()
        world.tick()
    raise AssertionError(world.state(name))


def test_tasks_in_one_repository_run_side_by_side_and_beside_one_without_a_tree(world: World, repository: str) -> None:
    for name in ("a", "b"):
        world.submit(name, working_dir=repository, isolation="worktree")
    for name in ("c", "d"):
        world.now_ms += 1
        world.submit(name, working_dir=repository)
    begun(world, "a", "b", "c")
    world.tick()
    assert world.state("d") == "QUEUED workdir"
    assert len({world.live(name).dir_key for name in ("a", "b", "c")}) == 3
    assert world.task("a").branch != world.task("b").branch
    assert world.task("c").branch is None


def test_while_its_tree_is_made_a_task_has_no_run_and_others_go_on(
    world: World, trees: FakeTrees, repository: str
) -> None:
    trees.made.clear()
    world.submit("slow", working_dir=repository, isolation="worktree")
    world.submit("other")
    world.tick()
    world.tick()
    assert world.state("slow") == "QUEUED ready"
    assert world.task("slow").runs == 0
    assert list(world.running()) == ["other"]
    assert len(trees.asked) == 1
    trees.made.set()
    begun(world, "slow")


def test_a_tree_that_cannot_be_made_is_told_and_tried_anew_by_a_restart(
    world: World, trees: FakeTrees, repository: str
) -> None:
    trees.fault = TreeFault("no work tree of shop: No space left; make room")
    world.submit("fix", working_dir=repository, isolation="worktree", retry={"max_attempts": 1})
    for _ in range(int(20 * PATIENCE_S)):
        world.tick()
        if world.task("fix").runs:
            break
        threading.Event().wait(0.05)
    assert world.state("fix") == "FAILED setup_failed"
    assert "No space left; make room" in str(world.task("fix").reason_text)
    world.restart("fix")
    begun(world, "fix")


@pytest.mark.both_databases
def test_a_retry_keeps_the_tree_and_a_restart_gets_another(world: World, trees: FakeTrees, repository: str) -> None:
    world.submit("fix", working_dir=repository, isolation="worktree", retry={"max_attempts": 2, "backoff": "1s"})
    begun(world, "fix")
    first = world.live("fix").dir_key
    world.fail("fix", reason="agent_error")
    ended(world, "fix")
    world.tick(10_000)
    begun(world, "fix")
    assert world.live("fix").dir_key == first
    world.succeed("fix")
    ended(world, "fix")
    done = world.task("fix")
    assert done.worktree is not None
    assert (done.worktree.standing, done.worktree.commits) == ("ahead", 2)
    world.restart("fix")
    begun(world, "fix")
    assert world.live("fix").dir_key == f"{first}.2"
    assert world.task("fix").worktree is None, "it is not looked at while it runs"


def test_a_run_ends_once_its_tree_was_looked_at_by_a_later_daemon_if_need_be(
    world: World, trees: FakeTrees, repository: str
) -> None:
    world.submit("fix", working_dir=repository, isolation="worktree")
    begun(world, "fix")
    world.succeed("fix")
    assert world.state("fix") == "RUNNING"
    world.worktrees.close()
    trees.states.clear()
    world.restarted_daemon()
    world.tick()
    ended(world, "fix")
    done = world.task("fix")
    assert done.state == "COMPLETED"
    assert done.worktree is not None
    assert done.worktree.standing == "ahead"


def test_trees_of_which_nothing_is_known_are_looked_at_when_the_daemon_starts(
    world: World, trees: FakeTrees, repository: str
) -> None:
    for name in ("known", "not-known"):
        trees.ensure(WorktreeRequest(name, "b", "t", repository))
    trees.states["known"] = TreeState(TreeStanding.MERGED)
    looked = threading.Event()

    def look(tree: Tree) -> TreeState:
        looked.set()
        return FakeTrees.look(trees, tree)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "look", look)
        world.worktrees.begin()
        assert looked.wait(PATIENCE_S)
        world.worktrees.close()
    assert {name: state.standing for name, state in trees.states.items()} == {"known": "merged", "not-known": "ahead"}


def test_a_folder_that_leads_out_of_its_tree_is_not_made_there(
    world: World, trees: FakeTrees, repository: str, tmp_path: Path
) -> None:
    """Such as by a link that is committed in the repository."""
    (Path(repository) / "api" / "deep").mkdir(parents=True)
    (tmp_path / "outside").mkdir()

    def with_link(order: WorktreeRequest) -> Tree:
        tree = FakeTrees.ensure(trees, order)
        (Path(tree.path) / "api").symlink_to(tmp_path / "outside")
        return tree

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "ensure", with_link)
        world.submit("fix", working_dir=f"{repository}/api/deep", isolation="worktree", retry={"max_attempts": 1})
        event = threading.Event()
        world.worktrees.made = event.set
        world.tick()
        assert event.wait(PATIENCE_S)
        world.tick()
    assert world.state("fix") == "FAILED setup_failed"
    assert "leads out of its work tree" in str(world.task("fix").reason_text)
    assert list((tmp_path / "outside").iterdir()) == []


def test_while_a_tree_is_removed_no_run_gets_it(world: World, repository: str) -> None:
    world.submit("fix", working_dir=repository, isolation="worktree", retry={"max_attempts": 1})
    begun(world, "fix")
    name = Path(world.live("fix").dir_key).name
    world.fail("fix")
    ended(world, "fix")
    order = WorktreeRequest(name, "b", "t", repository)
    with world.worktrees.leaving(name) as free:
        assert free
        assert world.worktrees.tree(order) is None
        assert world.worktrees.tree(order) is None
    world.worktrees.tree(order)
    with world.worktrees.leaving(name) as free:
        assert not free, "it is being made for a run"


def test_what_continues_a_task_works_on_in_its_tree_and_on_its_branch(world: World, repository: str) -> None:
    """Its own ``isolation`` is that of the other, as its folder is."""
    world.submit("fix", working_dir=repository, isolation="worktree", agent={"type": "claude"})
    begun(world, "fix")
    tree = world.live("fix").dir_key
    world.succeed("fix")
    ended(world, "fix")
    world.submit("polish", continues="fix", retry={"max_attempts": 2, "backoff": "1s"})
    begun(world, "polish")
    assert world.live("polish").dir_key == tree
    assert world.task("polish").branch == world.task("fix").branch
    world.fail("polish", reason="agent_error")
    ended(world, "polish")
    world.tick(10_000)
    begun(world, "polish")
    assert world.live("polish").dir_key == tree, "afresh, and still there"
    world.succeed("polish")
    ended(world, "polish")
    world.submit("document", continues="polish")
    begun(world, "document")
    assert world.live("document").dir_key == tree
    assert world.task("document").branch == world.task("fix").branch


@pytest.mark.parametrize("fields", [{}, {"isolation": "worktree"}])
def test_what_continues_a_task_and_names_its_directory_again_stays_in_the_tree(
    world: World, repository: str, fields: dict[str, Any]
) -> None:
    world.submit("fix", working_dir=repository, isolation="worktree", agent={"type": "claude"})
    begun(world, "fix")
    tree = world.live("fix").dir_key
    world.succeed("fix")
    ended(world, "fix")
    world.submit("polish", continues="fix", working_dir=f"{repository}/", **fields)
    begun(world, "polish")
    assert world.live("polish").dir_key == tree
    assert world.live("polish").resumes is not None
    assert world.task("polish").branch == world.task("fix").branch


def test_what_continues_a_task_in_another_repository_has_a_tree_of_that_one(
    world: World, trees: FakeTrees, repository: str, tmp_path: Path
) -> None:
    world.submit("fix", working_dir=repository, isolation="worktree", agent={"type": "claude"})
    begun(world, "fix")
    tree = world.live("fix").dir_key
    world.succeed("fix")
    ended(world, "fix")
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    again = {"max_attempts": 2, "backoff": "1s"}
    world.submit("polish", continues="fix", working_dir=str(other), isolation="worktree", retry=again)
    begun(world, "polish")
    own = world.live("polish").dir_key
    assert own != tree
    assert trees.orders[Path(own).name].folder == str(other)
    assert world.live("polish").resumes is None
    assert world.task("polish").branch != world.task("fix").branch
    world.fail("polish", reason="agent_error")
    ended(world, "polish")
    world.tick(10_000)
    begun(world, "polish")
    assert world.live("polish").dir_key == own


def test_a_tree_that_waits_for_several_is_told_that_it_can_begin_at_one_alone(world: World, repository: str) -> None:
    for name in ("fix", "form"):
        world.submit(name, working_dir=repository, isolation="worktree")
    waits = {"working_dir": repository, "isolation": "worktree", "depends_on": ["fix", "form"]}
    warnings = world.submit("polish", **waits).warnings
    assert any("depends_on" in warning and "names 2 tasks" in warning and "`base`" in warning for warning in warnings)
    for name, fields in (
        ("one", waits | {"depends_on": ["fix"]}),
        ("chosen", waits | {"base": "form"}),
        ("beside", waits | {"isolation": "none"}),
        ("next", {"continues": "fix", "depends_on": ["form"]}),
    ):
        assert not any("depends_on" in warning for warning in world.submit(name, **fields).warnings)


def test_a_tree_is_asked_for_where_the_task_ended_that_it_waited_for(
    world: World, trees: FakeTrees, repository: str
) -> None:
    world.submit("fix", working_dir=repository, isolation="worktree")
    begun(world, "fix")
    first = Path(world.live("fix").dir_key).name
    world.succeed("fix")
    ended(world, "fix")
    for name, fields in (("polish", {}), ("chosen", {"base": "fix"}), ("released", {"base": "release-1"})):
        world.submit(name, working_dir=repository, isolation="worktree", depends_on=["fix"], **fields)
        begun(world, name)
        order = trees.orders[Path(world.live(name).dir_key).name]
        assert (order.after, order.base) == (((), "release-1") if name == "released" else ((first,), None))
        world.succeed(name)
        ended(world, name)


def test_a_task_in_another_tree_begins_afresh_there(world: World, repository: str) -> None:
    world.submit("fix", working_dir=repository, agent={"type": "claude"})
    world.tick()
    world.succeed("fix")
    ended(world, "fix")
    world.submit("polish", continues="fix", working_dir=repository, isolation="worktree")
    begun(world, "polish")
    assert world.service.runs("polish")[-1].resumes is None
    why = " ".join(world.service.why("polish").sentences)
    assert "it belongs to the repository itself, and polish has isolation worktree" in why


def test_a_tree_that_somebody_is_at_is_waited_for_with_pauses_and_keeps_nothing_else(
    world: World, trees: FakeTrees, repository: str
) -> None:
    asked: list[str] = []

    def busy(order: WorktreeRequest) -> Tree:
        asked.append(order.name)
        raise TreeBusy(order.name)

    tried = threading.Event()
    world.worktrees.made = tried.set
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "ensure", busy)
        world.submit("t", working_dir=repository, isolation="worktree")
        world.submit("other")
        world.tick()
        assert tried.wait(PATIENCE_S)
        for _ in range(3):
            world.tick()
        assert list(world.running()) == ["other"]
        assert world.state("t") == "QUEUED fault"
        assert "is in use by another process" in str(world.task("t").reason_text)
        assert len(asked) == 1, "it is asked again and again"
    world.now_ms += MINUTE_MS
    begun(world, "t")
