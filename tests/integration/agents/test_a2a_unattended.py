"""Remote tasks that nobody works on any more, as servers of 0.3 leave them when their agent raises an exception."""

import json
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from claudomator_py.agents import client_output
from claudomator_py.agents.a2a_client import a2a
from claudomator_py.agents.a2a_client.connection import RemoteServer, address
from claudomator_py.agents.a2a_client.discovery import AgentInterface
from claudomator_py.agents.client_output import End, Output
from tests.fakes.a2a import Request, plain_server, reply

Subscribed = Callable[["Abandoned", BaseHTTPRequestHandler], None]


class Abandoned:
    """A server of 0.3 that ends the stream of a message in an orderly way, and calls its task ``working`` for ever.

    subscribed: what it says to whoever subscribes. news: a status that it tells of once it was asked so often.
    """

    def __init__(self, subscribed: Subscribed, *, orderly: bool = True, news: tuple[int, str] | None = None) -> None:
        self.subscribed = subscribed
        self.orderly = orderly
        self.news = news
        self.state = "working"
        self.polls = 0
        self.methods: list[str] = []

    def __call__(self, request: Request, handler: BaseHTTPRequestHandler) -> None:
        method = json.loads(request.body)["method"]
        self.methods.append(method)
        if method == "tasks/resubscribe":
            self.subscribed(self, handler)
        elif method == "message/stream":
            stream(handler, event(self.task()), orderly=self.orderly)
        else:
            if method == "tasks/cancel":
                self.state = "canceled"
            self.polls += 1
            if self.news is not None and self.polls >= self.news[0]:
                self.state = self.news[1]
            reply(handler, 200, json.dumps(answer(self.task())).encode())

    def task(self) -> dict[str, Any]:
        return {"kind": "task", "id": "t", "contextId": "c", "status": {"state": self.state, "timestamp": "T"}}


def answer(result: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": result}


def event(result: object) -> bytes:
    return f"data: {json.dumps(answer(result))}\r\n\r\n".encode()


def stream(handler: BaseHTTPRequestHandler, *pieces: bytes, orderly: bool = True) -> None:
    """Answer with a stream of events in chunks. orderly: the last one says that it is the last."""
    handler.protocol_version = "HTTP/1.1"
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.send_header("Connection", "close")
    handler.end_headers()
    for piece in (*pieces, *([b""] if orderly else [])):
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))


def pings(server: Abandoned, handler: BaseHTTPRequestHandler) -> None:
    """As the SDK of 0.3 answers where an agent has raised: with signs of life of the connection alone."""
    del server
    stream(handler, orderly=False)
    for _ in range(100):
        try:
            handler.wfile.write(b"8\r\n: ping\r\n\r\n")
            handler.wfile.flush()
        except OSError:
            return
        time.sleep(0.05)


def pings_after_snapshot(server: Abandoned, handler: BaseHTTPRequestHandler) -> None:
    """As a server of 1.0 answers, and keeps it up for a while."""
    stream(handler, event(server.task()), *[b": ping\r\n\r\n"] * 3)


def refusal(server: Abandoned, handler: BaseHTTPRequestHandler) -> None:
    """As it answers where an agent has returned."""
    del server
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "Task not found"}}
    stream(handler, f"data: {json.dumps(error)}\r\n\r\n".encode())


def cut(server: Abandoned, handler: BaseHTTPRequestHandler) -> None:
    """As a proxy answers that ends what is silent."""
    del server
    stream(handler, b": ping\r\n\r\n", orderly=False)


def snapshot(server: Abandoned, handler: BaseHTTPRequestHandler) -> None:
    """As a server answers that attends to the task."""
    stream(handler, event(server.task()))


def end_at(url: str, patience: pytest.MonkeyPatch, *, unattended_s: float = 0.3) -> End:
    """How a run of the client ends there."""
    patience.setattr(a2a, "UNATTENDED_S", unattended_s)
    patience.setattr(a2a, "MIN_REFUSALS", 3)
    patience.setattr(a2a, "MAX_PAUSE_S", 0.02)
    patience.setattr(a2a, "FIRST_PAUSE_S", 0.02)
    origin, _ = address(url)
    order = a2a.RemoteTaskOrder(prompt="hi", message_id="m", conversation="", deduplicates=False, skill="")
    interface = AgentInterface("0.3", "/", streams=True)
    try:
        return a2a.Conversation(RemoteServer(origin, {}), interface, order, Output()).run()
    except End as end:
        return end


@pytest.mark.parametrize(("subscribed", "orderly"), [(pings, True), (cut, True), (refusal, True), (refusal, False)])
def test_a_task_that_nobody_works_on_ends_and_is_cancelled(
    subscribed: Subscribed, orderly: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Abandoned(subscribed, orderly=orderly)
    with plain_server(server) as (url, _):
        end = end_at(url, monkeypatch)
    assert end.outcome == "failed"
    assert "nobody works on it" in str(end.error)
    assert server.methods.count("message/stream") == 1
    assert "tasks/cancel" in server.methods


@pytest.mark.parametrize(("subscribed", "orderly"), [(snapshot, True), (pings, False), (cut, False)])
def test_one_that_is_attended_to_is_followed_however_quiet_it_is(
    subscribed: Subscribed, orderly: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Abandoned(subscribed, orderly=orderly, news=(60 if subscribed is snapshot else 2, "completed"))
    with plain_server(server) as (url, _):
        end = end_at(url, monkeypatch)
    assert end.outcome == "completed"
    assert "tasks/cancel" not in server.methods


@pytest.mark.parametrize(("subscribed", "counts"), [(pings, False), (pings_after_snapshot, True)])
def test_that_a_server_is_there_keeps_no_run_from_stalling(
    subscribed: Subscribed, counts: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(client_output, "ALIVE_S", 0.0)
    with plain_server(Abandoned(subscribed, orderly=False, news=(2, "completed"))) as (url, _):
        end = end_at(url, monkeypatch)
    assert end.outcome == "completed"
    assert ('"alive"' in capsys.readouterr().out) is counts


def test_news_of_it_show_that_somebody_works_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Abandoned(refusal, news=(4, "completed"))
    with plain_server(server) as (url, _):
        end = end_at(url, monkeypatch, unattended_s=30)
    assert end.outcome == "completed"
