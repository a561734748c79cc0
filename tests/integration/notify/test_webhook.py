"""Webhooks against a real server: what arrives, what proves whose it is, and what a refusal means."""

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from claudomator_py.domain.notice import DeliveryFault, Notice, NoticeKind, PayloadFormat
from claudomator_py.notify.webhook import Webhook

NOW_S = 1_790_000_000.4
NOTICE = Notice(
    id="event-7",
    kind=NoticeKind.FAILED,
    at="2026-11-22T02:00:00.000Z",
    title="fix-login: failed (check_failed)",
    text="<!channel> & friends",
    task_name="fix-login",
)


class Receiver(ThreadingHTTPServer):
    """Keeps what it is sent, and answers as told. silent: it never answers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Exchange)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.status = 200
        self.headers: dict[str, str] = {}
        self.received: list[tuple[str, dict[str, str], bytes]] = []
        self.silent = False
        self.closing = threading.Event()

    def body(self) -> Any:
        return json.loads(self.received[-1][2])


class _Exchange(BaseHTTPRequestHandler):
    server: Receiver

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.received.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        if self.server.silent:
            self.server.closing.wait(30)
            return
        self.send_response(self.server.status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.do_POST()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.closing.set()
        server.shutdown()
        thread.join()


@contextmanager
def webhook(
    url: str, form: PayloadFormat = PayloadFormat.JSON, secret: str | None = None, timeout_s: float = 5.0
) -> Iterator[Webhook]:
    hook = Webhook(url, form, secret, timeout_s, lambda: NOW_S)
    try:
        yield hook
    finally:
        hook.close()


def test_a_notice_arrives_whole(receiver: Receiver) -> None:
    with webhook(f"{receiver.url}/hook") as hook:
        hook.send(NOTICE)
    path, headers, body = receiver.received[0]
    assert (path, headers["content-type"], headers["webhook-id"]) == ("/hook", "application/json", "event-7")
    assert Notice.model_validate_json(body) == NOTICE
    assert "webhook-signature" not in headers


@pytest.mark.parametrize(
    ("secret", "key"), [("plain secret", b"plain secret"), ("whsec_" + base64.b64encode(b"raw").decode(), b"raw")]
)
def test_a_signature_covers_id_time_and_body(receiver: Receiver, secret: str, key: bytes) -> None:
    with webhook(receiver.url, secret=secret) as hook:
        hook.send(NOTICE)
    _, headers, body = receiver.received[0]
    assert headers["webhook-timestamp"] == "1790000000"
    signed = b"event-7.1790000000." + body
    expected = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert secret not in str(receiver.received)


def test_slack_is_sent_text_in_which_an_agent_can_call_nobody(receiver: Receiver) -> None:
    with webhook(receiver.url, PayloadFormat.SLACK) as hook:
        hook.send(NOTICE)
    assert receiver.body() == {"text": "*fix-login: failed (check_failed)*\n&lt;!channel&gt; &amp; friends"}


def test_ntfy_is_sent_topic_title_and_priority(receiver: Receiver) -> None:
    with webhook(f"{receiver.url}/base/nights", PayloadFormat.NTFY) as hook:
        hook.send(NOTICE)
        hook.send(NOTICE.model_copy(update={"kind": NoticeKind.COMPLETED, "text": ""}))
    assert [path for path, _, _ in receiver.received] == ["/base/", "/base/"]
    failed, completed = (json.loads(body) for _, _, body in receiver.received)
    assert failed == {
        "topic": "nights",
        "title": NOTICE.title,
        "message": NOTICE.text,
        "priority": 4,
        "tags": ["x"],
    }
    assert (completed["message"], completed["priority"]) == (NOTICE.title, 3)


@pytest.mark.parametrize(
    ("status", "lasting"),
    [(404, True), (401, True), (410, True), (302, True), (429, False), (408, False), (500, False), (503, False)],
)
def test_a_refusal_is_told_apart_from_a_trouble_that_passes(receiver: Receiver, status: int, lasting: bool) -> None:
    receiver.status = status
    receiver.headers = {"location": f"{receiver.url}/elsewhere", "retry-after": "7"}
    with webhook(f"{receiver.url}/secret-path") as hook, pytest.raises(DeliveryFault) as caught:
        hook.send(NOTICE)
    assert (caught.value.lasting, caught.value.after_s) == (lasting, 7.0)
    assert caught.value.detail == f"HTTP {status}"
    assert len(receiver.received) == 1, "a redirect must not be followed"


def test_a_server_that_is_not_there_or_does_not_answer_is_tried_again_later(receiver: Receiver) -> None:
    with webhook("http://127.0.0.1:1/secret") as hook, pytest.raises(DeliveryFault) as caught:
        hook.send(NOTICE)
    assert not caught.value.lasting
    assert "secret" not in caught.value.detail
    receiver.silent = True
    with webhook(receiver.url, timeout_s=0.1) as hook, pytest.raises(DeliveryFault, match="no answer in time"):
        hook.send(NOTICE)


@pytest.mark.parametrize(
    ("url", "form", "secret"),
    [
        ("http://127.0.0.1:port/", PayloadFormat.JSON, None),
        ("http://127.0.0.1:1/", PayloadFormat.NTFY, None),
        ("http://127.0.0.1:1/x", PayloadFormat.JSON, "whsec_*"),
    ],
)
def test_what_can_never_work_is_not_tried_again(url: str, form: PayloadFormat, secret: str | None) -> None:
    with webhook(url, form, secret) as hook, pytest.raises(DeliveryFault) as caught:
        hook.send(NOTICE)
    assert caught.value.lasting
