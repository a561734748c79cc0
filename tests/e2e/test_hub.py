"""Agents that connect to the hub of a real daemon: what was promised to either side holds, whoever is killed."""

import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest
from websockets.exceptions import ConnectionClosed, InvalidMessage, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from claudomator_py.domain.card import Card
from claudomator_py.resources.access import TokenRequest
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, ended, in_state, last_run
from tests.e2e.site import COMMAND, Site, open_site
from tests.patience import PATIENCE_S, wait_until
from tests.warm.starter import WarmStarter

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "hub_agent.py"
CARD = {"description": "Counts sheep.", "skills": [{"id": "count", "name": "Counting", "examples": ["Count sheep"]}]}


@pytest.fixture
def site(tmp_path: Path, warm: WarmStarter) -> Iterator[Site]:
    with open_site(tmp_path / "site", warm=warm, routing={"shipped": False}) as site:
        yield site


@pytest.fixture(autouse=True)
def _connections() -> Iterator[None]:
    with ExitStack() as Agent.open:
        yield


def address(site: Site) -> str:
    return str(site.endpoint).replace("http://", "ws://") + "/v1/hub"


def token(site: Site) -> str:
    return (site.state / "token").read_text().strip()


class Agent:
    """A connection, frame by frame. open: all that there are."""

    open: ClassVar[ExitStack]

    def __init__(self, site: Site, agent_id: str = "shepherd", *, secret: str | None = None, **more: Any) -> None:
        headers = {"Authorization": f"Bearer {secret or token(site)}", **more.pop("headers", {})}
        opening = connect(address(site), additional_headers=headers, proxy=None, **more)
        self.connection: ClientConnection = Agent.open.enter_context(opening)
        self.agent_id = agent_id
        self._ids = itertools.count(1)
        self.waiting: list[dict[str, Any]] = []

    def send(self, **message: Any) -> None:
        self.connection.send(json.dumps({"jsonrpc": "2.0", **message}))

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The whole answer."""
        number = next(self._ids)
        self.send(id=number, method=method, params=params)
        while True:
            message = self.next_frame()
            if "method" not in message and message.get("id") == number:
                return message
            self.waiting.append(message)

    def register(self, *, instance: str = "one", resume: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
        said = {"agent_id": self.agent_id, "instance_id": instance, "card": CARD, "resume": list(resume)}
        return self.ask("agent.register", **said | more)

    def next_frame(self) -> dict[str, Any]:
        frame: dict[str, Any] = json.loads(self.connection.recv(timeout=PATIENCE_S))
        return frame

    def called(self, method: str) -> dict[str, Any]:
        """The next request of that method."""
        while True:
            message = self.waiting.pop(0) if self.waiting else self.next_frame()
            if message.get("method") == method:
                return message

    def accept(self) -> str:
        """Take the next assignment: its id."""
        asked = self.called("task.assign")
        self.send(id=asked["id"], result={"accepted": True})
        return str(asked["params"]["assignment_id"])

    def finish(self, assignment: str, **said: Any) -> dict[str, Any]:
        return self.ask("task.result", assignment_id=assignment, **{"status": "succeeded", "text": "42 sheep"} | said)

    def close(self) -> None:
        self.connection.close()

    def cut(self) -> None:
        """Without a word."""
        self.connection.socket.close()


def submit(site: Site, name: str, text: str = "Count the sheep.", specialist: str = "shepherd", **fields: Any) -> None:
    site.drop(f"{name}.yaml", document(None, text, agent=None, specialist=specialist, **fields))


def accepted(daemon: Daemon, name: str) -> None:
    def known() -> bool:
        return any(b'"accepted"' in daemon.client.log(run.id).data for run in daemon.client.runs(name))

    in_state(daemon, name, "RUNNING")
    wait_until(known, "the agent to have accepted")


def test_the_example_does_tasks_and_is_found_by_what_they_say(site: Site) -> None:
    daemon = site.start().ready()
    environ = {"CLAUDOMATOR_TOKEN": token(site), "PATH": os.environ["PATH"]}
    example = subprocess.Popen([sys.executable, str(EXAMPLE), address(site)], env=environ, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: list(daemon.client.all_specialists()), "it to register")
        site.drop("count.yaml", document(None, "Count the words of this text: one two three", agent=None))
        task = ended(daemon, "count")
        assert (task.state, task.specialist, task.agent) == ("COMPLETED", "word-counter", "hub:word-counter")
        assert str(task.result_text).endswith("words")
        # That it was accepted need not be there: the result may be heard before, and says as much.
        assert b'"percent": 50' in daemon.client.log(last_run(daemon, "count").id).data
    finally:
        example.kill()
        example.wait()


def test_an_agent_registers_takes_a_task_and_hands_back_its_result(site: Site) -> None:
    daemon = site.start().ready()
    agent = Agent(site)
    assert agent.register()["result"] == {"agent_id": "shepherd", "resumed": []}
    (found,) = daemon.client.all_specialists()
    assert (found.id, found.source, found.content.url) == ("shepherd", "hub", "ws-agent://shepherd")
    submit(site, "sheep", skill="count")
    asked = agent.called("task.assign")
    agent.send(id=asked["id"], result={"accepted": True})
    run = last_run(daemon, "sheep")
    task_id = daemon.client.task("sheep").id
    assert (asked["params"]["assignment_id"], asked["params"]["task_id"]) == (run.id, task_id)
    assert "Count the sheep." in asked["params"]["instructions"]
    assert asked["params"]["handoff"] == {"name": "sheep", "skill": "count"}
    agent.send(
        method="task.progress", params={"assignment_id": run.id, "seq": 1, "text": "seven so far", "percent": 10}
    )
    assert agent.finish(run.id)["result"] == {"recorded": True, "duplicate": False}
    task = ended(daemon, "sheep")
    assert (task.state, task.result_text, task.attempts) == ("COMPLETED", "42 sheep", 1)
    assert b"seven so far" in daemon.client.log(run.id).data
    assert agent.finish(run.id)["result"] == {"recorded": True, "duplicate": True}
    assert agent.finish(run.id, text="43 sheep")["error"]["code"] == -32009


A2A = {
    "name": "Sheep counter",
    "protocolVersion": "0.3.0",
    "url": "https://agents.example/rpc",
    "preferredTransport": "JSONRPC",
    "capabilities": {"streaming": False},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
}


def test_a_card_for_a2a_is_taken_and_the_agent_is_told_what_of_it_does_not_count(site: Site) -> None:
    daemon = site.start().ready()
    agent = Agent(site)
    said = {**CARD, **A2A, "id": "4711", "visibility": "private", "homepage": "https://agents.example"}
    answer = agent.register(card=said)
    assert answer["result"] == {"agent_id": "shepherd", "resumed": [], "ignored": ["homepage", "id", "url"]}
    found = daemon.client.specialist("shepherd")
    assert (found.content.url, found.content.visibility, found.content.title) == (
        "ws-agent://shepherd",
        "private",
        "Sheep counter",
    )
    decorated = {**CARD, "iconUrl": "https://agents.example/icon.png", "visibility": "private"}
    assert "result" in agent.register(card=decorated)
    refused = agent.register(card={**CARD, **A2A, "visibilty": "private"})
    assert refused["error"]["code"] == -32602
    assert "did you mean `visibility`?" in refused["error"]["message"]
    assert daemon.client.specialist("shepherd").content.visibility == "private"


@pytest.mark.parametrize("url", ["ws-agent://shepherd", None])
def test_what_its_operator_has_written_of_an_agent_stands_when_it_registers(site: Site, url: str | None) -> None:
    daemon = site.start().ready()
    written = {
        "id": "shepherd",
        "description": "Counts for the farm.",
        "visibility": "private",
        "wake_url": "https://agents.example/wake",
        "skills": [{"id": "wolves", "name": "Wolves"}],
        **({} if url is None else {"url": url}),
    }
    daemon.client.register_specialist(Card.model_validate(written))
    agents = [Agent(site) for _ in range(2)]
    for agent in agents:
        ignored = agent.register(card={**CARD, "visibility": "public"})["result"]["ignored"]
        # Public is the default, so a card that says it and one that does not are the same.
        assert ignored == ["description", "skills"]
    found = daemon.client.specialist("shepherd")
    assert found.source == "api"
    assert found.content.document == {**written, "url": "ws-agent://shepherd"}
    submit(site, "sheep")
    agents[-1].finish(agents[-1].accept())
    assert ended(daemon, "sheep").state == "COMPLETED"


def test_what_its_operator_has_changed_in_the_card_of_an_agent_stands(site: Site) -> None:
    daemon = site.start().ready()
    agent = Agent(site)
    agent.register()
    agent.register(card={**CARD, "description": "Counts goats."})
    registered = daemon.client.specialist("shepherd")
    assert (registered.source, registered.content.description) == ("hub", "Counts goats.")
    changed = registered.content.document | {"visibility": "private"}
    daemon.client.change_specialist(Card.model_validate(changed))
    assert agent.register()["result"]["ignored"] == ["description"]
    found = daemon.client.specialist("shepherd")
    assert (found.source, found.content.document) == ("api", changed)
    daemon.client.remove_specialist("shepherd")
    assert "ignored" not in agent.register()["result"]
    assert daemon.client.specialist("shepherd").source == "hub"


def test_a_card_that_is_written_without_an_address_while_its_agent_is_connected_stays_the_agents(site: Site) -> None:
    daemon = site.start().ready()
    agent = Agent(site)
    agent.register()
    written = {"id": "shepherd", "description": "Counts for the farm.", "visibility": "private"}
    daemon.client.register_specialist(Card.model_validate(written))
    assert daemon.client.specialist("shepherd").content.document == {**written, "url": "ws-agent://shepherd"}
    submit(site, "sheep")
    agent.finish(agent.accept())
    assert ended(daemon, "sheep").agent == "hub:shepherd"


def test_an_agent_that_has_left_gets_no_work_that_names_nobody(site: Site) -> None:
    daemon = site.start().ready()
    agent = Agent(site)
    agent.register()
    agent.close()

    def problem() -> str:
        return next((str(one.problem) for one in daemon.client.agents() if one.name == "hub:shepherd"), "")

    wait_until(lambda: "not connected" in problem(), "the daemon to notice")
    site.drop("count.yaml", document(None, "Count sheep", agent=None))
    in_state(daemon, "count", "QUEUED", "RUNNING", "COMPLETED")
    wait_until(lambda: "its agent is not connected" in str(daemon.client.why("count").sentences), "the decision")
    assert daemon.client.task("count").specialist != "shepherd"


def test_an_agent_registers_under_no_card_of_somebody_at_another_address(site: Site) -> None:
    daemon = site.start().ready()
    elsewhere = {"id": "shepherd", "description": "Counts.", "url": "https://agents.example/rpc"}
    daemon.client.register_specialist(Card.model_validate(elsewhere))
    refused = Agent(site).register()
    assert refused["error"]["code"] == -32009
    assert "names another address" in refused["error"]["message"]
    assert daemon.client.specialist("shepherd").content.url == "https://agents.example/rpc"


def test_what_an_agent_fails_at_fails_with_its_reason(site: Site) -> None:
    daemon = site.start().ready()
    agent = Agent(site)
    agent.register()
    submit(site, "sheep")
    agent.finish(agent.accept(), status="failed", text="I count no sheep.", reason="refused")
    task = ended(daemon, "sheep")
    assert (task.state, task.reason) == ("FAILED", "refused")
    assert "I count no sheep." in str(task.reason_text)


def test_a_daemon_that_is_killed_loses_and_doubles_nothing(site: Site) -> None:
    daemon = site.start().ready()
    agent = Agent(site)
    agent.register()
    submit(site, "sheep")
    assignment = agent.accept()
    accepted(daemon, "sheep")

    daemon.kill()
    daemon = site.start().ready()
    again = Agent(site)
    assert again.register(resume=(assignment, "no-such-assignment"))["result"]["resumed"] == [assignment]
    assert again.finish(assignment)["result"] == {"recorded": True, "duplicate": False}

    task = ended(daemon, "sheep")
    assert (task.state, task.attempts, len(daemon.client.runs("sheep"))) == ("COMPLETED", 1, 1)


def test_a_result_that_was_recorded_before_the_daemon_was_killed_counts(site: Site) -> None:
    daemon = site.start().ready()
    agent = Agent(site)
    agent.register()
    submit(site, "sheep")
    assignment = agent.accept()
    accepted(daemon, "sheep")
    assert agent.finish(assignment)["result"]["recorded"] is True
    daemon.kill()

    daemon = site.start().ready()
    assert ended(daemon, "sheep").result_text == "42 sheep"
    again = Agent(site)
    assert again.register(resume=(assignment,))["result"]["resumed"] == []
    assert again.finish(assignment)["result"] == {"recorded": True, "duplicate": True}


def test_an_agent_that_was_cut_off_goes_on_where_it_was(site: Site) -> None:
    daemon = site.start().ready()
    agent = Agent(site)
    agent.register()
    submit(site, "sheep")
    assignment = agent.accept()
    accepted(daemon, "sheep")
    agent.cut()

    again = Agent(site)
    assert again.register(instance="one", resume=(assignment,))["result"]["resumed"] == [assignment]
    assert again.finish(assignment)["result"]["duplicate"] is False
    assert ended(daemon, "sheep").attempts == 1


def test_a_cancelled_task_is_cancelled_there(site: Site) -> None:
    daemon = site.start().ready()
    agent = Agent(site)
    agent.register()
    submit(site, "sheep")
    assignment = agent.accept()
    accepted(daemon, "sheep")
    daemon.client.cancel("sheep")
    asked = agent.called("task.cancel")
    assert asked["params"] == {"assignment_id": assignment}
    agent.send(id=asked["id"], result={})
    assert ended(daemon, "sheep").state == "CANCELLED"
    assert agent.finish(assignment)["error"]["code"] == -32009


def test_of_two_connections_one_is_assigned_and_none_more_than_it_takes(site: Site) -> None:
    daemon = site.start().ready()
    one, other = Agent(site), Agent(site)
    one.register(instance="one", max_concurrent=1)
    other.register(instance="other", max_concurrent=1)
    submit(site, "sheep")
    assignment = one.accept()
    accepted(daemon, "sheep")
    assert other.ask("ping")["result"] == {}
    assert other.waiting == []
    assert one.finish(assignment)["result"]["recorded"] is True
    assert ended(daemon, "sheep").state == "COMPLETED"


def test_another_agents_result_is_refused(site: Site) -> None:
    daemon = site.start().ready()
    agent, thief = Agent(site), Agent(site, "thief")
    agent.register()
    thief.register()
    submit(site, "sheep")
    assignment = agent.accept()
    accepted(daemon, "sheep")
    assert thief.finish(assignment)["error"]["code"] == -32004
    assert thief.finish("no-such-assignment")["error"]["code"] == -32004
    agent.finish(assignment)
    assert ended(daemon, "sheep").state == "COMPLETED"


def test_nobody_takes_over_anothers_name(site: Site) -> None:
    daemon = site.start().ready()
    Agent(site).register()
    made = daemon.client.create_token(TokenRequest(name="ann", role="operate", organisation="acme"))
    ann = Agent(site, secret=made.token)
    assert ann.register()["error"]["code"] == -32009
    hers = Agent(site, "hers", secret=made.token)
    assert hers.register(card={**CARD, "organisation": "globex"})["error"]["code"] == -32001
    made = daemon.client.create_token(TokenRequest(name="reader", role="read"))
    reader = Agent(site, "reader", secret=made.token)
    assert reader.register()["error"]["code"] == -32001
    assert hers.register()["result"]["agent_id"] == "hers"
    found = reader.ask("agent.search", query="sheep")["result"]
    assert [one["name"] for one in found["agents"]] == ["shepherd"], "hers does no work of others"
    assert found["total"] == 1
    assert hers.ask("agent.search", query="sheep")["result"]["total"] == 1


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
    found = other.ask("agent.search", query="count sheep", limit=5)["result"]
    assert [one["name"] for one in found["agents"]] == ["shepherd"]
    odd = "its skill count is nearly count of shepherd"
    wait_until(lambda: odd in site.log_text(), "what is odd about the card")
    Agent(site, "wolf").register(instance="two")
    assert (found["total"], found["agents"][0]["best_skill_id"]) == (1, "count")
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


def test_who_only_connects_takes_nobody_elses_files(tmp_path: Path) -> None:
    """With few files, and a reader who opens more connections than there are: all others go on as ever."""
    command = ("prlimit", "--nofile=256:256", *COMMAND)
    with open_site(tmp_path / "narrow", command=command, new=False, routing={"shipped": False}) as site:
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


def test_a_run_may_open_as_many_files_as_the_operator_gave(tmp_path: Path) -> None:
    """Whatever the daemon takes for itself."""
    command = ("prlimit", "--nofile=200:300", *COMMAND)
    with open_site(tmp_path / "narrow", command=command, new=False, routing={"shipped": False}) as site:
        daemon = site.start().ready()
        limits = Path(f"/proc/{daemon.pid}/limits").read_text()
        assert re.search(r"^Max open files +300 +300 ", limits, re.MULTILINE), limits
        site.drop("files.yaml", document(None, "test $(ulimit -Sn) = 200 && test $(ulimit -Hn) = 300"))
        assert ended(daemon, "files").state == "COMPLETED"
