"""How a browser gets in, and out again."""

import re
from pathlib import Path

import pytest

from claudomator_py.api.guard.sessions import MAX_CODES, LoginCodes
from claudomator_py.domain.units import SECOND_MS
from tests.fakes.daemon import Daemon, running
from tests.fakes.prepared import PreparedService
from tests.unit.api.page.conftest import Visitor, hidden, log_in, text_of

NOW = 1_790_000_000_000


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


def test_a_code_is_good_once() -> None:
    codes = LoginCodes(Clock())
    code, _ = codes.issue("operator")
    assert codes.redeem(code)
    assert not codes.redeem(code)
    assert not codes.redeem("another")


def test_a_code_is_good_for_a_minute() -> None:
    clock = Clock()
    codes = LoginCodes(clock)
    code, expires_ms = codes.issue("operator")
    assert expires_ms == NOW + 60 * SECOND_MS
    clock.now = expires_ms
    assert not codes.redeem(code)


def test_of_too_many_codes_the_oldest_goes() -> None:
    codes = LoginCodes(Clock())
    issued = [codes.issue("operator")[0] for _ in range(MAX_CODES + 1)]
    assert not codes.redeem(issued[0])
    assert all(codes.redeem(code) for code in issued[1:])


def test_a_code_becomes_a_session_by_one_click(daemon: Daemon, stranger: Visitor) -> None:
    made = daemon.ask("POST", "/v1/login-codes")
    assert made.status == 201
    page = stranger.get(made.json()["path"], Sec_Fetch_Site="none")
    assert page.status == 200
    answer = stranger.post("/login", {"code": hidden(page, "code")})
    assert (answer.status, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    port = daemon.address.rpartition(":")[2]
    assert cookie.startswith(f"claudomator_{port}=")
    attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/", f"max-age={7 * 24 * 60 * 60}"} <= attributes
    assert "secure" not in attributes
    assert Visitor(daemon, cookie.partition(";")[0]).get("/").status == 200


def test_looking_at_the_link_does_not_use_it_up(daemon: Daemon, stranger: Visitor) -> None:
    path = daemon.ask("POST", "/v1/login-codes").json()["path"]
    for _ in range(3):
        assert stranger.get(path).status == 200
    assert stranger.post("/login", {"code": path.partition("=")[2]}).status == 303


def test_a_code_that_is_used_up_says_so(daemon: Daemon, stranger: Visitor) -> None:
    code = daemon.ask("POST", "/v1/login-codes").json()["code"]
    assert stranger.post("/login", {"code": code}).status == 303
    again = stranger.post("/login", {"code": code})
    assert again.status == 403
    assert "set-cookie" not in again.headers
    assert "no longer valid" in text_of(again)
    assert "claudomator open" in text_of(again)


def test_behind_tls_the_cookie_is_secure(daemon: Daemon, stranger: Visitor) -> None:
    code = daemon.ask("POST", "/v1/login-codes").json()["code"]
    answer = stranger.post("/login", {"code": code}, Origin=f"https://{daemon.page_host}")
    assert "; secure" in answer.headers["set-cookie"].lower()


def test_only_who_has_the_token_gets_a_code(stranger: Visitor, operator: Visitor) -> None:
    for visitor in (stranger, operator):
        answer = visitor.post("/v1/login-codes")
        assert (answer.status, answer.json()["code"]) == (401, "not_authorised")


def test_another_page_cannot_log_a_browser_in(daemon: Daemon, stranger: Visitor) -> None:
    code = daemon.ask("POST", "/v1/login-codes").json()["code"]
    for headers in (
        {"Origin": "http://localhost:1", "Sec_Fetch_Site": "same-site"},
        {"Origin": None, "Sec_Fetch_Site": "cross-site"},
        {"Origin": None, "Sec_Fetch_Site": "none"},
        {"Origin": None, "Sec_Fetch_Site": None},
    ):
        assert stranger.post("/login", {"code": code}, **headers).status == 403
    assert stranger.post("/login", {"code": code}).status == 303  # the code was not touched


def test_logging_out_ends_the_session_itself(daemon: Daemon) -> None:
    visitor = log_in(daemon)
    assert visitor.cookie is not None
    name = visitor.cookie.partition("=")[0]
    answer = visitor.post("/logout", None, Cookie=f"{visitor.cookie}; {name}=planted")
    assert (answer.status, answer.headers["location"]) == (303, "/login")
    assert re.search(r"max-age=0", answer.headers["set-cookie"], re.IGNORECASE)
    assert visitor.get("/").status == 401


@pytest.mark.parametrize("path", ["/", "/tasks/some", "/tasks/some/cancel"])
def test_without_a_session_the_page_says_how_to_get_one(stranger: Visitor, path: str) -> None:
    answer = stranger.get(path)
    assert answer.status == 401
    assert answer.headers["content-type"].startswith("text/html")
    assert "www-authenticate" not in {name.lower() for name in answer.headers}
    assert "claudomator open" in text_of(answer)
    assert f'<a href="{path}">Continue</a>' in answer.body.decode()


def test_the_way_on_leads_nowhere_else(stranger: Visitor) -> None:
    page = stranger.get("/tasks/%22%3E%3Cscript%3Ealert(1)%3C/script%3E").body.decode()
    assert "<script>" not in page
    assert '<a href="/?state=FAILED&amp;q=%22x">' in stranger.get("/?state=FAILED&q=%22x").body.decode()
    assert stranger.get("//evil.example/").status in (401, 404)
    assert "//evil.example" not in stranger.get("//evil.example/").body.decode()


LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@pytest.mark.parametrize("name", LOOPBACK)
def test_a_session_is_nothing_on_a_name_that_other_servers_have(daemon: Daemon, operator: Visitor, name: str) -> None:
    """A cookie is sent to every port of a host, so whoever serves one there could replay it."""
    host = f"{name}:{daemon.address.rpartition(':')[2]}"
    for path in ("/", "/v1/events"):
        assert operator.get(path, Host=host).status == 401
    assert operator.post("/logout", None, Host=host, Origin=f"http://{host}").status == 401
    assert operator.get("/").status == 200


@pytest.mark.parametrize("name", LOOPBACK)
def test_nobody_logs_in_there_and_a_good_code_leads_to_where_one_can(
    daemon: Daemon, stranger: Visitor, name: str
) -> None:
    host = f"{name}:{daemon.address.rpartition(':')[2]}"
    made = daemon.ask("POST", "/v1/login-codes", headers={"Host": host}).json()
    assert made["url"] == f"http://{daemon.page_host}{made['path']}"
    refused = stranger.post("/login", {"code": made["code"]}, Host=host, Origin=f"http://{host}")
    assert refused.status == 403
    assert "set-cookie" not in refused.headers
    onward = stranger.get(made["path"], Host=host)
    assert (onward.status, onward.headers["location"]) == (303, made["url"])
    assert stranger.post("/login", {"code": made["code"]}).status == 303  # the code was not touched


def test_who_has_no_code_is_not_told_the_name_of_the_pages(daemon: Daemon, stranger: Visitor) -> None:
    name = daemon.page_host.partition(":")[0]
    for path in ("/", "/login", "/login?code=guess", "/v1/status", "/livez", "/nowhere", "/static/app.js"):
        for host in (daemon.address, "evil.example"):
            answer = stranger.get(path, Host=host)
            assert name not in f"{answer.headers}{answer.body.decode()}"


def test_a_proxy_is_a_way_in_of_its_own(tmp_path: Path) -> None:
    with running(PreparedService(), tmp_path / "state", allowed_hosts=("box.example",)) as daemon:
        headers = {"Host": "box.example", "X-Forwarded-Proto": "https"}
        made = daemon.ask("POST", "/v1/login-codes", headers=headers).json()
        assert made["url"] == f"https://box.example{made['path']}"
        visitor = Visitor(daemon)
        answer = visitor.post("/login", {"code": made["code"]}, Host="box.example", Origin="https://box.example")
        assert answer.status == 303
        visitor.cookie = answer.headers["set-cookie"].partition(";")[0]
        assert visitor.get("/", Host="box.example").status == 200
        assert visitor.get("/").status == 401  # it counts where it began


@pytest.mark.parametrize("path", ["/nope", "/task/1", "/tasksx", "/status", "/v2", "/login/again"])
def test_an_unknown_address_is_not_found_for_who_is_logged_in_and_tells_nothing_to_others(
    operator: Visitor, stranger: Visitor, path: str
) -> None:
    answer = operator.get(path)
    assert answer.status == 404
    assert "Log in" not in text_of(answer)
    assert "Open the overview" in text_of(answer)
    assert stranger.get(path).status == 401


@pytest.mark.parametrize("path", ["/v1/tasks", "/metrics", "/openapi.json", "/v1/nope", "/a2a"])
def test_a_session_lets_nobody_into_what_is_for_programs(operator: Visitor, path: str) -> None:
    assert operator.get(path).status == 401
