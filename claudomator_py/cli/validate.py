"""``validate``: is it a task file, and which agents could do what it asks for? Needs no daemon."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from claudomator_py.cli import exits
from claudomator_py.cli.connect import ConfigOption
from claudomator_py.cli.output import Format, FormatOption, json_text, note, out
from claudomator_py.cli.read_files import ReadFile, read

if TYPE_CHECKING:
    from claudomator_py.domain.errors import Problem
    from claudomator_py.domain.task import TaskSpec

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
            note("There are no task files in there.")
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
    from claudomator_py.cli.fires import local_time, next_fires, zone_of

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
    from claudomator_py.cli.fires import next_fires
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
