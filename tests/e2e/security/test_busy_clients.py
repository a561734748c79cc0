"""Clients with tokens that ask all the time, over many connections, of a real daemon."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from claudomator_py.api.guard.pace import MAX_WAITING
from claudomator_py.resources.access import TokenRequest
from tests.e2e.daemon import Daemon
from tests.e2e.site import Site, open_site
from tests.warm.starter import WarmStarter

CONNECTIONS = 3 * MAX_WAITING
"""Of each client."""
ASKED, MAX_ASKED = 6, 1_000
"""How often the operator asks at least, and how often until both answers have come to the others."""


@pytest.fixture
def site(tmp_path: Path, warm: WarmStarter) -> Iterator[Site]:
    with open_site(tmp_path / "site", warm=warm, routing={"shipped": False}) as site:
        yield site


def token(daemon: Daemon, name: str, organisation: str) -> str:
    asked = {"name": name, "role": "read", "organisation": organisation}
    return daemon.client.create_token(TokenRequest.model_validate(asked)).token


async def flood(address: str, path: str, of: str, codes: Counter[str]) -> None:
    """Ask again as soon as there is an answer, until cancelled."""
    reader, writer = await asyncio.open_connection(*address.split(":"))
    asking = f"GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {of}\r\n\r\n".encode()
    try:
        while True:
            writer.write(asking)
            head = await reader.readuntil(b"\r\n\r\n")
            codes[head[9:12].decode()] += 1
            (length,) = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            await reader.readexactly(int(length.partition(b":")[2]))
    finally:
        writer.close()


def test_what_clients_ask_all_the_time_waits_and_the_operator_does_not(site: Site) -> None:
    daemon = site.start().ready()
    address = urlsplit(str(site.endpoint)).netloc
    tokens = [token(daemon, name, name) for name in ("acme", "globex")]
    codes: Counter[str] = Counter()

    async def scenario() -> None:
        paths = ("/v1/tasks?limit=100", "/", "/v1/specialists/search?query=anything")
        floods = [
            asyncio.create_task(flood(address, paths[number % len(paths)], tokens[number % len(tokens)], codes))
            for number in range(len(tokens) * CONNECTIONS)
        ]
        asked = 0
        while asked < ASKED or len(codes) < 2:
            asked += 1
            assert asked < MAX_ASKED, codes
            # Over TCP: also where the server would serve nobody else for the number of requests at hand.
            assert await asyncio.to_thread(daemon.client.status)
        for task in floods:
            task.cancel()
        await asyncio.gather(*floods, return_exceptions=True)

    asyncio.run(scenario())
    assert codes["200"] > 0
    assert codes["429"] > 0
    assert set(codes) == {"200", "429"}
