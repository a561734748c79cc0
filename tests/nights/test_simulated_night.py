"""Nights with the real daemon and simulated agents: limits, an outage, a lost login and kills cost time, not work."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.harness import open_site
from tests.e2e.warm import WarmStarter
from tests.nights.outside import Outside
from tests.nights.simulated_night import UNIT_MS, Night, Plan, say, services


@pytest.fixture(scope="module")
def compressed() -> Iterator[WarmStarter]:
    with WarmStarter("tests.nights.compressed") as starter:
        yield starter


def night(tmp_path: Path, compressed: WarmStarter, seed: int, plan: Plan) -> str:
    with (
        open_site(tmp_path / "site", warm=compressed) as site,
        Outside(services(plan), UNIT_MS, site.root / "effects") as outside,
    ):
        text = Night(site, seed, plan, outside).play()
    say(text)
    return text


def test_a_short_night(tmp_path: Path, compressed: WarmStarter) -> None:
    text = night(tmp_path, compressed, 1, Plan(tasks=18, kills=1, window_ms=3_000, capacity=8, outage_ms=400))
    assert "simulated/alpha: rate_limited (reported" in text
    assert "simulated/gamma: auth" in text


@pytest.mark.slow
@pytest.mark.nights
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(201, 204))
def test_a_whole_night(tmp_path: Path, compressed: WarmStarter, seed: int) -> None:
    plan = Plan(tasks=200, kills=4, window_ms=20_000, capacity=60, comes_back=seed % 2 == 1)
    text = night(tmp_path, compressed, seed, plan)
    assert "simulated/alpha: rate_limited (reported" in text
    assert "estimated" in text
