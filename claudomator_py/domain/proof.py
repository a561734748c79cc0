"""Finds what a success may rest on: lines removed from what its check names, and tests deleted or skipped. The words
are in ``proof.toml``."""

import shlex
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from posixpath import normpath
from re import MULTILINE, Pattern
from typing import Any, Final

from claudomator_py.domain.changes import MAX_FILES, RunChanges
from claudomator_py.domain.task import TaskSpec
from claudomator_py.texts import fold, listed
from claudomator_py.values import regex, toml_data

_NAMED: Final = regex(r"(?:^|[._/-])_*(?:tests?|specs?|checks?)_*(?:[._/-]|$)|Tests?\.\w+$")
"""Is found in the path of a test that a check names: ``tests/price.py``, ``price.spec.ts``, ``PriceTest.java``,
``run-checks.sh``; not in ``src/latest.py``."""
_TEST: Final = regex(r"(?:^|[._-])(?:tests?|specs?)(?:[._-]|$)|(?:Tests?|Spec)\.\w+$")
"""Is found in the name of a file with tests: ``test_price.py``, ``price.spec.ts``, ``PriceTest.java``."""
_AMONG_TESTS: Final = regex(r"(?:^|/)(?:__tests__|[Tt]ests?|specs?)/")
"""Is found in the path of a file that may have tests, whatever its name."""
_SETTINGS: Final = regex(
    r"(?:^|/)(?:package\.json|(?:GNUm|[Mm])akefile|[Jj]ustfile|pytest\.ini|pyproject\.toml|setup\.cfg|tox\.ini|noxfile\.py"
    r"|conftest\.py|(?:jest|vitest|playwright|karma)\.config\.\w+|\.mocharc\.\w+|build\.gradle(?:\.kts)?|pom\.xml)$"
)
"""Is found in the path of a file that says how tests are run."""
_CONDITION: Final = regex(r"\s*(?:\}\s*)?(?:if|else|elif|elsif|unless|when|case|except|rescue|catch|guard)\b")
"""Begins a line under which something is done on a condition only."""
_CONDITIONAL: Final = regex(r"\b(?:if|unless)\b")
_QUOTED: Final = regex(r"\"[^\"]*\"|'[^']*'")
_NEXT_FILE: Final = "\ndiff --git "
_PATHS: Final = regex(r"^--- a/.*\n\+\+\+ b/(?P<path>[^\t\n]*)\t?$", MULTILINE)
"""In the patch of a file that was there before and still is. A tab follows a path with blanks."""


def altered_checks(spec: TaskSpec, changes: RunChanges, folder: str) -> tuple[str, ...]:
    """Return files because of which the task's check may have passed: tests and programs that it names and of which
    lines were removed. One that the task's text names was to be changed.

    What else a check names, such as a source file to compile, is what the task is about. One that is new, or with lines
    added, demands no less. folder: the task's working directory, relative to the top of the repository.
    """
    programs = {command[0] for command in spec.check if "/" in command[0]}
    named = {path for command in spec.check for word in command for path in _paths(word) if _NAMED.search(path)}
    proving = {normpath(f"{folder}/{path}") for path in programs | named}
    lost = [file for file in changes.files if file.removed or file.change in ("deleted", "renamed")]
    paths = [path for file in lost if (path := file.old_path or file.path) in proving]
    return _unnamed(spec, paths)


def weakened_tests(spec: TaskSpec, changes: RunChanges) -> tuple[str, ...]:
    """Return the tests that were deleted or are skipped, and settings by which some are, although the task's text names
    none of them and asks for nothing of the kind."""
    return _unnamed(spec, [*_deleted_tests(spec, changes), *_skipped_tests(spec, changes)])


def _unnamed(spec: TaskSpec, paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(path for path in dict.fromkeys(paths) if _name(path) not in spec.instructions)[:MAX_FILES]


def _paths(word: str) -> Iterator[str]:
    """Yield what may be a path in a word of a command: that of an option, a test's file, or one in a shell's text."""
    try:
        parts = shlex.split(word)
    except ValueError:
        return
    for part in parts:
        yield part.rpartition("=")[2].partition("::")[0]


def _deleted_tests(spec: TaskSpec, changes: RunChanges) -> Sequence[str]:
    """Return the paths of deleted tests and snapshots, unless there is a reason for it: other files were deleted as
    well, the tests that remain gained half as many lines, or the task's text asks for a removal."""
    gone = [file for file in changes.files if file.change == "deleted"]
    if not gone or changes.file_count > len(changes.files) or not all(is_test(file.path) for file in gone):
        return ()
    gained = sum(file.added or 0 for file in changes.files if file.change != "deleted" and is_test(file.path))
    is_moved = gained > 0 and 2 * gained >= sum(file.removed or 0 for file in gone)
    return () if is_moved or asks_for("removal", spec.instructions) else [file.path for file in gone]


def _skipped_tests(spec: TaskSpec, changes: RunChanges) -> Sequence[str]:
    """Return the paths of tests that the changes have skipped, unless the task's text asks for it, or a removal."""
    is_wanted = changes.skips and any(asks_for(what, spec.instructions) for what in ("removal", "skipping"))
    return () if is_wanted else changes.skips


def is_test(path: str) -> bool:
    """Return whether the path is that of a file with tests, or of a snapshot to compare with."""
    folders, _, name = path.rpartition("/")
    if "snapshots" in folders:
        return True
    return not name.endswith(tuple(_data()["no_tests"]["suffixes"])) and _TEST.search(name) is not None


def _skips_more(lines: Sequence[str], code: Pattern[str]) -> bool:
    """Return whether more of the lines of a patch that skip something are added than removed. One under a condition,
    such as that a program is missing, skips nothing where that is there."""
    more = 0
    for before, line in pairwise(["", *lines]):
        if line[:1] in ("+", "-") and code.search(line):
            is_conditional = _CONDITION.match(before[1:]) or _CONDITIONAL.search(_QUOTED.sub("", line))
            more += 0 if is_conditional else 1 if line[0] == "+" else -1
    return more > 0


def skips_in(patch: str) -> Iterator[str]:
    """Yield the paths of tests and their settings that a patch of git changes so that more is skipped than before."""
    for piece in f"\n{patch}".split(_NEXT_FILE):
        head, _, lines = piece.partition("\n@@ ")
        if (paths := _PATHS.search(head)) is None:
            continue
        path = paths["path"]
        place = (
            "tests" if is_test(path) or _AMONG_TESTS.search(path) else "settings" if _SETTINGS.search(path) else None
        )
        if place is not None and _skips_more(lines.splitlines(), _code(place)):
            yield path


def asks_for(what: str, text: str) -> bool:
    """Return whether a task's text asks for a ``removal``, or for ``skipping`` tests."""
    return _asking(what).search(fold(text)) is not None


@cache
def _asking(what: str) -> Pattern[str]:
    words = _data()[what]
    return regex(rf"\b(?:{'|'.join(listed(words['begins']))})|{'|'.join(listed(words['within']))}")


@cache
def _code(place: str) -> Pattern[str]:
    return regex("|".join(_data()["skips"][place]["code"]))


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _data() -> dict[str, Any]:
    return toml_data("claudomator_py.domain", "proof.toml")
