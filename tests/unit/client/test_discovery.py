"""Where a command finds the daemon, and what it never believes."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from claudomator_py.api.endpoint import ANNOUNCED, bind_own
from claudomator_py.client import DaemonNotRunning, DiscoveryFailed, NotAuthorised, NotStarted
from claudomator_py.client.discovery import Endpoint, configuration, configuration_problem, discover
from claudomator_py.daemon.locks import PublishedRecord, hold_state
from claudomator_py.schema.configfile import load_config
from claudomator_py.schema.configpath import records_folder

TOKEN = "t" * 40
OTHER = "o" * 40


class Home:
    """A user's home with a daemon in it, and a folder to stand in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cwd = root / "work"
        self.cwd.mkdir()
        self.environ = {"HOME": str(root)}
        self.open = ExitStack()

    def announce(
        self, folder: Path, url: str = "http://127.0.0.1:4711", token: str | None = TOKEN, *, socket: bool = True
    ) -> Path:
        """As a daemon does it that listens on a socket, or, without one, as one that was killed leaves it."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if socket:
            self.open.enter_context(bind_own(folder))
        for name, text in (("endpoint", url), ("token", token)):
            if text is not None:
                (folder / name).write_text(text + "\n")
                (folder / name).chmod(0o600)
        return folder

    def record(self, folder: Path, config: Path | None = None, *, killed: bool = False) -> Path:
        """As a daemon does it that was started with that configuration."""
        if not killed:
            self.open.enter_context(hold_state(folder))
        loaded = load_config(config, self.environ, self.cwd)
        PublishedRecord(folder, self.environ).publish(loaded)
        return folder

    def configure(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def discover(self, config: Path | None = None, state_dir: Path | None = None, **environ: str) -> Endpoint:
        return discover(config, state_dir, {**self.environ, **environ}, self.cwd)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path)
    with home.open:
        yield home


def test_without_configuration_the_daemon_of_the_state_home_is_found(home: Home) -> None:
    folder = home.announce(home.root / ".local/state/claudomator")
    assert home.discover() == Endpoint("http://127.0.0.1:4711", TOKEN, own=folder, socket=True)


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
    endpoint = home.discover(CLAUDOMATOR_URL="https://box.example", CLAUDOMATOR_TOKEN=OTHER)
    assert endpoint == Endpoint("https://box.example", OTHER)


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
    with pytest.raises(DiscoveryFailed, match="not trusted"):
        home.discover()


@pytest.mark.needs_root
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


@pytest.mark.needs_root
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


@pytest.mark.parametrize("url", ["http://evil.example", "http://127.0.0.1:4711"])
@pytest.mark.parametrize("token", [None, TOKEN])
def test_the_token_of_the_environment_goes_to_no_address_that_a_file_names(
    home: Home, url: str, token: str | None
) -> None:
    """Whatever lies beside it, and whether a daemon runs there or not."""
    folder = home.announce(home.root / ".local/state/claudomator", url, token, socket=False)
    with hold_state(folder), pytest.raises(NotAuthorised, match="CLAUDOMATOR_URL"):
        home.discover(CLAUDOMATOR_TOKEN=OTHER)


def test_an_unpacked_folder_that_looks_like_a_state_folder_gets_no_token(home: Home) -> None:
    """An archive brings modes along, so everything in it is as private as a daemon would have made it."""
    home.configure(home.cwd / "claudomator.yaml", "state_dir: st\nhttp: {listen: '127.0.0.1:6666'}\n")
    folder = home.announce(home.cwd / "st", "http://127.0.0.1:6666", "dummy" * 8, socket=False)
    for named in ("", "1\n", f"{os.getpid()}\n"):
        (folder / "daemon.lock").write_text(named)
        (folder / "daemon.lock").chmod(0o600)
        for token in ("", OTHER):
            with pytest.raises(DaemonNotRunning):
                home.discover(CLAUDOMATOR_TOKEN=token)


def test_links_in_an_unpacked_folder_lead_to_no_lock_and_no_socket_of_a_real_daemon(home: Home) -> None:
    real = home.announce(home.root / ".local/state/claudomator")
    home.configure(home.cwd / "claudomator.yaml", "state_dir: st\n")
    folder = home.announce(home.cwd / "st", "http://127.0.0.1:6666", socket=False)
    with hold_state(real):
        (folder / "daemon.lock").symlink_to(real / "daemon.lock")
        with pytest.raises(DiscoveryFailed, match="not trusted"):
            home.discover()
        (folder / "api.sock").symlink_to(real / "api.sock")
        with pytest.raises(DiscoveryFailed, match="not a socket"):
            home.discover()


@pytest.mark.needs_root
@pytest.mark.parametrize("linked", [False, True])
def test_the_state_folder_of_another_user_gets_nothing(home: Home, *, linked: bool) -> None:
    """Not even a request without a token: what is submitted would be told to whoever listens."""
    folder = home.announce(home.root / "theirs")
    os.chown(folder, 12345, 12345)
    if linked:
        (home.cwd / "st").symlink_to(folder)
    home.configure(home.cwd / "claudomator.yaml", f"state_dir: {'st' if linked else folder}\n")
    for token in ("", OTHER):
        with pytest.raises(NotAuthorised, match="CLAUDOMATOR_URL"):
            home.discover(CLAUDOMATOR_TOKEN=token)


def test_a_state_folder_that_others_can_enter_is_not_believed(home: Home) -> None:
    home.announce(home.root / ".local/state/claudomator").chmod(0o755)
    with pytest.raises(DiscoveryFailed, match="chmod 700"):
        home.discover()


def test_a_daemon_of_an_earlier_version_is_found_while_it_holds_its_lock(home: Home) -> None:
    folder = home.announce(home.root / ".local/state/claudomator", socket=False)
    with hold_state(folder):
        assert home.discover() == Endpoint("http://127.0.0.1:4711", TOKEN, own=folder)
    with pytest.raises(DaemonNotRunning, match="killed") as ended:
        home.discover()
    assert not isinstance(ended.value, NotStarted)


def test_what_a_killed_daemon_announced_is_not_believed_while_the_next_one_starts(home: Home) -> None:
    """It holds the lock at once, and the old announcement is still there: the lock does not name it yet."""
    folder = home.announce(home.root / ".local/state/claudomator", socket=False)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for named in (f"{gone.pid}\n", ""):
        (folder / "daemon.lock").write_text(named)
        (folder / "daemon.lock").chmod(0o600)
        with (folder / "daemon.lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with pytest.raises(DaemonNotRunning):
                home.discover()
    with hold_state(folder, ANNOUNCED), pytest.raises(NotStarted):
        home.discover()


def test_a_killed_daemon_is_not_taken_for_one_that_listens(home: Home) -> None:
    folder = home.announce(home.root / ".local/state/claudomator")
    home.open.close()
    assert (folder / "api.sock").is_socket()
    with pytest.raises(DaemonNotRunning, match="killed"):
        home.discover()


def test_to_look_at_a_lock_is_not_in_the_way_of_a_daemon(home: Home) -> None:
    folder = home.announce(home.root / ".local/state/claudomator", socket=False)
    with hold_state(folder):
        home.discover()
    with pytest.raises(DaemonNotRunning):
        home.discover()
    with hold_state(folder):
        pass


def test_a_broken_configuration_is_told_with_its_line(home: Home) -> None:
    home.configure(home.cwd / "claudomator.yaml", "state_dir: x\nstate_dri: y\n")
    with pytest.raises(DiscoveryFailed, match=r"claudomator\.yaml:2: state_dri"):
        home.discover()


def broken(config: Path, how: str) -> None:
    match how:
        case "gone":
            config.unlink()
        case "unreadable":
            config.unlink()
            config.mkdir()
        case text:
            config.write_text(text)


BROKEN = ["gone", "unreadable", "concurency: {total: 2}\n", "a: [\n", "agents: {a: {kind: nope}}\n", "- 1\n", "\0"]


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("text", ["", "state_dir: own\n"])
@pytest.mark.parametrize("named", ["", "--config", "CLAUDOMATOR_CONFIG", "--state-dir"])
def test_a_broken_configuration_keeps_nobody_from_the_daemon_that_was_started_with_it(
    home: Home, how: str, text: str, named: str
) -> None:
    config = home.configure(home.cwd / "claudomator.yaml", text)
    folder = home.announce(home.cwd / "own" if text else home.root / ".local/state/claudomator")
    home.record(folder, config)
    broken(config, how)
    endpoint = home.discover(
        config if named == "--config" else None,
        folder if named == "--state-dir" else None,
        **({named: str(config)} if named.isupper() else {}),
    )
    assert endpoint == Endpoint("http://127.0.0.1:4711", TOKEN, own=folder, socket=True)
    problem = configuration_problem(folder, home.environ)
    assert problem is not None
    assert problem.startswith(str(config))


def test_a_state_folder_that_a_broken_configuration_names_is_found_without_a_record(home: Home) -> None:
    home.configure(home.cwd / "claudomator.yaml", "concurency: {total: 2}\nstate_dir: own\n")
    folder = home.announce(home.cwd / "own")
    assert home.discover().own == folder
    assert configuration_problem(folder, home.environ) is None


def test_a_configuration_that_the_daemon_has_read_is_no_problem(home: Home) -> None:
    config = home.configure(home.cwd / "claudomator.yaml", "state_dir: own\n")
    folder = home.record(home.announce(home.cwd / "own"), config)
    assert configuration_problem(folder, home.environ) is None
    config.write_text("state_dir: own\nconcurrency: {total: 3}\n")
    assert configuration_problem(folder, home.environ) is None


def test_a_broken_configuration_leads_to_no_daemon_of_another_one(home: Home) -> None:
    home.record(home.announce(home.root / "other"))
    home.configure(home.cwd / "claudomator.yaml", "concurency: {total: 2}\n")
    with pytest.raises(DiscoveryFailed, match=r"claudomator\.yaml:1: concurency"):
        home.discover()


def test_the_only_daemon_of_this_user_is_found_from_anywhere(home: Home) -> None:
    elsewhere = home.configure(home.root / "elsewhere/claudomator.yaml", "state_dir: state\n")
    folder = home.record(home.announce(home.root / "elsewhere/state"), elsewhere)
    assert home.discover() == Endpoint("http://127.0.0.1:4711", TOKEN, own=folder, socket=True)


def test_the_configuration_in_use_is_that_of_the_only_daemon_from_anywhere(home: Home) -> None:
    def limit(config: Path | None = None) -> int | None:
        return configuration(config, home.environ, home.cwd).settings.concurrency.total

    usual = limit()
    elsewhere = home.configure(home.root / "elsewhere/claudomator.yaml", "concurrency: {total: 7}\nstate_dir: state\n")
    assert limit() == usual, "no daemon runs with it"
    home.record(home.announce(home.root / "elsewhere/state"), elsewhere)
    assert limit() == 7
    named = home.configure(home.root / "named.yaml", "concurrency: {total: 5}\n")
    assert limit(named) == 5

    elsewhere.write_text("concurency: {total: 7}\n")
    with pytest.raises(DiscoveryFailed, match=r"elsewhere/claudomator\.yaml:1: concurency"):
        limit()  # what the defaults say is not what that daemon does
    elsewhere.write_text("concurrency: {total: 7}\nstate_dir: state\n")
    here = home.configure(home.cwd / "claudomator.yaml", "concurrency: {total: 3}\n")
    assert limit() == 3
    here.unlink()
    home.record(home.announce(home.root / "second"), named)
    assert limit() == usual, "two of them run"


def test_a_daemon_started_with_another_state_folder_is_found_by_its_configuration(home: Home) -> None:
    config = home.configure(home.cwd / "claudomator.yaml", "concurrency: {total: 2}\n")
    home.record(home.announce(home.root / "flag"), config)
    assert home.discover().own == home.root / "flag"
    assert home.discover(config).own == home.root / "flag"


def test_the_daemon_of_the_default_folder_goes_before_others(home: Home) -> None:
    folder = home.record(home.announce(home.root / ".local/state/claudomator"))
    home.record(home.announce(home.root / "other"))
    assert home.discover().own == folder


def test_several_daemons_are_listed_with_how_to_choose(home: Home) -> None:
    config = home.configure(home.root / "c/claudomator.yaml", "")
    home.record(home.announce(home.root / "a"))
    home.record(home.announce(home.root / "b"), config)
    with pytest.raises(DiscoveryFailed, match="--state-dir") as refused:
        home.discover()
    assert f"{home.root / 'a'} (no configuration)" in str(refused.value)
    assert f"{home.root / 'b'} ({config})" in str(refused.value)
    assert home.discover(state_dir=home.root / "b").own == home.root / "b"
    assert home.discover(config).own == home.root / "b"


def test_a_folder_with_a_configuration_means_its_own_daemon_and_names_the_one_that_runs(home: Home) -> None:
    home.configure(home.cwd / "claudomator.yaml", "state_dir: own\n")
    home.record(home.announce(home.root / "other"))
    with pytest.raises(NotStarted, match=f"{home.cwd / 'own'} .*claudomator.yaml.*{home.root / 'other'}.*--state-dir"):
        home.discover()


def test_where_none_runs_it_is_said_where_it_was_looked_for(home: Home) -> None:
    home.record(home.announce(home.root / "killed", socket=False), killed=True)
    with pytest.raises(NotStarted) as refused:
        home.discover()
    assert str(home.root / ".local/state/claudomator") in refused.value.detail
    assert str(records_folder(home.environ)) in refused.value.detail
    assert "killed" not in refused.value.detail


def test_records_of_killed_daemons_go_with_the_next_one(home: Home) -> None:
    home.record(home.announce(home.root / "killed", socket=False), killed=True)
    folder = home.record(home.announce(home.root / "other"))
    assert len(list(records_folder(home.environ).iterdir())) == 1
    assert home.discover().own == folder


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"state_dir": 1, "config": null, "digest": null}', "\0"])
def test_what_is_no_record_is_passed_over(home: Home, text: str) -> None:
    folder = home.record(home.announce(home.root / "other"))
    other = records_folder(home.environ) / "a.json"
    other.write_text(text)
    other.chmod(0o600)
    assert home.discover().own == folder


@pytest.mark.parametrize("exposed", ["folder", "file"])
def test_a_record_that_others_could_have_written_leads_nowhere(home: Home, exposed: str) -> None:
    home.record(home.announce(home.root / "other"))
    folder = records_folder(home.environ)
    if exposed == "folder":
        folder.chmod(0o755)
    else:
        next(folder.iterdir()).chmod(0o666)
    with pytest.raises(NotStarted):
        home.discover()


def test_a_home_that_cannot_be_written_to_costs_the_record_alone(home: Home) -> None:
    (home.root / ".local").write_text("")
    home.record(home.root, killed=True)
    PublishedRecord(home.root, home.environ).withdraw()
