"""The Unix socket in the state folder: what it is on disk, and what is checked of a request that comes over it."""

import http.client
import os
import socket
import stat
from pathlib import Path

import pytest

from claudomator_py.api.endpoint import bind_own, withdraw_endpoint
from claudomator_py.api.guard.limits import Rate, RequestLimits
from claudomator_py.app.listening import open_sockets
from tests.fakes.daemon import Daemon, running
from tests.fakes.prepared import PreparedService
from tests.patience import PATIENCE_S


def ask(folder: Path, host: str, token: str = "", path: str = "/v1/status") -> tuple[int, bytes]:
    """One request over the socket in that folder."""
    connection = http.client.HTTPConnection(host, timeout=PATIENCE_S)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(folder / "api.sock"))
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_it_is_its_owners_alone_whatever_the_umask_and_replaces_what_was_left(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        for _ in range(2):  # what is closed without more, as by a kill, leaves its file
            with bind_own(tmp_path) as sock:
                stat_result = (tmp_path / "api.sock").lstat()
                assert (stat.S_ISSOCK(stat_result.st_mode), stat.S_IMODE(stat_result.st_mode)) == (True, 0o600)
                assert not sock.getblocking()
    finally:
        os.umask(old)
    withdraw_endpoint(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_link_in_its_place_is_replaced_and_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "api.sock").symlink_to(tmp_path / "elsewhere")
    with bind_own(tmp_path):
        assert (tmp_path / "api.sock").is_socket()
        assert not (tmp_path / "elsewhere").exists()


def test_a_path_may_be_longer_than_an_address(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    with bind_own(deep):
        assert (deep / "api.sock").is_socket()


def test_where_there_can_be_none_the_daemon_listens_on_tcp_alone(tmp_path: Path) -> None:
    (tmp_path / "api.sock").mkdir()  # as on a file system without sockets, it cannot be made
    (tcp,) = open_sockets("127.0.0.1:0", tmp_path)
    assert tcp.family == socket.AF_INET
    tcp.close()


@pytest.mark.parametrize("host", ["localhost", "own"])
def test_the_token_is_needed_there_too(daemon: Daemon, host: str) -> None:
    host = daemon.address if host == "own" else host
    assert ask(daemon.state_dir, host)[0] == 401
    assert ask(daemon.state_dir, host, "x" * 40)[0] == 401
    assert ask(daemon.state_dir, host, daemon.token)[0] == 200


def test_other_hosts_are_refused_there_too(daemon: Daemon) -> None:
    """A proxy in front of the socket hands on what a browser says."""
    assert ask(daemon.state_dir, "evil.example", daemon.token)[0] == 421


def test_localhost_without_the_port_is_none_of_our_names_over_tcp(daemon: Daemon) -> None:
    assert daemon.ask("GET", "/v1/status", headers={"Host": "localhost"}).status == 421


def test_failed_logins_over_tcp_hold_up_nobody_on_the_socket(tmp_path: Path) -> None:
    limits = RequestLimits(failures=Rate(0.001, 1))
    wrong = {"Authorization": "Bearer " + "x" * 40}
    with running(PreparedService(), tmp_path / "state", limits=limits) as daemon:
        assert [daemon.ask("GET", "/v1/status", headers=wrong).status for _ in range(3)] == [401, 429, 429]
        assert ask(daemon.state_dir, "localhost", "x" * 40)[0] == 401
        assert ask(daemon.state_dir, "localhost", daemon.token)[0] == 200
