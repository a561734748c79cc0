"""``calibrate``: fits what scores mean on a labelled set. Needs no daemon."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from claudomator_py.cli import exits
from claudomator_py.cli.connect import ConfigOption, StateDirOption
from claudomator_py.cli.labelled import CardsOption, EncoderOption, Identified, Reader, read_set
from claudomator_py.cli.output import Column, Format, FormatOption, fail, fields, note, out, out_json, render

if TYPE_CHECKING:
    from pydantic import BaseModel

_SHARES = ("own_share", "card_share", "name_share")
_FIGURES = ("top1", "accuracy_with_none", "oos_recall", "in_scope_fallback", "wrong_agent")


class Calibrator(Reader, Protocol):
    """Fits thresholds, weights and the margin of an encoder."""

    def fit(self, cards: Sequence[Any], cases: Sequence[Any], encoder: str, config: Path | None) -> "BaseModel":
        """What fits, with the figures before and after: ``routing.fitting.Fit``. The encoder is as it is configured, if
        one of that kind is. Raises ValueError, with the remedy, without that encoder or for a set that tells nothing.
        """

    def keep(self, fit: Any, cards: Sequence[Any], state: tuple[Path | None, Path | None]) -> Path:
        """Have the daemon of that configuration and state folder take it; the file. Raises OSError."""


def command(calibrator: Callable[[], Calibrator]) -> Callable[..., None]:
    """The command, with what fits; made only when it is needed."""

    def calibrate(
        specialists: CardsOption,
        data: Annotated[Path, typer.Option(metavar="FILE", help="Labelled tasks, as JSON lines.")],
        encoder: EncoderOption = "hashed",
        store: Annotated[
            bool, typer.Option("--store", help="Store the result; the daemon uses it from its next start or reload on.")
        ] = False,
        config: ConfigOption = None,
        state_dir: StateDirOption = None,
        output: FormatOption = Format.TABLE,
    ) -> None:
        """Fit thresholds and weights on labelled tasks."""
        judge = calibrator()
        cards, cases = read_set(judge, specialists, data, encoder)
        try:
            fit = judge.fit(cards, cases, encoder, config)
        except ValueError as error:
            fail(f"Nothing can be fitted: {error}.", "", exits.USAGE)
        found = fit.model_dump(mode="json")
        if output is Format.JSON:
            out_json(fit)
        else:
            out(_table(found))
        for name in found["kept"]:
            note(f"`{name}` is unchanged: the set has too few tasks, with or without a specialist, to fit it.")
        if store:
            _store(judge, fit, cards, (config, state_dir), found)

    return calibrate


def _store(
    judge: Calibrator,
    fit: "BaseModel",
    cards: Sequence[Identified],
    state: tuple[Path | None, Path | None],
    found: Mapping[str, Any],
) -> None:
    before, expected = (found[name]["accuracy_with_none"] for name in ("before", "expected"))
    if expected < before:
        remedy = "Label more tasks, and try again. Nothing was stored."
        fail(f"The present calibration is better: {before}, against an expected {expected}.", remedy)
    try:
        path = judge.keep(fit, cards, state)
    except OSError as error:
        remedy = "Run this as the daemon's user, with the daemon's --config or --state-dir."
        fail(f"It cannot be stored: {error.filename}: {error.strerror}.", remedy)
    note(f"Stored in {path}. The daemon uses it from its next start or reload on.")


def _table(found: Mapping[str, Any]) -> str:
    fitted = found["calibration"]
    parameters = {name: fitted[name] for name in ("threshold", "task_threshold", "margin", *_SHARES)}
    parameters |= {f"weight of {name}": value for name, value in fitted["weights"].items() if value}
    columns = (
        Column("FIGURE"),
        Column("BEFORE", right=True),
        Column("ON THESE", right=True),
        Column("EXPECTED", right=True),
    )
    rows = [
        (name.replace("_", " "), *(_shown(found[of][name]) for of in ("before", "in_sample", "expected")))
        for name in _FIGURES
    ]
    what = fields([(name.replace("_", " "), str(value)) for name, value in parameters.items() if value is not None])
    told = fields([("encoder", fitted["encoder"]), ("cases", str(found["expected"]["cases"]))])
    return "\n".join((told, what, "", render(columns, rows)))


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
