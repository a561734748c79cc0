"""The browsers that are logged in: who sees them, and that ending one ends all that it had."""

import http.client
from pathlib import Path

import pytest

from claudomator_py.resources.access import TokenRequest
from tests.fakes.daemon import Daemon, running
from tests.fakes.prepared import PreparedService
from tests.patience import PATIENCE_S
from tests.unit.api.page.conftest import Visitor, log_in, text_of

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:131.0) Gecko/20100101 Firefox/131.0"


@pytest.fixture(autouse=True)
def _nobody_else(daemon: Daemon) -> None:
    daemon.ask("DELETE", "/v1/sessions")


def test_each_browser_is_listed(daemon: Daemon) -> None:
    code = daemon.ask("POST", "/v1/login-codes").json()["code"]
    assert Visitor(daemon).post("/login", {"code": code}, User_Agent=FIREFOX).status == 303
    operator = log_in(daemon)
    listed = daemon.ask("GET", "/v1/sessions").json()["items"]
    assert {(entry["browser"], entry["principal"], entry["host"], entry["current"]) for entry in listed} == {
        ("Firefox 131 on Linux", "operator", daemon.page_host, False),
        ("unknown", "operator", daemon.page_host, False),
    }
    page = operator.get("/sessions")
    assert page.status == 200
    assert "Firefox 131 on Linux" in text_of(page)
    assert "this one" in text_of(page)


def test_one_is_logged_out_and_others_stay(daemon: Daemon) -> None:
    mine, yours = log_in(daemon), log_in(daemon)
    last = daemon.ask("GET", "/v1/sessions").json()["items"][0]
    assert mine.get("/").status == 200
    results = {item["id"] for item in daemon.ask("GET", "/v1/sessions").json()["items"]}
    (other,) = results - {daemon.ask("GET", "/v1/sessions").json()["items"][0]["id"]}
    assert mine.post(f"/sessions/{other}/end").headers["location"] == "/sessions"
    assert (mine.get("/").status, yours.get("/").status) == (200, 401)
    assert last["id"] in results
    (own,) = daemon.ask("GET", "/v1/sessions").json()["items"]
    answer = mine.post(f"/sessions/{own['id']}/end")
    assert answer.headers["location"] == "/login"
    assert "max-age=0" in answer.headers["set-cookie"].lower()
    assert mine.get("/").status == 401


def test_log_out_everywhere(daemon: Daemon) -> None:
    visitors = [log_in(daemon) for _ in range(3)]
    assert visitors[0].post("/sessions/end").headers["location"] == "/login"
    assert [visitor.get("/").status for visitor in visitors] == [401, 401, 401]
    assert daemon.ask("GET", "/v1/sessions").json()["items"] == []


def test_by_the_api(daemon: Daemon) -> None:
    visitors = [log_in(daemon) for _ in range(3)]
    first = daemon.ask("GET", "/v1/sessions").json()["items"][0]["id"]
    assert daemon.ask("DELETE", f"/v1/sessions/{first}").json()["id"] == first
    assert daemon.ask("DELETE", f"/v1/sessions/{first}").status == 404
    assert len(daemon.ask("DELETE", "/v1/sessions").json()["items"]) == 2
    assert [visitor.get("/").status for visitor in visitors] == [401, 401, 401]
    assert visitors[0].get("/v1/sessions").status == 401  # a cookie is no token


def test_another_page_logs_nobody_out(operator: Visitor) -> None:
    for path in ("/sessions/end", "/sessions/any/end"):
        assert operator.post(path, None, Origin="http://localhost:1", Sec_Fetch_Site="same-site").status == 403
    assert operator.get("/").status == 200


def test_who_has_another_token_sees_its_own_only(tmp_path: Path) -> None:
    prepared = PreparedService()
    made = prepared.world.tokens.create(TokenRequest(name="viewer", role="read"))
    sent: dict[str, str | None] = {"Authorization": f"Bearer {made.token}"}
    with running(prepared, tmp_path / "state") as daemon:
        operator = log_in(daemon)
        code = daemon.ask("POST", "/v1/login-codes", headers=sent).json()["code"]
        answer = Visitor(daemon).post("/login", {"code": code})
        viewer = Visitor(daemon, answer.headers["set-cookie"].partition(";")[0])
        (own,) = daemon.ask("GET", "/v1/sessions", headers=sent).json()["items"]
        (other,) = {item["id"] for item in daemon.ask("GET", "/v1/sessions").json()["items"]} - {own["id"]}
        assert own["principal"] == "viewer"
        assert daemon.ask("DELETE", f"/v1/sessions/{other}", headers=sent).status == 404
        assert viewer.post("/sessions/end").status == 303
        assert (viewer.get("/").status, operator.get("/").status) == (401, 200)


def test_the_streams_of_an_ended_session_end(daemon: Daemon, operator: Visitor) -> None:
    connection = http.client.HTTPConnection(daemon.address, timeout=PATIENCE_S)
    headers = {"Host": daemon.page_host, "Cookie": operator.cookie or "", "Accept": "text/event-stream"}
    connection.request("GET", "/v1/events", headers=headers)
    stream = connection.getresponse()
    assert stream.read1().startswith(b"retry:")
    assert len(daemon.ask("DELETE", "/v1/sessions").json()["items"]) == 1
    assert stream.read() == b""  # and the connection is whole
    connection.close()
