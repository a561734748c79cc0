"""The output of commands: data to stdout, messages to stderr; tables that fit the terminal; colour only if wanted."""

import functools
import inspect
import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from pydantic import BaseModel

from claudomator_py.cli import ExitCode
from claudomator_py.surface import table
from claudomator_py.texts import escaped, one_line

T = TypeVar("T")
V = TypeVar("V", bound=BaseModel)


class Format(StrEnum):
    """The format of the output."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"


FormatOption = Annotated[Format, typer.Option("--output", "-o", help="Output format.", show_default=True)]
_format = ContextVar("format", default=Format.TABLE)


@contextmanager
def in_format(output: Format) -> Iterator[None]:
    """Have everything in the block written in that format."""
    before = _format.set(output)
    try:
        yield
    finally:
        _format.reset(before)


def wants_json() -> bool:
    """Return whether the output is to be JSON."""
    return _format.get() is Format.JSON


def is_wide() -> bool:
    """Return whether all columns are to be shown, uncut."""
    return _format.get() is Format.WIDE


def formatted(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the option ``--output``, which holds for all that it writes. It stands before the options
    that say where the daemon is."""

    @functools.wraps(command)
    def run(*args: object, output: Format = Format.TABLE, **options: object) -> None:
        with in_format(output):
            command(*args, **options)

    own = list(inspect.signature(command).parameters.values())
    place = len(own)
    while place and own[place - 1].name in ("config", "state_dir"):
        place -= 1
    return with_parameters(run, [*own[:place], option("output", FormatOption, default=Format.TABLE), *own[place:]])


def option(name: str, annotation: object, *, default: object = None) -> inspect.Parameter:
    """Return an option for ``with_parameters``."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def with_parameters(command: Callable[..., None], parameters: Sequence[inspect.Parameter]) -> Callable[..., None]:
    """Return the command with these parameters instead of those that its signature has. Typer, which reads both, passes
    all of them by name."""
    described: Any = command
    by_name = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    described.__signature__ = inspect.Signature(by_name)
    described.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def out(text: str) -> None:
    """Write data at once. If the reader has gone, exit quietly."""
    with leaving_if_unwritten():
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()


def out_bytes(data: bytes) -> None:
    """Write bytes as they are."""
    with leaving_if_unwritten():
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def out_part(text: str) -> None:
    """Write part of a text, without adding a line end."""
    out_bytes(text.encode("utf-8", "replace"))


def note(text: str) -> None:
    """Write a message for people, with control characters escaped."""
    sys.stderr.write(f"{escaped(text)}\n")
    sys.stderr.flush()


def fail(detail: str, remedy: str = "", code: int = ExitCode.FAILURE) -> NoReturn:
    """Print the error and the remedy, and exit with that code."""
    error(detail, remedy)
    raise typer.Exit(code)


def confirm(question: str) -> None:
    """Ask a person at a terminal, and exit unless the answer is yes. Nobody else is asked."""
    if sys.stdin.isatty() and sys.stderr.isatty() and not typer.confirm(question, err=True):
        fail("Nothing was done.")


def error(detail: str, remedy: str = "") -> None:
    """Print an error and its remedy."""
    note(f"Error: {detail}")
    if remedy:
        note(remedy)


def out_json(value: BaseModel | Sequence[BaseModel]) -> None:
    """Write shapes of the API as JSON."""
    document = (
        value.model_dump(mode="json")
        if isinstance(value, BaseModel)
        else [item.model_dump(mode="json") for item in value]
    )
    out(json_text(document))


def wrote_json(value: BaseModel | Sequence[BaseModel]) -> bool:
    """Write shapes of the API if the output is to be JSON, and return whether it is."""
    if wants_json():
        out_json(value)
    return wants_json()


def write(value: BaseModel | Sequence[BaseModel], text: Callable[[], str], nothing: str | None = None) -> None:
    """Write shapes of the API. text: returns them for people. nothing: the message for people instead if there are
    none."""
    if wrote_json(value):
        return
    if nothing is not None and not value:
        note(nothing)
    else:
        out(text())


def json_text(document: object) -> str:
    """Return the document as indented JSON."""
    return escaped(json.dumps(document, indent=2, ensure_ascii=not _speaks_utf8()))


def out_json_line(value: BaseModel) -> None:
    """Write a shape of the API as one line of JSON."""
    text = value.model_dump_json()
    out(escaped(text) if _speaks_utf8() else json.dumps(json.loads(text)))


def wants_colour() -> bool:
    """Return whether stdout is a terminal on which colour is not disabled."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width() -> int | None:
    """Return the width of the output in columns; None if it is unlimited, as in a pipe."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return shutil.get_terminal_size().columns
    return None


@contextmanager
def leaving_if_unwritten() -> Iterator[None]:
    """Exit if stdout cannot be written: silently if its reader has gone, as programs do, else with the reason."""
    try:
        yield
    except OSError as failure:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # keeps the interpreter's last flush silent
        if isinstance(failure, BrokenPipeError):
            raise SystemExit(ExitCode.BROKEN_PIPE) from None
        error(f"The output cannot be written: {failure.strerror}.")
        raise SystemExit(ExitCode.FAILURE) from None


def _speaks_utf8() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


_GAP = 2
_SHORTEST_ID = 8
_LEAST = 8
"""Minimum width of any column, when there is hardly room."""

STATE_STYLES = {
    "NEEDS_INPUT": "bold yellow",
    "FAILED": "bold red",
    "RUNNING": "cyan",
    "COMPLETED": "green",
    "CANCELLED": "dim",
    "limited": "yellow",
    "held": "yellow",
    "spent": "yellow",
    "cannot run": "bold red",
    "ready": "green",
}
_CODES = {"bold": "1", "dim": "2", "italic": "3", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
"""The terminal's code for each word of a style (ECMA-48)."""


def write_table(shown: table.Table[V], rows: Sequence[V], nothing: str) -> None:
    """Write rows. nothing: the message for people if there are none."""
    write(rows, lambda: table_text(shown, rows), nothing)


def table_text(shown: table.Table[T], rows: Sequence[T], *, indent: int = 0) -> str:
    """Return the rows as lines, with times relative to now and without empty columns. indent: spaces before each
    line."""
    wide, texts = is_wide(), _texts(shown, rows)
    places = [
        index
        for index, column in enumerate(shown.columns)
        if (wide or not column.wide) and (not rows or any(row[index] for row in texts))
    ]
    heads = [shown.columns[index] for index in places]
    cells = [[one_line(row[index]) for index in places] for row in texts]
    widths = [max([_cells(head.title), *(_cells(row[place]) for row in cells)]) for place, head in enumerate(heads)]
    limit = None if wide else width()
    if limit is not None:
        kept = _kept(widths, heads, limit - indent)
        widths, heads = [widths[place] for place in kept], [heads[place] for place in kept]
        cells = [[row[place] for place in kept] for row in cells]
        _shrink(widths, heads, limit - indent)
    return _styled(heads, cells, widths, indent)


def section(title: str, text: str, state: str = "") -> list[str]:
    """Return the text below a heading in the colour of that state; empty if there is no text."""
    return [f"{heading(title, state)}\n{text}"] if text else []


def table_section(title: str, shown: table.Table[T], rows: Sequence[T], *, indent: int = 0) -> list[str]:
    """Return the rows as a table below a heading; empty if there are none."""
    return section(title, table_text(shown, rows, indent=indent)) if rows else []


def _texts(shown: table.Table[T], rows: Sequence[T]) -> list[list[str]]:
    from claudomator_py.cli import times

    now = times.now_ms()

    def text(cell: table.Cell) -> str:
        match cell:
            case table.Time(instant, "ago"):
                return times.ago(instant, now)
            case table.Time(instant, "for"):
                return times.age(instant, now)
            case table.Time(instant, "until"):
                return times.until(instant, now)
            case table.Time(instant):
                return times.moment(instant)
            case table.Link(words):
                return words
        return "" if cell is None else str(cell)

    return [[text(column.cell(row)) for column in shown.columns] for row in rows]


def fields(pairs: Sequence[tuple[str, str]]) -> str:
    """Return names and values below each other, without pairs that have no value."""
    there = [(name, one_line(value)) for name, value in pairs if value]
    if not there:
        return ""
    broad = max(len(name) for name, _ in there)
    return "\n".join(f"{name:<{broad}}  {value}" for name, value in there)


def heading(text: str, state: str = "") -> str:
    """Return a line above a table, in the colour of that state."""
    return painted([(text, STATE_STYLES.get(state, "bold"))])


def short_ids(ids: Sequence[str]) -> dict[str, str]:
    """Return each id shortened to a length at which all differ."""
    longest = max((len(id_) for id_ in ids), default=0)
    for length in range(_SHORTEST_ID, longest):
        cut = {id_: id_[:length] for id_ in ids}
        if len(set(cut.values())) == len(cut):
            return cut
    return {id_: id_ for id_ in ids}


def _kept(widths: Sequence[int], heads: Sequence[table.Column[Any]], limit: int) -> list[int]:
    """Return the indexes of the columns that fit; those with the highest ``spare`` are dropped first."""
    least = [min(broad, head.least) if head.flexible else broad for broad, head in zip(widths, heads, strict=True)]
    kept = list(range(len(heads)))
    for place in sorted(kept, key=lambda index: (-heads[index].spare, -index)):
        if heads[place].spare and sum(least[item] for item in kept) + _GAP * (len(kept) - 1) > limit:
            kept.remove(place)
    return kept


def _shrink(widths: list[int], heads: Sequence[table.Column[Any]], limit: int) -> None:
    """Shrink the widest flexible column repeatedly until all fit; then any column."""
    gaps = _GAP * (len(widths) - 1)
    flexible = [i for i, head in enumerate(heads) if head.flexible]
    for candidates, least in ((flexible, [head.least for head in heads]), (range(len(heads)), [_LEAST] * len(heads))):
        while sum(widths) + gaps > limit and (left := [i for i in candidates if widths[i] > least[i]]):
            widths[max(left, key=lambda i: widths[i])] -= 1


def _styled(
    heads: Sequence[table.Column[Any]], cells: Sequence[Sequence[str]], widths: Sequence[int], indent: int
) -> str:
    lines = [_line([(head.title, "bold") for head in heads], heads, widths, indent)]
    lines += [_line([(cell, STATE_STYLES.get(cell, "")) for cell in row], heads, widths, indent) for row in cells]
    return "\n".join(lines)


def _line(
    cells: Sequence[tuple[str, str]], heads: Sequence[table.Column[Any]], widths: Sequence[int], indent: int
) -> str:
    parts = [(" " * indent, "")] if indent else []
    last = len(cells) - 1
    for place, ((text, style), head, broad) in enumerate(zip(cells, heads, widths, strict=True)):
        padding = " " * (broad - _cells(text := _cut(text, broad)))
        parts += (
            [(padding, ""), (text, style)] if head.right else [(text, style), (padding if place < last else "", "")]
        )
        if place < last:
            parts.append((" " * _GAP, ""))
    return painted(parts).rstrip()


def _cells(text: str) -> int:
    if text.isascii() and text.isprintable():
        return len(text)
    from rich.cells import cell_len  # late; it knows the width of all other characters

    return cell_len(text)


def _cut(text: str, broad: int) -> str:
    if _cells(text) <= broad:
        return text
    if text.isascii() and text.isprintable():
        return f"{text[: broad - 1]}…"
    from rich.cells import set_cell_size

    return set_cell_size(text, broad - 1) + "…"


def painted(parts: Sequence[tuple[str, str]]) -> str:
    """Return the texts one after the other, each in its style, on a terminal with colour."""
    if not wants_colour():
        return "".join(text for text, _ in parts)
    if all(text.isprintable() for text, _ in parts):
        return "".join(_in_style(text, style) for text, style in parts)
    from rich.console import Console  # late; it handles tabs and line ends within a style
    from rich.text import Text

    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", legacy_windows=False)
    with console.capture() as capture:
        console.print(Text.assemble(*parts), soft_wrap=True, end="")
    return capture.get()


def _in_style(text: str, style: str) -> str:
    if not text or not style:
        return text
    return f"\x1b[{';'.join(_CODES[word] for word in style.split())}m{text}\x1b[0m"


def checked(model: type[V], values: Mapping[str, object]) -> V:
    """Return the values as a model, leaving out None; if they are invalid, print the problems and exit."""
    from claudomator_py.schema.validation import validate

    problems = validate(model, {name: value for name, value in values.items() if value is not None}, {})
    if isinstance(problems, list):
        for problem in problems:
            note(str(problem))
        fail("The request is not valid.", "Fix the listed problems and retry.", ExitCode.USAGE)
    return problems
