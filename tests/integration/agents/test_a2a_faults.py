"""The client of remote agents against servers with faults: cut streams, errors of HTTP, garbage, wrong certificates."""

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.domain.outcome import OutcomeStatus, Reason
from claudomator_py.domain.remote import Authentication, Protocol, Scheme
from tests.fakes.a2a import Request, plain_server, reply, sdk_server
from tests.fakes.http_api import own_certificate
from tests.integration.agents.client import finish, remote_at, run, start
from tests.patience import PATIENCE_S

Answerer = Callable[[Request, BaseHTTPRequestHandler], None]


def cutting(after: Callable[[bytes], bool], times: int = 1) -> Callable[[Any], Any]:
    """Ends the connection of that many streams at the first event for which ``after`` is true, instead of it."""
    left = [times]

    def wrap(app: Any) -> Any:
        async def wrapped(scope: Any, receive: Any, send: Any) -> None:
            async def cut(message: Any) -> None:
                body = message.get("body", b"")
                if left[0] > 0 and scope["type"] == "http" and scope["path"] == "/rpc" and body and after(body):
                    left[0] -= 1
                    raise ConnectionAbortedError
                await send(message)

            await app(scope, receive, cut)

        return wrapped

    return wrap


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_a_stream_that_breaks_goes_on_by_the_id_of_the_task(version: str) -> None:
    with sdk_server((version,), wrap=cutting(lambda body: b"artifact" in body.lower())) as (url, seen):
        outcome = run(remote_at(url), "hi")
    assert (outcome.status, outcome.text) == (OutcomeStatus.SUCCEEDED, "you said: hi")
    assert len(seen.messages) == 1


@pytest.mark.filterwarnings("ignore")
def test_a_connection_cut_before_the_task_is_known_is_lost_and_nothing_is_sent_again() -> None:
    with sdk_server(wrap=cutting(lambda body: True)) as (url, seen):
        outcome = run(remote_at(url), "hi")
    assert (outcome.status, outcome.reason) == (OutcomeStatus.LOST, Reason.LOST)
    assert outcome.conversation_id is None
    assert len(seen.messages) == 1


@pytest.mark.filterwarnings("ignore")
def test_to_an_agent_that_deduplicates_it_is_sent_again_under_the_same_id() -> None:
    with sdk_server(wrap=cutting(lambda body: True, times=2)) as (url, seen):
        outcome = run(remote_at(url, deduplicates=True), "hi")
    assert outcome.text == "you said: hi"
    assert {message_id for message_id, _, _ in seen.messages} == {"run-1"}
    assert len(seen.messages) == 3


@pytest.mark.parametrize("protocol", [Protocol.A2A_1_0, Protocol.A2A_0_3, Protocol.POST, Protocol.AUTO])
@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7), ("2.5", 2.5), ("-3", 1), ("0", 1), ("99999999", 86_400), ("date", 120), ("soon", None), (None, None)],
)
def test_retry_after_says_until_when_it_is_held(protocol: Protocol, header: str | None, seconds: float | None) -> None:
    def answer(request: Request, handler: BaseHTTPRequestHandler) -> None:
        value = formatdate(time.time() + 120, usegmt=True) if header == "date" else header
        reply(handler, 429, b"slow down", **({} if value is None else {"Retry_After": value}))

    before = time.time()
    with plain_server(answer) as (url, requests):
        outcome = run(remote_at(url, protocol=protocol), "hi")
    assert (outcome.status, outcome.reason) == (OutcomeStatus.LIMITED, Reason.RATE_LIMITED)
    assert len(requests) == 1
    if seconds is None:
        assert outcome.reset_at is None
    else:
        assert outcome.reset_at is not None
        assert before + seconds - 2 <= outcome.reset_at / 1000 <= time.time() + seconds + 2


@pytest.mark.parametrize("protocol", [Protocol.A2A_1_0, Protocol.POST])
@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (401, Reason.AUTH),
        (403, Reason.AUTH),
        (402, Reason.NO_CREDIT),
        (404, Reason.SETUP_FAILED),
        (422, Reason.BAD_INVOCATION),
        (500, Reason.AGENT_ERROR),
        (502, Reason.LOST),
        (503, Reason.OVERLOADED),
        (504, Reason.LOST),
        (302, Reason.SETUP_FAILED),
    ],
)
def test_what_http_says(protocol: Protocol, status: int, reason: Reason) -> None:
    def answer(request: Request, handler: BaseHTTPRequestHandler) -> None:
        reply(handler, status, b"so it is", Location="http://127.0.0.1:9/elsewhere")

    with plain_server(answer) as (url, requests):
        outcome = run(remote_at(url, protocol=protocol), "hi")
    assert outcome.reason is reason
    assert "127.0.0.1:9/" not in (outcome.detail or ""), "the log alone says where it redirects"
    assert len(requests) == 1


@pytest.mark.parametrize("protocol", list(Protocol))
def test_nobody_there(protocol: Protocol) -> None:
    with plain_server(lambda request, handler: None) as (url, _):
        pass
    outcome = run(remote_at(url, protocol=protocol), "hi")
    assert outcome.reason is Reason.UNREACHABLE


GARBAGE = [b"", b"hello", b"[1]", b"{}", b'{"result": 1}', b"[" * 100_000, b'{"jsonrpc": "2.0", "result": {"task": 3}}']


@pytest.mark.parametrize("protocol", [Protocol.A2A_1_0, Protocol.A2A_0_3])
@pytest.mark.parametrize("body", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_in_answer_to_a_message_is_lost(protocol: Protocol, body: bytes) -> None:
    with plain_server(lambda request, handler: reply(handler, 200, body)) as (url, requests):
        outcome = run(remote_at(url, protocol=protocol), "hi")
    assert outcome.reason is Reason.LOST
    assert len(requests) == 1


def test_an_answer_beyond_all_size_is_not_read() -> None:
    def answer(request: Request, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b" " * 65_536)
        except OSError:
            pass

    with plain_server(answer) as (url, _):
        assert run(remote_at(url, protocol=Protocol.POST), "hi").reason is Reason.OUTPUT_LIMIT
        assert run(remote_at(url), "hi").reason is Reason.OUTPUT_LIMIT


def test_a_body_that_ends_early_is_cut() -> None:
    def answer(request: Request, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b'{"text": "done"}')

    with plain_server(answer) as (url, _):
        assert run(remote_at(url, protocol=Protocol.POST), "hi").reason is Reason.LOST


SECRET = "s3cret-of-the-agent"


def test_the_secret_goes_to_its_origin_and_to_no_other() -> None:
    with plain_server(lambda request, handler: reply(handler, 200)) as (elsewhere, stolen):
        card = {"protocolVersion": "0.3.0", "url": f"{elsewhere}/rpc"}

        def answer(request: Request, handler: BaseHTTPRequestHandler) -> None:
            reply(handler, 200, json.dumps(card).encode())

        with plain_server(answer) as (url, requests):
            authentication = Authentication(scheme=Scheme.BEARER, secret="DOCS_TOKEN")
            outcome = run(remote_at(url, authentication=authentication), "hi", env={"DOCS_TOKEN": SECRET})
    assert outcome.reason is Reason.SETUP_FAILED
    assert "configure that address" in (outcome.detail or "")
    assert elsewhere not in (outcome.detail or ""), "the log alone says which"
    assert requests[0].headers["Authorization"] == f"Bearer {SECRET}"
    assert stolen == []


def test_an_api_key_has_a_header_of_its_own_and_a_missing_one_is_told() -> None:
    with plain_server(lambda request, handler: reply(handler, 200, b'{"text": "done"}')) as (url, requests):
        authentication = Authentication(scheme=Scheme.API_KEY, secret="DOCS_TOKEN", header="X-Docs")
        remote = remote_at(url, protocol=Protocol.POST, authentication=authentication, skill="describe")
        assert run(remote, "hi", env={"DOCS_TOKEN": SECRET}).text == "done"
        missing = run(remote, "hi")
    assert (missing.reason, len(requests)) == (Reason.SETUP_FAILED, 1)
    assert "lacks the variable of the agent's secret" in (missing.detail or "")
    assert "DOCS_TOKEN" not in (missing.detail or ""), "the log alone says which"
    assert requests[0].headers["X-Docs"] == SECRET
    assert requests[0].headers["Idempotency-Key"] == "run-1"
    assert json.loads(requests[0].body) == {"id": "run-1", "text": "hi", "skill": "describe"}


@pytest.mark.parametrize(
    ("answer", "status", "text"),
    [
        ({"text": "done", "usage": {"input_tokens": 3, "output_tokens": 4, "cost_usd": 0.5}}, "succeeded", "done"),
        ({"status": "input-required", "text": "Which?", "conversation": "c 1"}, "needs_input", None),
        ({"status": "failed", "text": "no"}, "failed", None),
        ({"status": "rejected"}, "failed", None),
        ({"status": "odd", "text": "no"}, "lost", None),
    ],
)
def test_what_a_plain_post_answers(answer: dict[str, Any], status: str, text: str | None) -> None:
    body = json.dumps(answer).encode()
    with plain_server(lambda request, handler: reply(handler, 200, body)) as (url, requests):
        outcome = run(remote_at(url, protocol=Protocol.POST), "hi")
        assert (outcome.status, outcome.text) == (status, text)
        if "conversation" in answer:
            assert outcome.question == "Which?"
            run(remote_at(url, protocol=Protocol.POST), "this", outcome.conversation_id)
            assert json.loads(requests[1].body)["conversation"] == "c 1"
        if "usage" in answer:
            assert (outcome.tokens.input, outcome.tokens.output, outcome.cost_usd) == (3, 4, 0.5)


def test_a_plain_post_that_is_slow_is_waited_for_and_can_be_stopped() -> None:
    came = threading.Event()
    released = threading.Event()

    def answer(request: Request, handler: BaseHTTPRequestHandler) -> None:
        came.set()
        released.wait(60)

    with plain_server(answer) as (url, _):
        request, process = start(remote_at(url, protocol=Protocol.POST), "hi")
        assert came.wait(PATIENCE_S)
        os.kill(process.pid, signal.SIGTERM)
        outcome = finish(request, process)
        released.set()
    assert outcome.reason is Reason.INTERRUPTED


@pytest.mark.parametrize("version", [{"protocolVersion": text} for text in ("1.0", "", "v1")] + [{}])
def test_a_card_of_version_1_has_its_header_and_its_tenant_sent(version: dict[str, str]) -> None:
    def answer(request: Request, handler: BaseHTTPRequestHandler) -> None:
        interfaces = [
            {"url": "grpc.example.org:443", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
            {"url": f"{where}/x", "protocolBinding": "JSONRPC", "tenant": "acme", **version},
        ]
        fields: dict[str, Any] = {"name": "T", "supportedInterfaces": interfaces, "capabilities": {}}
        if request.method == "POST":
            fields = {
                "jsonrpc": "2.0",
                "id": 1,
                "result": {"message": {"parts": [{"text": "at once"}], "contextId": "c"}},
            }
        reply(handler, 200, json.dumps(fields).encode())

    with plain_server(answer) as (where, requests):
        outcome = run(remote_at(f"{where}/deep/er"), "hi")
    assert (outcome.text, outcome.conversation_id) == ("at once", "/c")
    assert requests[0].path == "/deep/er/.well-known/agent-card.json"
    assert (requests[1].path, requests[1].headers["A2A-Version"]) == ("/x", "1.0")
    assert json.loads(requests[1].body)["params"]["tenant"] == "acme"


def test_a_limit_while_it_is_followed_is_waited_out() -> None:
    polls = []

    def answer(request: Request, handler: BaseHTTPRequestHandler) -> None:
        method = json.loads(request.body)["method"]
        if method == "GetTask":
            polls.append(method)
            if len(polls) == 1:
                return reply(handler, 429, Retry_After="1")
            if len(polls) == 2:
                return reply(handler, 200, b"not JSON")
        state = "TASK_STATE_COMPLETED" if len(polls) == 3 else "TASK_STATE_WORKING"
        task = {"id": "t", "contextId": "c", "status": {"state": state}}
        result = task if method == "GetTask" else {"task": task}
        return reply(handler, 200, json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode())

    with plain_server(answer) as (url, _):
        outcome = run(remote_at(url, protocol=Protocol.A2A_1_0), "hi")
    assert outcome.status is OutcomeStatus.SUCCEEDED
    assert len(polls) == 3


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
@pytest.mark.parametrize("protocol", [Protocol.POST, Protocol.A2A_1_0, Protocol.AUTO])
def test_a_certificate_is_checked(tmp_path: Path, protocol: Protocol) -> None:
    context, certificate = own_certificate(tmp_path)
    with plain_server(lambda request, handler: reply(handler, 401), context) as (url, requests):
        authentication = Authentication(scheme=Scheme.BEARER, secret="DOCS_TOKEN")
        remote = remote_at(url, protocol=protocol, authentication=authentication)
        refused = run(remote, "hi", env={"DOCS_TOKEN": SECRET})
        assert (refused.reason, requests) == (Reason.SETUP_FAILED, [])
        assert "is not trusted" in (refused.detail or "")
        assert "SSL_CERT_FILE of the daemon" in (refused.detail or "")
        trusted = run(remote, "hi", env={"DOCS_TOKEN": SECRET, "SSL_CERT_FILE": str(certificate)})
        assert (trusted.reason, len(requests)) == (Reason.AUTH, 1)
        elsewhere = remote_at(url.replace("127.0.0.1", "localhost"), protocol=protocol)
        named = run(elsewhere, "hi", env={"SSL_CERT_FILE": str(certificate)})
        assert (named.reason, len(requests)) == (Reason.SETUP_FAILED, 1)


def test_a_result_that_comes_after_the_end_in_a_stream_is_asked_for() -> None:
    """And each event comes twice. What is asked later is answered from a moment before."""

    def answer(request: Request, handler: BaseHTTPRequestHandler) -> None:
        if request.method == "GET":
            return reply(handler, 200, _card(url, streaming=True))
        named = {"taskId": "t", "contextId": "c"}
        if json.loads(request.body)["method"] == "GetTask":
            artifacts = [{"artifactId": "a", "parts": [{"text": "the result"}]}]
            result = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}, "artifacts": artifacts}
            return reply(handler, 200, json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode())
        states = [{"statusUpdate": {**named, "status": {"state": f"TASK_STATE_{word}"}}} for word in _WORDS]
        events = [{"jsonrpc": "2.0", "id": 1, "result": result} for result in states for _ in range(2)]
        body = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
        return reply(handler, 200, body, Content_Type="text/event-stream")

    with plain_server(answer) as (url, _):
        outcome = run(remote_at(url), "hi")
    assert (outcome.status, outcome.text) == (OutcomeStatus.SUCCEEDED, "the result")


_WORDS = ("WORKING", "COMPLETED")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
def test_a_running_task_outlives_a_certificate_that_is_not_trusted_for_a_moment(tmp_path: Path) -> None:
    """The server has a certificate of another authority, which this machine gets a little later."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    context, old = own_certificate(tmp_path / "old")
    _, new = own_certificate(tmp_path / "new")
    authorities = tmp_path / "authorities.pem"
    authorities.write_text(old.read_text())
    greeted: list[None] = []

    def greet(*_: object) -> None:
        greeted.append(None)
        if len(greeted) == 3:
            authorities.write_text(new.read_text())

    def answer(request: Request, handler: BaseHTTPRequestHandler) -> None:
        if request.method == "GET":
            return reply(handler, 200, _card(url))
        state = "TASK_STATE_COMPLETED" if greeted else "TASK_STATE_WORKING"
        task = {"id": "t", "contextId": "c", "status": {"state": state}}
        if not greeted:
            context.load_cert_chain(new, tmp_path / "new" / "key.pem")
            context.sni_callback = greet
        result = task if json.loads(request.body)["method"] == "GetTask" else {"task": task}
        return reply(handler, 200, json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode())

    with plain_server(answer, context) as (url, _):
        outcome = run(remote_at(url, protocol=Protocol.A2A_1_0), "hi", env={"SSL_CERT_FILE": str(authorities)})
    assert outcome.status is OutcomeStatus.SUCCEEDED
    assert len(greeted) > 3


def test_a_card_that_leads_to_this_machine_is_not_followed() -> None:
    card = {
        "supportedInterfaces": [{"url": "http://127.0.0.1:1/x", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]
    }
    with plain_server(lambda request, handler: reply(handler, 200, json.dumps(card).encode())) as (url, requests):
        outcome = run(remote_at(url), "hi")
    assert outcome.reason is Reason.SETUP_FAILED
    assert len(requests) == 1


def _card(url: str, *, streaming: bool = False) -> bytes:
    interface = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    return json.dumps({"supportedInterfaces": [interface], "capabilities": {"streaming": streaming}}).encode()


@pytest.mark.parametrize(
    ("status", "answer", "variables", "hidden"),
    [
        (404, b"", {}, "sheep"),
        (200, _card("ftp://sheep.internal/x"), {}, "sheep.internal"),
        (200, _card("http://sheep.internal/x"), {}, "sheep.internal"),
        (200, _card("http://sheep.internal:port/x"), {}, "sheep.internal"),
        (200, _card("https://ann:pass@sheep.internal/x"), {}, "sheep.internal"),
        (200, b"", {"SHEEP_TOKEN": "two\nsheep"}, "sheep"),
    ],
)
def test_a_fault_of_its_setup_names_nothing_of_where_it_is_or_what_it_is_reached_with(
    status: int, answer: bytes, variables: dict[str, str], hidden: str
) -> None:
    """The reason of a run is shown to all who see the task, and only the card's own address is taken out of it."""
    secret = Authentication(scheme=Scheme.BEARER, secret="SHEEP_TOKEN") if variables else Authentication()
    with plain_server(lambda request, handler: reply(handler, status, answer)) as (url, _):
        outcome = run(remote_at(f"{url}/sheep", authentication=secret), "hi", env=variables)
    assert outcome.reason is Reason.SETUP_FAILED
    assert outcome.detail
    assert hidden not in outcome.detail


def test_an_answer_whose_fate_is_unknown_is_asked_for_again() -> None:
    """The remote task still asks after the message to it was cut: somebody is asked again, and nothing is lost."""
    sent = []

    def answer(request: Request, handler: BaseHTTPRequestHandler) -> None:
        text = json.loads(request.body)
        if text["method"] == "SendMessage":
            sent.append(text["params"]["message"])
            handler.close_connection = True
            return
        status = {"state": "TASK_STATE_INPUT_REQUIRED", "timestamp": "T", "message": {"parts": [{"text": "Which?"}]}}
        task = {"id": "t", "contextId": "c", "status": status}
        reply(handler, 200, json.dumps({"jsonrpc": "2.0", "id": 1, "result": task}).encode())

    with plain_server(answer) as (url, _):
        outcome = run(remote_at(url, protocol=Protocol.A2A_1_0), "This.", "t/c")
    assert (outcome.status, outcome.question, outcome.conversation_id) == (OutcomeStatus.NEEDS_INPUT, "Which?", "t/c")
    assert [(entry["taskId"], entry["contextId"]) for entry in sent] == [("t", "c")]
