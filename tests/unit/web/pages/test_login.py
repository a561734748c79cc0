"""How a browser gets in, and out again."""

import re

import pytest

from claudomator_py.core.units import HOUR_MS, SECOND_MS
from claudomator_py.web.login_codes import MOST, LoginCodes
from claudomator_py.web.sessions import Sessions
from tests.fakes.daemon import Daemon
from tests.unit.web.pages.conftest import Visitor, hidden, log_in, text_of

TOKEN = "x" * 32
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
    issued = [codes.issue("operator")[0] for _ in range(MOST + 1)]
    assert not codes.redeem(issued[0])
    assert all(codes.redeem(code) for code in issued[1:])


def test_a_session_outlives_a_restart_and_ends_with_the_token() -> None:
    session = Sessions(TOKEN, Clock()).begin("operator")
    assert Sessions(TOKEN, Clock()).holder(session)
    assert not Sessions("y" * 32, Clock()).holder(session)


def test_a_session_lasts_twelve_hours() -> None:
    clock = Clock()
    sessions = Sessions(TOKEN, clock)
    session = sessions.begin("operator")
    clock.now = NOW + 12 * HOUR_MS - 1
    assert sessions.holder(session)
    clock.now += 1
    assert not sessions.holder(session)


def test_a_session_that_was_changed_holds_no_more() -> None:
    sessions = Sessions(TOKEN, Clock())
    expires, nonce, whose, signature = sessions.begin("operator").split(".")
    for forged in (
        f"{int(expires) + 1}.{nonce}.{whose}.{signature}",
        f"{expires}.{nonce}.admin.{signature}",
        f"{expires}.{nonce}x.{whose}.{signature}",
        f"{expires}.{nonce}.{whose}.{signature[:-1]}",
        f"{expires}.{nonce}.{whose}.",
        "",
        ".",
        "..",
        "ü..",
        "9" * 5_000,
    ):
        assert not sessions.holder(forged)


def test_a_session_that_was_ended_holds_no_more_but_others_do() -> None:
    sessions = Sessions(TOKEN, Clock())
    mine, yours = sessions.begin("operator"), sessions.begin("operator")
    sessions.end(mine)
    sessions.end("no session at all")
    assert not sessions.holder(mine)
    assert sessions.holder(yours)


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
    assert {"httponly", "samesite=strict", "path=/", f"max-age={12 * 60 * 60}"} <= attributes
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
    assert "not good any more" in text_of(again)
    assert "claudomator open" in text_of(again)


def test_behind_tls_the_cookie_is_secure(daemon: Daemon, stranger: Visitor) -> None:
    code = daemon.ask("POST", "/v1/login-codes").json()["code"]
    answer = stranger.post("/login", {"code": code}, Origin=daemon.url.replace("http:", "https:"))
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
