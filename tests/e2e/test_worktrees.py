"""Tasks on branches of their own in one repository: side by side, over retries, restarts, crashes and a cleanup."""

import os
import subprocess
from pathlib import Path

import pytest

from claudomator_py.core.task import TaskSpec
from claudomator_py.core.taskfile import parse_task
from claudomator_py.core.views import RestartRequest, TaskView
from tests.e2e.harness import Daemon, Site

pytestmark = pytest.mark.timeout(120)

COMMIT = "git -c user.name=n -c user.email=n@example.org commit -q -m work"


def git(folder: Path | str, *words: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=n@example.org", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]})
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def shop(site: Site) -> Path:
    """A repository with a commit in it, and a change that nobody has committed."""
    path = site.root / "shop"
    (path / "api").mkdir(parents=True)
    git(path, "init", "-q", "-b", "main")
    (path / "api" / "readme").write_text("hello\n")
    git(path, "add", "--all")
    git(path, "commit", "-q", "-m", "first")
    (path / "notes").write_text("not committed")
    return path


def spec(folder: Path, name: str, does: str, **more: object) -> TaskSpec:
    fields = {"name": name, "working_dir": str(folder), "isolation": "worktree", "instructions": f"do: {does}", **more}
    parsed = parse_task(fields)
    assert isinstance(parsed, TaskSpec), parsed
    return parsed


def done(site: Site, daemon: Daemon, *specs: TaskSpec) -> list[TaskView]:
    """The tasks after their end, by name."""
    for one in specs:
        daemon.client.submit(one)
    return sorted(site.drain(daemon).values(), key=lambda view: view.name)


def branches(shop: Path) -> list[str]:
    return git(shop, "for-each-ref", "--format=%(refname:short)", "refs/heads/claudomator").split()


def trees(site: Site, shop: Path) -> list[str]:
    """The folders of all trees but the repository's own; git and the state folder agree on them."""
    lines = git(shop, "worktree", "list", "--porcelain").splitlines()
    listed = [line.removeprefix("worktree ") for line in lines if line.startswith("worktree ")]
    folder = site.state / "worktrees"
    there = sorted(str(path) for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    assert sorted(listed[1:]) == there
    return there


def test_four_tasks_work_in_one_repository_at_once_each_on_its_branch(site: Site, shop: Path) -> None:
    meet = site.root / "meet"
    meet.mkdir()
    meeting = f"touch {meet}/$CLAUDOMATOR_RUN; while [ $(ls {meet} | wc -l) -lt 4 ]; do sleep 0.02; done"
    does = f"{meeting}; pwd > where; ls .. > around; git add . && {COMMIT}"
    daemon = site.start().ready()
    parts = [spec(shop / "api", f"part-{number}", does, check=["test -f where"]) for number in range(4)]
    tasks = done(site, daemon, *parts)
    assert {view.state for view in tasks} == {"COMPLETED"}, [view.reason_text for view in tasks]
    assert sorted(str(view.branch) for view in tasks) == branches(shop)
    for view in tasks:
        (tree,) = [tree for tree in trees(site, shop) if view.id[:8] in tree]
        assert git(shop, "show", f"{view.branch}:api/where") == f"{tree}/api"
        assert git(shop, "show", f"{view.branch}:api/around") == "api"
        why = daemon.client.why(view.id).sentences
        assert any(str(view.branch) in sentence for sentence in why)
        assert any("had uncommitted changes then: they are not in that tree" in sentence for sentence in why)
    assert git(shop, "status", "--porcelain") == "?? notes"
    assert git(shop, "rev-list", "--count", "main") == "1"


def test_a_retry_keeps_the_tree_and_a_restart_gets_a_new_one(site: Site, shop: Path) -> None:
    does = "echo $CLAUDOMATOR_ATTEMPT >> tries; [ $CLAUDOMATOR_ATTEMPT -ge 2 ] || exit 3"
    daemon = site.start().ready()
    fix = spec(shop / "api", "fix", does, retry={"max_attempts": 2, "backoff": "10ms"})
    (first,) = done(site, daemon, fix)
    assert (first.state, first.attempts) == ("COMPLETED", 2)
    (tree,) = trees(site, shop)
    assert Path(tree, "api", "tries").read_text() == "1\n2\n"
    daemon.client.restart(first.id)
    (second,) = done(site, daemon)
    assert second.branch == f"{first.branch}.2"
    assert trees(site, shop) == [tree, f"{tree}.2"]
    assert Path(f"{tree}.2", "api", "tries").read_text() == "1\n2\n"
    assert branches(shop) == [first.branch, second.branch]


def test_a_conversation_goes_on_in_the_tree_that_it_knows(site: Site, shop: Path) -> None:
    daemon = site.start().ready()
    (first,) = done(site, daemon, spec(shop / "api", "talk", "x", agent={"type": "simulated"}))
    (tree,) = trees(site, shop)
    Path(tree, "left").touch()
    daemon.client.restart(first.id, RestartRequest(resume=True))
    (second,) = done(site, daemon)
    assert (second.generation, second.branch) == (2, first.branch)
    assert trees(site, shop) == [tree]
    assert [run.resumes is not None for run in daemon.client.runs(first.id)] == [False, True]


def test_a_folder_without_a_repository_fails_with_gits_words_and_a_remedy(site: Site) -> None:
    (view,) = done(site, site.start().ready(), spec(site.work, "lost", "true"))
    assert (view.state, view.reason, view.branch) == ("FAILED", "setup_failed", None)
    assert "not a git repository" in str(view.reason_text)
    assert "isolation: none" in str(view.reason_text)


@pytest.mark.parametrize("point", ["worktree-intended", "worktree-added", "worktree-made", "start-prepared"])
def test_a_daemon_killed_on_the_way_to_a_tree_leaves_one_tree_and_one_run(site: Site, shop: Path, point: str) -> None:
    first = site.start(crash_at=point).ready()
    first.client.submit(spec(shop / "api", "fix", "echo done > result", check=["test -f result"]))
    assert first.wait() == -9, "the crash point was not passed"
    (view,) = done(site, site.start().ready())
    assert (view.state, view.runs) == ("COMPLETED", 1)
    (tree,) = trees(site, shop)
    assert Path(tree, "api", "result").read_text() == "done\n"
    assert branches(shop) == [view.branch]
