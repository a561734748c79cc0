"""Tasks on branches of their own in one repository: side by side, over retries, restarts, crashes and a cleanup."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from claudomator_py.client import ServiceProblem
from claudomator_py.domain.requests import RestartRequest
from claudomator_py.domain.retention import CleanupRequest
from claudomator_py.domain.task import AgentHint, TaskSpec
from claudomator_py.resources.branches import MergeRequest
from claudomator_py.schema.taskfile import to_document
from tests.e2e.daemon import Daemon
from tests.e2e.repositories import COMMIT, done, git, spec
from tests.e2e.scenarios_support import ended
from tests.e2e.site import Site
from tests.patience import wait_until


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
        standing = daemon.client.task(view.id).worktree
        assert standing is not None
        assert (standing.path, standing.standing, standing.commits, standing.changed) == (tree, "ahead", 1, 0)
    assert git(shop, "status", "--porcelain") == "?? notes"
    assert git(shop, "rev-list", "--count", "main") == "1"


def test_a_branch_is_made_by_the_first_run_that_commits_and_moved_by_the_next(site: Site, shop: Path) -> None:
    commits = f"[ $CLAUDOMATOR_ATTEMPT -lt 2 ] || {{ date +%N > new; git add . && {COMMIT}; }}"
    does = f"{commits}; [ $CLAUDOMATOR_ATTEMPT -ge 3 ] || exit 3"
    daemon = site.start().ready()
    done(site, daemon, spec(shop, "fix", does, retry={"max_attempts": 3, "backoff": "10ms"}))
    changes = [run.changes for run in daemon.client.changes("fix").runs]
    assert [[ref.word for ref in result.refs] for result in changes if result is not None] == [[], ["made"], ["moved"]]
    (report,) = daemon.client.report().repositories
    assert [branch.change for branch in report.branches] == ["made"]


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


def cleaned(daemon: Daemon, **asked: object) -> dict[tuple[str, bool], list[str]]:
    """What a cleanup of all that has ended says: the reasons by kind and whether it is removed."""
    cleanup = daemon.client.clean_up(CleanupRequest.model_validate({"older_than": "0s", **asked}))
    reasons: dict[tuple[str, bool], list[str]] = {}
    for item in cleanup.items:
        reasons.setdefault((item.kind, item.removed), []).append(f"{item.task}: {item.why}")
    return {key: sorted(whys) for key, whys in reasons.items()}


def test_a_cleanup_removes_what_nobody_misses_and_says_why_it_keeps_the_rest(site: Site, shop: Path) -> None:
    daemon = site.start().ready()
    done(
        site,
        daemon,
        spec(shop, "nothing", "true"),
        spec(shop, "ahead", f"touch it && git add it && {COMMIT}"),
        spec(shop, "merged", f"touch that && git add that && {COMMIT}"),
        spec(shop, "dirty", "touch new"),
        spec(shop, "locked", "git worktree lock ."),
    )
    by_name = {view.name: view for view in daemon.client.all_tasks()}
    git(shop, "merge", "-q", str(by_name["merged"].branch))
    daemon.client.submit(spec(shop, "lasting", "sleep 600"))
    wait_until(lambda: daemon.client.task("lasting").state == "RUNNING", "the task that lasts")
    kept = [
        "ahead: 1 commit is not in main",
        "dirty: 1 file is not committed",
        "lasting: lasting is RUNNING",
        "locked: it is locked",
    ]
    spent = ["merged: its commit is merged", "nothing: it has no changes"]
    runs = [f"{name}: its task has ended" for name in sorted(by_name)]
    expected = {("worktree", False): kept, ("worktree", True): spent, ("run", True): runs}
    assert cleaned(daemon, older_than="1h").keys() == {("worktree", False)}
    assert cleaned(daemon, dry_run=True) == expected
    assert len(trees(site, shop)) == 6, "a dry run removes nothing"
    assert cleaned(daemon) == expected
    left = [by_name["ahead"].branch, by_name["dirty"].branch, by_name["locked"].branch]
    assert len(trees(site, shop)) == 4
    assert set(branches(shop)) >= set(map(str, left))
    assert len(branches(shop)) == 4
    assert len(site.run_ids()) == 1
    assert cleaned(daemon) == {("worktree", False): kept}
    daemon.client.cancel("lasting")
    site.drain(daemon)
    assert "lasting: it has no changes" in cleaned(daemon)["worktree", True]


def test_a_cleanup_leaves_alone_where_somebody_works(site: Site, shop: Path) -> None:
    daemon = site.start().ready()
    done(site, daemon, spec(shop, "seen", "true"))
    (tree,) = trees(site, shop)
    with subprocess.Popen(["cat"], cwd=tree, stdin=subprocess.PIPE) as person:
        assert cleaned(daemon)["worktree", False] == [f"seen: process {person.pid} works in it"]
        person.communicate()
    assert cleaned(daemon)["worktree", True] == ["seen: it has no changes"]
    assert trees(site, shop) == []
    assert branches(shop) == []


def test_a_scratch_folder_goes_with_the_last_run_that_worked_in_it(site: Site) -> None:
    daemon = site.start().ready()
    talk = TaskSpec(name="talk", instructions="hello", agent=AgentHint(type="simulated"))
    (first,) = done(site, daemon, talk)
    daemon.client.restart(first.id, RestartRequest(resume=True))
    done(site, daemon)
    older, newer = daemon.client.runs(first.id)
    with subprocess.Popen(["cat"], cwd=site.state / "runs" / newer.id, stdin=subprocess.PIPE) as person:
        assert cleaned(daemon) == {
            ("run", False): [
                f"talk: process {person.pid} works in it",
                f"talk: run {newer.id[:8]} worked in its scratch folder, and is kept",
            ]
        }
        person.communicate()
    assert (site.state / "runs" / older.id / "work").is_dir()
    assert cleaned(daemon) == {("run", True): ["talk: its task has ended"] * 2}
    assert site.run_ids() == []
    with pytest.raises(ServiceProblem, match="scratch folder"):
        daemon.client.restart(first.id, RestartRequest(resume=True))


def test_after_a_cleanup_a_task_begins_again_with_a_tree(site: Site, shop: Path) -> None:
    daemon = site.start().ready()
    (first,) = done(site, daemon, spec(shop, "talk", "x", agent={"type": "simulated"}))
    cleaned(daemon)
    assert trees(site, shop) == []
    daemon.client.restart(first.id, RestartRequest(resume=True))
    (second,) = done(site, daemon)
    assert (second.state, second.branch) == ("COMPLETED", first.branch)
    assert len(trees(site, shop)) == 1


def command(site: Site, *arguments: str) -> str:
    done = site.command(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_says_what_went_and_what_is_kept(site: Site, shop: Path) -> None:
    daemon = site.start().ready()
    done(site, daemon, spec(shop, "nothing", "true"), spec(shop, "dirty", "touch new"))
    shown = command(site, "show", "dirty")
    assert re.search(rf"dirty \(1 file not committed\), seen [^:]+: {site.state}", shown), shown
    shown = command(site, "cleanup", "--dry-run", "--older-than", "0s")
    assert "Would be removed:" in shown
    assert "3 would be removed" in shown
    assert "1 kept." in shown
    assert json.loads(command(site, "cleanup", "--older-than", "0s", "-o", "json"))["dry_run"] is False
    assert "0 removed, 0 B freed; 1 kept." in command(site, "cleanup", "--older-than", "0s")


@pytest.mark.parametrize("breaks", ["loop", "loop above", "gone", "a file", "no repository"])
@pytest.mark.parametrize("isolation", ["worktree", "none"])
def test_a_queued_task_whose_place_breaks_ends_with_the_reason(site: Site, isolation: str, breaks: str) -> None:
    shop = site.root / "above" / "shop"
    shop.mkdir(parents=True)
    git(shop, "init", "-q", "-b", "main")
    git(shop, "commit", "-q", "-m", "first", "--allow-empty")
    daemon = site.start().ready()
    daemon.client.hold("sh")
    daemon.client.submit(spec(shop, "t", "true", isolation=isolation))
    place = shop.parent if breaks == "loop above" else shop
    if breaks == "no repository":
        shutil.rmtree(shop / ".git")
    else:
        shutil.rmtree(place)
    if breaks.startswith("loop"):
        place.symlink_to(place)
    elif breaks == "a file":
        place.write_text("no folder")
    daemon.client.release("sh")
    task = ended(daemon, "t")
    if breaks == "no repository" and isolation == "none":
        assert task.state == "COMPLETED"
    else:
        assert (task.state, task.reason) == ("FAILED", "setup_failed")
        assert str(shop) in str(task.reason_text)


def test_a_task_begins_where_the_one_ended_that_it_waited_for(site: Site, shop: Path) -> None:
    daemon = site.start().ready()
    first = spec(shop, "first", f"echo 1 > one; git add . && {COMMIT}; echo later > draft")
    second = spec(shop, "second", f"ls > seen; git add . && {COMMIT}", depends_on=["first"])
    aside = spec(shop, "aside", f"echo 2 > two; git add . && {COMMIT}")
    both = spec(shop, "both", "ls > seen", depends_on=["second", "aside"])
    chosen = spec(shop, "chosen", "ls > seen", depends_on=["second", "aside"], base="aside")
    views = {view.name: view for view in done(site, daemon, first, second, aside, both, chosen)}
    assert {view.state for view in views.values()} == {"COMPLETED"}, [view.reason_text for view in views.values()]

    def seen(name: str) -> set[str]:
        (tree,) = [tree for tree in trees(site, shop) if views[name].id[:8] in tree]
        return set((Path(tree) / "seen").read_text().split()) - {"seen", "api"}

    assert seen("second") == {"one"}
    assert seen("both") == set()
    assert seen("chosen") == {"two"}
    payload = {name: " ".join(daemon.client.why(name).sentences) for name in views}
    assert f"of {views['first'].branch}, in" in payload["second"]
    assert "1 file that the tasks before it left uncommitted is not in that tree" in payload["second"]
    assert f"None of {views['second'].branch}, {views['aside'].branch} contains the others" in payload["both"]


def test_a_task_between_that_works_elsewhere_passes_on_what_was_done_and_what_was_not_committed(
    site: Site, shop: Path
) -> None:
    daemon = site.start().ready()
    first = spec(shop, "first", f"echo 1 > one; git add . && {COMMIT}")
    between = TaskSpec(name="between", instructions="true", agent=AgentHint(type="sh"), depends_on=("first",))
    last = spec(shop, "last", "ls > seen", depends_on=["between"])
    messy = spec(shop, "messy", "echo 1 > draft")
    after = spec(shop, "after", "true", depends_on=["messy"])
    views = {view.name: view for view in done(site, daemon, first, between, last, messy, after)}
    payload = {name: " ".join(daemon.client.why(name).sentences) for name in views}
    assert f"of {views['first'].branch}, in" in payload["last"]
    assert "1 file that the tasks before it left uncommitted is not in that tree. `commit: true`" in payload["after"]


def test_what_only_the_check_left_is_not_committed_with_the_work(site: Site, shop: Path) -> None:
    daemon = site.start().ready()
    check = [["sh", "-c", "echo x > report.xml; rm api/readme; echo more >> '*.py'; rm draft"]]
    (view,) = done(
        site, daemon, spec(shop, "fix", "echo 1 > '*.py'; echo 2 > b.py; echo > draft", commit=True, check=check)
    )
    assert git(shop, "show", "--format=", "--name-only", str(view.branch)).splitlines() == ["*.py", "b.py"]
    (branch,) = daemon.client.branches()
    assert (branch.commits, branch.changed) == (1, 2)
    (shop / "notes").unlink()
    merged = daemon.client.merge("fix")
    assert merged.commits == 1
    assert merged.notes == (f"what only the check left stays in {branch.path}: api/readme, report.xml",)
    (Path(branch.path) / "by-hand").touch()
    with pytest.raises(ServiceProblem, match=f"1 file is not committed in {branch.path}: by-hand"):
        daemon.client.merge("fix")


def test_what_the_checks_of_earlier_attempts_left_is_not_committed_either(site: Site, shop: Path) -> None:
    daemon = site.start().ready()
    does = "echo 1 > one; test ! -e first.xml || echo 2 > again.xml; echo 3 >> seen"
    check = [["sh", "-c", "echo x > first.xml; echo x > again.xml; test $(wc -l < seen) -gt 1"]]
    (view,) = done(
        site, daemon, spec(shop, "fix", does, commit=True, check=check, retry={"max_attempts": 2, "backoff": "10ms"})
    )
    assert view.state == "COMPLETED"
    names = git(shop, "show", "--format=", "--name-only", str(view.branch)).splitlines()
    assert names == ["again.xml", "one", "seen"]
    (branch,) = daemon.client.branches()
    assert branch.by_check == ("first.xml",)


def test_what_only_the_check_left_is_known_beside_many_files(site: Site, shop: Path) -> None:
    daemon = site.start().ready()
    does = "for i in $(seq 150); do echo > $i; done"
    done(site, daemon, spec(shop, "fix", does, commit=True, check=[["sh", "-c", "echo x > report.xml"]]))
    (branch,) = daemon.client.branches()
    assert branch.by_check == ("report.xml",)
    (shop / "notes").unlink()
    assert daemon.client.merge("fix", MergeRequest(dry_run=True)).files == 150


def test_all_that_is_ready_is_merged_each_by_itself(site: Site, shop: Path) -> None:
    daemon = site.start().ready()
    passes = {"commit": True, "check": [["true"]]}
    done(
        site,
        daemon,
        *(spec(shop, name, f"echo {name} > {file}", **passes) for name, file in (("a", "x"), ("b", "x"), ("c", "y"))),
        spec(shop, "unchecked", "echo 1 > z", commit=True),
    )
    (shop / "notes").unlink()
    tried = site.command("merge", "--ready", "--dry-run")
    assert (tried.returncode, tried.stdout.count("could be")) == (0, 3)
    assert "3 would be merged, 0 would be refused, each if it were the only one." in tried.stderr
    before = git(shop, "rev-parse", "main").strip()
    merged = site.command("merge", "--ready")
    assert merged.returncode == 1, merged.stderr
    assert "2 merged, 1 refused." in merged.stderr
    verdicts = {line.split()[0]: line.split()[1] for line in merged.stdout.splitlines()[1:4]}
    assert sorted(verdicts.values()) == ["no", "yes", "yes"]
    assert verdicts["c"] == "yes"
    assert "would conflict with main in x" in merged.stderr
    assert (shop / "y").exists()
    assert not (shop / "z").exists()
    assert merged.stdout.splitlines()[4:] == [f"Undo: git -C {shop} reset --keep {before}"]
    refused = json.loads(site.command("merge", "unchecked", "c", "unchecked", "-o", "json").stdout)
    assert [(one["task_name"], one["problem"], one["merged"]["commits"]) for one in refused] == [
        ("unchecked", None, 1),
        ("c", None, 0),
    ]
    assert site.command("merge").returncode == site.command("merge", "c", "--ready").returncode == 2


def test_a_base_that_is_not_there_fails_with_what_to_do(site: Site, shop: Path) -> None:
    daemon = site.start().ready()
    (view,) = done(site, daemon, spec(shop, "fix", "true", base="release-9"))
    assert view.state == "FAILED"
    assert "no branch, tag or commit release-9; correct `base`" in str(view.reason_text)


def test_what_a_success_leaves_is_committed_on_its_branch_and_a_failure_keeps_what_it_was(
    site: Site, shop: Path
) -> None:
    (shop / ".gitignore").write_text("*.log\n")
    git(shop, "add", ".gitignore")
    git(shop, "commit", "-q", "-m", "ignore")
    daemon = site.start().ready()
    does = f"echo 1 > one; git add . && {COMMIT}; echo 2 > two; echo more >> readme; echo x > run.log"
    done(site, daemon, spec(shop, "keeps", does, commit=True), spec(shop, "idle", "true", commit=True))
    done(
        site,
        daemon,
        spec(shop, "fails", "echo 2 > two", commit=True, check=["false"], retry={"max_attempts": 1}),
        spec(shop, "leaves", "echo 2 > two"),
        spec(shop, "parts", "git checkout -q -b mine; echo 2 > two", commit=True),
        spec(
            shop, "detaches", f"git checkout -q --detach; echo 1 > one; git add . && {COMMIT}; echo > two", commit=True
        ),
    )
    views = {view.task_name: view for view in daemon.client.branches()}
    assert {name: (view.commits, view.changed) for name, view in views.items()} == {
        "keeps": (2, 0),
        "idle": (0, 0),
        "fails": (0, 1),
        "leaves": (0, 1),
        "parts": (0, 1),
        "detaches": (1, 1),
    }
    assert "could not" not in " ".join(daemon.client.why("keeps").sentences)
    for name, says in (("parts", f"{views['parts'].path} is on mine"), ("detaches", "1 commit is on no branch in")):
        assert f"What it left could not be committed: {says}" in " ".join(daemon.client.why(name).sentences)
    payload = {name: daemon.client.task(name).changes for name in ("keeps", "idle", "fails")}
    assert payload == {
        "keeps": "2 commits, 3 files (+3 -0)",
        "idle": "no changes",
        "fails": "1 file (+1 -0), 1 not committed",
    }
    branch = views["keeps"].branch
    (kept,) = daemon.client.changes("keeps").runs
    assert kept.changes is not None
    assert [(ref.name, ref.word) for ref in kept.changes.refs] == [(f"refs/heads/{branch}", "made")]
    assert git(shop, "log", "--format=%s", f"main..{branch}").split() == ["keeps", "work"]
    committed = set(git(shop, "ls-tree", "-r", "--name-only", branch).split())
    assert committed == {".gitignore", "api/readme", "one", "readme", "two"}
    assert git(views["keeps"].path, "status", "--porcelain") == ""
    assert (Path(views["keeps"].path) / "run.log").exists()
    (shop / "notes").unlink()
    assert daemon.client.merge("keeps").commits == 2


@pytest.mark.parametrize("crash_at", ["worktree-committed", "finish-begin", "finish-committed"])
def test_what_was_committed_before_a_crash_is_counted_once_after_it(site: Site, shop: Path, crash_at: str) -> None:
    crashed = site.start(crash_at=crash_at)
    content = to_document(spec(shop, "keeps", "echo 2 > two; echo more >> readme", commit=True), defaults=False)
    site.drop("keeps.yaml", json.dumps(content))
    crashed.wait()
    daemon = site.start().ready()
    assert ended(daemon, "keeps").state == "COMPLETED"
    (view,) = daemon.client.branches()
    assert (view.commits, view.changed) == (1, 0)
    assert daemon.client.task("keeps").changes == "1 commit, 2 files (+2 -0)"
    (kept,) = daemon.client.changes("keeps").runs
    assert kept.changes is not None
    assert [(ref.name, ref.word) for ref in kept.changes.refs] == [(f"refs/heads/{view.branch}", "made")]
