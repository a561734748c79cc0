"""What was fitted, in the state folder: taken where it holds, and told of where it does not."""

from pathlib import Path

import pytest

from claudomator_py.daemon import calibrations
from claudomator_py.routing.calibration import CLASSIC, SCORING, SHIPPED, Calibration, Fitted, calibration_for
from claudomator_py.schema.routing_settings import Preset

HASHED = next(iter(SHIPPED))
DAY_MS = 1_790_000_000_000


def fitted(encoder: str = HASHED, *, scoring: int = SCORING, cards: int = 4) -> Fitted:
    own = Calibration(encoder=encoder, threshold=0.42)
    hashes = {f"card-{number}": "a" for number in range(cards)}
    return Fitted(calibration=own, scoring=scoring, cards=hashes, cases=50, expected=0.9, fitted_ms=DAY_MS)


def test_it_is_kept_by_encoder(tmp_path: Path) -> None:
    assert calibrations.read(tmp_path) == {}
    calibrations.keep(tmp_path, fitted("other"))
    calibrations.keep(tmp_path, fitted(cards=1))
    path = calibrations.keep(tmp_path, fitted())
    assert calibrations.read(tmp_path) == {"other": fitted("other"), HASHED: fitted()}
    assert [entry.name for entry in tmp_path.iterdir()] == [calibrations.FILE]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b'{"hashed-4096-v1": {"scoring": 1}}'])
def test_a_file_that_cannot_be_read_says_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / calibrations.FILE).write_bytes(content)
    assert calibrations.read(tmp_path) == {}


def test_nothing_is_kept_without_a_state_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        calibrations.keep(tmp_path / "gone", fitted())


def test_what_was_fitted_holds_for_its_encoder_alone() -> None:
    stored = {HASHED: fitted()}
    assert calibration_for(Preset.CALIBRATED, HASHED, stored) == stored[HASHED].calibration
    assert calibration_for(Preset.CLASSIC, HASHED, stored) is CLASSIC
    assert calibration_for(Preset.CALIBRATED, "other", stored).threshold == 0.3
    old = {HASHED: fitted(scoring=SCORING - 1)}
    assert calibration_for(Preset.CALIBRATED, HASHED, old) is SHIPPED[HASHED]


def test_what_comes_with_claudomator_needs_no_check() -> None:
    assert calibrations.checks(HASHED, {}, {"card": "a"}) == []


def test_what_holds_is_told() -> None:
    (check,) = calibrations.checks(HASHED, {HASHED: fitted()}, fitted().cards | {"new": "a"})
    assert (check.ok, check.detail) == (True, f"thresholds for {HASHED} were fitted on 50 tasks on 2026-09-21")


@pytest.mark.parametrize(
    ("encoder", "stored", "cards", "text"),
    [
        ("other", {}, 4, "no threshold was fitted for other, and 0.3 is a guess"),
        (
            "other",
            {HASHED: fitted()},
            4,
            f"no threshold was fitted for other, and 0.3 is a guess; one was for {HASHED}",
        ),
        (HASHED, {HASHED: fitted(scoring=SCORING - 1)}, 4, "is of scores that were made otherwise, and is not used"),
        (HASHED, {HASHED: fitted()}, 8, "4 of 8 specialists have changed, come or gone since 2026-09-21"),
        (HASHED, {HASHED: fitted()}, 2, "2 of 4 specialists have changed, come or gone since 2026-09-21"),
    ],
)
def test_a_threshold_that_means_little_is_warned_of(
    encoder: str, stored: dict[str, Fitted], cards: int, text: str
) -> None:
    (check,) = calibrations.checks(encoder, stored, {f"card-{number}": "a" for number in range(cards)})
    assert (check.ok, check.blocking) == (False, False)
    assert check.detail.endswith(text)
    assert "claudomator calibrate --store" in (check.remedy or "")
