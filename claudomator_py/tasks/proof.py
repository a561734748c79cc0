"""Finds what a passed check may owe its success to: lines removed from what it names, or tests that are gone. The words
are in ``proof.toml``."""

import os.path
import shlex
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path, PurePath
from re import Pattern
from typing import Any, Final

from claudomator_py.domain.changes import MAX_FILES, FileChange, RunChanges
from claudomator_py.domain.task import TaskSpec
from claudomator_py.texts import fold, listed
from claudomator_py.values import regex, toml_data

_NAMED: Final = regex(r"(?:^|[._/-])_*(?:tests?|specs?|checks?)_*(?:[._/-]|$)|Tests?\.\w+$")
"""Is found in the path of a test that a check names: ``tests/price.py``, ``price.spec.ts``, ``PriceTest.java``,
``run-checks.sh``; not in ``src/latest.py``."""
_TEST: Final = regex(r"(?:^|[._-])(?:tests?|specs?)(?:[._-]|$)|Tests?\.\w+$")
"""Is found in the name of a file with tests: ``test_price.py``, ``price.spec.ts``, ``PriceTest.java``."""


def altered_checks(spec: TaskSpec, changes: RunChanges) -> tuple[str, ...]:
    """Return files because of which the task's check may have passed: tests and programs that it names and of which
    lines were removed, or else tests that were deleted. One that the task's text names as well was to be changed.

    What else a check names, such as a source file to compile, is what the task is about. One that is new, or with lines
    added, demands no less.
    """
    named = _named_by_check(spec, changes)
    lost = [file for file in changes.files if file.removed or file.change in ("deleted", "renamed")]
    paths = [file.old_path or file.path for file in lost]
    altered = [path for path in paths if path in named] or [file.path for file in _deleted_tests(spec, changes)]
    return tuple(path for path in altered if PurePath(path).name not in spec.instructions)[:MAX_FILES]


def _named_by_check(spec: TaskSpec, changes: RunChanges) -> frozenset[str]:
    """Return the paths of the tests and programs that the task's check names, relative to the top."""
    top = changes.repository or changes.place
    try:
        home = Path(spec.working_dir or top).expanduser()
    except RuntimeError:  # nobody knows whose home it is
        return frozenset()
    folder = home.relative_to(top) if home.is_relative_to(top) else PurePath()
    programs = {command[0] for command in spec.check if "/" in command[0]}
    named = {path for command in spec.check for word in command for path in _paths(word) if _NAMED.search(path)}
    return frozenset(os.path.normpath(folder / path) for path in programs | named)


def _paths(word: str) -> Iterator[str]:
    """Yield what may be a path in a word of a command: that of an option, a test's file, or one in a shell's text."""
    try:
        parts = shlex.split(word)
    except ValueError:
        return
    for part in parts:
        yield part.rpartition("=")[2].partition("::")[0]


def _deleted_tests(spec: TaskSpec, changes: RunChanges) -> Sequence[FileChange]:
    """Return deleted tests and snapshots, unless there is a reason for it: other files were deleted as well, the tests
    that remain gained half as many lines, or the task's text asks for a removal."""
    gone = [file for file in changes.files if file.change == "deleted"]
    if not gone or changes.file_count > len(changes.files) or not all(map(_is_test, gone)):
        return ()
    gained = sum(file.added or 0 for file in changes.files if file.change != "deleted" and _is_test(file))
    is_moved = gained > 0 and 2 * gained >= sum(file.removed or 0 for file in gone)
    return () if is_moved or asks_for_removal().search(fold(spec.instructions)) else gone


def _is_test(file: FileChange) -> bool:
    path = PurePath(file.path)
    if any("snapshot" in folder for folder in path.parts[:-1]):
        return True
    return path.suffix not in _data()["no_tests"]["suffixes"] and _TEST.search(path.name) is not None


@cache
def asks_for_removal() -> Pattern[str]:
    """Return the expression for words of a task's text, folded, that ask for a removal."""
    words = _data()["removal"]
    begins, within = "|".join(listed(words["begins"])), "|".join(listed(words["within"]))
    return regex(rf"\b(?:{begins})|{within}")


def _data() -> dict[str, Any]:
    return toml_data("claudomator_py.tasks", "proof.toml")
