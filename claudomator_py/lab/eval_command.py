"""The ``eval`` command: measure the quality of decisions on a labelled set. Needs no daemon."""

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from claudomator_py.cli import ExitCode
from claudomator_py.cli.output import fail, formatted, note, write
from claudomator_py.lab.evaluation_report import Gate, page, terminal
from claudomator_py.lab.labelled_files import EncoderOption, Identified, compared, encoder_named, read_lines, read_set
from claudomator_py.values import dataclass

if TYPE_CHECKING:
    from pydantic import BaseModel

_DECISION = (
    *("route", "specialist", "skill", "confidence", "threshold", "margin", "degraded", "unheeded", "reason"),
    *("risk", "tier", "mentions", "specialist_candidates"),
)


_TRIAGE = (
    *("reason", "agents", "should_respond_immediately", "should_respond_after_processing"),
    *("confidence", "ambiguous"),
)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The requested outputs."""

    gates: Mapping[str, Mapping[str, float]]
    decisions: Path | None
    html: Path | None


@formatted
def evaluate(
    specialists: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --data: cards, as a card file (YAML) or JSON lines."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Tasks, with or without labels, as JSON lines.")
    ] = None,
    messages: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Messages of channels instead of tasks, as JSON lines."),
    ] = None,
    encoder: EncoderOption = "hashed",
    decisions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write each decision to this file, as JSON lines.")
    ] = None,
    gates: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Bounds for figures, as YAML. Exits with 1 if one is missed."),
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --data: apply the policy of this configuration file."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the figures to this file, as a self-contained page."),
    ] = None,
) -> None:
    """Evaluate routing, or triage, on a labelled set."""
    wanted = _Wanted({} if gates is None else _gates(gates), decisions, html)
    if messages is not None:
        if any(value is not None for value in (specialists, data, policy)):
            fail(
                "Messages are evaluated on their own.", "Leave out --specialists, --data and --policy.", ExitCode.USAGE
            )
        _evaluate_messages(messages, wanted)
        return
    if specialists is None or data is None:
        fail("There is nothing to evaluate.", "Give --specialists and --data, or --messages.", ExitCode.USAGE)
    _evaluate_tasks(specialists, data, encoder, policy, wanted)


def _evaluate_tasks(specialists: Path, data: Path, encoder: str, policy: Path | None, wanted: _Wanted) -> None:
    from claudomator_py.client.discovery import configuration
    from claudomator_py.lab.evaluation import evaluate as evaluate_tasks
    from claudomator_py.policy.verdict import Policy
    from claudomator_py.routing.calibration import calibration_for
    from claudomator_py.schema.routing_settings import Preset

    configured = None if policy is None else configuration(policy, os.environ, Path.cwd()).settings
    rules = None if configured is None else Policy(configured.policy)
    try:
        settings = encoder_named(encoder)
        cards, cases = read_set(specialists, data)
        with compared(settings) as (chosen, words):
            calibration = calibration_for(Preset.CALIBRATED, chosen.id)
            default = None if configured is None else configured.routing.default_specialist
            default = default if any(card.id == default for card in cards) else None
            clock = time.perf_counter_ns
            result, records = evaluate_tasks(cards, cases, chosen, calibration, clock, words, rules, default)
    except ValueError as error:
        fail(f"The encoder {encoder} cannot be used: {error}.", "", ExitCode.USAGE)
    if not result.fitted:
        note("No threshold was fitted for this encoder, and 0.3 is a guess: run `claudomator calibrate` on the set.")
    _finish(result, cases, records, _DECISION, wanted)


def _evaluate_messages(messages: Path, wanted: _Wanted) -> None:
    from claudomator_py.lab.triage_evaluation import evaluate_messages, message_case_of

    cases = read_lines(messages, message_case_of)
    result, decided = evaluate_messages(cases, time.perf_counter_ns)
    _finish(result, cases, decided, _TRIAGE, wanted)


def _gates(path: Path) -> dict[str, dict[str, float]]:
    """Read the bounds ``at_least`` and ``at_most`` by figure. A dot in the name leads into a nested figure."""
    import yaml

    shape = "Write one line for each figure, such as `top1: {at_least: 0.8}`."
    try:
        read = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        fail(f"{path} cannot be read as gates ({str(error).splitlines()[0]}).", shape, ExitCode.USAGE)
    series: dict[str, dict[str, float]] = {}
    if not read:
        fail(f"{path} has no bounds.", shape, ExitCode.USAGE)
    for name, bounds in read.items() if isinstance(read, dict) else [(None, None)]:
        given = bounds if isinstance(bounds, dict) else {}
        numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in given.values())
        if not given or not set(given) <= {"at_least", "at_most"} or not numbers:
            fail(f"{path} has no bounds for {name!r}.", shape, ExitCode.USAGE)
        series[str(name)] = given
    return series


def _held(figures: "BaseModel", gates: Mapping[str, Mapping[str, float]]) -> list[Gate]:
    """Return a gate with its measured value for each bounded figure."""
    failures, all_ = [], figures.model_dump(mode="json")
    for name, bounds in gates.items():
        value: Any = all_
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        number = value if isinstance(value, int | float) else None
        failures.append(Gate(name, number, bounds.get("at_least"), bounds.get("at_most")))
    return failures


def _finish(
    figures: "BaseModel", cases: Sequence[Identified], decided: "Sequence[BaseModel]", shown: Sequence[str], to: _Wanted
) -> None:
    """Write the requested outputs. Exit with 1 and name each miss unless every figure is within its bounds."""
    held = _held(figures, to.gates)
    if to.decisions is not None:
        _write(to.decisions, _lines(zip(cases, decided, strict=True), shown))
    if to.html is not None:
        _write(to.html, [page(figures.model_dump(mode="json"), held)])
    write(figures, lambda: terminal(figures.model_dump(mode="json")))
    missed = [goal for goal in held if not goal.met]
    for goal in missed:
        note(goal.miss)
    if missed:
        raise typer.Exit(1)


def _lines(decided: "Iterable[tuple[Identified, BaseModel]]", shown: Sequence[str]) -> Iterator[str]:
    for case, record in decided:
        decision = record.model_dump(mode="json", include=set(shown))
        yield json.dumps({"id": case.id, "decision": decision}, ensure_ascii=False) + "\n"


def _write(path: Path, parts: Iterable[str]) -> None:
    try:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(parts)
    except OSError as error:
        fail(f"{path} cannot be written ({error.strerror}).", "Name a file that you can write.", ExitCode.USAGE)
