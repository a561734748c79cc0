"""Fixtures of the tests of runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.hosts.rig import Rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """Run directories in a fresh root; nothing of them lives on after the test."""
    root = tmp_path / "runs"
    root.mkdir()
    rig = Rig(root)
    yield rig
    rig.clean()
