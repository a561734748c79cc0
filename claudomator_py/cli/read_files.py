"""Task files named on the command line, or the text on stdin, parsed as the inbox would parse them.

A file means the same wherever it goes in: nothing in it is rewritten on the way, so ``~`` is the home of the user the
daemon runs as, and a relative directory is refused here as it is there.
"""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from claudomator_py.domain.errors import Problem, shown
from claudomator_py.domain.task import TaskSpec

if TYPE_CHECKING:
    from claudomator_py.schema.taskfiles import ParsedFile

STDIN = Path("-")
_STDIN_AS = "-.yaml"  # read as YAML, which JSON is too; gives no name to a task that has none


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file, and its tasks or its problems. parsed: what tells the line of a problem that was found later."""

    shown: str
    specs: tuple[TaskSpec, ...]
    problems: tuple[Problem, ...]
    parsed: "ParsedFile | None" = None

    def located(self, spec: TaskSpec, problem: Problem) -> Problem:
        """A problem with one of its tasks, with the line that it is in."""
        return problem if self.parsed is None else self.parsed.located(spec.name, problem)

    def checked(self, refusals: "Callable[[TaskSpec], Sequence[Problem]]") -> "ReadFile":
        """With what is to be said against its tasks besides."""
        found = [self.located(spec, problem) for spec in self.specs for problem in refusals(spec)]
        return replace(self, specs=(), problems=tuple(found)) if found else self


def read(paths: Iterable[Path]) -> list[ReadFile]:
    """Every file, in that order; a folder stands for the task files in it.

    Raises BadParameter for a path at which there is nothing, and never for what is in a file.
    """
    return [_read(path) for given in paths for path in _files(given)]


def _files(path: Path) -> list[Path]:
    from claudomator_py.schema.taskfiles import is_task_file

    # Not Path.exists, which raises where a name is longer than the system takes.
    if path != STDIN and not os.path.exists(path):  # noqa: PTH110
        raise typer.BadParameter(f"there is no {shown(_readable(path))}")
    if path == STDIN or not path.is_dir():
        return [path]
    return sorted(file for file in path.rglob("*") if file.is_file() and is_task_file(file.name))


def _read(path: Path) -> ReadFile:
    from claudomator_py.schema.taskfiles import SUFFIXES, is_task_file, parse_task_file

    name = "stdin" if path == STDIN else _readable(path)
    if path != STDIN and not is_task_file(path.name):
        remedy = f"use a name that ends in {', '.join(SUFFIXES)}, is not hidden and not README"
        return ReadFile(name, (), (Problem(message="is no task file by its name", remedy=remedy),))
    if path != STDIN and _readable(path) != str(path):
        return ReadFile(name, (), (Problem(message="its name is not valid UTF-8", remedy="rename it"),))
    try:
        data = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    except OSError as error:
        problem = Problem(message=f"cannot be read: {error.strerror or error}", remedy="see that it is a readable file")
        return ReadFile(name, (), (problem,))
    parsed = parse_task_file(data, _STDIN_AS if path == STDIN else path.name)
    return ReadFile(name, parsed.specs, parsed.problems, parsed)


def _readable(path: Path) -> str:
    """The path as it can be shown, whatever bytes are in it."""
    return os.fsencode(path).decode(errors="backslashreplace")
