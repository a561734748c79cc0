"""A success may rest on a check that the agent has changed, or on tests that it has deleted or skipped."""

from typing import Any

import pytest

from claudomator_py.domain.changes import FileChange, RunChanges
from claudomator_py.domain.proof import altered_checks, asks_for, skips_in, weakened_tests
from claudomator_py.domain.task import TaskSpec
from claudomator_py.values import toml_data

WORDS = toml_data("claudomator_py.domain", "proof.toml")
DELETED = {"change": "deleted", "removed": 40}
FIX = "Fix the rounding."


def altered(
    *files: dict[str, Any],
    check: str | tuple[str, ...] = "make test",
    text: str = FIX,
    more: int = 0,
    skips: tuple[str, ...] = (),
    folder: str = ".",
) -> tuple[str, ...]:
    command = tuple(check.split()) if isinstance(check, str) else check
    spec = TaskSpec(name="t", instructions=text, check=(command,))
    changed = tuple(FileChange.model_validate(file) for file in files)
    changes = RunChanges(place="/srv/shop", files=changed, file_count=len(files) + more, skips=skips)
    return altered_checks(spec, changes, folder) + weakened_tests(spec, changes)


LESS: dict[str, Any] = {"change": "modified", "added": 9, "removed": 1}


@pytest.mark.parametrize(
    ("check", "path", "change"),
    [
        ("pytest tests/test_a.py::test_one", "tests/test_a.py", LESS),
        ("pytest --file=./tests/test_a.py", "tests/test_a.py", LESS),
        (
            "pytest tests/test_a.py",
            "tests/test_a.py",
            {"change": "renamed", "old_path": "tests/test_a.py", "path": "old/a"},
        ),
        ("./ci/all -x", "ci/all", LESS),
        ("node web/cart.spec.ts", "web/cart.spec.ts", LESS),
    ],
)
def test_what_a_check_names_and_has_lost_lines_is_named(check: str, path: str, change: dict[str, Any]) -> None:
    assert altered({"path": path, **change}, check=check) == (path,)
    assert altered({"path": f"shop/{path}", **LESS}, check=check, folder="shop") == (f"shop/{path}",)
    assert altered({"path": path, **change}, check=check, text=f"Move {path.rpartition('/')[2]}.") == ()


@pytest.mark.parametrize(
    ("check", "path", "change"),
    [
        ("pytest tests/test_a.py", "tests/test_a.py", {**LESS, "removed": 0}),
        ("pytest tests/test_a.py", "tests/test_a.py", {"change": "added", "added": 9, "removed": 0}),
        ("pytest tests", "tests/test_a.py", LESS),
        ("pytest test_a.py", "tests/test_a.py", LESS),
        ("ruff check src/latest.py", "src/latest.py", LESS),
        ("make test", "make", LESS),
    ],
)
def test_what_gained_lines_or_is_no_test_is_not(check: str, path: str, change: dict[str, Any]) -> None:
    assert altered({"path": path, **change}, check=check) == ()


def test_a_check_in_a_shell_is_read() -> None:
    assert altered({"path": "tests/test_a.py", **LESS}, check=("sh", "-c", "cd . && python3 ./tests/test_a.py"))


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


def test_half_as_many_lines_in_other_tests_are_enough() -> None:
    gone, test = {"path": "tests/test_a.py", **DELETED}, {"path": "tests/test_b.py", "change": "modified"}
    assert altered(gone, {**test, "added": 20}) == ()
    assert altered(gone, {**test, "added": 19}) == (gone["path"],)
    assert altered(gone, {"path": "src/a.py", "change": "modified", "added": 99}) == (gone["path"],)


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
    assert not asks_for("removal", text)
    assert altered({"path": "tests/test_a.py", **DELETED}, text=text) == ("tests/test_a.py",)


def patch(path: str, *lines: str, head: str = "") -> str:
    old = "/dev/null" if "new file" in head else f"a/{path}"
    return f"diff --git a/{path} b/{path}\n{head}--- {old}\n+++ b/{path}\n@@ -1 +1 @@\n" + "".join(
        f"{line}\n" for line in lines
    )


@pytest.mark.parametrize("line", WORDS["skips"]["tests"]["is"])
def test_a_line_that_skips_a_test_is_found(line: str) -> None:
    assert [*skips_in(patch("tests/test_a.py", f"+{line}"))] == ["tests/test_a.py"]
    assert [*skips_in(patch("src/a.py", f"+{line}"))] == [], "in no test"
    assert [*skips_in(patch("tests/test_a.py", f"-{line}"))] == [], "it is no longer skipped"
    assert [*skips_in(patch("tests/test_a.py", f"+{line}", head="new file mode 100644\n"))] == [], "a new test"


@pytest.mark.parametrize("line", WORDS["skips"]["tests"]["is_not"])
def test_any_other_line_of_a_test_skips_nothing(line: str) -> None:
    assert [*skips_in(patch("tests/test_a.py", f"+{line}"))] == []


SETTINGS = [
    "package.json",
    "web/package.json",
    "Makefile",
    "pyproject.toml",
    "conftest.py",
    "jest.config.mjs",
    "pom.xml",
]


@pytest.mark.parametrize("line", WORDS["skips"]["settings"]["is"])
def test_a_setting_by_which_tests_are_skipped_is_found(line: str) -> None:
    assert [*skips_in("".join(patch(path, f"+{line}") for path in SETTINGS))] == SETTINGS
    assert [*skips_in(patch("src/package.json.py", f"+{line}"))] == []


@pytest.mark.parametrize("line", WORDS["skips"]["settings"]["is_not"])
def test_another_setting_is_not(line: str) -> None:
    assert [*skips_in(patch("package.json", f"+{line}"))] == []


def test_a_path_with_a_blank_is_followed_by_a_tab_in_a_patch() -> None:
    assert [*skips_in(patch("my shop/test_a.py", "+@pytest.mark.skip").replace("a.py\n@@", "a.py\t\n@@"))] == [
        "my shop/test_a.py"
    ]


@pytest.mark.parametrize(
    "before",
    [
        "    if not compiler():",
        "        if testing.Short() {",
        "    } else {",
        "    except ImportError:",
        "  unless there?",
    ],
)
def test_what_is_skipped_on_a_condition_is_not(before: str) -> None:
    for mark in ("+", " "):
        assert [*skips_in(patch("tests/test_a.py", f"{mark}{before}", '+        pytest.skip("no compiler")'))] == []
    assert [*skips_in(patch("tests/test_a.py", f"-{before}", " x = 1", '+        pytest.skip("later")'))]


@pytest.mark.parametrize("path", ["tests/api.rs", "src/__tests__/cart.js", "Tests/CartFixture.cs"])
def test_any_file_among_tests_may_skip_some(path: str) -> None:
    assert [*skips_in(patch(path, "+it.skip('adds', () => {"))] == [path]


def test_only_what_is_skipped_more_often_than_before_counts() -> None:
    moved = patch("tests/test_a.py", "-@pytest.mark.skip", " x = 1", "+@pytest.mark.skip")
    assert [*skips_in(moved + patch("tests/test_b.py", " @pytest.mark.skip", "+@pytest.mark.skip"))] == [
        "tests/test_b.py"
    ]


def test_a_test_that_is_skipped_is_named_unless_the_task_asks_for_that() -> None:
    changed = {"path": "tests/test_a.py", "change": "modified", "added": 1, "removed": 0}
    assert altered(changed, skips=("tests/test_a.py",)) == ("tests/test_a.py",)
    for text in (*WORDS["skipping"]["is"], "Drop support for Python 3.8.", "test_a.py is slow."):
        assert altered(changed, skips=("tests/test_a.py",), text=text) == ()


@pytest.mark.parametrize("text", WORDS["skipping"]["is_not"])
def test_other_tasks_do_not_ask_to_skip_tests(text: str) -> None:
    assert not asks_for("skipping", text)
