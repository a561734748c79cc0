"""Connections to the hub: who may have one, and what ends it."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidMessage, InvalidStatus
from websockets.sync.client import connect

from claudomator_py.resources.access import TokenRequest
from tests.e2e.hub_agent import CARD, Agent, address, submit, token
from tests.e2e.scenarios_support import document, ended, in_state
from tests.e2e.site import Site, open_site
from tests.patience import PATIENCE_S, wait_until
from tests.warm.starter import WarmStarter


@pytest.fixture
def site(tmp_path: Path, warm: WarmStarter) -> Iterator[Site]:
    with open_site(tmp_path / "site", warm=warm, routing={"shipped": False}) as site:
        yield site


@pytest.fixture(autouse=True)
def _connections() -> Iterator[None]:
    with ExitStack() as Agent.open:
        yield


def test_who_holds_a_revoked_token_is_cut_off_and_given_nothing_more(site: Site) -> None:
    daemon = site.start().ready()
    made = daemon.client.create_token(TokenRequest(name="ann", role="operate"))
    agent = Agent(site, secret=made.token)
    agent.register()
    daemon.client.revoke_token("ann")
    with pytest.raises(ConnectionClosed):
        agent.connection.recv(timeout=PATIENCE_S)
    assert agent.connection.close_code == 1008


def test_an_agent_finds_others_and_gives_them_tasks(site: Site) -> None:
    daemon = site.start().ready()
    agent, other = Agent(site), Agent(site, "wolf")
    agent.register()
    other.register()
    result = other.ask("agent.search", query="count sheep", limit=5)["result"]
    assert [agent["name"] for agent in result["agents"]] == ["shepherd"]
    odd = "its skill count is nearly count of shepherd"
    wait_until(lambda: odd in site.log_text(), "what is odd about the card")
    Agent(site, "wolf").register(instance="two")
    assert (result["total"], result["agents"][0]["best_skill_id"]) == (1, "count")
    asked = {"name": "flock", "instructions": "Count it.", "specialist": "shepherd", "idempotency_key": "k1"}
    first = other.ask("task.submit", **asked)["result"]
    assert other.ask("task.submit", **asked)["result"]["task_id"] == first["task_id"]
    error = other.ask("task.submit", **asked | {"specialist": "sheperd", "idempotency_key": "k2"})["error"]
    assert error["code"] == -32602
    assert "shepherd" in error["message"]
    agent.finish(agent.accept())
    assert ended(daemon, "flock").state == "COMPLETED"
    assert site.log_text().count(odd) == 1, "told once, not at each connection"


@contextmanager
def wake_server(status: int = 204) -> Iterator[tuple[str, list[Any]]]:
    """An address that takes wake-ups, and what it was sent."""
    seen: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/wake", seen
    finally:
        server.shutdown()
        server.server_close()


def test_an_agent_that_is_not_there_is_woken_or_needs_to_be_started(site: Site) -> None:
    with wake_server() as (url, seen):
        daemon = site.start().ready()
        agent, unknown = Agent(site), Agent(site, "goatherd")
        agent.register(card=CARD | {"wake_url": url})
        unknown.register()
        agent.close()
        unknown.close()
        submit(site, "sheep")
        submit(site, "goats", specialist="goatherd")
        wait_until(lambda: bool(seen), "the wake-up")
        assert seen == [{"agent_id": "shepherd", "task_id": daemon.client.task("sheep").id}]
        again = Agent(site)
        again.register(card=CARD | {"wake_url": url})
        again.finish(again.accept())
        assert ended(daemon, "sheep").state == "COMPLETED"
    task = in_state(daemon, "goats", "FAILED", "NEEDS_INPUT")
    assert task.reason == "not_running"
    assert "start it" in str(task.reason_text)


def test_who_may_not_connect_is_refused_before_that(site: Site) -> None:
    site.start().ready()
    for headers, secret in (({}, "wrong"), ({"Origin": "http://evil.example"}, None), ({"Origin": "null"}, None)):
        with pytest.raises(InvalidStatus) as refused:
            Agent(site, headers=headers, secret=secret)
        assert refused.value.response.status_code == 403
    for path in (f"/v1/hub?token={token(site)}", "/v1/other"):
        with pytest.raises(InvalidStatus), connect(address(site).replace("/v1/hub", path), proxy=None):
            pass


def test_an_agent_may_show_a_card_of_a2a_with_our_keys_beside(site: Site) -> None:
    daemon = site.start().ready()
    card = {
        "name": "The Shepherd",
        "description": "Counts sheep.",
        "version": "2.1",
        "protocolVersion": "0.3.0",
        "url": "https://shepherd.example/a2a",
        "capabilities": {"streaming": True},
        "skills": [{"id": "count", "name": "Counting", "description": "Counts.", "tags": ["sheep"]}],
        "x-pasture": {"north": True},
        "wake_url": "https://shepherd.example/wake",
    }
    assert Agent(site).register(card=card)["result"]["agent_id"] == "shepherd"

    kept = daemon.client.specialist("shepherd").content
    assert (kept.id, kept.url, kept.wake_url) == ("shepherd", "ws-agent://shepherd", "https://shepherd.example/wake")
    assert (kept.title, kept.version, kept.skills[0].tags) == ("The Shepherd", "2.1", ("sheep",))
    assert kept.extra["a2a"]["x-pasture"] == {"north": True}
    assert Agent(site, "other").register(card=card | {"description": 5})["error"]["code"] == -32602


BAD_FRAMES = [
    ("{", -32700),
    ('{"a": NaN}', -32700),
    ("[" * 100_000, -32700),
    ("9" * 5_000, -32700),
    ("[]", -32600),
    ('"text"', -32600),
    ('{"jsonrpc": "1.0", "id": 1, "method": "ping"}', -32600),
    ('{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600),
    ('{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}', -32602),
    ('{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": "x"}', -32600),
    ('{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": "\\ud800"}}', -32600),
    ('{"jsonrpc": "2.0", "id": 1, "method": "\\ud800"}', -32600),
    ('{"jsonrpc": "2.0", "id": 1, "method": "no.such"}', -32601),
    ('{"jsonrpc": "2.0", "id": 1, "method": "agent.search", "params": {}}', -32602),
    ('{"jsonrpc": "2.0", "id": 1, "method": "agent.search", "params": {"query": 1}}', -32602),
    ('{"jsonrpc": "2.0", "id": 1, "method": "agent.register", "params": {"agent_id": "A B"}}', -32602),
]


def test_a_bad_frame_is_answered_and_ends_nothing(site: Site) -> None:
    site.start().ready()
    agent = Agent(site)
    for frame, code in BAD_FRAMES:
        agent.connection.send(frame)
        answer = agent.next_frame()
        assert answer["error"]["code"] == code, frame[:100]
        assert answer["id"] == (1 if '"id": 1,' in frame else None), frame[:100]
    assert agent.ask("ping")["result"] == {}


def test_what_is_too_long_too_much_or_no_text_ends_the_connection_with_a_code(site: Site) -> None:
    site.start().ready()

    def code_of(agent: Agent) -> int:
        with suppress(ConnectionClosed):
            while True:
                agent.connection.recv(timeout=PATIENCE_S)
        return int(agent.connection.close_code or 0)

    binary = Agent(site)
    binary.connection.send(b"{}")
    assert code_of(binary) == 1003
    long = Agent(site)
    long.connection.send("x" * (1024 * 1024 + 1))
    assert code_of(long) == 1009
    fast = Agent(site)
    with suppress(ConnectionClosed):
        for _ in range(1_000):
            fast.send(method="ping")
    assert code_of(fast) == 1008
    assert Agent(site).ask("ping")["result"] == {}


def test_who_only_connects_takes_nobody_elses_files(tmp_path: Path, warm: WarmStarter) -> None:
    """With few files, and a reader who opens more connections than there are: all others go on as ever."""
    with open_site(tmp_path / "narrow", warm=warm, max_files=(256, 256), routing={"shipped": False}) as site:
        daemon = site.start().ready()
        secret = daemon.client.create_token(TokenRequest(name="reader", role="read")).token
        agent = Agent(site)
        agent.register()
        for _ in range(300):
            with suppress(ConnectionClosed, OSError, InvalidMessage, InvalidStatus):
                Agent(site, secret=secret)
        site.drop("quiet.yaml", document(None, "exit 0"))
        assert ended(daemon, "quiet").state == "COMPLETED"
        assert agent.ask("ping")["result"] == {}
        held = len(list(Path(f"/proc/{daemon.pid}/fd").iterdir()))
        assert held < 128, held


def test_a_run_may_open_as_many_files_as_the_operator_gave(tmp_path: Path, warm: WarmStarter) -> None:
    """Whatever the daemon takes for itself."""
    with open_site(tmp_path / "narrow", warm=warm, max_files=(200, 300), routing={"shipped": False}) as site:
        daemon = site.start().ready()
        limits = Path(f"/proc/{daemon.pid}/limits").read_text()
        assert re.search(r"^Max open files +300 +300 ", limits, re.MULTILINE), limits
        site.drop("files.yaml", document(None, "test $(ulimit -Sn) = 200 && test $(ulimit -Hn) = 300"))
        assert ended(daemon, "files").state == "COMPLETED"
