"""What the page of a task shows of what its runs changed."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.domain.changes import RunChanges
from claudomator_py.domain.lifecycle import Completed
from claudomator_py.domain.outcome import Outcome, OutcomeStatus
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.units import DAY_MS, HOUR_MS
from claudomator_py.resources.branches.page import MAX_FILE_CHARS, MAX_PATCH_BYTES, MAX_RUNS, patches_of
from claudomator_py.resources.tasks.service import Tasks
from tests.fakes.prepared import PreparedService
from tests.fakes.steps import spec
from tests.unit.api.page.conftest import Visitor, text_of

KEY = "sk-ant-api03-" + "Zq7" * 20
HOSTILE = "<img src=x onerror=alert(1)>\u202egpj.py"


def patch_of(path: str, *lines: str) -> str:
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1,9 @@\n" + "".join(
        f"+{line}\n" for line in lines
    )


def changed(prepared: PreparedService, task: str, patch: str = "", **fields: Any) -> None:
    run = prepared.add_run(task)
    prepared.world.host.patches[run] = patch
    given = {"place": "/srv/shop", "patch_bytes": len(patch.encode()) or None, **fields}
    prepared.end_run(run, Outcome(status=OutcomeStatus.SUCCEEDED, changes=RunChanges.model_validate(given)))


def files(*paths: str) -> dict[str, Any]:
    named = [{"path": path, "change": "modified", "added": 2, "removed": 1} for path in paths]
    return {"files": named, "file_count": len(named), "added": 2 * len(named), "removed": len(named)}


def test_all_that_a_run_changed(operator: Visitor, prepared: PreparedService) -> None:
    task = prepared.add("t")
    changed(
        prepared,
        task,
        patch_of("tap.py", "drip = 0") + patch_of("sink.py", "deep = 1"),
        **files("tap.py", "sink.py"),
        commits=[{"id": "b" * 40, "subject": "mend the tap", "author": "Ann"}],
        commit_count=3,
        refs=[{"name": "refs/heads/old", "before": "a" * 40}, {"name": "refs/heads/new", "after": "b" * 40}],
        ref_count=2,
        uncommitted=["sink.py"],
        uncommitted_count=1,
        untracked=["notes"],
        untracked_count=30,
        left_as_before=4,
    )
    page = operator.get(f"/tasks/{task}")
    text = text_of(page)
    for words in (
        "3 commits, 2 files (+4 -2), 1 branch made, 1 branch deleted, 27 not committed",
        "bbbbbbbb mend the tap (Ann)",
        "and 2 more commits",
        "refs/heads/old: deleted, was at aaaaaaaa",
        "refs/heads/new: made at bbbbbbbb",
        "Uncommitted: sink.py",
        "Not known to git: notes and 29 more of these, unchanged by the run: 4",
        "tap.py modified +2 -1",
        "+drip = 0",
    ):
        assert words in text
    assert page.body.decode().count('<details id="change-1-') == 2


def test_a_run_that_changed_nothing_and_one_that_has_not_ended(operator: Visitor, prepared: PreparedService) -> None:
    task = prepared.add("t")
    assert "changes-title" not in operator.get(f"/tasks/{task}").body.decode()
    changed(prepared, task)
    prepared.add_run(task)
    text = text_of(operator.get(f"/tasks/{task}"))
    assert "no changes" in text
    assert "recorded when the run ends" in text


def test_names_subjects_and_patches_of_strangers_are_only_text(operator: Visitor, prepared: PreparedService) -> None:
    task = prepared.add("t")
    evil = "</pre><script>alert(1)</script>"
    patch = patch_of(HOSTILE, evil, f"\x1b[31mkey = {KEY}", "\rdiff --git a/other b/other")
    commits = [{"id": "b" * 40, "subject": evil, "author": evil}]
    names: dict[str, Any] = {"untracked": [HOSTILE], "untracked_count": 1, "branch": evil}
    changed(prepared, task, patch, **files(HOSTILE), commits=commits, commit_count=1, **names)
    page = operator.get(f"/tasks/{task}")
    body = page.body.decode()
    for raw in ("<img", "<script>", "\x1b", "\u202e", KEY):
        assert raw not in body
    text = text_of(page)
    assert f"+{evil} +key = [redacted]" in text
    assert "<img src=x onerror=alert(1)>\\u202egpj.py modified" in text


@pytest.mark.parametrize(("lines", "count", "is_open"), [(3, 1, True), (40, 1, False), (3, 9, False)])
def test_only_what_is_small_is_open(
    operator: Visitor, prepared: PreparedService, lines: int, count: int, *, is_open: bool
) -> None:
    task = prepared.add("t")
    paths = [f"f{number}" for number in range(count)]
    changed(prepared, task, "".join(patch_of(path, *["x"] * lines) for path in paths), **files(*paths))
    assert ('id="change-1-1" open' in operator.get(f"/tasks/{task}").body.decode()) is is_open


def test_each_line_of_a_patch_can_be_linked_to(operator: Visitor, prepared: PreparedService) -> None:
    task = prepared.add("t")
    hunk = "index 1..2 100644\n--- a/tap.py\n+++ b/tap.py\n@@ -7,3 +7,3 @@ def tap\n same\n-old\n+new\r\u2028x\n last\n"
    more = "@@ -90 +90,2 @@\n-a\n+b\n+c\n\\ No newline at end of file\n"
    patch = f"diff --git a/tap.py b/tap.py\n{hunk}{more}"
    changed(prepared, task, patch, **files("tap.py"))
    body = operator.get(f"/tasks/{task}").body.decode()
    results = re.findall(r'<span id="change-1-1-([LR]\d+)"(?: class="(\w+)")?', body)
    assert results == [
        *(("R7", ""), ("L8", "removed"), ("R8", "added"), ("R9", "")),
        *(("L90", "removed"), ("R90", "added"), ("R91", "added")),
    ]
    assert body.count('href="#change-1-1-') == len(results)
    assert 'class="hunk">@@ -7,3' in body
    assert "index 1..2" not in body
    assert "+++ b/tap.py" not in body


def test_the_largest_patches_are_shown_within_bounds(operator: Visitor, prepared: PreparedService) -> None:
    task = prepared.add("t")
    paths = [f"f{number}" for number in range(12)]
    patch = "".join(patch_of(path, *["x"] * (MAX_FILE_CHARS // 4)) for path in paths)
    assert len(patch) < MAX_PATCH_BYTES
    changed(prepared, task, patch, **files(*paths))
    page = operator.get(f"/tasks/{task}")
    assert page.status == 200
    assert len(page.body) < 16_000_000


def test_a_page_is_bounded(operator: Visitor, prepared: PreparedService) -> None:
    task = prepared.add("t")
    long = patch_of("long", *["y" * 99] * (MAX_FILE_CHARS // 50))
    huge = patch_of("huge", *["z" * 99] * (MAX_PATCH_BYTES // 99))
    for _ in range(MAX_RUNS):
        changed(prepared, task, huge, **files("huge"))
    many = {**files(*map(str, range(300))), "file_count": 700}
    changed(prepared, task, **many)
    changed(prepared, task, long, **files("long"))
    page = operator.get(f"/tasks/{task}")
    text = text_of(page)
    assert len(page.body) < 100_000
    assert "zzz" not in text
    for words in (
        "Only the beginning is shown",
        "Its lines are too many for this page",
        "There is no patch of it",
        "and 600 more files",
        "shows 2 earlier runs as well",
    ):
        assert words in text


def test_the_names_in_a_patch_of_git_itself(tmp_path: Path) -> None:
    names = ["plain", "a b", "x b/x b", 'quo"te', "tab\tbed", "back\\slash", "line\nend", "naïve", "\x01é", '"']

    def git(*words: str) -> str:
        call = ["git", "-c", "core.quotePath=false", "-C", str(tmp_path), *words]
        return subprocess.run(call, check=True, capture_output=True).stdout.decode()

    git("init", "-q")
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"diff --git a/{name.encode()!r} b/no\nof {name.encode()!r}\n")
    git("add", "-A")
    patches = patches_of(git("diff", "--cached"))
    assert set(patches) == set(names)
    assert all(f"+of {name.encode()!r}" in patches[name] for name in names)
    git("-c", "user.name=n", "-c", "user.email=n@example.org", "commit", "-q", "-m", "all")
    (tmp_path / "deeper").mkdir()
    for top in {name.partition("/")[0] for name in names}:
        git("mv", "--", top, f"deeper/{top}")
    renamed = patches_of(git("diff", "--cached", "--find-renames"))
    assert set(renamed) == {f"deeper/{name}" for name in names}


def test_repositories_have_a_page_with_what_runs_changed_there(operator: Visitor, prepared: PreparedService) -> None:
    assert "claudomator add" in text_of(operator.get("/repositories"))
    for number, cost in ((1, 0.5), (2, 0.25)):
        run = prepared.add_run(prepared.add(f"t{number}", working_dir="/srv/shop"))
        made = RunChanges.model_validate({"place": "/srv/shop", "repository": "/srv/shop", **files("tap.py")})
        prepared.end_run(run, Outcome(status=OutcomeStatus.SUCCEEDED, changes=made, cost_usd=cost))
    prepared.world.now_ms += HOUR_MS
    page = operator.get("/repositories")
    assert re.search(r"/srv/shop 2 0 1 4 2 \$0.75 \S+ \S+ UTC", text_of(page)), text_of(page)
    assert "No task has an unmerged branch." in text_of(page)
    assert operator.get("/repositories?days=0").status == 422


def test_repositories_have_their_runs_and_costs_by_day(operator: Visitor, prepared: PreparedService) -> None:
    def worked(name: str, cost: float) -> None:
        run = prepared.add_run(prepared.add(name, working_dir="/srv/shop"))
        made = RunChanges.model_validate({"place": "/srv/shop", "repository": "/srv/shop", **files("tap.py")})
        prepared.end_run(run, Outcome(status=OutcomeStatus.SUCCEEDED, changes=made, cost_usd=cost))

    worked("first", 0.5)
    prepared.world.now_ms += HOUR_MS
    assert "By day" not in text_of(operator.get("/repositories")), "one day says nothing more"
    prepared.world.now_ms += DAY_MS
    worked("second", 0.25)
    worked("third", 0.25)
    prepared.world.now_ms += HOUR_MS
    text = text_of(operator.get("/repositories"))
    assert "2026-09-22 /srv/shop 2 0 1 $0.50 2026-09-21 /srv/shop 1 0 1 $0.50" in text


def test_an_approval_shows_what_was_changed_so_far_and_why_it_is_risky(
    operator: Visitor, prepared: PreparedService
) -> None:
    task = prepared.access.as_(OPERATOR)[Tasks].submit(spec("t", instructions="Delete the production database.")).id
    prepared.world.router.route()
    assert prepared.task(task).state == "NEEDS_INPUT"
    form = operator.get(f"/tasks/{task}/approve")
    assert "Risk high: Delete the production database" in text_of(form)
    assert "What it changed so far" not in text_of(form)
    changed(prepared, task, patch_of("tap.py", "drip = 0"), **files("tap.py"))
    form = operator.get(f"/tasks/{task}/approve")
    assert "What it changed so far" in text_of(form)
    assert "+drip = 0" in text_of(form)


def test_a_success_that_changed_nothing_but_says_otherwise_is_doubted_beside_its_state(
    operator: Visitor, prepared: PreparedService
) -> None:
    task = prepared.add("t", Completed())
    same = RunChanges.model_validate({"place": "/srv/shop", "head": "a" * 40, "head_before": "a" * 40})
    prepared.add_run(task, outcome=Outcome(status=OutcomeStatus.SUCCEEDED, text="Fixed it.", changes=same))
    head = operator.get(f"/tasks/{task}").body.decode().partition("<dl")[0]
    assert re.search(r"completed</span>\s*<span class=\"chip ask\">no changes \(its result says otherwise\)", head)
