"""Nights in virtual time: whatever the seed, caps and holds are kept, nobody starves, and all that can be done is."""

from pathlib import Path

import pytest

from claudomator_py.domain.units import HOUR_MS
from tests.databases import open_migrated
from tests.simulation.night import Night, Report, Weather, claude_and_codex


def night(tmp_path: Path, seed: int, tasks: int, scale: int, weather: Weather) -> Report:
    accounts, agents = claude_and_codex(scale)
    with open_migrated(tmp_path) as database:
        report = Night(database, seed, tasks=tasks, accounts=accounts, agents=agents, weather=weather).play()
    print(f"seed {seed}: {report}")  # noqa: T201 - shown by -s, and with a failure
    return report


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_a_night(tmp_path: Path, seed: int) -> None:
    report = night(tmp_path, seed, 60, 90, Weather())
    assert report.limits, "a night without a limit tests little"
    assert sum(report.states.values()) == 60
    assert report.states["COMPLETED"] >= 52


def test_in_fair_weather_all_is_done(tmp_path: Path) -> None:
    calm = Weather(fails=0, overloaded=0, lost=0, unreported=0, crashes=0)
    assert night(tmp_path, 7, 40, 60, calm).states["COMPLETED"] == 40


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("seed", range(100, 104))
def test_a_week_of_thousands_of_tasks(tmp_path: Path, seed: int) -> None:
    report = night(tmp_path, seed, 2_000, 400, Weather())
    assert report.limits
    assert sum(report.states.values()) == 2_000
    assert report.states["COMPLETED"] >= 1_800


@pytest.mark.slow
def test_a_night_in_which_no_reset_is_ever_told(tmp_path: Path) -> None:
    """It is found out by one run at a time, ever less often."""
    report = night(tmp_path, 11, 60, 90, Weather(unreported=1))
    assert report.limits
    assert report.states["COMPLETED"] >= 52
    assert report.avoidable <= 4 * report.makespan // HOUR_MS
