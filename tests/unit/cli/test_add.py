"""``add`` and ``list``: a task from the shell without a file, and tasks line by line."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from claudomator_py.domain.lifecycle import Phase, Running
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.worktree import Isolation
from tests.fakes.command import Command
from tests.fakes.prepared import PreparedService


@pytest.fixture
def shop(command: Command) -> Path:
    """A folder that is a git repository, and one below it."""
    folder = command.home / "shop"
    (folder / "src").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(folder)], check=True, env={"PATH": os.environ["PATH"]})
    return folder


def only(prepared: PreparedService) -> TaskSpec:
    (spec,) = prepared.specs()
    return spec


def test_a_sentence_becomes_a_task_named_for_its_first_words(
    command: Command, prepared: PreparedService, shop: Path
) -> None:
    done = command("add", "Fix the typo in README, and nothing else at all", "-C", "shop")
    assert (done.returncode, done.stderr) == (0, "")
    spec = only(prepared)
    assert spec.name == "fix-the-typo-in-readme-and"
    assert spec.instructions == "Fix the typo in README, and nothing else at all"
    assert spec.working_dir == str(shop)
    assert spec.name in done.stdout


@pytest.mark.parametrize("text", ["修正拼写错误", "!!!", "…"])
def test_a_text_of_which_no_name_can_be_made_gets_one_by_the_clock(
    command: Command, prepared: PreparedService, text: str
) -> None:
    assert command("add", text).returncode == 0
    assert only(prepared).name.startswith("task-")
    assert only(prepared).instructions == text


def test_in_a_repository_it_works_there_and_says_so(command: Command, prepared: PreparedService) -> None:
    (command.home / ".git").mkdir()
    done = command("add", "Tidy up.")
    assert f"It works in {command.home}" in done.stderr
    assert only(prepared).working_dir == str(command.home)


def test_elsewhere_it_works_in_a_scratch_folder(command: Command, prepared: PreparedService) -> None:
    done = command("add", "Write a poem.")
    assert (done.returncode, done.stderr) == (0, "")
    assert only(prepared).working_dir is None


def test_what_the_options_say_is_in_the_task(command: Command, prepared: PreparedService, shop: Path) -> None:
    given = ["--name", "tidy", "--agent", "claude", "--tier", "fast", "--worktree", "--after", "first", "--tag", "a"]
    done = command("add", "Tidy up.", "-C", "shop", *given, "--tag", "b", "--priority", "high")
    assert done.returncode == 0, done.stderr
    spec = only(prepared)
    assert (spec.name, spec.agent.type, spec.agent.tier, spec.isolation) == (
        "tidy",
        "claude",
        "fast",
        Isolation.WORKTREE,
    )
    assert (spec.depends_on, spec.tags) == (("first",), ("a", "b"))


def test_a_dash_reads_the_text(command: Command, prepared: PreparedService) -> None:
    assert command("add", "-", stdin="First do this.\nThen that.\n").returncode == 0
    assert only(prepared).instructions.startswith("First do this.\nThen that.")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (("",), "instructions"),
        (("   ",), "instructions"),
        (("Do it.", "--name", "Not A Name"), "name"),
        (("Do it.", "--priority", "soon"), "priority"),
        (("Do it.", "--worktree"), "isolation"),
        (("Do it.", "-C", "nowhere"), "nowhere"),
    ],
)
def test_what_is_no_task_is_refused_with_its_field(
    command: Command, prepared: PreparedService, given: tuple[str, ...], text: str
) -> None:
    done = command("add", *given)
    assert done.returncode in (1, 2)
    assert text in done.stderr
    assert not prepared.task_ids()


def test_the_list_has_a_line_for_each_task_and_names_its_repository(
    command: Command, prepared: PreparedService, shop: Path
) -> None:
    prepared.add("here", working_dir=str(shop))
    prepared.add("nowhere")
    lines = command("list").stdout.splitlines()
    assert [line.split()[1] for line in lines] == ["NAME", "nowhere", "here"]
    prepared.add("works", Running(Phase.CHECKING), agent_name="claude")
    state, name, *_, detail = command("list").stdout.splitlines()[1].split()
    assert (state, name, detail) == ("RUNNING", "works", "checking")
    assert "shop" in lines[2]
    assert [row["name"] for row in json.loads(command("list", "--repo", "shop", "--json", "name").stdout)] == ["here"]


def test_the_list_is_cut_and_filtered(command: Command, prepared: PreparedService, shop: Path) -> None:
    for name in ("a", "b", "c"):
        prepared.add(name, tags=("x",) if name == "a" else ())
    names = [row["name"] for row in json.loads(command("list", "--json", "name", "-n", "2").stdout)]
    assert names == ["c", "b"]
    assert json.loads(command("list", "--json", "name", "--tag", "x").stdout) == [{"name": "a"}]
    assert json.loads(command("list", "--json", "name,state", "--state", "failed").stdout) == []
    assert command("list", "--repo", "shop").stderr == "No task matches.\n"


def test_a_field_that_no_task_has_is_refused_with_those_there_are(command: Command) -> None:
    done = command("list", "--json", "name,colour")
    assert done.returncode == 2
    assert "a task has no colour; it has id, name" in " ".join(done.stderr.split())
