"""Fixtures of the tests against real agent CLIs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.hosts.rig import Rig
from tests.real_clis.clis import Cli
from tests.real_clis.place import Place, open_place


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """Run directories in a fresh root; nothing of them lives on after the test."""
    root = tmp_path / "runs"
    root.mkdir()
    rig = Rig(root)
    yield rig
    rig.clean()


@pytest.fixture
def place(cli: Cli, tmp_path: Path) -> Iterator[Place]:
    """A site for the CLI that the test is about; see ``each``."""
    with open_place(cli, tmp_path / "site") as opened:
        yield opened
