"""``eval``: how good decisions are on a labelled set. Needs no daemon."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import typer

from claudomator_py.cli import exits
from claudomator_py.cli.output import Format, FormatOption, fail, fields, out, out_json
from claudomator_py.domain.text import plain

if TYPE_CHECKING:
    from pydantic import BaseModel

T = TypeVar("T")
_DECISION = (
    *("route", "specialist", "skill", "confidence", "threshold", "margin", "degraded", "reason"),
    "specialist_candidates",
)


class Evaluator(Protocol):
    """Decides the cases of a set, and says how many decisions are right."""

    encoders: Sequence[str]

    def card(self, data: Mapping[str, Any]) -> object:
        """The card of a line. Raises ValueError."""

    def case(self, data: Mapping[str, Any]) -> "Case":
        """The case of a line. Raises ValueError."""

    def evaluate(
        self, cards: Sequence[Any], cases: Sequence[Any], encoder: str, clock_ns: Callable[[], int]
    ) -> "tuple[BaseModel, Sequence[BaseModel]]":
        """The figures, and the decision on each case. Raises ValueError, with the remedy, without that encoder."""


class Case(Protocol):
    """A line of the set."""

    @property
    def id(self) -> str:
        """As the set names it."""


def command(evaluator: Callable[[], Evaluator]) -> Callable[..., None]:
    """The command, with what decides; made only when it is needed."""

    def evaluate(
        specialists: Annotated[Path, typer.Option(metavar="FILE", help="Cards, as JSON lines.")],
        data: Annotated[Path, typer.Option(metavar="FILE", help="Tasks, labelled or not, as JSON lines.")],
        encoder: Annotated[str, typer.Option(metavar="KIND", help="Encoder to compare with.")] = "hashed",
        decisions: Annotated[
            Path | None, typer.Option(metavar="FILE", help="Write the decision on each task there, as JSON lines.")
        ] = None,
        output: FormatOption = Format.TABLE,
    ) -> None:
        """Route labelled tasks, and count what is right."""
        from claudomator_py.domain.errors import suggestion

        judge = evaluator()
        if encoder not in judge.encoders:
            fail(f"Unknown encoder: {encoder!r}.", suggestion(encoder, judge.encoders).capitalize(), exits.USAGE)
        cards, cases = _read(specialists, judge.card), _read(data, judge.case)
        try:
            found, records = judge.evaluate(cards, cases, encoder, time.perf_counter_ns)
        except ValueError as error:
            fail(f"The encoder {encoder} cannot be used: {error}.", "", exits.USAGE)
        if decisions is not None:
            _write(decisions, zip(cases, records, strict=True))
        if output is Format.JSON:
            out_json(found)
        else:
            out(_table(found))

    return evaluate


def _read(path: Path, parse: Callable[[Mapping[str, Any]], T]) -> list[T]:
    """What each line of the file describes; blank ones nothing."""
    found = []
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    value = json.loads(line)
                    if not isinstance(value, dict):
                        raise ValueError("it is no JSON object")
                    found.append(parse(value))
                except (ValueError, RecursionError) as error:
                    fail(f"{path}:{number}: {plain(str(error))}.", "Correct the line, or remove it.", exits.USAGE)
    except UnicodeDecodeError:
        fail(f"{path} is not UTF-8.", "Save it as UTF-8.", exits.USAGE)
    except OSError as error:
        fail(f"{path} cannot be read ({error.strerror}).", "Name a file that you can read.", exits.USAGE)
    return found


def _write(path: Path, decided: "Iterator[tuple[Case, BaseModel]]") -> None:
    try:
        with path.open("w", encoding="utf-8") as file:
            for case, record in decided:
                decision = record.model_dump(mode="json", include=set(_DECISION))
                file.write(json.dumps({"id": case.id, "decision": decision}, ensure_ascii=False) + "\n")
    except OSError as error:
        fail(f"{path} cannot be written ({error.strerror}).", "Name a file that you can write.", exits.USAGE)


def _table(found: "BaseModel") -> str:
    flat = found.model_dump(mode="json")
    times = flat.pop("latency_ms") or {}
    rows = [*flat.items(), *((f"{name} (ms)", value) for name, value in times.items())]
    return fields([(name.replace("_", " "), str(value)) for name, value in rows if value is not None])
