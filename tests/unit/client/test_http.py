"""The typed client against a real daemon, and against what is none."""

import contextlib
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from claudomator_py.api.endpoint import bind, url_of
from claudomator_py.client import ClientError, DaemonNotRunning, NotAuthorised, ServiceProblem, UnexpectedAnswer
from claudomator_py.client.http import Client
from claudomator_py.domain.agent import Tier
from claudomator_py.domain.errors import Problem
from claudomator_py.domain.lifecycle import Completed, Failed, Running
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.requests import RestartRequest, TaskFilter
from claudomator_py.domain.task import Priority, TaskSpec
from claudomator_py.schema.taskfile import parse_task
from tests.fakes.daemon import Daemon
from tests.fakes.http_api import own_certificate
from tests.fakes.prepared import PreparedService

SUCCESS = Outcome(status=OutcomeStatus.SUCCEEDED)


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    with daemon.client() as client:
        yield client


def test_a_submitted_task_arrives_as_it_was(client: Client, prepared: PreparedService) -> None:
    spec = parse_task(
        {
            "name": "whole",
            "instructions": "Zeile 1\nZeile 2: äöü 🎉",
            "agent": {"type": "claude", "tier": "powerful", "strict": True},
            "priority": "urgent",
            "timeout": "1h30m",
            "not_before": "2026-12-01T08:00:00+01:00",
            "retry": {"max_attempts": 5, "backoff": "90s"},
            "check": ["make test", ["sh", "-c", "a && b"]],
            "env": {"CI": "1"},
            "tags": ["a", "b"],
            "x-ticket": {"id": 4711},
        }
    )
    assert isinstance(spec, TaskSpec)
    prepared.add_agent("claude")
    client.submit(spec)
    assert prepared.specs() == [spec]
    assert prepared.specs()[0].priority is Priority.URGENT


def test_every_view_comes_back_as_the_desk_gave_it(client: Client, prepared: PreparedService) -> None:
    task_id = prepared.add("it", Completed(), tags=("shop",))
    run_id = prepared.add_run(task_id, outcome=SUCCESS)
    prepared.add_agent("claude")
    prepared.refuse_file("a.yaml", Problem(line=1, message="is wrong"))
    assert client.task("it") == prepared.task("it")
    assert client.tasks().items == prepared.service.page(TaskFilter(), None, 50).items
    assert client.runs("it") == prepared.service.runs("it")
    assert client.run(run_id) == prepared.world.run_requests.get(run_id)
    assert client.why("it") == prepared.service.why("it")
    assert client.agents() == prepared.agents()
    assert client.status() == prepared.status()
    assert client.inbox_page() == prepared.overview.inbox_page(None, 50)
    assert client.inbox_problems() == list(prepared.overview.inbox_page(None, 50).items)
    assert client.readiness() == prepared.overview.readiness()
    assert client.release("claude") == prepared.agents()[0]


def test_the_whole_list_is_fetched_page_by_page(client: Client, prepared: PreparedService) -> None:
    ids = [prepared.add(f"task-{number}", tags=("even",) if number % 2 == 0 else ()) for number in range(450)]
    assert [task.id for task in client.all_tasks()] == ids[::-1]
    assert len(list(client.all_tasks(TaskFilter(tag="even")))) == 225


def test_an_unready_daemon_is_an_answer_not_an_error(client: Client, prepared: PreparedService) -> None:
    prepared.ready = False
    readiness = client.readiness()
    assert not readiness.ready
    assert [check.remedy for check in readiness.checks if not check.ok] == ["Stop the other process."]


def test_restart_and_cancel_carry_what_was_asked(client: Client, prepared: PreparedService) -> None:
    prepared.add_agent("codex")
    prepared.add("it", Failed(Reason.TIMEOUT))
    restarted = client.restart("it", RestartRequest(agent="codex", tier=Tier.FAST), if_version=1)
    assert (restarted.state, restarted.agent, restarted.generation) == ("QUEUED", "codex", 2)
    with pytest.raises(ServiceProblem) as stale:
        client.cancel("it", if_version=1)
    assert stale.value.code == "stale_version"
    assert client.cancel("it", if_version=restarted.version).state == "CANCELLED"


def test_a_log_is_read_in_parts(client: Client, prepared: PreparedService) -> None:
    run_id = prepared.add_run(prepared.add("it", Running()), stdout=b"abc\x00\xff")
    first = client.log(run_id, limit=3)
    assert (first.data, first.next_offset, first.ended) == (b"abc", 3, False)
    prepared.end_run(run_id, SUCCESS)
    rest = client.log(run_id, "stdout", first.next_offset)
    assert (rest.data, rest.offset, rest.ended) == (b"\x00\xff", 3, False)
    assert client.log(run_id, "stdout", rest.next_offset).ended


@pytest.mark.parametrize("ref", ["missing", ".", "..", "ä?#%2F&x=1", " ", "x" * 128])
def test_a_reference_is_data_whatever_is_in_it(client: Client, ref: str) -> None:
    with pytest.raises(ServiceProblem) as refused:
        client.task(ref)
    assert refused.value.code in ("not_found", "no_such_path")
    assert refused.value.remedy


@pytest.mark.parametrize("ref", ["a/b", "../../livez"])
def test_a_reference_with_a_slash_is_none_and_no_path(client: Client, ref: str) -> None:
    with pytest.raises(ClientError, match=f"Nothing is named '{ref}'"):
        client.task(ref)


def test_nobody_there(prepared: PreparedService) -> None:
    with bind("127.0.0.1:0") as sock:
        url = url_of(sock)
    with Client(url, "x" * 32) as client, pytest.raises(DaemonNotRunning, match="claudomator serve"):
        client.status()


def test_somebody_there_who_does_not_answer() -> None:
    with (
        bind("127.0.0.1:0") as sock,
        Client(url_of(sock), "x" * 32, timeout_s=0.2) as client,
        pytest.raises(DaemonNotRunning, match="does not answer"),
    ):
        client.status()


@pytest.mark.parametrize("token", [None, "wrong" * 8])
def test_the_wrong_token(daemon: Daemon, token: str | None) -> None:
    with Client(daemon.url, token) as client, pytest.raises(NotAuthorised):
        client.status()


def test_a_token_cannot_smuggle_headers(daemon: Daemon) -> None:
    with pytest.raises(NotAuthorised):
        Client(daemon.url, f"{daemon.token}\r\nX-Evil: 1")


@contextmanager
def _other_server(status: int, headers: dict[str, str], body: bytes) -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("status", "content_type", "body"),
    [
        (200, "text/html", b"<h1>It works!</h1>"),
        (200, "application/json", b"{}"),
        (200, "application/json", b'{"items": 3}'),
        (404, "text/html", b"no"),
        (404, "application/problem+json", b'{"title": "else"}'),
        (500, "text/plain", b""),
    ],
)
def test_another_program_on_that_port(status: int, content_type: str, body: bytes) -> None:
    with (
        _other_server(status, {"Content-Type": content_type}, body) as (url, _),
        Client(url, "x" * 32) as client,
        pytest.raises(UnexpectedAnswer, match="same version"),
    ):
        client.agents()


def test_the_token_does_not_follow_a_redirect() -> None:
    with (
        _other_server(200, {}, b"") as (elsewhere, asked),
        _other_server(307, {"Location": elsewhere + "/steal"}, b"") as (url, _),
        Client(url, "x" * 32) as client,
    ):
        with pytest.raises(UnexpectedAnswer):
            client.agents()
        assert asked == []


def test_no_proxy_sees_the_token(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with daemon.client() as client:
        assert client.agents() == []


def test_a_field_that_a_newer_daemon_added_is_ignored() -> None:
    body = b'{"items": [], "next_cursor": null, "total": 0}'
    with _other_server(200, {"Content-Type": "application/json"}, body) as (url, _), Client(url, "x" * 32) as client:
        assert client.agents() == []


def test_a_broken_url_is_told() -> None:
    with pytest.raises(ClientError, match="is not a URL") as error:
        Client("http://127.0.0.1:port", "x" * 32)
    assert error.value.remedy


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    context, _ = own_certificate(tmp_path)
    with bind("127.0.0.1:0") as sock:
        sock.setblocking(True)

        def greet() -> None:
            connection, _ = sock.accept()
            with connection, contextlib.suppress(OSError):
                context.wrap_socket(connection, server_side=True)

        thread = threading.Thread(target=greet)
        thread.start()
        url = url_of(sock).replace("http:", "https:")
        with Client(url, "x" * 32) as client, pytest.raises(UnexpectedAnswer, match="not trusted"):
            client.status()
        thread.join()
