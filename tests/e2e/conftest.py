"""Fixtures for tests against a running daemon."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.site import Site, open_site
from tests.warm.starter import WarmStarter


@pytest.fixture
def site(tmp_path: Path, warm: WarmStarter) -> Iterator[Site]:
    """An installation whose daemons start fast."""
    with open_site(tmp_path / "site", warm=warm) as opened:
        yield opened


@pytest.fixture
def new_site(tmp_path: Path, warm: WarmStarter) -> Iterator[Site]:
    """The same before its first daemon, which has everything to make."""
    with open_site(tmp_path / "site", warm=warm, new=True) as opened:
        yield opened


@pytest.fixture
def cold_site(tmp_path: Path) -> Iterator[Site]:
    """An installation whose daemons are started by the command, as users do."""
    with open_site(tmp_path / "site") as opened:
        yield opened
