"""Agents that connect and say nothing, at the limit of open files: whose place somebody else gets."""

import json
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from claudomator_py.resources.access.shape import TokenRequest
from tests.e2e.site import COMMAND, open_site
from tests.patience import PATIENCE_S

FILES = 256
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


def test_at_the_limit_of_files_the_silent_go_first_and_agents_last(tmp_path: Path) -> None:
    """With all places taken by three tokens: who has registered and who spoke last stay, the most silent make room."""
    command = ("prlimit", f"--nofile=100:{FILES}", *COMMAND)
    with open_site(tmp_path / "narrow", command=command, new=False) as site, ExitStack() as stack:
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
        assert [is_closed(one) for one in others[1:6]] == [True] * 5
        assert [asked(one, "ping") for one in (agent, others[0], *others[6:], *newcomers)] == [{}] * PLACES
        assert daemon.client.status() is not None
