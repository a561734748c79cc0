"""Nights with the real daemon and simulated agents: limits, an outage, a lost login and kills cost time, not work."""

import sys
from pathlib import Path

import pytest

from tests.e2e.harness import open_site
from tests.nights.outside import Outside
from tests.nights.simulated_night import UNIT_MS, Night, Plan, say, services

DAEMON = (sys.executable, "-m", "tests.nights.compressed")


def night(tmp_path: Path, seed: int, plan: Plan) -> str:
    with (
        open_site(tmp_path / "site", command=DAEMON) as site,
        Outside(services(plan), UNIT_MS, site.root / "effects") as outside,
    ):
        text = Night(site, seed, plan, outside).play()
    say(text)
    return text


def test_a_short_night(tmp_path: Path) -> None:
    text = night(tmp_path, 1, Plan(tasks=24, kills=1, window_ms=4_000, capacity=10, outage_ms=500))
    assert "simulated/alpha: rate_limited (reported" in text
    assert "simulated/gamma: auth" in text


@pytest.mark.slow
@pytest.mark.nights
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(201, 204))
def test_a_whole_night(tmp_path: Path, seed: int) -> None:
    plan = Plan(tasks=200, kills=4, window_ms=20_000, capacity=60, comes_back=seed % 2 == 1)
    text = night(tmp_path, seed, plan)
    assert "simulated/alpha: rate_limited (reported" in text
    assert "estimated" in text
