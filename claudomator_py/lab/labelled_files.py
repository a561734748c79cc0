"""Files for ``eval`` and ``calibrate``: labelled tasks, and cards of specialists, as JSON lines or YAML."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Protocol, TypeVar

import typer

from claudomator_py.cli import ExitCode
from claudomator_py.cli.output import fail, note
from claudomator_py.domain.errors import ended, sentence
from claudomator_py.texts import plain

if TYPE_CHECKING:
    from claudomator_py.domain.card import Card
    from claudomator_py.lab.labelled_set import Case
    from claudomator_py.ports import Encoder
    from claudomator_py.schema.routing_settings import EncoderSettings

CardsOption = Annotated[
    Path, typer.Option("--specialists", metavar="FILE", help="Cards: a card file (YAML), or JSON lines.")
]
EncoderOption = Annotated[
    str, typer.Option("--encoder", metavar="KIND", help="Encoder to compare with: a kind, or onnx:FOLDER.")
]
_YAML = (".yaml", ".yml")


class Identified(Protocol):
    """A parsed line with an id."""

    @property
    def id(self) -> str:
        """The id in the file."""


T = TypeVar("T", bound=Identified)


def encoder_named(option: str) -> "EncoderSettings":
    """Return the encoder settings for a value of ``--encoder``: a kind, or ``onnx:FOLDER``. An unknown kind ends the
    command. Raises ValueError if the folder is missing."""
    from claudomator_py.domain.errors import suggestion
    from claudomator_py.schema.routing_settings import EncoderKind, EncoderSettings

    kind, _, folder = option.partition(":")
    if kind not in list(EncoderKind) or (folder and kind != EncoderKind.ONNX):
        fail(f"Unknown encoder: {option!r}.", sentence(suggestion(kind, list(EncoderKind))), ExitCode.USAGE)
    if kind == EncoderKind.ONNX and not folder:
        raise ValueError("it needs the folder of the model: --encoder onnx:FOLDER")
    return EncoderSettings.model_validate({"kind": kind, "folder": str(Path(folder).absolute()) if folder else None})


@contextmanager
def _opened(settings: "EncoderSettings") -> "Iterator[Encoder]":
    """Yield the encoder of these settings. Raises ValueError, with the remedy, if it is not installed or fails."""
    from claudomator_py.embed import encoder
    from claudomator_py.ports import EncoderFault

    opened = encoder(settings, os.environ)
    try:
        yield opened
    except EncoderFault as fault:
        raise ValueError(str(fault)) from fault
    finally:
        opened.close()


@contextmanager
def compared(settings: "EncoderSettings") -> "Iterator[tuple[Encoder, Encoder]]":
    """Yield the chosen encoder, and the encoder of words that is used in addition. Raises ValueError."""
    from claudomator_py.schema.routing_settings import EncoderKind, EncoderSettings

    with _opened(settings) as chosen, _opened(EncoderSettings(kind=EncoderKind.HASHED)) as words:
        yield chosen, words


def read_set(cards: Path, tasks: Path) -> "tuple[list[Card], list[Case]]":
    """Return the cards and tasks in the files. An invalid line ends the command with an error that names its place."""
    from claudomator_py.lab.labelled_set import card_of, case_of, ignored

    unknown: Counter[str] = Counter()

    def card(data: Mapping[str, Any]) -> "Card":
        unknown.update(ignored(data))
        return card_of(data)

    loaded = _cards_in(cards) if cards.suffix in _YAML else read_lines(cards, card)
    for name, count in sorted(unknown.items()):
        note(f"{cards}: the key `{plain(name)}` is unknown and ignored (in {count} of the cards).")
    return loaded, read_lines(tasks, partial(case_of, known=frozenset(card.id for card in loaded)))


def _cards_in(path: Path) -> "list[Card]":
    """Return the cards of a card file, the format of ``specialists export``."""
    from claudomator_py.schema.cardfile import parse_card_file

    try:
        card_file = parse_card_file(path.read_bytes(), path.name)
    except OSError as error:
        _unreadable(path, error)
    if card_file.problems:
        for problem in card_file.problems:
            note(problem.render(str(path)))
        fail(f"{path} is not a card file.", "Fix the listed problems and retry.", ExitCode.USAGE)
    return list(card_file.items)


def _unreadable(path: Path, error: OSError) -> NoReturn:
    fail(f"{path} cannot be read ({error.strerror}).", "Name a file that you can read.", ExitCode.USAGE)


def read_lines(path: Path, parse: Callable[[Mapping[str, Any]], T]) -> list[T]:
    """Parse each line that is not blank. An invalid line or empty file ends the command with an error that names its
    place. parse: may raise ValueError."""
    records, lines = [], dict[str, int]()
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    value = json.loads(line)
                    if not isinstance(value, dict):
                        raise ValueError("it is not a JSON object")
                    record = parse(value)
                    if (before := lines.setdefault(record.id, number)) != number:
                        raise ValueError(f"the id `{record.id}` is already used in line {before}")
                    records.append(record)
                except (ValueError, RecursionError) as error:
                    fail(
                        f"{path}:{number}: {ended(plain(str(error)))}",
                        "Correct the line, or remove it.",
                        ExitCode.USAGE,
                    )
    except UnicodeDecodeError:
        fail(f"{path} is not UTF-8.", "Save it as UTF-8.", ExitCode.USAGE)
    except OSError as error:
        _unreadable(path, error)
    if not records:
        fail(f"{path} is empty.", "Name a file with one JSON object per line.", ExitCode.USAGE)
    return records
