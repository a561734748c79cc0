"""However many connections there are that say nothing, whoever asks is answered."""

import contextlib
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.api.guard.limits import ConnectionLimit
from claudomator_py.api.guard.security import ServerLoad
from tests.fakes.daemon import Daemon, Patient, running
from tests.fakes.prepared import PreparedService
from tests.patience import PATIENCE_S
from tests.unit.api.wire import ask, begin, code, connected, is_closed

MAX_CONNECTIONS = 8


class Client:
    """A connection that only counts."""

    def may_go(self) -> bool:
        return False

    def drop(self) -> None:
        raise AssertionError("it has a request at hand")


class Busy(Patient):
    """One that is told to holds up the whole server, until it may go on."""

    holding, may_go_on = threading.Event(), threading.Event()

    def data_received(self, data: bytes) -> None:
        if data == b"hold":
            self.holding.set()
            self.may_go_on.wait(PATIENCE_S)
        else:
            super().data_received(data)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Daemon]:
    with running(
        PreparedService(), tmp_path / "state", connection_limit=ConnectionLimit(most=MAX_CONNECTIONS)
    ) as daemon:
        yield daemon


def test_who_says_nothing_makes_room_for_the_next(small: Daemon) -> None:
    """Far more than there is room for: the oldest go, and everybody who asks is served."""
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connected(small)) for _ in range(20)]
        for sock in silent[::2]:
            sock.sendall(b"GET /livez HTTP/1.1\r\n")
        silent += [stack.enter_context(connected(small)) for _ in range(10)]
        assert small.ask("GET", "/livez", headers={"Authorization": None}).status == 200
        assert small.ask("GET", "/v1/status").status == 200
        assert is_closed(silent[0])
        assert ask(small, silent[-1], "/livez")[0] == 200


def test_who_asks_is_answered_among_many_more_that_come_at_once(tmp_path: Path) -> None:
    limit = ConnectionLimit(most=2 * MAX_CONNECTIONS)
    with (
        contextlib.ExitStack() as stack,
        running(PreparedService(), tmp_path / "state", protocol=Busy, connection_limit=limit) as daemon,
    ):
        stack.enter_context(connected(daemon)).sendall(b"hold")
        assert Busy.holding.wait(PATIENCE_S)
        asking = stack.enter_context(connected(daemon))
        asking.sendall(f"GET /livez HTTP/1.1\r\nHost: {daemon.address}\r\n\r\n".encode())
        for _ in range(10 * MAX_CONNECTIONS):
            stack.enter_context(connected(daemon)).sendall(b"GET / HTTP/1.1\r\nHost: ")
        Busy.may_go_on.set()
        assert asking.recv(100).startswith(b"HTTP/1.1 200")


def test_an_idle_connection_goes_before_one_with_a_request(small: Daemon) -> None:
    with contextlib.ExitStack() as stack:
        busy = stack.enter_context(connected(small))
        begin(small, busy, authorised=True)
        idle = []
        for _ in range(MAX_CONNECTIONS - 1):
            idle.append(stack.enter_context(connected(small)))
            assert ask(small, idle[-1], "/livez")[0] == 200
        newest = stack.enter_context(connected(small))
        assert ask(small, newest, "/v1/status")[0] == 200
        assert is_closed(idle[0])
        busy.sendall(b'"a": "b"}')
        assert busy.recv(100).startswith(b"HTTP/1.1 422")


def test_a_body_of_nobody_that_does_not_come_goes_too(small: Daemon) -> None:
    with contextlib.ExitStack() as stack:
        slow = []
        for _ in range(MAX_CONNECTIONS):
            slow.append(stack.enter_context(connected(small)))
            begin(small, slow[-1], authorised=False)
        assert small.ask("GET", "/v1/status").status == 200
        assert is_closed(slow[0])


def test_under_load_the_operator_is_served_and_at_last_only_health() -> None:
    connection_limit = ConnectionLimit(most=8)
    members = [Client() for _ in range(8)]
    for member in members:
        assert connection_limit.enter(member)
    steps = []
    for member in members:
        connection_limit.works(member)
        steps.append((connection_limit.crowded, connection_limit.full))
    assert steps == [(False, False)] * 4 + [(True, False)] * 2 + [(True, True)] * 2
    assert not connection_limit.enter(Client())


@pytest.mark.parametrize(
    ("load", "path", "token", "status"),
    [
        (ServerLoad.CROWDED, "/livez", False, 200),
        (ServerLoad.CROWDED, "/login", False, 503),
        (ServerLoad.CROWDED, "/v1/status", True, 200),
        (ServerLoad.FULL, "/v1/status", True, 503),
        (ServerLoad.FULL, "/readyz", False, 200),
    ],
)
def test_whom_there_is_no_room_for_is_told_when_to_come_again(
    tmp_path: Path, load: ServerLoad, path: str, token: bool, status: int
) -> None:
    connection_limit = ConnectionLimit(most=100)
    busy = {ServerLoad.CROWDED: 60, ServerLoad.FULL: 80}[load]
    for member in [Client() for _ in range(busy)]:
        connection_limit.enter(member)
        connection_limit.works(member)
    with running(PreparedService(), tmp_path / "state", connection_limit=connection_limit) as daemon:
        answer = daemon.ask("GET", path, headers={} if token else {"Authorization": None})
    assert answer.status == status
    if status == 503:
        assert code(answer) == (503, "too_many_connections")
        assert answer.headers["retry-after"] == "1"


def test_the_number_of_connections_is_a_part_of_the_files_there_may_be() -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (400, limits[1]))
        assert ConnectionLimit().most == 100
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


NARROW = """
import logging, os, resource, sys
from pathlib import Path
from tests.fakes.daemon import running
from tests.fakes.prepared import PreparedService

logging.basicConfig(format="%(message)s")
with running(PreparedService(), Path(sys.argv[1])) as daemon:
    assert daemon.ask("GET", "/livez").status == 200
    left = len(os.listdir("/proc/self/fd")) + 10
    resource.setrlimit(resource.RLIMIT_NOFILE, (left, left))
    print(daemon.address, daemon.token, flush=True)
    sys.stdin.read()
"""


def test_without_a_file_left_the_newest_is_served_and_nothing_spins(tmp_path: Path) -> None:
    command = [sys.executable, "-c", NARROW, str(tmp_path / "state")]
    pipe = subprocess.PIPE
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe, stderr=pipe))
        assert process.stdout is not None
        address, token = process.stdout.readline().split()
        daemon = Daemon(f"http://{address}", address, token, tmp_path / "state")
        for _ in range(5):
            for _ in range(20):
                stack.enter_context(connected(daemon))
            assert daemon.ask("GET", "/livez").status == 200
        _, text = process.communicate("", timeout=PATIENCE_S)
    assert text.count("cannot accept connections") == len(text.splitlines()) == 1
