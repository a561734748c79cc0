"""``validate``: check task files, card files and a configuration as the daemon reads them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from claudomator_py.cli import ExitCode
from claudomator_py.cli.connect import ConfigOption
from claudomator_py.cli.output import formatted, json_text, note, out, wants_json
from claudomator_py.cli.task_files import (
    STDIN,
    ReadFile,
    TaskFileContent,
    content,
    files_at,
    is_configuration,
    name_of,
    parsed_as_tasks,
)
from claudomator_py.domain.errors import Problem
from claudomator_py.values import dataclass

if TYPE_CHECKING:
    from claudomator_py.domain.card import Card
    from claudomator_py.domain.task import TaskSpec
    from claudomator_py.schema.documents import ParsedFile


_NAMED = 10
"""How many tasks or cards of a file are named."""
_UNKNOWN = "there is no specialist `{}` in a file; unless one is registered, this is refused"
_TAKEN = "is the name of a task in {}, too, and an inbox takes only one of them"


@dataclass(frozen=True, slots=True)
class ReadCards:
    """A file, and its cards or its problems. parsed: locates problems that are found later."""

    shown: str
    cards: "tuple[Card, ...]"
    problems: tuple[Problem, ...]
    parsed: "ParsedFile[Card] | None" = None

    def warnings(self, known: Collection[str]) -> list[Problem]:
        """Return what is accepted without effect: specialists that the cards name and that are not among ``known``, and
        fields of an agent file that are not applied."""
        from claudomator_py.domain.card import SUCCESSOR_FIELDS

        if self.parsed is None:
            return []
        kept = [
            self.parsed.located(card, Problem(field=field, message="is kept but not applied"))
            for card in self.cards
            for field in card.not_applied
        ]
        return kept + [
            self.parsed.located(card, Problem(field=field, message=_UNKNOWN.format(to)))
            for card in self.cards
            for field, labels in SUCCESSOR_FIELDS.items()
            if (to := getattr(card, field)) is not None and to not in labels and to not in known
        ]


@dataclass(frozen=True, slots=True)
class ReadConfiguration:
    """A daemon's configuration, and its problems."""

    shown: str
    problems: tuple[Problem, ...]


class Known(NamedTuple):
    """What is known from all files together: the ids of specialists, and the first file of each name of a task."""

    specialists: Collection[str]
    files: Mapping[str, str]


AnyFile = ReadFile | ReadCards | ReadConfiguration
Found = Callable[["TaskSpec"], Sequence[Problem]]
Lacking = Callable[["TaskSpec"], Sequence[str]]
"""Returns sentences about what the task asks for and some of its possible agents cannot enforce."""


class Judge(NamedTuple):
    """What a configuration says about a file that is valid by itself."""

    refusals: Found
    """Why a task would be refused."""
    warnings: Found
    """What a task asks for in vain, though it would be accepted."""
    lacking: Lacking
    """What keeps a task from some agents."""
    card_folders: Sequence[Path] = ()
    """The absolute folders of cards; files elsewhere are tasks."""
    shipped: Callable[[], Collection[str]] = tuple
    """Returns the ids of the shipped cards."""


def command(judge: Callable[[Path | None], Judge]) -> Callable[..., None]:
    """Return the command. judge: returns what a configuration says about files."""

    @formatted
    def validate(
        files: Annotated[
            list[Path] | None,
            typer.Argument(
                metavar="FILE",
                readable=False,
                help="Task files, card files, a configuration or folders; - reads stdin.",
            ),
        ] = None,
        specialists: Annotated[
            bool, typer.Option("--specialists", help="Read cards of specialists, wherever the files are.")
        ] = False,
        schema: Annotated[
            bool, typer.Option("--schema", help="Print the JSON Schema of a task, or of a card, for editors.")
        ] = False,
        config: ConfigOption = None,
    ) -> None:
        """Check task files, card files and a configuration. Exits with 1 if one has a problem.

        Files in a folder of specialists are read as cards, claudomator.yaml as a configuration, all others as tasks,
        unless --specialists is given. Folders, agents, directories and time zones are taken from the configuration
        that is found, else from that of the only running daemon; without one, every kind of agent is accepted.
        """
        from claudomator_py.schema.json_schema import card_json_schema, task_json_schema

        if schema:
            if files:
                raise typer.BadParameter("--schema takes no files")
            out(json_text(card_json_schema() if specialists else task_json_schema()))
            return
        if not files:
            raise typer.BadParameter("name at least one file, or give --schema")
        judged = judge(config)
        folders = [folder.resolve() for folder in judged.card_folders]
        read = [
            _read(path, judged, is_card=specialists or _is_within(path, folders))
            for given in files
            for path in files_at(given)
        ]
        if not read:
            note(f"There are no {'card' if specialists else 'task'} files in it.")
        specialists_known = _known(read, judged) if any(map(_names_specialists, read)) else frozenset()
        known = Known(specialists_known, _first_files(read))
        if wants_json():
            out(json_text([_as_json(file, judged, known) for file in read]))
        else:
            for file in read:
                out("\n".join(_lines(file, judged, known)))
        if any(file.problems for file in read):
            raise typer.Exit(ExitCode.FAILURE)

    return validate


def _read(path: Path, judged: Judge, *, is_card: bool) -> AnyFile:
    if is_card:
        return _cards(path, content(path, "card"))
    return _configuration(path) if is_configuration(path) else _tasks(path, judged.refusals)


def _is_within(path: Path, folders: Sequence[Path]) -> bool:
    where = path.parent.resolve()
    return path != STDIN and any(where.is_relative_to(folder) for folder in folders)


def _configuration(path: Path) -> ReadConfiguration:
    from claudomator_py.schema.configfile import ConfigError, load_config

    try:
        load_config(path)
    except ConfigError as error:
        return ReadConfiguration(name_of(path), error.problems)
    return ReadConfiguration(name_of(path), ())


def _first_files(read: Sequence[AnyFile]) -> dict[str, str]:
    """Return the first file of each name of a task."""
    first: dict[str, str] = {}
    for file in read:
        for spec in file.specs if isinstance(file, ReadFile) else ():
            first.setdefault(spec.name, file.shown)
    return first


def _names_specialists(file: AnyFile) -> bool:
    specs = file.specs if isinstance(file, ReadFile) else ()
    return isinstance(file, ReadCards) or any(spec.specialist is not None for spec in specs)


def _known(read: Sequence[AnyFile], judged: Judge) -> frozenset[str]:
    """Return the ids of specialists in these files, in the card folders, and of those shipped with Claudomator."""
    inside = [
        _cards(path, content(path, "card"))
        for folder in judged.card_folders
        if folder.is_dir()
        for path in files_at(folder)
    ]
    files = [*(file for file in read if isinstance(file, ReadCards)), *inside]
    return frozenset(card.id for file in files for card in file.cards) | frozenset(judged.shipped())


def _cards(path: Path, content: TaskFileContent | Problem) -> ReadCards:
    """Return the cards in the content of the path."""
    from claudomator_py.schema.cardfile import parse_card_file

    if isinstance(content, Problem):
        return ReadCards(name_of(path), (), (content,))
    parsed = parse_card_file(content.data, content.name)
    return ReadCards(name_of(path), parsed.items, parsed.problems, parsed)


def _tasks(path: Path, refusals: Found) -> ReadFile:
    result = content(path, "task")
    file = parsed_as_tasks(path, result)
    # A card with a mistake of its own has fewer problems as a card.
    if file.problems and len(_cards(path, result).problems) < len(file.problems):
        note(f"{file.shown} is a card file, not a task file; --specialists checks it as one.")
    return file.checked(refusals)


def _lines(file: AnyFile, judged: Judge, known: Known) -> list[str]:
    if file.problems:
        return [problem.render(file.shown) for problem in file.problems]
    if isinstance(file, ReadConfiguration):
        return [f"{file.shown}: ok (configuration)"]
    if isinstance(file, ReadCards):
        noun = "specialist" if len(file.cards) == 1 else "specialists"
        ok = f"{file.shown}: ok ({noun} {_named([card.id for card in file.cards])})"
        return [ok, *(_as_warning(warning).render(file.shown) for warning in file.warnings(known.specialists))]
    fires = [f"{file.shown}: {spec.name}: fires {_fires(spec)}" for spec in file.specs if spec.schedule is not None]
    return [
        f"{file.shown}: ok ({_named([spec.name for spec in file.specs])})",
        *fires,
        *(_as_warning(warning).render(file.shown) for warning in _warnings(file, judged.warnings, known)),
        *(f"{file.shown}: note: {text}" for text in _notes(file, judged.lacking)),
    ]


def _named(names: Sequence[str]) -> str:
    further = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + further


def _as_warning(problem: Problem) -> Problem:
    """Return the problem as a warning, for ``file:line: warning: field: message``."""
    return problem.model_copy(update={"field": ": ".join(part for part in ("warning", problem.field) if part)})


def _warnings(file: ReadFile, warnings: Found, known: Known) -> list[Problem]:
    """Return what its tasks ask for in vain, and names that another file has."""
    asked = [file.located(spec, warning) for spec in file.specs for warning in warnings(spec)]
    return (
        asked
        + [
            file.located(spec, Problem(field="specialist", message=_UNKNOWN.format(spec.specialist)))
            for spec in file.specs
            if spec.specialist is not None and spec.specialist not in known.specialists
        ]
        + [
            file.located(
                spec, Problem(field="name", message=_TAKEN.format(first), remedy="give one of them another name")
            )
            for spec in file.specs
            if (first := known.files[spec.name]) != file.shown
        ]
    )


def _fires(spec: "TaskSpec") -> str:
    """Return the next times of a schedule, in words."""
    from claudomator_py.resources.schedules.cli import local_time, next_fires, zone_of

    return ", ".join(local_time(at_ms, zone_of(spec)) for at_ms in next_fires(spec)) or "never again"


def _notes(file: ReadFile, lacking: Lacking) -> list[str]:
    """Return notes on what some agents cannot enforce, which balancing keeps the task from, and on schedules."""
    notes = [f"{spec.name}: {sentence}" for spec in file.specs for sentence in lacking(spec)]
    return [*notes, *(f"{spec.name}: {_held_up(spec)}" for spec in file.specs if spec.schedule is not None)]


def _held_up(spec: "TaskSpec") -> str:
    """Return what happens to the schedule while one of its tasks waits for a person, without a full stop."""
    from claudomator_py.domain.schedule import MAX_HELD_UP_MS, Overlap
    from claudomator_py.domain.units import format_duration

    expires = "" if spec.expires is None else f", which fails after {format_duration(spec.expires)}"
    match spec.overlap:
        case Overlap.QUEUE:
            return f"further tasks are made while one of them waits for a person{expires}"
        case Overlap.REPLACE:
            return "the next task replaces one that has not begun, or waits for a person"
        case _:
            longest = format_duration(MAX_HELD_UP_MS if spec.expires is None else spec.expires)
            remedy = "; set `expires` or `overlap` to change that" if spec.expires is None else ""
            return f"times are skipped while one of its tasks waits for a person, for {longest} at most{remedy}"


def _as_json(file: AnyFile, judged: Judge, known: Known) -> dict[str, object]:
    contents: dict[str, object] = {}
    if isinstance(file, ReadCards):
        contents = {"specialists": [card.document for card in file.cards]}
        contents["warnings"] = _dumped(file.warnings(known.specialists))
    elif isinstance(file, ReadFile):
        from claudomator_py.domain.units import format_instant
        from claudomator_py.resources.schedules.cli import next_fires
        from claudomator_py.schema.taskfile import shown_document

        contents = {
            "tasks": [shown_document(spec) for spec in file.specs],
            "fires": {
                spec.name: [format_instant(at_ms) for at_ms in next_fires(spec)]
                for spec in file.specs
                if spec.schedule is not None
            },
            "notes": _notes(file, judged.lacking),
            "warnings": _dumped(_warnings(file, judged.warnings, known)),
        }
    return {"file": file.shown, "valid": not file.problems, **contents, "problems": _dumped(file.problems)}


def _dumped(problems: Sequence[Problem]) -> list[object]:
    return [problem.model_dump(mode="json") for problem in problems]
