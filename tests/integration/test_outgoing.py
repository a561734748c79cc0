"""Whoever asks a server of others asks it for so long and no longer, however the server spends that time."""

import gzip
import json
import re
import shutil
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path

import httpx
import pytest
import typer

from claudomator_py import outgoing
from claudomator_py.certificates import certificate_problem
from claudomator_py.classify.http import GeminiApi, OpenAiApi
from claudomator_py.cli import card_files
from claudomator_py.domain.notice import DeliveryFault, Notice, NoticeKind, PayloadFormat
from claudomator_py.embed import openai
from claudomator_py.notify.webhook import Webhook
from claudomator_py.ports import EncoderFault, ExportFault
from claudomator_py.protocols.hub import waking
from claudomator_py.scheduler.classification import Cause, ModelFault, ModelQuestion
from claudomator_py.schema.settings import TelemetrySettings
from claudomator_py.telemetry import otlp
from tests.fakes.a2a import plain_server, reply
from tests.fakes.http_api import own_certificate
from tests.integration.telemetry.test_otlp import SPAN
from tests.patience import PATIENCE_S

DEADLINE_S = 0.7
PAUSE_S = 0.2
"""Between two bytes: no single read takes as long as the deadline."""
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
QUESTION = ModelQuestion("t", "Which tier?", {"type": "object", "properties": {"tier": {"type": "string"}}})
NOTICE = Notice(
    id="n", kind=NoticeKind.FAILED, at="2026-11-22T02:00:00.000Z", title="t: failed", text="", task_name="t"
)


@contextmanager
def served(answer: Callable[[socket.socket, threading.Event], None]) -> Iterator[str]:
    """A server that does this with each connection, once it has the head of a request. Its address."""
    left = threading.Event()

    def one(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            answer(connection, left)

    def all_(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=one, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=all_, args=(listener,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            left.set()
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)


def drips(first: bytes, each: bytes) -> Callable[[socket.socket, threading.Event], None]:
    """It says the first at once, and then a byte of the other after each pause, over and over."""

    def answer(connection: socket.socket, left: threading.Event) -> None:
        connection.recv(65_536)
        connection.sendall(first)
        while True:
            for byte in each:
                if left.wait(PAUSE_S):
                    return
                connection.sendall(bytes([byte]))

    return answer


def silent(connection: socket.socket, left: threading.Event) -> None:
    connection.recv(65_536)
    left.wait()


DRIPPING = {
    "nothing": silent,
    "its status": drips(b"HTTP/1.1 200 O", b"K"),
    "a header": drips(HEAD + b"X-A: ", b"a"),
    "headers": drips(HEAD, b"X: y\r\n"),
    "informational answers": drips(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "its answer": drips(HEAD + b"Content-Length: 1000\r\n\r\n", b" "),
    "its answer in chunks": drips(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "its answer until it closes": drips(HEAD + b"Connection: close\r\n\r\n", b" "),
    "the end of its answer": drips(HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n", b"X: y\r\n"),
}


def a_classifier(url: str) -> None:
    with pytest.raises(ModelFault) as fault:
        OpenAiApi("m", url, None).ask(QUESTION, DEADLINE_S)
    assert fault.value.cause is Cause.TIMEOUT


def gemini(url: str) -> None:
    with pytest.raises(ModelFault) as fault:
        GeminiApi("m", url, "key").ask(QUESTION, DEADLINE_S)
    assert fault.value.cause is Cause.TIMEOUT


def an_encoder(url: str) -> None:
    with pytest.raises(EncoderFault, match="in time"):
        openai.OpenAi("m", url, None, DEADLINE_S).encode(["text"])


def a_card(url: str) -> None:
    with pytest.raises(typer.BadParameter, match="did not send its card within"):
        card_files._fetched(f"{url}/card.json")


def a_notice(url: str) -> None:
    hook = Webhook(url, PayloadFormat.JSON, None, DEADLINE_S, time.time)
    with pytest.raises(DeliveryFault, match="no answer in time"):
        hook.send(NOTICE)
    hook.close()


def a_wake_up(url: str) -> None:
    with pytest.raises(waking.NotWoken, match="ReadTimeout"):
        waking.wake_remote_agent(f"{url}/wake", {"agent_id": "a"}, True)


def spans(url: str) -> None:
    with pytest.raises(ExportFault, match="did not answer in time"):
        otlp.OtlpExporter(TelemetrySettings(endpoint=url), {}).send([])


READS_ALL, READS_HEAD = (a_classifier, gemini, an_encoder, a_card, spans), (a_notice, a_wake_up)
OF_HEADERS = [name for name in DRIPPING if "answer" not in name or "informational" in name]
WAYS = [(way, name) for way in READS_ALL for name in DRIPPING] + [
    (way, name) for way in READS_HEAD for name in OF_HEADERS
]


@pytest.mark.parametrize(("way", "name"), WAYS)
def test_a_server_that_drips_is_not_awaited(
    way: Callable[[str], None], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(card_files, "FETCH_S", DEADLINE_S)
    monkeypatch.setattr(waking, "KNOCK_S", DEADLINE_S)
    monkeypatch.setattr(otlp, "TIMEOUT_S", DEADLINE_S)
    with served(DRIPPING[name]) as url:  # none of them ever ends, so that all who come back have given up
        begun_s = time.monotonic()
        _come_back(way, url)
        assert time.monotonic() - begun_s > DEADLINE_S * 0.9


@pytest.mark.parametrize("name", sorted(set(DRIPPING) - set(OF_HEADERS)))
def test_what_is_not_read_is_not_awaited(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waking, "KNOCK_S", 10 * PATIENCE_S)
    with served(DRIPPING[name]) as url:
        hook = Webhook(url, PayloadFormat.JSON, None, 10 * PATIENCE_S, time.time)
        _come_back(hook.send, NOTICE)
        _come_back(waking.wake_remote_agent, f"{url}/wake", {"agent_id": "a"}, True)
        _come_back(hook.close)


def test_a_server_that_takes_a_request_by_the_byte_is_not_awaited() -> None:
    def sip(connection: socket.socket, left: threading.Event) -> None:
        while not left.wait(0.05):
            connection.recv(1)

    with served(sip) as url, outgoing.client(DEADLINE_S) as client, pytest.raises(httpx.TimeoutException):
        client.post(url, content=b"x" * 50_000_000)


def test_a_connection_is_used_again_and_what_is_sent_packed_is_read() -> None:
    connections: list[int] = []

    def keep(connection: socket.socket, left: threading.Event) -> None:
        connections.append(1)
        data = gzip.compress(json.dumps({"n": len(connections)}).encode())
        while connection.recv(65_536):
            connection.sendall(HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(data) + data)

    with served(keep) as url, outgoing.client(30.0) as client:
        for _ in range(3):
            assert client.get(url).json() == {"n": 1}
        assert len(connections) == 1


def test_many_threads_ask_at_a_time_and_none_waits_for_another() -> None:
    with served(lambda connection, _: _answer(connection)) as fast, outgoing.client() as client:
        with served(DRIPPING["a header"]) as slow:
            waiting = [threading.Thread(target=_ask, args=(client, slow, PATIENCE_S)) for _ in range(20)]
            for thread in waiting:
                thread.start()
            for _ in range(5):
                assert _ask(client, fast, PATIENCE_S) == 200
            assert all(thread.is_alive() for thread in waiting)
        for thread in waiting:
            thread.join()


def test_whoever_closes_it_asks_nothing_more() -> None:
    client = outgoing.client(1.0)
    client.close()
    with pytest.raises(RuntimeError):
        client.get("http://127.0.0.1:9/")


def test_a_deadline_that_is_over_asks_nothing() -> None:
    with served(silent) as url, outgoing.client() as client:
        assert _ask(client, url, 0.0) is None


def _come_back(way: Callable[..., object], *arguments: object) -> None:
    """Call it, and fail where it does not come back by itself; raises what it raises."""
    asked: Future[object] = Future()

    def ask() -> None:
        try:
            asked.set_result(way(*arguments))
        except BaseException as error:
            asked.set_exception(error)

    threading.Thread(target=ask, daemon=True).start()
    asked.result(PATIENCE_S)


def _answer(connection: socket.socket) -> None:
    while connection.recv(65_536):
        connection.sendall(HEAD + b"Content-Length: 2\r\n\r\n{}")


def _ask(client: httpx.Client, url: str, timeout_s: float) -> int | None:
    try:
        return client.get(url, timeout=timeout_s).status_code
    except httpx.TransportError:
        return None


def test_the_first_that_ask_at_a_time_share_one_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "_begun", cache(outgoing._begun.__wrapped__))
    together = threading.Barrier(8)

    def begin() -> object:
        together.wait(PATIENCE_S)
        return outgoing._loop()

    with ThreadPoolExecutor(8) as pool:
        loops = [asked.result() for asked in [pool.submit(begin) for _ in range(8)]]
    assert len(set(map(id, loops))) == 1


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
def test_a_certificate_is_named_as_the_problem_and_its_authority_can_be_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a restart: the file with the authorities is read again after a certificate was not trusted."""
    context, certificate = own_certificate(tmp_path)
    (other := tmp_path / "other").mkdir()
    authorities = tmp_path / "authorities.pem"
    authorities.write_bytes(own_certificate(other)[1].read_bytes())
    for variable in ("SSL_CERT_FILE", "OTEL_EXPORTER_OTLP_CERTIFICATE"):
        monkeypatch.setenv(variable, str(authorities))
    with plain_server(lambda request, handler: reply(handler, 200), context) as (url, requests):
        hook = Webhook(url, PayloadFormat.JSON, None, PATIENCE_S, lambda: 0.0)
        exporter = otlp.OtlpExporter(TelemetrySettings(endpoint=url), {})
        for send, fault in ((partial(hook.send, NOTICE), DeliveryFault), (partial(exporter.send, [SPAN]), ExportFault)):
            with pytest.raises(fault, match=r"its certificate is not trusted: .*; .*|collector's certificate is not"):
                send()
        assert requests == []
        authorities.write_bytes(certificate.read_bytes())
        hook.send(NOTICE)
        exporter.send([SPAN])
        assert len(requests) == 2
        hook.close()
        exporter.close()


@pytest.mark.parametrize(
    ("code", "remedy"), [(10, "renew it"), (9, "clocks"), (62, "use a name"), (20, "SSL_CERT_FILE")]
)
def test_the_remedy_for_a_certificate_fits_what_is_wrong_with_it(code: int, remedy: str) -> None:
    refused = ssl.SSLCertVerificationError()
    refused.verify_code, refused.verify_message = code, "why"
    failure = httpx.ConnectError("all")
    failure.__cause__ = refused
    assert re.match(rf"is not trusted: why; .*{remedy}", certificate_problem(failure) or "")
    assert certificate_problem(httpx.ConnectError("all")) is None
