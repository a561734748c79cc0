"""Every refusal is problem+json, and says what to do next."""

import json
import logging
from typing import Any

import pytest

from claudomator_py.domain.lifecycle import Completed, Queued, Running
from claudomator_py.resources.agents.service import Agents
from claudomator_py.resources.tasks import service as task_service
from claudomator_py.store import pruning
from tests.fakes.daemon import Answer, Daemon
from tests.fakes.prepared import PreparedService


def problem(answer: Answer) -> dict[str, Any]:
    assert answer.headers["content-type"] == "application/problem+json"
    payload: dict[str, Any] = answer.json()
    assert payload["status"] == answer.status
    assert payload["type"] == f"urn:problem-type:claudomator:{payload['code']}"
    assert payload["title"]
    assert payload["detail"]
    assert payload["remedy"]
    return payload


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "no_such_path"),
        ("GET", "/v1/tasks/", 404, "no_such_path"),
        ("DELETE", "/v1/tasks", 405, "method_not_allowed"),
        ("GET", "/v1/tasks/missing", 404, "not_found"),
        ("GET", "/v1/runs/missing", 404, "not_found"),
        ("GET", "/v1/runs/missing/log", 404, "not_found"),
        ("POST", "/v1/agents/missing/release", 404, "not_found"),
        ("GET", "/v1/tasks?limit=0", 422, "invalid"),
        ("GET", "/v1/tasks?limit=201", 422, "invalid"),
        ("GET", "/v1/tasks?limit=many", 422, "invalid"),
        ("GET", "/v1/tasks?stat=FAILED", 422, "invalid"),
        ("GET", "/v1/tasks?state=BROKEN", 422, "invalid"),
        ("GET", "/v1/tasks?cursor=forged", 400, "bad_cursor"),
        ("GET", "/v1/tasks?limit=5&limit=6", 422, "invalid"),
        ("GET", "/v1/status?verbose=1", 422, "invalid"),
        ("POST", "/v1/tasks/any/cancel?force", 422, "invalid"),
        ("GET", "/v1/runs/any/log?offset=-1", 422, "invalid"),
        ("GET", "/v1/runs/any/log?stream=both", 422, "invalid"),
    ],
)
def test_refusals(daemon: Daemon, method: str, path: str, status: int, code: str) -> None:
    answer = daemon.ask(method, path)
    assert (answer.status, problem(answer)["code"]) == (status, code)


def test_a_wrong_field_is_named(daemon: Daemon) -> None:
    payload = problem(daemon.ask("GET", "/v1/tasks?limit=0"))
    assert payload["problems"][0]["field"] == "limit"
    assert "limit" in payload["detail"]


def test_a_task_with_faults_is_told_all_of_them(daemon: Daemon, prepared: PreparedService) -> None:
    body = {"name": "a", "instructons": "x", "priority": "highest"}
    record = problem(daemon.ask("POST", "/v1/tasks", json_body=body))
    assert {problem["field"] for problem in record["problems"]} == {"instructons", "instructions", "priority"}
    assert any("instructions" in (problem["remedy"] or "") for problem in record["problems"])
    assert not prepared.task_ids()


def test_a_refusal_of_the_desk_keeps_its_problems(daemon: Daemon) -> None:
    body = {"name": "a", "instructions": "x", "working_dir": "/forbidden"}
    payload = problem(daemon.ask("POST", "/v1/tasks", json_body=body))
    assert (payload["status"], payload["problems"][0]["field"]) == (422, "working_dir")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"", 400),
        (b"[1]", 422),
        (b'{"name": "a", "name": "b", "instructions": "x"}', 400),
        (b'{"name": "a", "instructions": NaN}', 400),
        (b'{"name": "a", "instructions": "\xff"}', 400),
        (b"[" * 100_000, 400),
        (b'{"name": ' + b"9" * 10_000 + b"}", 400),
        (json.dumps({"name": "a", "instructions": "\ud800"}).encode(), 422),
        (b'{"instructions": "no name"}', 422),
    ],
)
def test_a_body_that_is_no_task_is_refused(daemon: Daemon, prepared: PreparedService, body: bytes, status: int) -> None:
    answer = daemon.ask("POST", "/v1/tasks", body=body, headers={"Content-Type": "application/json"})
    assert answer.status == status
    problem(answer)
    assert not prepared.task_ids()


@pytest.mark.parametrize("media_type", [None, "text/plain", "application/x-www-form-urlencoded", "application/yaml"])
def test_only_json_is_taken(daemon: Daemon, media_type: str | None) -> None:
    body = b'{"name": "a", "instructions": "x"}'
    answer = daemon.ask("POST", "/v1/tasks", body=body, headers={"Content-Type": media_type})
    assert (answer.status, problem(answer)["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"", "The body is empty."),
        (b'{"name": ', "The body is not JSON at line 1, column 10: expecting value."),
        (
            b"{\n  name: 1}",
            "The body is not JSON at line 2, column 3: expecting property name enclosed in double quotes.",
        ),
        (b'{"name": "\xff"}', "The body is not JSON: byte 10 is not UTF-8."),
    ],
)
def test_what_is_not_json_is_told_with_its_place(daemon: Daemon, body: bytes, detail: str) -> None:
    answer = daemon.ask("POST", "/v1/tasks", body=body, headers={"Content-Type": "application/json"})
    assert (answer.status, problem(answer)["detail"]) == (400, detail)


def test_a_number_of_too_many_digits_is_one_of_digits(daemon: Daemon) -> None:
    answer = daemon.ask("GET", "/v1/events?after=99999999999999999999")
    assert problem(answer)["detail"] == "after: has 20 digits; write at most 19"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
def test_json_is_utf_8_without_a_mark(daemon: Daemon, prepared: PreparedService, encoding: str) -> None:
    body = '{"name": "a", "instructions": "x"}'.encode(encoding)
    answer = daemon.ask("POST", "/v1/tasks", body=body, headers={"Content-Type": "application/json"})
    assert (answer.status, problem(answer)["code"]) == (400, "bad_json")
    assert not prepared.task_ids()


@pytest.mark.parametrize(
    ("parameters", "status"),
    [
        ("; charset=utf-8", 201),
        (';Charset="UTF-8"', 201),
        ("; profile=x", 201),
        ("; charset=utf-16", 415),
        ("; charset=latin-1", 415),
        ("; charset=", 415),
    ],
)
def test_a_charset_is_utf_8(daemon: Daemon, parameters: str, status: int) -> None:
    body = '{"name": "a", "instructions": "ü"}'.encode()
    answer = daemon.ask("POST", "/v1/tasks", body=body, headers={"Content-Type": f"application/json{parameters}"})
    assert answer.status == status
    if status == 415:
        assert problem(answer)["code"] == "unsupported_media_type"


def test_an_ambiguous_prefix_is_a_conflict(daemon: Daemon, prepared: PreparedService) -> None:
    name, two = prepared.add("one"), prepared.add("two")
    shared = next(name[:length] for length in range(len(name), 0, -1) if two.startswith(name[:length]))
    answer = daemon.ask("GET", f"/v1/tasks/{shared}")
    assert (answer.status, problem(answer)["code"]) == (409, "ambiguous")
    assert daemon.ask("GET", f"/v1/tasks/{name[: len(shared) + 1]}").json()["name"] == "one"


@pytest.mark.parametrize(("state", "body"), [(Queued(), {}), (Running(), {}), (Completed(), {"resume": True})])
def test_a_restart_that_is_not_possible_says_why(
    daemon: Daemon, prepared: PreparedService, state: Queued | Running | Completed, body: dict[str, bool]
) -> None:
    prepared.add("it", state)
    answer = daemon.ask("POST", "/v1/tasks/it/restart", json_body=body)
    assert answer.status == 409
    problem(answer)


def test_an_unknown_key_in_a_restart_is_refused(daemon: Daemon, prepared: PreparedService) -> None:
    prepared.add("it", Completed())
    payload = problem(daemon.ask("POST", "/v1/tasks/it/restart", json_body={"agnt": "codex"}))
    assert payload["problems"][0]["field"] == "agnt"


def test_a_fault_of_ours_tells_nothing_of_the_inside(
    daemon: Daemon, prepared: PreparedService, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the secret is 4711")

    monkeypatch.setattr(Agents, "_views", fail)
    with caplog.at_level(logging.ERROR):
        answer = daemon.ask("GET", "/v1/agents")
    assert (answer.status, problem(answer)["code"]) == (500, "internal")
    assert b"4711" not in answer.body
    assert b"RuntimeError" not in answer.body
    assert "the secret is 4711" in caplog.text  # the log of the daemon has it
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert daemon.ask("GET", "/livez").status == 200


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/v1/tasks", "GET, HEAD, POST"),
        ("/v1/tasks/any", "GET, HEAD, PUT"),
        ("/v1/tasks/any/cancel", "POST"),
        ("/livez", "GET, HEAD"),
        ("/login", "GET, HEAD, POST"),
    ],
)
def test_a_refused_method_is_told_all_that_the_path_takes(daemon: Daemon, path: str, allowed: str) -> None:
    answer = daemon.ask("PATCH", path, headers={"Sec-Fetch-Site": "same-origin"})
    assert (answer.status, answer.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize("path", ["/livez", "/v1/tasks", "/v1/status", "/", "/static/app.css"])
def test_a_head_is_that_of_the_answer_to_a_get(daemon: Daemon, path: str) -> None:
    whole, head = (daemon.ask(method, path) for method in ("GET", "HEAD"))
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-type"] == whole.headers["content-type"]
    assert head.headers["content-length"] == whole.headers["content-length"]


def test_the_head_of_a_stream_comes_to_an_end(daemon: Daemon) -> None:
    answer = daemon.ask("HEAD", "/v1/events", headers={"Accept": "text/event-stream"})
    assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")


def test_the_head_of_a_refusal_is_one(daemon: Daemon) -> None:
    for path, status in (("/v1/tasks/nowhere", 404), ("/v1/tasks/any/cancel", 405)):
        answer = daemon.ask("HEAD", path)
        assert (answer.status, answer.body) == (status, b"")


def test_a_task_that_is_removed_before_it_is_answered_is_told_as_it_was_changed(
    daemon: Daemon, prepared: PreparedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = prepared.add("it")

    def removed(point: str) -> None:
        if point == "cancel-committed":
            prepared.database.write(lambda connection: pruning.tasks(connection, [task_id], prepared.world.now_ms + 1))

    monkeypatch.setattr(task_service, "crashpoint", removed)
    answer = daemon.ask("POST", "/v1/tasks/it/cancel")
    assert (answer.status, answer.json()["id"], answer.json()["state"]) == (202, task_id, "CANCELLED")
    assert prepared.task_ids() == []
