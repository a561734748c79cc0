"""A daemon over real HTTP for each module, on a desk that is empty again for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.command import Command, QuickCommand
from tests.fakes.daemon import Daemon, running
from tests.fakes.desk import FakeDesk


@pytest.fixture(scope="module")
def _desk() -> FakeDesk:
    return FakeDesk()


@pytest.fixture(scope="module")
def _daemon(_desk: FakeDesk, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(_desk, tmp_path_factory.mktemp("state")) as daemon:
        yield daemon


@pytest.fixture
def desk(_desk: FakeDesk) -> FakeDesk:
    _desk.clear()
    return _desk


@pytest.fixture
def daemon(desk: FakeDesk, _daemon: Daemon) -> Daemon:
    return _daemon


@pytest.fixture
def offline(tmp_path: Path) -> Command:
    """The command where no daemon runs."""
    return QuickCommand(tmp_path)


@pytest.fixture
def command(daemon: Daemon, tmp_path: Path) -> Command:
    """The command in a home whose configuration leads to the daemon."""
    (tmp_path / "claudomator.yaml").write_text(f"state_dir: {daemon.state_dir}\n")
    return QuickCommand(tmp_path)


@pytest.fixture
def daemon_url(daemon: Daemon) -> str:
    return daemon.url


@pytest.fixture
def process(command: Command) -> Command:
    """The same, as a process of its own."""
    return Command(command.home)
