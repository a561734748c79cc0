"""Nights with the real daemon and simulated agents: limits, an outage, a lost login and kills cost time, not work."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.site import open_site
from tests.nights.outside import Outside
from tests.nights.simulated_night import UNIT_MS, Night, Plan, services
from tests.warm.starter import WarmStarter


@pytest.fixture
def compressed(warm: WarmStarter) -> Iterator[WarmStarter]:
    with warm.first("tests.nights.compressed:compress") as starter:
        yield starter


@pytest.fixture
def play(tmp_path: Path, compressed: WarmStarter, tell: Callable[[str], None]) -> Callable[[int, Plan], str]:
    """Plays a night; what it came to, which is printed, too."""

    def play(seed: int, plan: Plan) -> str:
        text = _night(tmp_path, compressed, seed, plan)
        tell(f"\n{text}\n")
        return text

    return play


def _night(tmp_path: Path, compressed: WarmStarter, seed: int, plan: Plan) -> str:
    with (
        open_site(tmp_path / "site", warm=compressed) as site,
        Outside(services(plan), UNIT_MS, site.root / "effects") as outside,
    ):
        return Night(site, seed, plan, outside).play()


def test_a_short_night(play: Callable[[int, Plan], str]) -> None:
    text = play(1, Plan(tasks=18, kills=1, window_ms=3_000, capacity=8, outage_ms=400))
    assert "rate_limited" in text
    assert "simulated/gamma: auth" in text


@pytest.mark.slow
@pytest.mark.nights
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(201, 204))
def test_a_whole_night(play: Callable[[int, Plan], str], seed: int) -> None:
    plan = Plan(tasks=200, kills=4, window_ms=20_000, capacity=60, comes_back=seed % 2 == 1)
    text = play(seed, plan)
    assert "rate_limited (reported" in text
    assert "rate_limited (estimated" in text
    assert "simulated/gamma: auth" in text
