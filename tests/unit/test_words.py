"""The English of what people read: no word that a reader would stumble over, in texts of the program or in pages."""

import ast
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
RECOGNISED = ("routing/profile.py",)
"""Their texts are words that others write, and that are looked for."""
PARAMETERS = frozenset({"besides"})
PAGES = ("README.md", "docs/*.md", "docs/*/*.md")

INSTEAD = {
    r"mend(s|ed)?": "fix",
    r"anew": "again",
    r"besides": "also, in addition to",
    r"for good": "permanently",
    r"(goes|go|going|went) on": "continue",
    r"(need|needs|for|without|of|what) leave": "permission",
    r"(is|are|was|be) told of": "is notified of",
    r"cannot be told of": "has no option for",
    r"so it stands": "so it is",
    r"for ever": "forever",
    r"no (time|date|role|socket|folder|URL);": "not a ...",
    r"in the midst": "in the middle",
    r"not believed": "ignored",
    r"looked into": "searched",
    r"go together|goes with --\w+|go with --\w+": "requires",
    r"hand(ed|s)? in": "submit",
    r"is there already": "already exists",
    r"speaks? of": "names",
    r"decide[sd]? anew": "chosen again",
    r"(is|are|was) not believed": "is not trusted",
    r"there is to be": "there must be",
    r"is there twice": "duplicate ...",
    r"exists already": "already exists",
    r"excludes? each other": "mutually exclusive",
    r"all the same": "anyway, still",
    r"once more": "again",
    r"a line a change": "a line per change",
    r"hereby|thereby|wherefrom|whereof|whereto": "by this, from which",
    r"whilst|amongst": "while, among",
    r"give more of": "use a longer prefix",
    r"has been heard": "was accepted",
    r"chosen by name only": "only when named explicitly",
    r"to be of service": "to help",
    r"whosoever|whatsoever": "who, any",
    r"was told of": "was notified of",
    r"looks? at it again": "check again",
    r"nobody misses": "is no longer needed",
    r"is of no use": "is useless",
    r"(?<!there )(is|are) no (JSON|card|object|list|text|number|file|function|kind)": "is not a ...",
    r"take[s]? part no more|nothing any more|learn nothing more": "remove, clear, stop",
    r"is to be (said|done|asked|made)": "must be, will be",
    r"(what|whoever) addresses nobody": "messages that address nobody",
    r"nobody in particular": "no specialist",
    r"open to balancing": "for tasks that name none",
    r"in generation": "after restart",
}
"""Patterns, case aside, and what to write instead."""

ODD = re.compile(r"\b(?:" + "|".join(f"(?:{pattern})" for pattern in INSTEAD) + r")\b", re.IGNORECASE)


@cache
def _program_texts() -> Sequence[tuple[str, str]]:
    return [*_texts_of_code(), *_lines((REPOSITORY / "claudomator_py").rglob("*.html"))]


def _texts_of_code() -> Iterator[tuple[str, str]]:
    """Each text in the code that may reach a person, with its place; docstrings of what is not shown are left out."""
    package = REPOSITORY / "claudomator_py"
    for file in sorted(package.rglob("*.py")):
        if str(file.relative_to(package)) in RECOGNISED:
            continue
        tree = ast.parse(file.read_text())
        docs = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
                continue
            if node not in docs and node.value not in PARAMETERS:
                yield f"{file.relative_to(REPOSITORY)}:{node.lineno}", node.value


INSTALLED = re.compile(r"pip install '?(claudomator[\w-]*\[\w+\])")


def _page_texts() -> Sequence[tuple[str, str]]:
    return [each for pattern in PAGES for each in _lines(REPOSITORY.glob(pattern))]


def _lines(files: Iterable[Path]) -> Iterator[tuple[str, str]]:
    for file in sorted(files):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            yield f"{file.relative_to(REPOSITORY)}:{number}", line


@pytest.mark.parametrize("texts", [_program_texts, _page_texts])
def test_people_read_plain_english(texts: Callable[[], Sequence[tuple[str, str]]]) -> None:
    odd = [f"{place}: {match[0]!r} in {text!r}" for place, text in texts() if (match := ODD.search(text))]
    assert not odd, "\n".join(odd)


@pytest.mark.parametrize("texts", [_program_texts, _page_texts])
def test_what_people_are_told_to_install_exists(texts: Callable[[], Sequence[tuple[str, str]]]) -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    known = {f"{project['name']}[{extra}]" for extra in project["optional-dependencies"]}
    messages = [(place, result) for place, text in texts() for result in INSTALLED.findall(text)]
    assert messages
    assert [each for each in messages if each[1] not in known] == []


@pytest.mark.parametrize("text", ["Mend what is named", "Look at it, and decide anew.", "to.yaml exists already."])
def test_an_odd_word_is_found(text: str) -> None:
    assert ODD.search(text)
