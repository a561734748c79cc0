"""Waking an agent: what its address hears, what counts as woken, and who is asked again."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from typing import Any

import pytest

from claudomator_py.domain.card import Registration
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.protocols.hub import waking
from claudomator_py.protocols.hub.waking import NotWoken, wake, wake_remote_agent
from tests.fakes.cards import card
from tests.fakes.quick_time import run_quickly

AGAIN_S = 5.0
DOCUMENT = {"agent_id": "shepherd", "task_id": "t"}


class Address:
    """Where an agent is woken. status: what it answers; heard: each request, with its body; hosts: to whom."""

    def __init__(self) -> None:
        self.status = 204
        self.heard: list[tuple[str, str, Any]] = []
        self.hosts: list[str] = []
        address = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                address.hosts.append(self.headers["Host"])
                address.heard.append((self.path, self.headers["Content-Type"], json.loads(body)))
                self.send_response(address.status)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_POST  # noqa: N815 - the name that the server looks for

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/wake"


@pytest.fixture
def address() -> Iterator[Address]:
    address = Address()
    thread = threading.Thread(target=address.server.serve_forever, args=(0.01,))
    thread.start()
    yield address
    address.server.shutdown()
    thread.join()
    address.server.server_close()


@pytest.mark.parametrize("status", [200, 299])
def test_the_address_hears_who_is_wanted_for_what(address: Address, status: int) -> None:
    address.status = status
    wake_remote_agent(address.url, DOCUMENT, True)
    assert address.heard == [("/wake", "application/json", DOCUMENT)]


def test_a_proxy_of_the_daemon_is_not_asked(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be told of each task; and whom an address of this machine means there, nobody knows."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    wake_remote_agent(address.url, DOCUMENT, True)
    assert len(address.heard) == 1


@pytest.mark.parametrize("status", [300, 307, 404, 500])
def test_any_other_answer_is_none_and_a_redirect_leads_nowhere(address: Address, status: int) -> None:
    address.status = status
    with pytest.raises(NotWoken, match=f"{address.url} answered {status}"):
        wake_remote_agent(address.url, DOCUMENT, True)
    assert len(address.heard) == 1


def test_where_nobody_listens_nobody_is_woken() -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unheard.getsockname()[1]}/wake"
        with pytest.raises(NotWoken, match=f"{url} was not reached: ConnectError"):
            wake_remote_agent(url, DOCUMENT, True)
    with pytest.raises(NotWoken, match="InvalidURL"):
        wake_remote_agent("http://[::1/wake", DOCUMENT, True)


def agent(url: str, creator: str = OPERATOR.id) -> Registration:
    return Registration(card=card("shepherd", wake_url=url), creator=creator, source="hub")


def woken(registration: Registration, failing: int = 0, wanted: int = 5) -> list[tuple[str, Mapping[str, Any]]]:
    """What is sent, of which the first are not taken, while it is wanted so often."""
    sent: list[tuple[str, Mapping[str, Any]]] = []
    left = iter(range(wanted))

    def knocked(url: str, document: Mapping[str, Any], anywhere: bool) -> None:
        assert anywhere == (registration.creator == OPERATOR.id)
        sent.append((url, document))
        if len(sent) <= failing:
            raise NotWoken("nobody is there")

    run_quickly(wake(registration, "t", knocked, AGAIN_S, lambda: next(left, None) is not None))
    return sent


def test_it_is_sent_again_until_it_arrives_or_is_not_wanted() -> None:
    url = "https://agents.example/wake"
    assert woken(agent(url, "ann"), failing=2) == [(url, DOCUMENT)] * 3
    assert len(woken(agent(url), failing=9, wanted=4)) == 4
    assert woken(agent(url), wanted=0) == []


def test_between_two_wake_ups_it_has_time_to_start() -> None:
    at_s: list[float] = []

    async def play() -> None:
        def wanted() -> bool:
            at_s.append(asyncio.get_running_loop().time())
            return len(at_s) <= 2

        def deaf(*_: object) -> None:
            raise NotWoken("nobody is there")

        await wake(agent("https://agents.example/wake"), "t", deaf, AGAIN_S, wanted)

    run_quickly(play())
    assert [later - at for at, later in pairwise(at_s)] == pytest.approx([AGAIN_S] * 2, abs=0.01)


OWN_NAME = socket.gethostname()
SPELLINGS = (
    *("127.0.0.1", "localhost", "[::1]", "127.1", "127.0.1", "0177.0.0.1", "0x7f.1", "2130706433", "0x7f000001"),
    *("0", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"),
    *("localhost.", "LOCALHOST", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
    *("[::127.0.0.1]", "[::ffff:0:127.0.0.1]", "[64:ff9b:1::a00:1]", "[fec0::1]", "192.0.0.8", "[5f00::1]"),
    *("[fe80::1]", "[fc00::1]", "224.0.0.1", "255.255.255.255", OWN_NAME),
)


@pytest.mark.parametrize("host", SPELLINGS)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_on_this_machine_and_in_its_network_nobody_is_woken_for_a_guest(
    address: Address, scheme: str, host: str
) -> None:
    with pytest.raises(NotWoken, match=r"on this machine or in its network|has no address|InvalidURL"):
        wake_remote_agent(f"{scheme}://{host}:{address.server.server_port}/wake", DOCUMENT, False)
    assert address.heard == []


def test_a_name_that_points_here_is_this_machine(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where another address comes first."""
    results = [(socket.AF_INET, socket.SOCK_DGRAM, 17, "", (ip, 80)) for ip in ("192.0.43.8", "127.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: results)
    with pytest.raises(NotWoken, match="on this machine"):
        wake_remote_agent(f"https://agents.example:{address.server.server_port}/wake", DOCUMENT, False)


def test_elsewhere_a_guests_agent_is_woken_at_the_address_that_was_judged(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if this machine's address were another's: the name is asked for once, and still stands in the request."""
    asked: list[str] = []
    here = [(socket.AF_INET, socket.SOCK_DGRAM, 17, "", ("127.0.0.1", 80))]
    monkeypatch.setattr(waking, "is_elsewhere", lambda _: True)
    monkeypatch.setattr(waking, "_is_own", lambda *_: False)
    resolve = socket.getaddrinfo

    def resolved(host: str, *more: Any, **named: Any) -> Any:
        if host != "agents.example":
            return resolve(host, *more, **named)
        asked.append(host)
        return here

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    wake_remote_agent(f"http://agents.example:{address.server.server_port}/wake", DOCUMENT, False)
    assert address.heard == [("/wake", "application/json", DOCUMENT)]
    assert address.hosts == [f"agents.example:{address.server.server_port}"]
    assert asked == ["agents.example"]
