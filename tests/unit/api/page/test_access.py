"""What a session is good for, and what another page can do with it: nothing."""

import pytest

from claudomator_py.domain.lifecycle import Running
from tests.fakes.daemon import Daemon
from tests.fakes.prepared import PreparedService
from tests.unit.api.page.conftest import Visitor, text_of

LINK: dict[str, str | None] = {
    "Sec_Fetch_Mode": "navigate",
    "Sec_Fetch_Dest": "document",
}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/status"),
        ("GET", "/v1/tasks"),
        ("GET", "/openapi.json"),
        ("GET", "/metrics"),
        ("POST", "/v1/tasks"),
        ("POST", "/v1/tasks/some/cancel"),
        ("POST", "/v1/runs/some/log"),
        ("POST", "/v1/login-codes"),
    ],
)
def test_a_session_is_no_token(operator: Visitor, prepared: PreparedService, method: str, path: str) -> None:
    answer = operator.get(path) if method == "GET" else operator.post(path, {"name": "evil"})
    assert answer.status == 401
    assert not prepared.task_ids()


def test_a_session_reads_the_output_of_runs(operator: Visitor, stranger: Visitor, prepared: PreparedService) -> None:
    task = prepared.add("it", Running())
    run = prepared.add_run(task, stdout=b"hello")
    assert operator.get(f"/v1/runs/{run}/log").body == b"hello"
    assert stranger.get(f"/v1/runs/{run}/log").status == 401


def test_the_token_opens_the_pages_too(daemon: Daemon) -> None:
    assert daemon.ask("GET", "/", headers={"Accept": "text/html"}).status == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_link_on_another_page_arrives_without_the_session(
    operator: Visitor, prepared: PreparedService, site: str
) -> None:
    prepared.add("secret-name")
    answer = operator.get("/", Sec_Fetch_Site=site, **LINK)
    assert answer.status == 401
    assert "Continue" in text_of(answer)
    assert "secret-name" not in answer.body.decode()


@pytest.mark.parametrize(
    "how",
    [
        {"Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "iframe"},
        {"Sec_Fetch_Mode": "no-cors", "Sec_Fetch_Dest": "image"},
        {"Sec_Fetch_Mode": "cors", "Sec_Fetch_Dest": "empty"},
        {"Sec_Fetch_Mode": None, "Sec_Fetch_Dest": None},
        {**LINK, "Origin": "http://localhost:1"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/v1/events", "/static/app.js", "/login"])
def test_another_page_can_open_ours_only_as_a_whole(operator: Visitor, path: str, how: dict[str, str | None]) -> None:
    assert operator.get(path, Sec_Fetch_Site="same-site", **how).status == 403


def test_a_link_leads_to_pages_only(operator: Visitor) -> None:
    assert operator.get("/v1/events", Sec_Fetch_Site="cross-site", **LINK).status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": None, "Sec_Fetch_Site": None},
        {"Origin": None, "Sec_Fetch_Site": "none"},
        {"Origin": None, "Sec_Fetch_Site": "same-site"},
        {"Origin": "null", "Sec_Fetch_Site": None},
        {"Origin": "http://localhost:1", "Sec_Fetch_Site": "same-site"},
        {"Origin": "http://evil.example", "Sec_Fetch_Site": "same-origin"},
    ],
)
def test_a_change_must_come_from_our_own_page(
    operator: Visitor, prepared: PreparedService, headers: dict[str, str | None]
) -> None:
    task = prepared.add("it")
    prepared.add_agent("claude")
    prepared.limit("claude")
    for path in (f"/tasks/{task}/cancel", "/agents/claude/release"):
        assert operator.post(path, {"version": 1}, **headers).status == 403
    for path in ("/specialists", "/specialists/plumber/remove", "/routing", "/logout"):
        assert operator.post(path, {"text": "id: plumber"}, **headers).status == 403
    assert prepared.task(task).state == "QUEUED"
    assert prepared.agents()[0].limited
    assert operator.get("/").status == 200


@pytest.mark.parametrize(
    "headers", [{"Origin": None}, {"Sec_Fetch_Site": None}, {}], ids=["no-origin", "no-sec-fetch", "both"]
)
def test_a_change_from_our_own_page_is_made(
    operator: Visitor, prepared: PreparedService, headers: dict[str, str | None]
) -> None:
    task = prepared.add("it")
    assert operator.post(f"/tasks/{task}/cancel", {"version": 1}, **headers).status == 303
    assert prepared.task(task).state == "CANCELLED"


def test_a_change_without_a_session_is_refused(stranger: Visitor, prepared: PreparedService) -> None:
    task = prepared.add("it")
    assert stranger.post(f"/tasks/{task}/cancel", {"version": 1}).status == 401
    assert prepared.task(task).state == "QUEUED"


def test_a_cookie_of_another_program_does_not_hide_ours(daemon: Daemon, operator: Visitor) -> None:
    assert operator.cookie is not None
    name = operator.cookie.partition("=")[0]
    assert Visitor(daemon, f"{name}=planted; {operator.cookie}").get("/").status == 200
    assert Visitor(daemon, f"{operator.cookie}; {name}=planted").get("/").status == 200
    assert Visitor(daemon, f"{name}=planted").get("/").status == 401


def test_pages_say_what_they_may_load(operator: Visitor, stranger: Visitor, prepared: PreparedService) -> None:
    task = prepared.add("it")
    pages = [operator.get("/"), operator.get(f"/tasks/{task}"), stranger.get("/"), stranger.get("/login")]
    pages.append(operator.get("/tasks/nowhere"))
    for answer in pages:
        policy = {part.strip() for part in answer.headers["content-security-policy"].split(";")}
        assert policy == {
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        }
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "same-origin"


def test_a_refusal_is_a_page_for_browsers_and_a_problem_for_programs(operator: Visitor, daemon: Daemon) -> None:
    page = operator.get("/tasks/nowhere")
    assert page.status == 404
    assert "There is no task" in text_of(page)
    assert "There are no tasks yet" in text_of(page)  # the remedy
    assert 'href="/report"' in page.body.decode(), "it leads on"
    problem = daemon.ask("GET", "/v1/tasks/nowhere", headers={"Accept": "text/html"})
    assert (problem.status, problem.json()["code"]) == (404, "not_found")
