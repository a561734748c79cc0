"""The command, with and without a daemon that it can ask."""

from pathlib import Path

import pytest

from tests.fakes.command import Command, QuickCommand
from tests.fakes.daemon import Daemon
from tests.unit.cli.cards import PLUMBER
from tests.warm.starter import WarmStarter


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
    """The same, as a process of its own, from its cold start on."""
    return Command(command.home)


@pytest.fixture
def forked(command: Command, warm: WarmStarter) -> Command:
    """The same, as a process of its own that has imported all that it needs: where it is not about how it starts."""
    return Command(command.home, words=warm.command)


@pytest.fixture
def cards(command: Command, daemon: Daemon) -> Path:
    """A file with a card, and a registry without any."""
    for item in daemon.ask("GET", "/v1/specialists").json()["items"]:
        assert daemon.ask("DELETE", f"/v1/specialists/{item['id']}").status == 204
    file = command.home / "plumber.yaml"
    file.write_text(PLUMBER)
    return file
