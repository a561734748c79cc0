"""What a command writes: data to stdout, messages to stderr, colour only for a terminal that wants it."""

import json
import os
import shutil
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, NoReturn

import typer
from pydantic import BaseModel

from claudomator_py.cli import exits
from claudomator_py.domain.text import escaped


class Format(StrEnum):
    """How data is written."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"


FormatOption = Annotated[Format, typer.Option("--output", "-o", help="How to write the data.", show_default=True)]


def out(text: str) -> None:
    """Write data, at once; a reader that has gone ends the command quietly."""
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        leave_broken_pipe()


def out_bytes(data: bytes) -> None:
    """Write data as it is."""
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        leave_broken_pipe()


def out_part(text: str) -> None:
    """Write a part of a text, without a line end of ours."""
    out_bytes(text.encode("utf-8", "replace"))


def note(text: str) -> None:
    """Write a message for people; what it quotes cannot speak to the terminal."""
    typer.echo(escaped(text), err=True)


def fail(detail: str, remedy: str = "", code: int = exits.FAILURE) -> NoReturn:
    """End with that exit code, and say why and what to do next."""
    error(detail, remedy)
    raise typer.Exit(code)


def error(detail: str, remedy: str = "") -> None:
    """Write why something failed, and what to do next."""
    note(f"Error: {detail}")
    if remedy:
        note(remedy)


def out_json(value: BaseModel | Sequence[BaseModel]) -> None:
    """Write the shapes of the API."""
    document = (
        value.model_dump(mode="json")
        if isinstance(value, BaseModel)
        else [item.model_dump(mode="json") for item in value]
    )
    out(json_text(document))


def json_text(document: object) -> str:
    """The document as JSON that people can read, too."""
    return escaped(json.dumps(document, indent=2, ensure_ascii=not _speaks_utf8()))


def out_json_line(value: BaseModel) -> None:
    """Write the shape of the API on a line of its own."""
    text = value.model_dump_json()
    out(escaped(text) if _speaks_utf8() else json.dumps(json.loads(text)))


def wants_colour() -> bool:
    """Whether stdout is a terminal whose user has nothing against colour."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width() -> int | None:
    """Columns there are; None when nothing limits them, as in a pipe."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return shutil.get_terminal_size().columns
    return None


def leave_broken_pipe() -> NoReturn:
    """End without a word, as programs do whose reader has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the interpreter's last flush is quiet
    raise SystemExit(exits.BROKEN_PIPE)


def _speaks_utf8() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
