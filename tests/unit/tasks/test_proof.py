"""A passed check may owe its success to a test that the agent has deleted."""

from typing import Any

import pytest

from claudomator_py.domain.changes import FileChange, RunChanges
from claudomator_py.domain.task import TaskSpec
from claudomator_py.tasks.proof import altered_checks, asks_for_removal
from claudomator_py.texts import fold
from claudomator_py.values import toml_data

WORDS = toml_data("claudomator_py.tasks", "proof.toml")
DELETED = {"change": "deleted", "removed": 40}
FIX = "Fix the rounding."


def altered(*files: dict[str, Any], text: str = FIX, more: int = 0) -> tuple[str, ...]:
    spec = TaskSpec(name="t", instructions=text, working_dir="/srv/shop", check=(("make", "test"),))
    changed = tuple(FileChange.model_validate(file) for file in files)
    return altered_checks(spec, RunChanges(place="/srv/shop", files=changed, file_count=len(files) + more))


@pytest.mark.parametrize(
    "path", [*WORDS["no_tests"]["is_not"], "src/__snapshots__/cart.test.js.snap", "snapshots/a.json"]
)
def test_a_deleted_test_is_named(path: str) -> None:
    source = {"path": "src/price.py", "change": "modified", "added": 3, "removed": 3}
    assert altered(source, {"path": path, **DELETED}) == (path,)
    assert altered({"path": path, **DELETED, "removed": None}) == (path,), "the lines of a binary file are not counted"


@pytest.mark.parametrize("path", [*WORDS["no_tests"]["is"], "src/latest.py", "src/contest.py", "src/price.py"])
def test_another_deleted_file_is_not(path: str) -> None:
    assert altered({"path": path, **DELETED}) == ()


@pytest.mark.parametrize(
    "others",
    [
        [{"path": "src/export.py", **DELETED}],
        [{"path": "tests/test_new.py", "change": "added", "added": 20}],
        [{"path": "tests/test_b.py", "change": "modified", "added": 20, "removed": 1}],
    ],
    ids=["with what it tested", "a new one", "moved to another"],
)
def test_a_test_that_went_with_what_it_tested_or_moved_is_not(others: list[dict[str, Any]]) -> None:
    assert altered({"path": "tests/test_a.py", **DELETED}, *others) == ()


def test_a_test_that_the_task_names_or_of_very_many_files_is_not() -> None:
    gone = {"path": "tests/test_a.py", **DELETED}
    assert altered(gone, text="test_a.py fails. What for?") == ()
    assert altered(gone, more=1) == (), "what else was deleted is not known"
    assert altered(gone) == ("tests/test_a.py",)


@pytest.mark.parametrize("text", WORDS["removal"]["is"])
def test_nor_is_any_where_the_task_asks_for_a_removal(text: str) -> None:
    assert altered({"path": "tests/test_a.py", **DELETED}, text=text) == ()


@pytest.mark.parametrize("text", WORDS["removal"]["is_not"])
def test_other_tasks_ask_for_none(text: str) -> None:
    assert asks_for_removal().search(fold(text)) is None
    assert altered({"path": "tests/test_a.py", **DELETED}, text=text) == ("tests/test_a.py",)
