"""What a task expects to be there when it starts, and is not: a warning, as it may come to be there in time."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.domain.task import TaskSpec
from claudomator_py.tasks.feasibility import standing_warnings


def warnings(**fields: Any) -> list[str]:
    spec = TaskSpec.model_validate({"name": "t", "instructions": "x", **fields})
    return [warning.render() for warning in standing_warnings(spec)]


def test_nothing_is_said_where_all_is_there(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "sub").mkdir()
    script = tmp_path / "sub" / "ci"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)

    folder = str(tmp_path / "sub")
    check = ["true", "./ci", str(script), ["sh", "-c", "exit 1"]]
    assert warnings(working_dir=folder, isolation="worktree", add_dirs=[folder], check=check) == []
    assert warnings() == []


def test_a_folder_that_is_missing_or_a_file_is_named_with_its_field(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    (missing,) = warnings(working_dir=str(tmp_path / "file" / "below"))
    (further,) = warnings(working_dir=str(tmp_path), add_dirs=[str(tmp_path), str(tmp_path / "file")])

    assert missing.startswith(f"working_dir: {tmp_path}/file/below does not exist; the task would fail; create it")
    assert further.startswith(f"add_dirs[1]: {tmp_path}/file is not a folder; its agent could not use it; name the")


def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)

    (warning,) = warnings(working_dir=str(tmp_path))

    assert warning.startswith(f"working_dir: {tmp_path} may not be read; the task would fail; give the user with id")


def test_a_work_tree_needs_a_repository_with_a_commit(tmp_path: Path) -> None:
    def said() -> list[str]:
        return warnings(working_dir=str(tmp_path), isolation="worktree")

    def git(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, "-C", str(tmp_path), *words], check=True, capture_output=True)

    (outside,) = said()
    git("init", "-b", "main")
    (unborn,) = said()
    git("commit", "--allow-empty", "-m", "x")

    assert outside.startswith(f"isolation: needs a git repository with a commit, and {tmp_path} is in none; the task")
    assert "is in one that has no commit; the task would fail; commit there, or write isolation" in unborn
    assert said() == []
    git("pack-refs", "--all")
    assert said() == []


@pytest.mark.parametrize("inside", ["store.git", "store.git/refs/heads", "repository/.git", "repository/.git/objects"])
def test_where_git_keeps_a_repository_no_work_tree_is_promised(inside: str, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--bare", str(tmp_path / "store.git")], check=True, capture_output=True)
    subprocess.run(["git", "init", str(tmp_path / "repository")], check=True, capture_output=True)

    (warning,) = warnings(working_dir=str(tmp_path / inside), isolation="worktree")

    assert "is a bare one, or the inside of one; the task would fail; name a work tree or a clone of it" in warning


@pytest.mark.parametrize("per_tree", [False, True])
def test_beside_the_work_trees_of_a_bare_repository_no_further_one_is_promised(per_tree: bool, tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True, capture_output=True)

    git("init", "--bare", ".bare")
    (tmp_path / ".git").write_text("gitdir: ./.bare\n")
    identity = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    tree = subprocess.check_output(["git", "-C", str(tmp_path), "mktree"], input=b"").decode().strip()
    commit = subprocess.check_output(
        ["git", "-C", str(tmp_path), *identity, "commit-tree", "-m", "first", tree]
    ).decode()
    git("worktree", "add", "-b", "main", "main", commit.strip())
    if per_tree:
        git("-C", "main", "sparse-checkout", "set", "src")
    (warning,) = warnings(working_dir=str(tmp_path), isolation="worktree")
    assert "only leads to a bare one; the task would fail; name a work tree or a clone of it" in warning
    assert warnings(working_dir=str(tmp_path / "main"), isolation="worktree") == []


def test_a_work_tree_whose_git_directory_lies_elsewhere_is_promised_further_ones(tmp_path: Path) -> None:
    words = ["git", "init", "--separate-git-dir", str(tmp_path / "store"), str(tmp_path / "shop")]
    subprocess.run(words, check=True, capture_output=True)
    assert warnings(working_dir=str(tmp_path / "shop"), isolation="worktree") == []


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", "nosuch"],
        ["bash", "-lc", "nosuch --all"],
        ["bash", "-eo", "pipefail", "-c", "cd api && nosuch | tee log"],
        ["env", "-u", "Y", "X=1", "nosuch"],
        ["nice", "-n", "5", "nosuch"],
        ["timeout", "-k", "1", "5", "nosuch"],
        ["env", "A=b", "timeout", "5", "sh", "-c", "A=1 nosuch x"],
        ["nohup", "stdbuf", "-oL", "nosuch"],
        ["sh", "-c", "set -e\nmkdir -p out\nnosuch > out/log"],
        ["bash", "-c", "time nosuch"],
        ["sh", "-c", "! nosuch x"],
    ],
)
def test_a_program_that_a_check_runs_by_another_one_is_looked_for(command: list[str]) -> None:
    (text,) = warnings(check=[command])
    assert "there is no program `nosuch` on PATH, and the check runs it; the check would fail" in text


@pytest.mark.parametrize(
    "text",
    [
        "nosuch || true",
        "if command -v nosuch; then nosuch; fi",
        "nosuch() { true; }; nosuch",
        ". venv/bin/activate && nosuch",
        "PATH=$PWD/bin:$PATH nosuch",
        "export PATH=$PWD/bin:$PATH; nosuch",
        "$TOOL x",
        "cd api && ./made-there",
        "true # nosuch",
        "echo nosuch",
        "env PATH=bin nosuch",
        "eval nosuch",
    ],
)
def test_of_what_may_be_there_or_not_be_run_nothing_is_said(text: str) -> None:
    assert warnings(check=[["sh", "-c", text]]) == []


def test_the_programs_of_a_check_are_looked_for_where_they_will_be(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    check = ["no-such-program x", "true", "./plain", "./missing", "/nowhere/tool"]

    text = warnings(working_dir=str(tmp_path), check=check)

    assert [warning.partition("; ")[0] for warning in text] == [
        "check[0]: there is no program `no-such-program` on PATH",
        "check[2]: ./plain cannot be executed",
        "check[3]: there is no ./missing",
        "check[4]: there is no /nowhere/tool",
    ]
    assert warnings(check=["./made-by-the-task"]) == [], "a scratch folder is empty before the task"
    assert len(warnings(check=["true"], env={"PATH": str(tmp_path)})) == 1
