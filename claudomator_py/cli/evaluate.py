"""``eval``: how good decisions are on a labelled set. Needs no daemon."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from claudomator_py.cli import exits
from claudomator_py.cli.labelled import CardsOption, EncoderOption, Identified, Reader, read_set
from claudomator_py.cli.output import Format, FormatOption, fail, fields, out, out_json

if TYPE_CHECKING:
    from pydantic import BaseModel

_DECISION = (
    *("route", "specialist", "skill", "confidence", "threshold", "margin", "degraded", "reason"),
    "specialist_candidates",
)


class Evaluator(Reader, Protocol):
    """Decides the cases of a set, and says how many decisions are right."""

    def evaluate(
        self, cards: Sequence[Any], cases: Sequence[Any], encoder: str, clock_ns: Callable[[], int]
    ) -> "tuple[BaseModel, Sequence[BaseModel]]":
        """The figures, and the decision on each case. Raises ValueError, with the remedy, without that encoder."""


def command(evaluator: Callable[[], Evaluator]) -> Callable[..., None]:
    """The command, with what decides; made only when it is needed."""

    def evaluate(
        specialists: CardsOption,
        data: Annotated[Path, typer.Option(metavar="FILE", help="Tasks, labelled or not, as JSON lines.")],
        encoder: EncoderOption = "hashed",
        decisions: Annotated[
            Path | None, typer.Option(metavar="FILE", help="Write the decision on each task there, as JSON lines.")
        ] = None,
        output: FormatOption = Format.TABLE,
    ) -> None:
        """Route labelled tasks, and count what is right."""
        judge = evaluator()
        cards, cases = read_set(judge, specialists, data, encoder)
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


def _write(path: Path, decided: "Iterator[tuple[Identified, BaseModel]]") -> None:
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
