"""The run's own MCP server over HTTP on loopback: real sockets."""

import http.client
import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from claudomator_py.agents.mcp_server import Tool, ToolFailed
from claudomator_py.agents.mcp_server.main import run_server
from claudomator_py.agents.mcp_server.over_http import HttpServer
from tests.unit.agents.acp_runs import Runs

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def answers(tool: Tool, arguments: Mapping[str, Any]) -> str:
    if arguments.get("question") == "fail":
        raise ToolFailed("Not now.")
    return f"{tool.described['name']} was called"


@pytest.fixture
def server() -> HttpServer:
    return HttpServer(run_server(answers))


def asked(
    server: HttpServer, body: bytes | None, method: str = "POST", path: str | None = None, **headers: str
) -> tuple[int, Any]:
    where = urlsplit(server.url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=20)
    sent = {"Authorization": server.authorization, "Content-Type": "application/json", **headers}
    connection.request(method, path or where.path, body, sent)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text) if text else None


def test_it_answers_what_the_other_transport_answers(server: HttpServer) -> None:
    status, listed = asked(server, json.dumps(LIST).encode())
    assert status == 200
    names = [tool["name"] for tool in listed["result"]["tools"]]
    assert "ask_operator" in names
    call = {"name": "ask_operator", "arguments": {"question": "Shall I?"}}
    status, called = asked(server, json.dumps({**LIST, "method": "tools/call", "params": call}).encode())
    assert called["result"]["content"][0]["text"] == "ask_operator was called"


def test_what_is_owed_no_answer_is_taken(server: HttpServer) -> None:
    assert asked(server, b'{"jsonrpc": "2.0", "method": "notifications/initialized"}') == (202, None)


def test_several_requests_on_one_connection(server: HttpServer) -> None:
    where = urlsplit(server.url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=20)
    for number in range(3):
        body = json.dumps({**LIST, "id": number, "method": "ping"})
        connection.request("POST", where.path, body, {"Authorization": server.authorization})
        assert json.loads(connection.getresponse().read())["id"] == number
    connection.close()


@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer x", "Basic x", "Bearer é"])
def test_who_does_not_know_the_secret_gets_nothing(server: HttpServer, authorization: str) -> None:
    assert asked(server, json.dumps(LIST).encode(), Authorization=authorization) == (401, None)


def test_each_server_has_a_secret_of_its_own(server: HttpServer) -> None:
    assert HttpServer(run_server(answers)).authorization != server.authorization


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", None, 405), ("DELETE", None, 405), ("POST", "/", 404), ("POST", "/mcp/../x", 404), ("OPTIONS", None, 405)],
)
def test_there_is_nothing_else(server: HttpServer, method: str, path: str | None, status: int) -> None:
    assert asked(server, b"{}", method, path)[0] == status


def test_what_is_no_message_is_said_to_be_none(server: HttpServer) -> None:
    assert asked(server, b"{")[1]["error"]["code"] == -32700
    assert asked(server, b"x" * (2 << 20))[0] == 413


@pytest.mark.parametrize("line", [b"", b"\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\r\n\r\n", b"A" * 100_000])
def test_what_is_no_http_ends_the_connection_alone(server: HttpServer, line: bytes) -> None:
    where = urlsplit(server.url)
    with suppress(ConnectionError), socket.create_connection((where.hostname or "", where.port or 0), 20) as connection:
        connection.sendall(line)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass
    assert asked(server, json.dumps(LIST).encode())[0] == 200


def test_an_agent_that_takes_no_other_is_told_where_it_is(tmp_path: Path) -> None:
    env = {"CLAUDOMATOR_RUN": "r1", "CLAUDOMATOR_RUN_TOKEN": "secret"}
    ran = Runs(tmp_path, program="copilot").run({}, mcp_command=("python", "-m", "server", str(tmp_path)), env=env)
    (record,) = ran.asked("session/new")[0]["mcpServers"]
    assert (record["type"], record["name"]) == ("http", "claudomator")
    assert record["url"].startswith("http://127.0.0.1:")
    assert "secret" not in json.dumps([record, ran.events]), "it is another one"
