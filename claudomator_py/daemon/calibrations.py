"""What ``claudomator calibrate --store`` has fitted: a file in the state folder, read at a start or a reload."""

import errno
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from claudomator_py.domain.health import CheckView
from claudomator_py.domain.units import SECOND_MS
from claudomator_py.log import get_logger
from claudomator_py.private_files import replacing
from claudomator_py.routing.calibration import SCORING, Fitted, is_shipped

FILE: Final = "calibrations.json"
"""Name of the file; its content is keyed by encoder id."""
MAX_CHANGED: Final = 0.25
"""Maximum share of the cards changed, added or removed since the fit; beyond it, the fit no longer describes them."""
_NAME: Final = "routing"
_AGAIN: Final = "fit it again: claudomator calibrate --store"
_STORED = TypeAdapter(dict[str, Fitted])

log = get_logger("claudomator.routing")


def read(state: Path) -> dict[str, Fitted]:
    """Return the stored calibrations, by encoder id. A missing file gives an empty mapping; so does an unreadable
    one, which is logged."""
    path = state / FILE
    try:
        return _STORED.validate_json(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValidationError) as error:
        log.warning("calibrations_not_read", path=str(path), problem=str(error).splitlines()[0])
        return {}


def keep(state: Path, fitted: Fitted) -> Path:
    """Write the calibration into the file (0600), replacing the encoder's previous one; durable on return.

    Raises OSError, also if the state folder is missing or belongs to another user, who could not read the file.
    """
    if state.stat().st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "the folder belongs to another user", str(state))
    path = state / FILE
    everything = read(state) | {fitted.calibration.encoder: fitted}
    with replacing(path, durable=True) as file:
        file.write(_STORED.dump_json(everything, indent=2))
    return path


def checks(encoder: str, stored: Mapping[str, Fitted], cards: Mapping[str, str]) -> list[CheckView]:
    """Return a check of whether the encoder's thresholds still apply; empty if the built-in thresholds are used.

    stored: see ``read``. cards: content hashes of the current cards, by id.
    """
    fitted = stored.get(encoder)
    if fitted is None or fitted.scoring != SCORING:
        if fitted is None and is_shipped(encoder):
            return []
        return [_trouble(_missing(encoder, stored, fitted), _AGAIN)]
    day = datetime.fromtimestamp(fitted.fitted_ms / SECOND_MS, UTC).date()
    every = fitted.cards.keys() | cards.keys()
    changed = sum(fitted.cards.get(card_id) != cards.get(card_id) for card_id in every)
    if changed > MAX_CHANGED * len(every):
        what = f"{changed} of {len(every)} specialists have changed, come or gone since {day}"
        return [_trouble(f"thresholds were fitted for other specialists: {what}", _AGAIN)]
    detail = f"thresholds for {encoder} were fitted on {fitted.cases} tasks on {day}"
    return [CheckView(name=_NAME, ok=True, detail=detail, blocking=False)]


def _missing(encoder: str, stored: Mapping[str, Fitted], fitted: Fitted | None) -> str:
    if fitted is not None:
        return f"what was fitted for {encoder} is of scores that were made otherwise, and is not used"
    others = ", ".join(sorted(stored))
    return f"no threshold was fitted for {encoder}, and 0.3 is a guess" + (f"; one was for {others}" if others else "")


def _trouble(detail: str, remedy: str) -> CheckView:
    return CheckView(name=_NAME, ok=False, detail=detail, remedy=remedy, blocking=False)
