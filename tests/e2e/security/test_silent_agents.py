"""Whoever connects and says little, at the limit of open files: whose place somebody else gets."""

import json
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from claudomator_py.client import ConnectionLost, ServiceProblem
from claudomator_py.resources.access import TokenRequest
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document
from tests.e2e.site import Site, open_site
from tests.patience import PATIENCE_S, wait_until
from tests.warm.starter import WarmStarter

FILES = 256
MAX_FILES = (100, FILES)
PLACES = FILES // 8


def asked(connection: ClientConnection, method: str, **params: Any) -> Any:
    connection.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
    return json.loads(connection.recv(timeout=PATIENCE_S))["result"]


def is_closed(connection: ClientConnection) -> bool:
    try:
        connection.recv(timeout=PATIENCE_S)
    except ConnectionClosed:
        return True
    return False


def test_at_the_limit_of_files_the_silent_go_first_and_agents_last(tmp_path: Path, warm: WarmStarter) -> None:
    """With all places taken by three tokens: who has registered and who spoke last stay, the most silent make room."""
    with open_site(tmp_path / "narrow", warm=warm, max_files=MAX_FILES) as site, ExitStack() as stack:
        daemon = site.start().ready()
        limits = Path(f"/proc/{daemon.pid}/limits").read_text()
        assert re.search(rf"^Max open files +{FILES} +{FILES} ", limits, re.MULTILINE), "the soft limit was not raised"
        tokens = [
            daemon.client.create_token(TokenRequest.model_validate({"name": name, "role": "operate"})).token
            for name in ("one", "two", "three")
        ]
        address = str(site.endpoint).replace("http://", "ws://") + "/v1/hub"

        def opened(number: int) -> ClientConnection:
            """A connection of one of the three."""
            headers = {"Authorization": f"Bearer {tokens[number % len(tokens)]}"}
            return stack.enter_context(connect(address, additional_headers=headers, proxy=None, ping_interval=None))

        agent = opened(0)
        asked(agent, "agent.register", agent_id="shepherd", instance_id="one", card={"description": "Counts sheep."})
        others = [opened(number) for number in range(1, PLACES)]
        assert asked(others[0], "ping") == {}, "all have a place, and the first one is silent no longer"
        newcomers = [opened(number) for number in range(5)]
        assert [is_closed(entry) for entry in others[1:6]] == [True] * 5
        assert [asked(entry, "ping") for entry in (agent, others[0], *others[6:], *newcomers)] == [{}] * PLACES
        assert daemon.client.status() is not None


UPGRADE = (
    "GET /v1/hub HTTP/1.1\r\nHost: {host}\r\n{token}Connection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)
GET = "GET {path} HTTP/1.1\r\nHost: {{host}}\r\n{{token}}Accept: {accept}\r\n\r\n"
POST = "POST /v1/tasks HTTP/1.1\r\nHost: {host}\r\n{token}Content-Type: application/json\r\n"
WAYS = {
    "nothing": "",
    "half a head": POST,
    "half a body": POST + "Content-Length: 1000\r\n\r\n{{",
    "a body in chunks without an end": POST + "Transfer-Encoding: chunked\r\n\r\n1\r\n{{\r\n",
    "an answer, and then nothing": GET.format(path="/v1/status", accept="application/json"),
    "answers that nobody takes": GET.format(path="/v1/specialists", accept="application/json") * 20,
    "a stream of events": GET.format(path="/v1/events", accept="text/event-stream"),
    "half of a handshake": UPGRADE,
    "a WebSocket that says nothing": UPGRADE + "\r\n",
    "a WebSocket with half of a frame": UPGRADE + "\r\n\x01",
    "a WebSocket of nobody": UPGRADE.replace("{token}", "") + "\r\n",
}


@pytest.fixture(scope="module")
def narrow(
    tmp_path_factory: pytest.TempPathFactory, warm: WarmStarter
) -> Iterator[tuple[Site, Daemon, Mapping[str, str]]]:
    """A daemon with few files, which has to stand all the ways one after the other; and a reader's token for each."""
    with open_site(tmp_path_factory.mktemp("narrow") / "site", warm=warm, max_files=MAX_FILES) as site:
        daemon, tokens = site.start().ready(), {}
        for number, way in enumerate(WAYS):
            request = {"name": f"reader-{number}", "role": "read", "organisation": "acme"}
            tokens[way] = daemon.client.create_token(TokenRequest.model_validate(request)).token
        yield site, daemon, tokens


@pytest.mark.parametrize("way", WAYS)
def test_a_reader_takes_not_the_files_of_the_daemon(narrow: tuple[Site, Daemon, Mapping[str, str]], way: str) -> None:
    """However it holds more connections than there are files."""
    site, daemon, tokens = narrow
    number = [*WAYS].index(way)
    with ExitStack() as stack:
        host = str(site.endpoint).removeprefix("http://")
        words = WAYS[way].format(host=host, token=f"Authorization: Bearer {tokens[way]}\r\n").encode()
        address, _, port = host.rpartition(":")
        held: list[socket.socket] = []
        for _ in range(FILES + 44):
            with suppress(OSError):
                held.append(stack.enter_context(socket.create_connection((address, int(port)), timeout=PATIENCE_S)))
                held[-1].sendall(words)
        site.drop(f"own-{number}.yaml", document(f"own-{number}", "true"))
        wait_until(partial(is_done, daemon, f"own-{number}"), "the operator's own")
        assert "Too many open files" not in site.log_text()
        if "a body" in way:
            with suppress(ConnectionError):
                assert held[0].recv(100) == b"", "it kept its place until it was told that it took too long"


def is_done(daemon: Daemon, name: str) -> bool:
    """Whether the operator is told so; a connection that waited may have gone just then, for another one."""
    with suppress(ConnectionLost, ServiceProblem):
        return daemon.client.task(name).state == "COMPLETED" and daemon.client.status() is not None
    return False
