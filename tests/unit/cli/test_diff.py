"""``diff``: the patch, what it says where there is none, and the short forms."""

import json

import pytest

from claudomator_py.domain.changes import RunChanges
from claudomator_py.domain.outcome import Outcome, OutcomeStatus
from tests.fakes.command import Command
from tests.fakes.prepared import PreparedService

PATCH = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n 1\n+2\n"
CHANGES = {
    "place": "/srv/shop",
    "branch": "topic",
    "branch_before": "main",
    "head": "b" * 40,
    "head_before": "a" * 40,
    "commits": [{"id": "b" * 40, "subject": "add \x1b[31m2", "author": "Ann"}],
    "commit_count": 3,
    "refs": [
        {"name": "refs/heads/old", "before": "a" * 40},
        {"name": "refs/heads/topic", "after": "b" * 40},
        {"name": "refs/tags/v1", "before": "a" * 40, "after": "b" * 40},
    ],
    "ref_count": 3,
    "files": [{"path": "a", "change": "modified", "added": 1, "removed": 0}, {"path": "b.png", "change": "added"}],
    "file_count": 2,
    "added": 1,
    "untracked": ["b.png"],
    "untracked_count": 1,
}


@pytest.fixture
def changed(prepared: PreparedService) -> str:
    """The id of the run of the task ``t``, which has changed something."""
    return ended(prepared, RunChanges.model_validate(CHANGES))


def ended(prepared: PreparedService, changes: RunChanges) -> str:
    run_id = prepared.add_run(prepared.add("t"))
    prepared.end_run(run_id, Outcome(status=OutcomeStatus.SUCCEEDED, changes=changes))
    return run_id


def test_it_prints_the_patch_and_nothing_else(command: Command, prepared: PreparedService, changed: str) -> None:
    prepared.world.host.patches[changed] = PATCH
    done = command("diff", "t")
    assert (done.returncode, done.stdout, done.stderr) == (0, PATCH, "")


def test_files_that_were_uncommitted_before_are_told_apart(command: Command, prepared: PreparedService) -> None:
    left = {"uncommitted": ["a", "mine"], "uncommitted_count": 2, "left_as_before": 1}
    ended(prepared, RunChanges.model_validate(CHANGES | left))
    shown = command("diff", "t", "--stat").stdout
    assert "2 not committed" in shown
    assert "  not committed: a, mine\n  not known to git: b.png\n  of these, unchanged by the run: 1\n" in shown


def test_without_a_patch_it_says_what_is_known(command: Command, changed: str) -> None:
    done = command("diff", "t")
    assert (done.returncode, done.stdout) == (0, "")
    assert "there is no patch of it" in done.stderr


def test_a_run_that_changed_nothing_says_so(command: Command, prepared: PreparedService) -> None:
    ended(prepared, RunChanges(place="/srv/shop"))
    assert command("diff", "t").stderr == "Run 1: no changes.\n"


def test_the_short_form_names_all_and_no_terminal_code(command: Command, changed: str) -> None:
    lines = command("diff", "t", "--stat").stdout.splitlines()
    assert lines[0].startswith("RUN 1 (")
    assert lines[1:] == [
        "  3 commits, 2 files (+1 -0), 1 branch made, 1 tag moved, 1 branch deleted, 1 not committed",
        "  in /srv/shop, on branch topic (before: main)",
        "  bbbbbbbb add 2 (Ann)",
        "  and 2 more",
        "  refs/heads/old: deleted, was at aaaaaaaa",
        "  refs/heads/topic: made at bbbbbbbb",
        "  refs/tags/v1: aaaaaaaa -> bbbbbbbb",
        "  FILE   CHANGE    +  -",
        "  a      modified  1  0",
        "  b.png  added",
        "  not known to git: b.png",
    ]


def test_names_alone_and_json(command: Command, changed: str) -> None:
    assert command("diff", "t", "--name-only").stdout == "a\nb.png\n"
    record = json.loads(command("diff", "t", "-o", "json").stdout)
    assert [(run["number"], run["changes"]["file_count"]) for run in record["runs"]] == [(1, 2)]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("t", "--run", "2"), "t has no run 2"),
        (("t", "--stat", "--name-only"), "Only one of"),
        (("other",), "There is no task 'other'"),
    ],
)
def test_what_cannot_be_shown_is_said(command: Command, changed: str, arguments: tuple[str, ...], text: str) -> None:
    done = command("diff", *arguments)
    assert done.returncode != 0
    assert text in done.stderr


def test_a_task_that_has_not_run(command: Command, prepared: PreparedService) -> None:
    prepared.add("t")
    assert "t has not run" in command("diff", "t").stderr


def test_show_has_it_in_a_line(command: Command, changed: str) -> None:
    assert "3 commits, 2 files (+1 -0)" in command("show", "t").stdout
