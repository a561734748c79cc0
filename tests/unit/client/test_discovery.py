"""Where a command finds the daemon, and what it never believes."""

import os
from pathlib import Path

import pytest

from claudomator_py.client.discovery import Endpoint, discover
from claudomator_py.client.errors import DaemonNotRunning, DiscoveryFailed, NotAuthorised

TOKEN = "t" * 40
OTHER = "o" * 40


class Home:
    """A user's home with a daemon in it, and a folder to stand in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cwd = root / "work"
        self.cwd.mkdir()
        self.environ = {"HOME": str(root)}

    def announce(self, folder: Path, url: str = "http://127.0.0.1:4711", token: str | None = TOKEN) -> Path:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, text in (("endpoint", url), ("token", token)):
            if text is not None:
                (folder / name).write_text(text + "\n")
                (folder / name).chmod(0o600)
        return folder

    def configure(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def discover(self, config: Path | None = None, state_dir: Path | None = None, **environ: str) -> Endpoint:
        return discover(config, state_dir, {**self.environ, **environ}, self.cwd)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_without_configuration_the_daemon_of_the_state_home_is_found(home: Home) -> None:
    home.announce(home.root / ".local/state/claudomator")
    assert home.discover() == Endpoint("http://127.0.0.1:4711", TOKEN)


def test_a_configuration_here_leads_to_its_own_daemon(home: Home) -> None:
    home.announce(home.root / ".local/state/claudomator", token=OTHER)
    home.configure(home.cwd / "claudomator.yaml", "state_dir: .claudomator\n")
    home.announce(home.cwd / ".claudomator")
    assert home.discover().token == TOKEN


def test_flags_win_over_everything(home: Home) -> None:
    config = home.configure(home.root / "etc/mine.yaml", "state_dir: state\n")
    home.announce(home.root / "etc/state", "http://127.0.0.1:1")
    home.announce(home.root / "flag", "http://127.0.0.1:2")
    url = "http://127.0.0.1:3"
    assert home.discover(config, CLAUDOMATOR_URL=url).url == "http://127.0.0.1:1"
    assert home.discover(state_dir=home.root / "flag", CLAUDOMATOR_URL=url).url == "http://127.0.0.1:2"
    assert home.discover(config, home.root / "flag").url == "http://127.0.0.1:2"


def test_the_environment_wins_over_what_is_found(home: Home) -> None:
    home.announce(home.root / ".local/state/claudomator")
    found = home.discover(CLAUDOMATOR_URL="https://box.example", CLAUDOMATOR_TOKEN=OTHER)
    assert found == Endpoint("https://box.example", OTHER)


def test_a_url_on_this_machine_gets_the_token_of_this_user(home: Home) -> None:
    home.announce(home.root / ".local/state/claudomator")
    assert home.discover(CLAUDOMATOR_URL="http://localhost:9").token == TOKEN


def test_a_url_elsewhere_never_gets_the_token_of_this_machine(home: Home) -> None:
    home.announce(home.root / ".local/state/claudomator")
    with pytest.raises(NotAuthorised, match="CLAUDOMATOR_TOKEN"):
        home.discover(CLAUDOMATOR_URL="http://box.example:8484")


def test_no_daemon_has_announced_itself(home: Home) -> None:
    with pytest.raises(DaemonNotRunning, match="claudomator serve"):
        home.discover()


def test_a_daemon_without_a_readable_token_is_found_without_one(home: Home) -> None:
    home.announce(home.root / ".local/state/claudomator", token=None)
    assert home.discover().token is None
    assert home.discover(CLAUDOMATOR_TOKEN=OTHER).token == OTHER


@pytest.mark.parametrize("name", ["endpoint", "token"])
@pytest.mark.parametrize("mode", [0o644, 0o620, 0o666])
def test_files_that_others_can_reach_are_not_believed(home: Home, name: str, mode: int) -> None:
    """A checked-out repository can bring such files, but never with mode 0600."""
    home.configure(home.cwd / "claudomator.yaml", "state_dir: .claudomator\n")
    folder = home.announce(home.cwd / ".claudomator")
    (folder / name).chmod(mode)
    with pytest.raises(DiscoveryFailed, match="other users"):
        home.discover()


def test_a_link_is_not_followed(home: Home) -> None:
    folder = home.announce(home.root / ".local/state/claudomator")
    (folder / "endpoint").rename(folder / "real")
    (folder / "endpoint").symlink_to("real")
    with pytest.raises(DiscoveryFailed, match="not believed"):
        home.discover()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_configuration_of_another_user_is_not_believed(home: Home) -> None:
    config = home.configure(home.cwd / "claudomator.yaml", "state_dir: .claudomator\n")
    home.announce(home.cwd / ".claudomator", "http://evil.example")
    os.chown(config, 12345, 12345)
    with pytest.raises(DiscoveryFailed, match="another user"):
        home.discover()
    home.announce(home.root / "other")
    assert home.discover(state_dir=home.root / "other", config=config).token == TOKEN  # named, so meant


def test_a_configuration_that_anyone_can_write_is_not_believed(home: Home) -> None:
    config = home.configure(home.cwd / "claudomator.yaml", "state_dir: .claudomator\n")
    home.announce(home.cwd / ".claudomator")
    config.chmod(0o666)
    with pytest.raises(DiscoveryFailed, match="another user"):
        home.discover()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_an_endpoint_of_another_user_is_not_believed(home: Home) -> None:
    folder = home.announce(home.root / ".local/state/claudomator")
    os.chown(folder / "endpoint", 12345, 12345)
    with pytest.raises(DiscoveryFailed, match="another user"):
        home.discover()


@pytest.mark.parametrize(
    "url", ["", "ftp://x", "127.0.0.1:8484", "http://", "http://user:pw@host", "http://h:0", "http://["]
)
def test_what_is_no_url_is_refused(home: Home, url: str) -> None:
    home.announce(home.root / ".local/state/claudomator", url)
    with pytest.raises(DiscoveryFailed, match=r"http://127\.0\.0\.1:8484"):
        home.discover()


def test_the_token_of_the_environment_goes_to_no_host_that_a_file_names(home: Home) -> None:
    home.announce(home.root / ".local/state/claudomator", "http://evil.example", token=None)
    with pytest.raises(NotAuthorised, match="CLAUDOMATOR_URL"):
        home.discover(CLAUDOMATOR_TOKEN=OTHER)


def test_a_broken_configuration_is_told_with_its_line(home: Home) -> None:
    home.configure(home.cwd / "claudomator.yaml", "state_dir: x\nstate_dri: y\n")
    with pytest.raises(DiscoveryFailed, match=r"claudomator\.yaml:2: state_dri"):
        home.discover()
