"""Attacks that come through the user's browser, or from a client that may not ask."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.api.guard.security import MAX_BODY_BYTES
from claudomator_py.api.settings import WebSettings
from tests.fakes.daemon import Daemon, running
from tests.fakes.prepared import PreparedService

TASK = {"name": "evil", "instructions": "rm -rf ~"}
STREAM = "/v1/runs/any/log"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "0.0.0.0:{port}", "0.0.0.0", "127.0.0.1:1", ""]
)
def test_a_rebound_name_is_refused_before_anything_else(daemon: Daemon, prepared: PreparedService, host: str) -> None:
    port = daemon.address.rpartition(":")[2]
    answer = daemon.ask("POST", "/v1/tasks", json_body=TASK, headers={"Host": host.format(port=port)})
    assert (answer.status, answer.json()["code"]) == (421, "wrong_host")
    assert not prepared.task_ids()


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/openapi.json", "/v1/status", "/nowhere"])
def test_a_rebound_name_is_refused_on_every_path(daemon: Daemon, path: str) -> None:
    assert daemon.ask("GET", path, headers={"Host": "evil.example"}).status == 421


def test_the_loopback_names_are_accepted_with_the_port(daemon: Daemon) -> None:
    port = daemon.address.rpartition(":")[2]
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", f"LOCALHOST:{port}"):
        assert daemon.ask("GET", "/v1/status", headers={"Host": host}).status == 200


def test_a_request_without_host_is_refused(daemon: Daemon) -> None:
    assert daemon.ask("GET", "/v1/status", headers={"Host": None}).status in (400, 421)


def test_further_names_can_be_allowed(tmp_path: Path) -> None:
    with running(PreparedService(), tmp_path / "state", allowed_hosts=("box.lan",)) as daemon:
        assert daemon.ask("GET", "/v1/status", headers={"Host": "box.lan"}).status == 200
        assert daemon.ask("GET", "/v1/status", headers={"Host": "box.lan.evil.example"}).status == 421


def test_a_wildcard_address_can_never_be_allowed() -> None:
    for name in ("0.0.0.0", "0.0.0.0:8484", "[::]", "*"):
        with pytest.raises(ValueError, match="every address"):
            WebSettings(token="x" * 32, listen="127.0.0.1:8484", allowed_hosts=(name,))


def test_listening_on_every_address_allows_no_name_for_every_address() -> None:
    settings = WebSettings(token="x" * 32, listen="0.0.0.0:8484", allowed_hosts=("box.lan",))
    allowed = {"127.0.0.1:8484", "localhost:8484", "[::1]:8484", "box.lan", "box.lan:8484", settings.page_host}
    assert settings.authorities() == allowed


def test_browsers_log_in_where_no_other_server_is() -> None:
    names = ("box.lan", "proxy.example:443", "localhost", "127.0.0.1:80", "[::1]")
    settings = WebSettings(token="x" * 32, listen="127.0.0.1:8484", allowed_hosts=names)
    assert settings.page_hosts() == {settings.page_host, "box.lan", "box.lan:8484", "proxy.example:443"}
    assert re.fullmatch(r"claudomator-[0-9a-f]{16}\.localhost:8484", settings.page_host)
    assert WebSettings(token="x" * 32, listen="[::1]:8484").page_host == settings.page_host
    assert WebSettings(token="y" * 32, listen="127.0.0.1:8484").page_host != settings.page_host
    assert not WebSettings(token="x" * 32, listen="127.0.0.1:80").page_host.endswith(":80")


def test_a_daemon_without_a_good_token_cannot_be_built() -> None:
    for token in ("", "short", "ü" * 32):
        with pytest.raises(ValueError, match="token"):
            WebSettings(token=token, listen="127.0.0.1:8484")


@pytest.mark.parametrize("site", ["cross-site", "same-site", "nonsense", ""])
@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/tasks"), ("GET", "/v1/status"), ("GET", STREAM)])
def test_a_page_of_another_site_gets_nothing(
    daemon: Daemon, prepared: PreparedService, site: str, method: str, path: str
) -> None:
    answer = daemon.ask(method, path, json_body=TASK, headers={"Sec-Fetch-Site": site})
    assert (answer.status, answer.json()["code"]) == (403, "cross_site")
    assert not prepared.task_ids()


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:3000", "file://", ""])
@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/tasks"), ("GET", "/v1/status"), ("OPTIONS", "/v1/tasks")])
def test_a_foreign_origin_gets_nothing(
    daemon: Daemon, prepared: PreparedService, origin: str, method: str, path: str
) -> None:
    answer = daemon.ask(method, path, json_body=TASK, headers={"Origin": origin})
    assert (answer.status, answer.json()["code"]) == (403, "cross_site")
    assert not prepared.task_ids()


def test_a_form_of_another_site_is_refused_though_it_needs_no_preflight(
    daemon: Daemon, prepared: PreparedService
) -> None:
    headers = {"Origin": "https://evil.example", "Content-Type": "text/plain"}
    answer = daemon.ask("POST", "/v1/tasks", body=b'{"name": "evil", "instructions": "x"}', headers=headers)
    assert answer.status == 403
    assert not prepared.task_ids()


def test_our_own_page_and_a_typed_address_pass(daemon: Daemon) -> None:
    own = {"Origin": daemon.url, "Sec-Fetch-Site": "same-origin"}
    assert daemon.ask("POST", "/v1/tasks", json_body=TASK, headers=own).status == 201
    assert daemon.ask("GET", "/v1/status", headers={"Sec-Fetch-Site": "none"}).status == 200


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer wrong", "Basic {token}", "{token}", "Bearer {token}x", "Bearer {short}", "Bearer ü"],
)
def test_without_the_token_nothing_is_told_or_done(
    daemon: Daemon, prepared: PreparedService, authorization: str | None
) -> None:
    text = authorization and authorization.format(token=daemon.token, short=daemon.token[:-1])
    for method, path in (("POST", "/v1/tasks"), ("GET", "/v1/status"), ("GET", "/openapi.json"), ("GET", "/nowhere")):
        answer = daemon.ask(method, path, json_body=TASK, headers={"Authorization": text})
        assert (answer.status, answer.json()["code"]) == (401, "not_authorised")
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert daemon.token not in answer.body.decode()
    assert not prepared.task_ids()


def test_the_scheme_is_case_insensitive(daemon: Daemon) -> None:
    assert daemon.ask("GET", "/v1/status", headers={"Authorization": f"bearer {daemon.token}"}).status == 200


def _chunks(size: int) -> Iterator[bytes]:
    for _ in range(size // 65_536 + 1):
        yield b" " * 65_536


def test_a_body_over_the_limit_is_refused_by_its_length(daemon: Daemon) -> None:
    answer = daemon.ask("POST", "/v1/tasks", body=b" ", headers={"Content-Length": str(MAX_BODY_BYTES + 1)})
    assert (answer.status, answer.json()["code"]) == (413, "too_large")


def test_a_chunked_body_over_the_limit_is_refused_too(daemon: Daemon) -> None:
    answer = daemon.ask("POST", "/v1/tasks", body=_chunks(MAX_BODY_BYTES))
    assert (answer.status, answer.json()["code"]) == (413, "too_large")


def test_a_chunked_body_within_the_limit_arrives_whole(daemon: Daemon) -> None:
    parts = iter([b'{"name": "in-parts", ', b'"instructions"', b': "Do it."}'])
    answer = daemon.ask("POST", "/v1/tasks", body=parts, headers={"Content-Type": "application/json"})
    assert (answer.status, answer.json()["name"]) == (201, "in-parts")


@pytest.mark.parametrize("path", ["/livez", "/v1/status", "/nowhere"])
def test_every_answer_has_the_security_headers_and_no_cors(daemon: Daemon, path: str) -> None:
    for headers in ({}, {"Authorization": None}, {"Host": "evil.example"}, {"Origin": "https://evil.example"}):
        sent = {name.lower(): value for name, value in daemon.ask("GET", path, headers=headers).headers.items()}
        assert sent["x-content-type-options"] == "nosniff"
        assert sent["x-frame-options"] == "DENY"
        assert sent["cache-control"] == "no-store"
        assert "default-src 'none'" in sent["content-security-policy"]
        assert not [name for name in sent if name.startswith("access-control-")]
        assert "server" not in sent
