"""A pull request of a task's branch, by git and a program in the place of gh that writes down how it was called."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.repositories import COMMIT, done, git, repository, spec
from tests.e2e.site import Site

GH = """#!{python}
import json, os, sys
record = {{"argv": sys.argv[1:], "stdin": sys.stdin.read(), "cwd": os.getcwd(), "dir": os.environ.get("GIT_DIR")}}
open({record!r}, "w").write(json.dumps(record))
print("https://forge.example/pull/7")
sys.exit({code})
"""


@pytest.fixture
def shop(site: Site) -> Path:
    """A repository with a commit, and one to push to."""
    path = repository(site.root / "shop")
    git(site.root, "clone", "-q", "--bare", str(path), "origin.git")
    git(path, "remote", "add", "origin", str(site.root / "origin.git"))
    return path


def with_gh(site: Site, code: int = 0) -> tuple[str, Path]:
    """A PATH with gh on it, and what that writes down."""
    folder, record = site.root / "bin", site.root / "gh.json"
    folder.mkdir(exist_ok=True)
    (folder / "gh").write_text(GH.format(python=sys.executable, record=str(record), code=code))
    (folder / "gh").chmod(0o755)
    return f"{folder}:/usr/bin:/bin", record


def pr(site: Site, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return site.command("pr", *arguments, "--state-dir", str(site.state), **environ)


def pushed(site: Site) -> set[str]:
    return set(git(site.root / "origin.git", "for-each-ref", "--format=%(refname:short)").split())


def test_it_pushes_the_branch_and_has_gh_make_it(site: Site, shop: Path) -> None:
    daemon = site.start().ready()
    (view,) = done(site, daemon, spec(shop, "fix", f"echo 1 > one; git add . && {COMMIT}; echo The door is fixed."))
    path, record = with_gh(site)

    tried = pr(site, "fix", "--dry-run", PATH=path)
    assert tried.returncode == 0, tried.stderr
    assert f"gh pr create --head {view.branch} --base main --title work" in tried.stdout
    assert not record.exists()
    assert pushed(site) == {"main"}

    made = pr(site, "fix", PATH=path, GIT_DIR="/nowhere")
    assert made.returncode == 0, made.stderr
    assert "https://forge.example/pull/7" in made.stdout
    payload = json.loads(record.read_text())
    assert payload["argv"][:6] == ["pr", "create", "--head", view.branch, "--base", "main"]
    assert payload["argv"][6:] == ["--title", "work", "--body-file", "-"]
    assert (payload["stdin"], payload["cwd"], payload["dir"]) == ("The door is fixed.", str(shop), None)
    assert pushed(site) == {"main", view.branch}


def test_target_title_and_draft_are_chosen(site: Site, shop: Path) -> None:
    daemon = site.start().ready()
    twice = f"echo 1 > one; git add . && {COMMIT}; echo 2 > two; git add . && {COMMIT}"
    done(site, daemon, spec(shop, "fix", twice))
    path, record = with_gh(site)
    assert pr(site, "fix", PATH=path).returncode == 0
    assert json.loads(record.read_text())["argv"][6:8] == ["--title", "fix"]
    chosen = ("--into", "release", "--title", "--draft is no flag here", "--draft")
    assert pr(site, "fix", *chosen, PATH=path).returncode == 0
    argv = json.loads(record.read_text())["argv"]
    assert argv[5:8] == ["release", "--title", "--draft is no flag here"]
    assert argv[-1] == "--draft"


@pytest.mark.parametrize(
    ("does", "fields", "expected"),
    [
        ("true", {"isolation": "none"}, "has no branch of its own"),
        ("true", {}, "has no commit that main lacks"),
        (f"echo 1 > one; git add . && {COMMIT}; echo 2 > two", {}, "1 file is not committed in"),
    ],
)
def test_what_is_no_pull_request_is_refused(
    site: Site, shop: Path, does: str, fields: dict[str, object], expected: str
) -> None:
    daemon = site.start().ready()
    done(site, daemon, spec(shop, "fix", does, **fields))
    path, record = with_gh(site)
    refused = pr(site, "fix", PATH=path)
    assert refused.returncode == 1
    assert expected in refused.stderr
    assert not record.exists()
    assert pushed(site) == {"main"}


def test_what_somebody_has_committed_since_is_in_it(site: Site, shop: Path) -> None:
    daemon = site.start().ready()
    done(site, daemon, spec(shop, "fix", "echo 1 > one"))
    path, record = with_gh(site)
    assert "1 file is not committed in" in pr(site, "fix", PATH=path).stderr
    (view,) = daemon.client.branches()
    git(view.path, "add", "one")
    git(view.path, "commit", "-q", "-m", "by hand")
    made = pr(site, "fix", PATH=path)
    assert made.returncode == 0, made.stderr
    assert record.exists()
    assert git(site.root / "origin.git", "log", "-1", "--format=%s", view.branch) == "by hand"


def test_commits_beside_the_branch_are_not_passed_over(site: Site, shop: Path) -> None:
    daemon = site.start().ready()
    both = f"echo 1 > one; git add . && {COMMIT}; git switch -q -c topic; echo 2 > two; git add . && {COMMIT}"
    done(site, daemon, spec(shop, "fix", both))
    path, record = with_gh(site)
    refused = pr(site, "fix", PATH=path)
    (view,) = daemon.client.branches()
    assert f"1 commit is checked out in {view.path}, and not on {view.branch}." in refused.stderr
    assert (refused.returncode, record.exists(), pushed(site)) == (1, False, {"main"})
    git(view.path, "switch", "-q", "-C", view.branch)
    assert pr(site, "fix", PATH=path).returncode == 0
    assert git(site.root / "origin.git", "rev-list", "--count", f"main..{view.branch}") == "2"


def test_what_only_the_check_left_is_no_obstacle(site: Site, shop: Path) -> None:
    daemon = site.start().ready()
    check = [["sh", "-c", "echo x > report.xml"]]
    done(site, daemon, spec(shop, "fix", "echo 1 > one", commit=True, check=check))
    path, _ = with_gh(site)
    made = pr(site, "fix", PATH=path)
    assert made.returncode == 0, made.stderr
    (view,) = daemon.client.branches()
    assert git(site.root / "origin.git", "diff", "--name-only", "main", view.branch) == "one"


def test_what_fails_says_how_far_it_came(site: Site, shop: Path) -> None:
    daemon = site.start().ready()
    done(site, daemon, spec(shop, "fix", f"echo 1 > one; git add . && {COMMIT}"))
    without = pr(site, "fix", PATH="/usr/bin:/bin")
    assert (without.returncode, "gh is not installed" in without.stderr) == (1, True)
    assert pushed(site) == {"main"}
    path, _ = with_gh(site, code=3)
    nowhere = pr(site, "fix", "--remote", "nowhere", PATH=path)
    assert "Nothing was pushed." in nowhere.stderr
    failed = pr(site, "fix", PATH=path)
    assert failed.returncode == 1
    assert "gh exited with 3" in failed.stderr
    assert "The branch is already pushed." in failed.stderr
