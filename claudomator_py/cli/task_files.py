"""Task files named on the command line, parsed as the inbox would parse them; and ``validate``, which checks them."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from claudomator_py.cli import exits
from claudomator_py.cli.connect import ConfigOption
from claudomator_py.cli.output import Format, FormatOption, json_text, note, out
from claudomator_py.domain.errors import Problem, shown
from claudomator_py.domain.task import TaskSpec

if TYPE_CHECKING:
    from claudomator_py.domain.errors import Problem
    from claudomator_py.domain.task import TaskSpec
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
    from claudomator_py.schema.documents import is_document

    # Not Path.exists, which raises where a name is longer than the system takes.
    if path != STDIN and not os.path.exists(path):  # noqa: PTH110
        raise typer.BadParameter(f"there is no {shown(_readable(path))}")
    if path == STDIN or not path.is_dir():
        return [path]
    return sorted(file for file in path.rglob("*") if file.is_file() and is_document(file.name))


def _read(path: Path) -> ReadFile:
    from claudomator_py.schema.documents import SUFFIXES, is_document
    from claudomator_py.schema.taskfiles import parse_task_file

    name = "stdin" if path == STDIN else _readable(path)
    if path != STDIN and not is_document(path.name):
        remedy = f"use a name ending in {', '.join(SUFFIXES)}, is not hidden and not README"
        return ReadFile(name, (), (Problem(message="does not have the name of a task file", remedy=remedy),))
    if path != STDIN and _readable(path) != str(path):
        return ReadFile(name, (), (Problem(message="its name is not valid UTF-8", remedy="rename it"),))
    try:
        data = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    except OSError as error:
        problem = Problem(
            message=f"cannot be read: {error.strerror or error}", remedy="check that it is a readable file"
        )
        return ReadFile(name, (), (problem,))
    parsed = parse_task_file(data, _STDIN_AS if path == STDIN else path.name)
    return ReadFile(name, parsed.specs, parsed.problems, parsed)


def _readable(path: Path) -> str:
    """The path as it can be shown, whatever bytes are in it."""
    return os.fsencode(path).decode(errors="backslashreplace")


Found = Callable[["TaskSpec"], Sequence["Problem"]]


class Judge(NamedTuple):
    """What the daemon of a configuration has against a task that is valid by itself.

    refusals: why it would not accept it. warnings: what it would not get, though it is accepted.
    """

    refusals: Found
    warnings: Found


Lacking = Callable[["TaskSpec"], Mapping[str, list[str]]]
"""By kind of agent, what the task asks for and that kind cannot enforce."""


def command(lacking: Lacking, judge: Callable[[Path | None], Judge]) -> Callable[..., None]:
    """The command, with what the agents of this program can enforce, and what a configuration has against a task."""

    def validate(
        files: Annotated[
            list[Path] | None,
            typer.Argument(metavar="FILE", help="Task files or folders; - reads stdin."),
        ] = None,
        schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of a task, for editors.")] = False,
        output: FormatOption = Format.TABLE,
        config: ConfigOption = None,
    ) -> None:
        """Check task files. Exits with 1 if one has a problem.

        Agents, directories and time zones are checked as the daemon of the configuration found would; without one, an
        agent is any kind that there is.
        """
        from claudomator_py.schema.taskfile import task_json_schema

        if schema:
            if files:
                raise typer.BadParameter("--schema takes no files")
            out(json_text(task_json_schema()))
            return
        if not files:
            raise typer.BadParameter("name at least one file, or give --schema")
        refusals, warnings = judge(config)
        parsed = [file.checked(refusals) for file in read(files)]
        if not parsed:
            note("There are no task files in it.")
        if output is Format.JSON:
            out(json_text([_as_json(file, lacking, warnings) for file in parsed]))
        else:
            for file in parsed:
                out("\n".join(_lines(file, lacking, warnings)))
        if any(file.problems for file in parsed):
            raise typer.Exit(exits.FAILURE)

    return validate


def _lines(file: ReadFile, lacking: Lacking, warnings: Found) -> list[str]:
    if file.problems:
        return [problem.render(file.shown) for problem in file.problems]
    names = ", ".join(spec.name for spec in file.specs)
    fires = [f"{file.shown}: {spec.name}: fires {_fires(spec)}" for spec in file.specs if spec.schedule is not None]
    return [
        f"{file.shown}: ok ({names})",
        *fires,
        *(_as_warning(found).render(file.shown) for found in _warnings(file, warnings)),
        *(f"{file.shown}: note: {text}" for text in _notes(file, lacking)),
    ]


def _as_warning(found: "Problem") -> "Problem":
    """As a line says it, behind the place: ``file:line: warning: field: message``."""
    return found.model_copy(update={"field": ": ".join(part for part in ("warning", found.field) if part)})


def _warnings(file: ReadFile, warnings: Found) -> "list[Problem]":
    return [file.located(spec, warning) for spec in file.specs for warning in warnings(spec)]


def _fires(spec: "TaskSpec") -> str:
    """The next times of a schedule, in words."""
    from claudomator_py.cli.schedule import local_time, next_fires, zone_of

    return ", ".join(local_time(at_ms, zone_of(spec)) for at_ms in next_fires(spec)) or "never again"


def _notes(file: ReadFile, lacking: Lacking) -> list[str]:
    """What some agents cannot enforce: balancing keeps such a task from them."""
    return [
        f"{spec.name}: {sentence}"
        for spec in file.specs
        for sentences in lacking(spec).values()
        for sentence in sentences
    ]


def _as_json(file: ReadFile, lacking: Lacking, warnings: Found) -> dict[str, object]:
    from claudomator_py.cli.schedule import next_fires
    from claudomator_py.domain.units import format_instant
    from claudomator_py.schema.taskfile import shown_document

    return {
        "file": file.shown,
        "valid": not file.problems,
        "tasks": [shown_document(spec) for spec in file.specs],
        "fires": {
            spec.name: [format_instant(at_ms) for at_ms in next_fires(spec)]
            for spec in file.specs
            if spec.schedule is not None
        },
        "notes": _notes(file, lacking),
        "warnings": [warning.model_dump(mode="json") for warning in _warnings(file, warnings)],
        "problems": [problem.model_dump(mode="json") for problem in file.problems],
    }
