"""Fixtures of the tests against real agent CLIs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.runs.rig import Rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """Run directories in a fresh root; nothing of them lives on after the test."""
    root = tmp_path / "runs"
    root.mkdir()
    rig = Rig(root)
    yield rig
    rig.clean()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home of the CLI's own."""
    place = tmp_path / "home"
    place.mkdir()
    return place
