"""The runner of the documentation: it finds what is not true."""

from pathlib import Path

import pytest

from tests.docs.compare import matches
from tests.docs.follow import follow
from tests.docs.page import BadPage, steps_of


def _page(folder: Path, text: str) -> Path:
    page = folder / "page.md"
    page.write_text(text)
    return page


def test_a_true_page_passes(tmp_path: Path) -> None:
    text = (
        "<!-- file: notes/a.txt -->\n```text\none\ntwo\n```\n\n"
        "```console\n$ cat notes/a.txt\none\n…\n$ cd notes\n$ pwd\n/home/ann/notes\n$ false\n$ echo $?\n1\n```\n"
    )
    assert follow(_page(tmp_path, text), tmp_path / "home") == 5


@pytest.mark.parametrize(
    "shown", ["$ echo one\ntwo", "$ echo one", "$ printf 'a\\nb\\n'\na", "$ no-such-program", "$ echo one\none\none"]
)
def test_a_false_page_fails(shown: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="did not print what the page shows"):
        follow(_page(tmp_path, f"```console\n{shown}\n```\n"), tmp_path / "home")


def test_a_hidden_command_and_a_file_that_grows(tmp_path: Path) -> None:
    text = (
        "<!-- run: echo one > a.txt -->\n\n<!-- append: a.txt -->\n```text\ntwo\n```\n\n"
        "```console\n$ cat a.txt\none\ntwo\n```\n"
    )
    assert follow(_page(tmp_path, text), tmp_path / "home") == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("```\n$ ls\n```\n", "fenced as console"),
        ("```console\nls\n```\n", "begins with"),
        ("```console\n$ ls\n", "no end"),
        ("<!-- not run -->\n```console\n$ ls\n```\n", "needs a path or reason"),
        ("<!-- daemon -->\n\nwords\n", "no block right below"),
    ],
)
def test_a_block_that_would_be_passed_over_is_an_error(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(BadPage, match=why):
        steps_of(_page(tmp_path, text))


def test_a_block_that_says_why_is_not_run(tmp_path: Path) -> None:
    text = "<!-- not run: it needs an account -->\n```console\n$ false\nnever seen\n```\n"
    assert follow(_page(tmp_path, text), tmp_path / "home") == 0


@pytest.mark.parametrize(
    ("expected", "printed"),
    [
        (["done 2s ago at 127.0.0.1"], "done 14s ago at 127.0.0.1"),
        (["on http://127.0.0.1:8484"], "on http://127.0.0.1:39000"),
        (["NAME   ID", "a      0a1b2c3d"], "NAME  ID\na     ffeeddc0\n"),
        (["first", "…"], "first"),
        (["…", "last"], "a\nb\nlast\n"),
    ],
)
def test_what_differs_each_time_is_equal(expected: list[str], printed: str) -> None:
    assert matches(expected, printed)


@pytest.mark.parametrize(
    ("expected", "printed"),
    [
        (["COMPLETED"], "FAILED"),
        (["attempt 1"], "attempt 2"),
        (["1 of 2 slots"], "0 of 2 slots"),
        (["a", "b"], "b\na"),
        (["…", "last"], "last\nmore"),
        (["exit 1"], "exit 11"),
    ],
)
def test_what_matters_is_not(expected: list[str], printed: str) -> None:
    assert not matches(expected, printed)
