"""What one client may take of the daemon, and what it is told when that was too much."""

import select
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from claudomator_py.api.guard.limits import MAX_UNFINISHED_BYTES, Buckets, Rate, RequestLimits
from claudomator_py.api.guard.protocol import CHUNKS, HEAD_BYTES, HEADERS, Connection
from claudomator_py.api.guard.security import LOGIN_BODY_BYTES, MAX_BODY_BYTES
from claudomator_py.resources.access import TokenRequest
from tests.fakes.daemon import Daemon, running
from tests.fakes.prepared import PreparedService
from tests.patience import PATIENCE_S
from tests.unit.api.wire import ask, begin, code, connected, raw_problem, rest_of

TASK = {"name": "it", "instructions": "Do it."}


def unfinished(daemon: Daemon) -> bytes:
    """A request whose body lacks its end."""
    head = f"POST /v1/tasks HTTP/1.1\r\nHost: {daemon.address}\r\nAuthorization: Bearer {daemon.token}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {MAX_BODY_BYTES}\r\n\r\n"
    return head.encode() + b" " * (MAX_BODY_BYTES - 10)


STRICT = RequestLimits(changes=Rate(0.001, 3), failures=Rate(0.001, 3), body_s=0.2)


class Hasty(Connection):
    """Waits for nobody."""

    head_s = 0.2


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Daemon]:
    with running(PreparedService(), tmp_path / "state", limits=STRICT) as daemon:
        yield daemon


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[Daemon]:
    with running(PreparedService(), tmp_path / "state", protocol=Hasty) as daemon:
        yield daemon


# --- rates ------------------------------------------------------------------------------------------------------------


def test_a_bucket_lets_a_burst_through_and_then_a_rate() -> None:
    now = 100.0
    buckets = Buckets(Rate(per_second=4, burst=3), most=10, clock=lambda: now)
    assert [buckets.take("a") for _ in range(3)] == [0, 0, 0]
    assert buckets.take("a") == 0.25
    assert buckets.take("b") == 0
    now += 0.25
    assert buckets.take("a") == 0
    assert buckets.take("a") > 0
    now += 1_000
    assert [buckets.take("a") > 0 for _ in range(4)] == [False, False, False, True]


def test_the_number_of_buckets_is_bounded_and_the_ones_in_use_stay() -> None:
    buckets = Buckets(Rate(per_second=1, burst=1), most=3, clock=lambda: 0.0)
    buckets.take("greedy")
    for number in range(100):
        buckets.take(str(number))
        assert buckets.take("greedy") > 0
    assert len(buckets._of) == 3


def test_a_hundred_submissions_a_second_go_on_for_ever() -> None:
    now = 0.0
    buckets = Buckets(RequestLimits().changes, most=10, clock=lambda: now)
    for _ in range(10_000):
        assert buckets.take("token") == 0
        now += 0.01


def test_a_client_that_changes_too_much_is_told_when_to_go_on(strict: Daemon) -> None:
    answers = [strict.ask("POST", "/v1/tasks", json_body=TASK) for _ in range(4)]
    assert [answer.status for answer in answers] == [201, 201, 201, 429]
    assert code(answers[3]) == (429, "too_many_requests")
    assert int(answers[3].headers["retry-after"]) >= 1
    assert strict.ask("POST", "/v1/tasks/it/cancel").status == 429
    assert len(strict.ask("GET", "/v1/tasks").json()["items"]) == 3


def test_who_guesses_tokens_is_slowed_down_and_the_operator_is_not(strict: Daemon) -> None:
    wrong = {"Authorization": "Bearer wrong"}
    assert [strict.ask("GET", "/v1/status", headers=wrong).status for _ in range(5)] == [401, 401, 401, 429, 429]
    refused = strict.ask("GET", "/v1/status", headers=wrong)
    assert code(refused) == (429, "too_many_requests")
    assert "failed logins" in refused.json()["detail"]
    assert int(refused.headers["retry-after"]) >= 1
    assert strict.ask("GET", "/v1/status").status == 200
    assert strict.ask("GET", "/livez", headers={"Authorization": None}).status == 200


def test_who_guesses_login_codes_is_slowed_down_and_the_right_one_is_not(strict: Daemon) -> None:
    headers = {
        "Authorization": None,
        "Host": strict.page_host,
        "Origin": f"http://{strict.page_host}",
        "Sec-Fetch-Site": "same-origin",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    answers = [strict.ask("POST", "/login", body=b"code=guess", headers=headers).status for _ in range(5)]
    assert answers == [403, 403, 403, 429, 429]
    right = strict.ask("POST", "/v1/login-codes").json()["code"]
    assert strict.ask("POST", "/login", body=f"code={right}".encode(), headers=headers).status == 303


def test_who_shows_nothing_is_told_how_to_log_in_whoever_guesses(strict: Daemon) -> None:
    for _ in range(5):
        strict.ask("GET", "/v1/status", headers={"Authorization": "Bearer wrong"})
    for cookie in (None, f"claudomator_{strict.address.rpartition(':')[2]}=expired"):
        assert strict.ask("GET", "/", headers={"Authorization": None, "Cookie": cookie}).status == 401


# --- the size and pace of a request -----------------------------------------------------------------------------------


def test_a_body_that_does_not_come_is_not_waited_for(strict: Daemon) -> None:
    with connected(strict) as sock:
        head = f"POST /v1/tasks HTTP/1.1\r\nHost: {strict.address}\r\nAuthorization: Bearer {strict.token}\r\n"
        sock.sendall(head.encode() + b'Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"name":')
        assert raw_problem(rest_of(sock))[1]["code"] == "body_timeout"


def test_bodies_that_nobody_finishes_are_bounded_together(tmp_path: Path) -> None:
    """One principal's, over however many connections; those that have ended are not held."""
    prepared = PreparedService()
    with running(prepared, tmp_path / "state") as daemon, ExitStack() as floods:
        with daemon.client() as client:
            guest, other = (
                replace(daemon, token=client.create_token(TokenRequest(name=name, role="operate")).token)
                for name in ("guest", "other")
            )
        most = 4 + MAX_UNFINISHED_BYTES // MAX_BODY_BYTES
        socks = [floods.enter_context(connected(guest)) for _ in range(most)]
        for sock in socks:
            sock.sendall(unfinished(guest))
        refused = select.select(socks, [], [], PATIENCE_S)[0]
        assert 0 < len(refused) < most / 2
        answer = b""
        with suppress(ConnectionResetError):  # what the daemon has not read
            while part := refused[0].recv(65_536):
                answer += part
        status, payload = raw_problem(answer)
        assert (status, payload["code"]) == (429, "too_many_bodies")
        for entry in (other, daemon):
            assert entry.ask("POST", "/v1/tasks", json_body=TASK).status == 201
        floods.close()
        while guest.ask("POST", "/v1/tasks", json_body=TASK).status == 429:
            pass
    prepared.close()


@pytest.mark.parametrize("begun", [b"GET / HTTP/1.1\r\nHost: x\r\nX-", b"G"])
def test_a_head_that_does_not_come_is_not_waited_for(hasty: Daemon, begun: bytes) -> None:
    with connected(hasty) as sock:
        sock.sendall(begun)
        status, payload = raw_problem(rest_of(sock))
    assert (status, payload["code"]) == (408, "head_timeout")


def test_trickling_does_not_buy_time(hasty: Daemon) -> None:
    """Each byte comes well within the time for a head; the whole does not."""
    received = b""
    with connected(hasty) as sock:
        sock.settimeout(0.02)
        for byte in b"GET /livez HTTP/1.1\r\n" + b"X-Slow: " + b"x" * 10_000:
            try:
                sock.sendall(bytes([byte]))
                received += sock.recv(65_536)
            except TimeoutError:
                continue
            break
        sock.settimeout(PATIENCE_S)
        with suppress(ConnectionResetError):  # a byte may have been on its way to what was closed behind the answer
            received += rest_of(sock)
    assert b"head_timeout" in received


def test_a_connection_that_says_nothing_is_closed(hasty: Daemon) -> None:
    with connected(hasty) as sock:
        assert rest_of(sock) == b""


def test_a_second_request_has_its_time_too(hasty: Daemon) -> None:
    with connected(hasty) as sock:
        assert ask(hasty, sock, "/livez")[0] == 200
        assert ask(hasty, sock, "/livez")[0] == 200
        sock.sendall(b"GET /livez ")
        assert raw_problem(rest_of(sock))[1]["code"] == "head_timeout"


def test_too_much_in_the_head_is_told(hasty: Daemon) -> None:
    with connected(hasty) as sock:
        sock.sendall(b"GET /livez HTTP/1.1\r\nX-Long: " + b"x" * HEAD_BYTES)
        status, payload = raw_problem(rest_of(sock))
    assert (status, payload["code"]) == (431, "headers_too_large")


LARGE_HEADS = {
    "one long header": b"X-Long: " + b"x" * 100_000 + b"\r\n",
    "many headers": b"".join(b"X-%d: x\r\n" % number for number in range(HEADERS + 1)),
    "many bytes in many headers": b"".join(b"X-%d: x\r\n" % number for number in range(10_000)),
    "a folded header": b"X: x\r\n" + b" x\r\n" * HEADERS,
}


@pytest.mark.parametrize("headers", LARGE_HEADS.values(), ids=LARGE_HEADS.keys())
@pytest.mark.parametrize("before", [b"", b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"], ids=["first", "pipelined"])
def test_a_large_head_is_refused_though_it_is_complete(daemon: Daemon, before: bytes, headers: bytes) -> None:
    with connected(daemon) as sock:
        sock.sendall(before + b"GET /livez HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n")
        answer = rest_of(sock)
    status, payload = raw_problem(answer[answer.rindex(b"HTTP/1.1 ") :])
    assert (status, payload["code"]) == (431, "headers_too_large")


def test_as_many_headers_as_there_may_be_are_taken(daemon: Daemon) -> None:
    headers = {f"X-{number}": "x" * 250 for number in range(HEADERS - 2)}
    assert daemon.ask("GET", "/v1/status", headers=headers).status == 200


def test_a_body_in_very_many_chunks_is_refused(daemon: Daemon) -> None:
    head = f"POST /v1/tasks HTTP/1.1\r\nHost: {daemon.address}\r\nAuthorization: Bearer {daemon.token}\r\n"
    with connected(daemon) as sock:
        sock.sendall(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * (CHUNKS + 1))
        status, payload = raw_problem(rest_of(sock))
    assert (status, payload["code"]) == (413, "too_large")


def test_a_login_is_short(daemon: Daemon) -> None:
    headers = {"Authorization": None, "Sec-Fetch-Site": "same-origin"}
    answer = daemon.ask("POST", "/login", body=b"x" * (LOGIN_BODY_BYTES + 1), headers=headers)
    assert code(answer) == (413, "too_large")


def test_a_client_that_leaves_in_the_middle_of_a_body_is_no_fault(
    daemon: Daemon, caplog: pytest.LogCaptureFixture
) -> None:
    with connected(daemon) as sock:
        begin(daemon, sock, authorised=True)
    assert daemon.ask("GET", "/livez").status == 200
    assert caplog.records == []


@pytest.mark.parametrize("nonsense", [b"\x16\x03\x01\x02\x00\x01\x00\x01", b"hello\r\n\r\n"])
def test_what_is_no_request_is_told(hasty: Daemon, nonsense: bytes) -> None:
    with connected(hasty) as sock:
        sock.sendall(nonsense + b"\r\n\r\n")
        status, payload = raw_problem(rest_of(sock))
    assert (status, payload["code"]) == (400, "bad_http")


def test_a_target_that_is_too_long_is_told(strict: Daemon) -> None:
    assert code(strict.ask("GET", "/v1/tasks/" + "x" * 8_192)) == (414, "uri_too_long")
    assert code(strict.ask("GET", "/v1/tasks?name=" + "x" * 8_192)) == (414, "uri_too_long")
    assert strict.ask("GET", "/v1/tasks?name=" + "x" * 1_000).status in (200, 422)
