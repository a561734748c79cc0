"""Fixtures of the tests against real agent CLIs, and the figures that they want told."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.runs.rig import Rig
from tests.real_clis.clis import Cli
from tests.real_clis.place import Place, open_place

_FIGURES = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """No figures yet."""
    config.stash[_FIGURES] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print them once all tests are over."""
    if config.stash[_FIGURES]:
        terminalreporter.section("figures")
        for text in config.stash[_FIGURES]:
            terminalreporter.write_line(text)


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Takes a text that is printed once all tests are over."""
    figures = request.config.stash[_FIGURES]

    def tell(text: str) -> None:
        figures.append(f"{request.node.name}: {text}")

    return tell


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
