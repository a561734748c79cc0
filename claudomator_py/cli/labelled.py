"""Sets of tasks that are labelled with who should do them, and the cards of whom: JSON lines, for ``eval`` and
``calibrate``."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn, Protocol, TypeVar

import typer

from claudomator_py.cli import exits
from claudomator_py.cli.output import fail, note
from claudomator_py.domain.text import plain

CardsOption = Annotated[
    Path, typer.Option("--specialists", metavar="FILE", help="Cards: a card file (YAML), or JSON lines.")
]
EncoderOption = Annotated[
    str, typer.Option("--encoder", metavar="KIND", help="Encoder to compare with: a kind, or onnx:FOLDER.")
]
_YAML = (".yaml", ".yml")


class Identified(Protocol):
    """What a line describes."""

    @property
    def id(self) -> str:
        """As the set names it."""


T = TypeVar("T", bound=Identified)


class Reader(Protocol):
    """Reads the lines of a set."""

    encoders: Sequence[str]

    def card(self, data: Mapping[str, Any]) -> Identified:
        """The card of a line. Raises ValueError."""

    def ignored(self, data: Mapping[str, Any]) -> Sequence[str]:
        """The keys of such a line that mean nothing."""

    def case(self, data: Mapping[str, Any]) -> Identified:
        """The task of a line. Raises ValueError."""


def read_set(reader: Reader, cards: Path, tasks: Path, encoder: str) -> tuple[list[Identified], list[Identified]]:
    """The cards and the tasks of the files; what cannot be used ends the command, and says where it stands."""
    from claudomator_py.domain.errors import suggestion

    kind, _, folder = encoder.partition(":")
    if kind not in reader.encoders or (folder and kind != "onnx"):
        fail(f"Unknown encoder: {encoder!r}.", suggestion(kind, reader.encoders).capitalize(), exits.USAGE)
    ignored: Counter[str] = Counter()

    def card(data: Mapping[str, Any]) -> Identified:
        ignored.update(reader.ignored(data))
        return reader.card(data)

    found = _cards_in(cards) if cards.suffix in _YAML else read_lines(cards, card), read_lines(tasks, reader.case)
    for name, count in sorted(ignored.items()):
        note(f"{cards}: the key `{plain(name)}` is unknown and ignored (in {count} of the cards).")
    return found


def _cards_in(path: Path) -> list[Identified]:
    """Of a card file, as ``specialists export`` prints one."""
    from claudomator_py.schema.cardfile import parse_card_file

    try:
        found = parse_card_file(path.read_bytes(), path.name)
    except OSError as error:
        _unreadable(path, error)
    if found.problems:
        for problem in found.problems:
            note(problem.render(str(path)))
        fail(f"{path} is not a card file.", "Fix the listed problems and retry.", exits.USAGE)
    return list(found.cards)


def _unreadable(path: Path, error: OSError) -> NoReturn:
    fail(f"{path} cannot be read ({error.strerror}).", "Name a file that you can read.", exits.USAGE)


def read_lines(path: Path, parse: Callable[[Mapping[str, Any]], T]) -> list[T]:
    """What each line of the file describes; blank ones nothing. What cannot be used ends the command, and says where it
    stands. parse: raises ValueError."""
    found, lines = [], dict[str, int]()
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    value = json.loads(line)
                    if not isinstance(value, dict):
                        raise ValueError("it is not a JSON object")
                    one = parse(value)
                    if (before := lines.setdefault(one.id, number)) != number:
                        raise ValueError(f"the id `{one.id}` is already used in line {before}")
                    found.append(one)
                except (ValueError, RecursionError) as error:
                    fail(f"{path}:{number}: {plain(str(error))}.", "Correct the line, or remove it.", exits.USAGE)
    except UnicodeDecodeError:
        fail(f"{path} is not UTF-8.", "Save it as UTF-8.", exits.USAGE)
    except OSError as error:
        _unreadable(path, error)
    return found
