"""Task files named on the command line, parsed as the inbox parses them."""

import os
import shlex
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import typer

from claudomator_py.cli import exists
from claudomator_py.cli.output import fail, note
from claudomator_py.domain.errors import Problem, printable, shown
from claudomator_py.domain.task import TaskSpec
from claudomator_py.resources.tasks import TaskView
from claudomator_py.schema.cardfile import card_text
from claudomator_py.schema.taskfile import to_document
from claudomator_py.values import dataclass

if TYPE_CHECKING:
    from claudomator_py.schema.documents import ParsedFile

V = TypeVar("V")
STDIN = Path("-")
STDIN_AS: Final = "-.yaml"
"""Stdin is read as YAML, which includes JSON. The name gives an unnamed task no name."""


class TaskFileContent(NamedTuple):
    """The contents of a file. name: without folders; for stdin, one that says how it is read."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file, and its tasks or its problems. parsed: locates problems that are found later."""

    shown: str
    specs: tuple[TaskSpec, ...]
    problems: tuple[Problem, ...]
    parsed: "ParsedFile[TaskSpec] | None" = None

    def located(self, spec: TaskSpec, problem: Problem) -> Problem:
        """Return the problem of one of its tasks, with its line."""
        return problem if self.parsed is None else self.parsed.located(spec, problem)

    def checked(self, refusals: "Callable[[TaskSpec], Sequence[Problem]]") -> "ReadFile":
        """Return the file with further problems of its tasks. refusals: returns those of a task."""
        problems = [self.located(spec, problem) for spec in self.specs for problem in refusals(spec)]
        return replace(self, specs=(), problems=tuple(problems)) if problems else self


def read(paths: Iterable[Path]) -> list[ReadFile]:
    """Return all files in order; a folder stands for the task files in it.

    Raises BadParameter for a path that does not exist, never for a file's content.
    """
    files = [(path, path != given and is_configuration(path)) for given in paths for path in files_at(given)]
    return [parsed_as_tasks(path, content(path, "task")) for path, configures in files if not configures]


def is_configuration(path: Path) -> bool:
    """Return whether the name is that of a daemon's configuration, which ``init`` writes beside tasks."""
    from claudomator_py.schema.configpath import FILE_NAME

    return path.name == FILE_NAME


def files_at(path: Path) -> list[Path]:
    """Return the path itself, or the files in the folder with suitable names, except in hidden folders. Folders in it
    that cannot be read are among them, so that nobody takes their files for checked.

    Raises BadParameter.
    """
    from claudomator_py.schema.documents import is_document

    if path != STDIN and not os.path.lexists(path):
        raise typer.BadParameter(f"there is no {shown(readable_path(path))}")
    if path == STDIN or not exists(path) or not path.is_dir():
        return [path]
    unreadable: list[Path] = []
    files: list[Path] = []
    for folder, folders, names in os.walk(path, onerror=lambda error: unreadable.append(Path(str(error.filename)))):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += [Path(folder, name) for name in names if is_document(name)]
    return sorted(unreadable + files)


def content(path: Path, noun: str) -> TaskFileContent | Problem:
    """Return a file's content, or why it is not read. noun: what it should contain, for people."""
    from claudomator_py.schema.documents import SUFFIXES, is_document
    from claudomator_py.schema.yamltext import MAX_BYTES

    if path == STDIN:
        return TaskFileContent(STDIN_AS, sys.stdin.buffer.read())
    if not is_document(path.name) and not (exists(path) and path.is_dir()):
        remedy = f"use a name that ends in {', '.join(SUFFIXES)}, is not hidden and is not README"
        return Problem(message=f"does not have the name of a {noun} file", remedy=remedy)
    if readable_path(path) != str(path):
        return Problem(message="its name is not valid UTF-8", remedy="rename it")
    try:
        if stat.S_ISDIR((status := path.stat()).st_mode):
            os.scandir(path).close()
        if not stat.S_ISREG(status.st_mode):
            return Problem(message="is not a regular file", remedy="name a file, or a folder of them")
        with path.open("rb") as file:
            return TaskFileContent(path.name, file.read(MAX_BYTES + 1))
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        return Problem(message=message, remedy="check that it is a readable file")


def parsed_as_tasks(path: Path, content: TaskFileContent | Problem) -> ReadFile:
    """Return the tasks in the content of the path."""
    from claudomator_py.schema.taskfile import parse_task_file

    if isinstance(content, Problem):
        return ReadFile(name_of(path), (), (content,))
    parsed = parse_task_file(content.data, content.name)
    return ReadFile(name_of(path), parsed.items, parsed.problems, parsed)


def name_of(path: Path) -> str:
    """Return the path's name for people."""
    return "stdin" if path == STDIN else printable(readable_path(path))


def readable_path(path: str | Path) -> str:
    """Return the path as printable text, whatever bytes are in it."""
    return os.fsencode(path).decode(errors="backslashreplace")


def only_task(file: Path) -> TaskSpec:
    """Return the one task of a file. Raises BadParameter."""
    (content,) = read([file])
    if content.problems or len(content.specs) != 1:
        texts = [problem.render(content.shown) for problem in content.problems]
        raise typer.BadParameter("; ".join(texts) or f"{file} has {len(content.specs)} tasks, not one")
    return content.specs[0]


def edited_task(before: TaskView) -> TaskSpec | None:
    """Return the task as edited in the user's editor; None: unchanged. Problems can be fixed in the editor again."""
    usual = to_document(TaskSpec(name="x", instructions="x"))
    text = card_text({key: value for key, value in (before.spec or {}).items() if value != usual.get(key)})

    def parse(data: bytes) -> TaskSpec | Sequence[str]:
        file = parsed_as_tasks(Path("task.yaml"), TaskFileContent("task.yaml", data))
        if not file.problems and len(file.specs) == 1:
            return file.specs[0]
        return [problem.render(file.shown) for problem in file.problems]

    return edited(text, "task.yaml", parse)


def edited(text: str, name: str, parse: Callable[[bytes], V | Sequence[str]]) -> V | None:
    """Return the text as edited in the user's editor, in a file of that name, until it is valid; None: unchanged.

    parse: returns what is meant, or the problems, which are printed. Raises Abort.
    """
    while (changed := in_editor(text, name)) != text:
        text = changed
        parsed = parse(text.encode())
        if not isinstance(parsed, Sequence):
            return parsed
        for problem in parsed:
            note(problem)
        typer.confirm("Edit it again?", default=True, abort=True, err=True)
    return None


def in_editor(text: str, name: str) -> str:
    """Return the text after the user has edited it in $VISUAL or $EDITOR, in a file of that name."""
    words = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_text(text, encoding="utf-8")
        try:
            done = subprocess.run([*words, str(file)], check=False)
        except OSError as failure:
            fail(f"The editor {words[0]} cannot be started: {failure.strerror}.", "Set EDITOR, or name a file.")
        if done.returncode != 0:
            fail(f"The editor {words[0]} ended with {done.returncode}; nothing was changed.")
        return file.read_text(encoding="utf-8", errors="replace")
