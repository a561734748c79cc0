"""The ``calibrate`` command: fit routing's thresholds and weights to a labelled set. Needs no daemon."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from claudomator_py.cli import ExitCode
from claudomator_py.cli.connect import ConfigOption, StateDirOption
from claudomator_py.cli.output import fail, fields, formatted, note, table_text, write
from claudomator_py.cli.times import now_ms
from claudomator_py.lab.labelled_files import CardsOption, EncoderOption, compared, encoder_named, read_set
from claudomator_py.surface.table import Column, Table

if TYPE_CHECKING:
    from claudomator_py.domain.card import Card
    from claudomator_py.lab.fitting import Fit
    from claudomator_py.schema.routing_settings import EncoderSettings

_SHARES = ("own_share", "card_share")
_FIGURES = ("top1", "accuracy_with_none", "oos_recall", "in_scope_fallback", "wrong_agent")


@formatted
def calibrate(
    specialists: CardsOption,
    data: Annotated[Path, typer.Option(metavar="FILE", help="Labelled tasks, as JSON lines.")],
    encoder: EncoderOption = "hashed",
    store: Annotated[
        bool, typer.Option("--store", help="Store the result; the daemon uses it after its next start or reload.")
    ] = False,
    config: ConfigOption = None,
    state_dir: StateDirOption = None,
) -> None:
    """Fit thresholds and weights to labelled tasks."""
    from claudomator_py.lab.fitting import fit
    from claudomator_py.routing.calibration import calibration_for
    from claudomator_py.schema.routing_settings import Preset

    try:
        settings = _settings(encoder, config)
        cards, cases = read_set(specialists, data)
        with compared(settings) as (chosen, words):
            fitted = fit(cards, cases, chosen, calibration_for(Preset.CALIBRATED, chosen.id), words)
    except ValueError as error:
        fail(f"Nothing can be fitted: {error}.", "", ExitCode.USAGE)
    fitted_values = fitted.model_dump(mode="json")
    write(fitted, lambda: _table(fitted_values))
    for name in fitted_values["kept"]:
        note(f"`{name}` is unchanged: the set has too few tasks, with or without a specialist, to fit it.")
    if store:
        _store(fitted, cards, (config, state_dir))


def _settings(encoder: str, config: Path | None) -> "EncoderSettings":
    """Return the configured encoder settings if they are of this kind, else the kind's defaults. Raises ValueError."""
    from claudomator_py.client.discovery import configuration

    settings = configuration(config, os.environ, Path.cwd()).settings.routing.encoder
    return settings if settings.kind == encoder else encoder_named(encoder)


def _store(fit: "Fit", cards: "Sequence[Card]", state: tuple[Path | None, Path | None]) -> None:
    before, expected = fit.before.accuracy_with_none, fit.expected.accuracy_with_none
    if before is not None and (expected is None or expected < before):
        remedy = "Label more tasks, and try again. Nothing was stored."
        fail(f"The current calibration is better: {before}; the new one is expected to reach {expected}.", remedy)
    try:
        path = _keep(fit, cards, state)
    except OSError as error:
        remedy = "Run this as the daemon's user, with the daemon's --config or --state-dir."
        fail(f"The result cannot be stored: {error.filename}: {error.strerror}.", remedy)
    note(f"Stored in {path}. The daemon uses it after its next start or reload.")


def _keep(fit: "Fit", cards: "Sequence[Card]", state: tuple[Path | None, Path | None]) -> Path:
    """Store the fit in the daemon's state folder, and return the file. Raises OSError."""
    from claudomator_py.client.discovery import configuration, state_in_use
    from claudomator_py.daemon import calibrations
    from claudomator_py.routing.calibration import SCORING, Fitted
    from claudomator_py.schema.configfile import resolve_state_dir

    config, folder = state
    loaded = configuration(config, os.environ, Path.cwd())
    fitted = Fitted(
        calibration=fit.calibration,
        scoring=SCORING,
        cards={card.id: card.content_hash for card in cards},
        cases=fit.expected.cases,
        expected=fit.expected.accuracy_with_none,
        fitted_ms=now_ms(),
    )
    running = state_in_use(config, folder, os.environ, Path.cwd())
    kept_in = running or resolve_state_dir(folder, loaded.settings, os.environ, loaded.base_dir)
    return calibrations.keep(kept_in, fitted)


def _table(values: Mapping[str, Any]) -> str:
    fitted = values["calibration"]
    parameters = {name: fitted[name] for name in ("threshold", "margin", *_SHARES)}
    parameters |= {f"weight of {name}": value for name, value in fitted["weights"].items() if value}
    figures = Table[str](
        Column("FIGURE", lambda name: name.replace("_", " ")),
        Column("BEFORE", lambda name: _shown(values["before"][name]), right=True),
        Column("ON THESE", lambda name: _shown(values["in_sample"][name]), right=True),
        Column("EXPECTED", lambda name: _shown(values["expected"][name]), right=True),
    )
    what = fields([(name.replace("_", " "), str(value)) for name, value in parameters.items() if value is not None])
    head = fields([("encoder", fitted["encoder"]), ("cases", str(values["expected"]["cases"]))])
    return "\n".join((head, what, "", table_text(figures, _FIGURES)))


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
