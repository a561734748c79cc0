"""What comes over the wire is what the OpenAPI document says."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from claudomator_py.domain.errors import Problem
from claudomator_py.domain.lifecycle import Completed, Failed, InputKind, NeedsInput, Running
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Provenance, Reason, Tokens
from claudomator_py.domain.run import CheckResult
from claudomator_py.domain.units import HOUR_MS
from tests.fakes.cards import card
from tests.fakes.daemon import Answer, Daemon, running
from tests.fakes.prepared import START_MS, PreparedService

SUCCESS = Outcome(
    status=OutcomeStatus.SUCCEEDED, text="Done.", tokens=Tokens(input=10, output=2), cost_usd=0.01, conversation_id="c"
)
LIMITED = Outcome(
    status=OutcomeStatus.LIMITED,
    reason=Reason.RATE_LIMITED,
    reset_at=START_MS + 400_000,
    provenance=Provenance.REPORTED,
    limit="five_hour",
)


PASSED = CheckResult(
    status="passed",
    commands=(("make", "test"),),
    step=0,
    exit_code=0,
    started_ms=START_MS,
    ended_ms=START_MS + 3_000,
)


@pytest.fixture(scope="module")
def prepared() -> PreparedService:
    """One with something of everything."""
    prepared = PreparedService()
    done = prepared.add("done", Completed(), tags=("shop",), check=("make test",))
    prepared.add_run(done, outcome=LIMITED)
    prepared.add_run(done, "codex", outcome=SUCCESS, stdout=b"hello", check=PASSED)
    prepared.add("asks", NeedsInput(InputKind.QUESTION), depends_on=("done",))
    prepared.add("broken", Failed(Reason.TIMEOUT), source="file")
    prepared.add_run(prepared.add("running", Running()))
    prepared.add_agent("claude")
    prepared.limit("claude", START_MS + HOUR_MS)
    prepared.add_agent("codex", problem="codex is not on PATH; install it")
    prepared.refuse_file("a.yaml", Problem(line=3, message="is no task"))
    return prepared


@pytest.fixture(scope="module")
def daemon(prepared: PreparedService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(prepared, tmp_path_factory.mktemp("state")) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def document(daemon: Daemon) -> dict[str, Any]:
    return dict(daemon.ask("GET", "/openapi.json").json())


def _check(document: dict[str, Any], method: str, path: str, answer: Answer) -> None:
    """The answer is one that the document announces, of the shape that it gives."""
    announced = document["paths"][path][method]["responses"][str(answer.status)]
    media_type = answer.headers["content-type"].partition(";")[0]
    schema = announced["content"][media_type]["schema"]
    whole = {"$ref": schema["$ref"], "components": document["components"]} if "$ref" in schema else schema
    if media_type.endswith("json"):
        Draft202012Validator(whole, format_checker=FormatChecker()).validate(answer.json())


REQUESTS = [
    ("get", "/v1/tasks", "/v1/tasks?limit=2"),
    ("get", "/v1/tasks/{ref}", "/v1/tasks/done"),
    ("get", "/v1/tasks/{ref}", "/v1/tasks/asks"),
    ("get", "/v1/tasks/{ref}/why", "/v1/tasks/done/why"),
    ("get", "/v1/tasks/{ref}/why", "/v1/tasks/asks/why"),
    ("get", "/v1/tasks/{ref}/runs", "/v1/tasks/done/runs"),
    ("get", "/v1/agents", "/v1/agents"),
    ("get", "/v1/status", "/v1/status"),
    ("get", "/v1/inbox", "/v1/inbox"),
    ("get", "/livez", "/livez"),
    ("get", "/readyz", "/readyz"),
    ("get", "/v1/tasks/{ref}", "/v1/tasks/missing"),
    ("get", "/v1/tasks", "/v1/tasks?limit=0"),
    ("get", "/v1/runs/{run_id}", "/v1/runs/missing"),
    ("get", "/v1/runs/{run_id}/log", "/v1/runs/missing/log"),
    ("post", "/v1/tasks/{ref}/cancel", "/v1/tasks/done/cancel"),
    ("post", "/v1/tasks/{ref}/restart", "/v1/tasks/running/restart"),
    ("post", "/v1/agents/{name}/hold", "/v1/agents/claude/hold"),
    ("post", "/v1/agents/{name}/hold", "/v1/agents/missing/hold"),
    ("post", "/v1/agents/{name}/release", "/v1/agents/claude/release"),
    ("post", "/v1/agents/{name}/release", "/v1/agents/missing/release"),
]


@pytest.mark.parametrize(("method", "path", "url"), REQUESTS)
def test_answers_have_the_published_shape(
    daemon: Daemon, document: dict[str, Any], method: str, path: str, url: str
) -> None:
    _check(document, method, path, daemon.ask(method.upper(), url))


def test_runs_and_logs_have_the_published_shape(
    daemon: Daemon, prepared: PreparedService, document: dict[str, Any]
) -> None:
    for run in prepared.service.runs("done"):
        _check(document, "get", "/v1/runs/{run_id}", daemon.ask("GET", f"/v1/runs/{run.id}"))
        log = daemon.ask("GET", f"/v1/runs/{run.id}/log")
        _check(document, "get", "/v1/runs/{run_id}/log", log)
        headers = document["paths"]["/v1/runs/{run_id}/log"]["get"]["responses"]["200"]["headers"]
        assert {name.lower() for name in headers} <= {name.lower() for name in log.headers}


def test_changes_have_the_published_shape(daemon: Daemon, document: dict[str, Any]) -> None:
    body = {"name": "new", "instructions": "Do it.", "timeout": "45m", "agent": {"tier": "fast"}, "x-a": [1]}
    schema = document["paths"]["/v1/tasks"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    Draft202012Validator({**schema, "components": document["components"]}).validate(body)
    for answer in (daemon.ask("POST", "/v1/tasks", json_body=body), daemon.ask("POST", "/v1/tasks", json_body={})):
        _check(document, "post", "/v1/tasks", answer)
    _check(document, "post", "/v1/tasks/{ref}/cancel", daemon.ask("POST", "/v1/tasks/new/cancel"))
    restarted = daemon.ask("POST", "/v1/tasks/new/restart", json_body={"tier": "powerful"})
    assert restarted.status == 202
    _check(document, "post", "/v1/tasks/{ref}/restart", restarted)


def test_schedules_have_the_published_shape(daemon: Daemon, document: dict[str, Any]) -> None:
    body = {"name": "nightly", "instructions": "Do it.", "schedule": "0 3 * * *", "timezone": "Europe/Berlin"}
    name = "/v1/schedules/{name}"
    answers = [
        ("post", "/v1/schedules", daemon.ask("POST", "/v1/schedules", json_body=body), 201),
        ("post", "/v1/schedules", daemon.ask("POST", "/v1/schedules", json_body={**body, "schedule": "x"}), 422),
        ("post", "/v1/schedules", daemon.ask("POST", "/v1/schedules", json_body={**body, "tags": ["x"]}), 409),
        ("get", "/v1/schedules", daemon.ask("GET", "/v1/schedules"), 200),
        ("get", name, daemon.ask("GET", "/v1/schedules/nightly"), 200),
        ("get", name, daemon.ask("GET", "/v1/schedules/missing"), 404),
        ("post", f"{name}/pause", daemon.ask("POST", "/v1/schedules/nightly/pause"), 200),
        ("post", f"{name}/resume", daemon.ask("POST", "/v1/schedules/nightly/resume"), 200),
        ("post", f"{name}/run", daemon.ask("POST", "/v1/schedules/nightly/run"), 201),
        ("get", name, daemon.ask("GET", "/v1/schedules/nightly"), 200),
        ("delete", name, daemon.ask("DELETE", "/v1/schedules/nightly"), 204),
        ("delete", name, daemon.ask("DELETE", "/v1/schedules/nightly"), 404),
    ]
    for method, path, answer, status in answers:
        assert answer.status == status, (method, path)
        if status != 204:
            _check(document, method, path, answer)


def test_channels_have_the_published_shape(daemon: Daemon, document: dict[str, Any]) -> None:
    every, name = "/v1/channels", "/v1/channels/{channel}"
    written = f"{name}/messages"
    posted = {"content": "@drain hello", "attachments": [{"id": "a", "name": "x"}]}
    assert daemon.ask("POST", "/v1/specialists", json_body=card("drain").document).status == 201
    answers = [
        ("post", every, daemon.ask("POST", every, json_body={"name": "pub", "participants": ["drain"]}), 201),
        ("post", every, daemon.ask("POST", every, json_body={"name": "pub"}), 409),
        ("post", every, daemon.ask("POST", every, json_body={"name": "bar", "primary": "nobody"}), 422),
        ("post", every, daemon.ask("POST", every, json_body={"name": "bar", "settings": {"primary": "often"}}), 422),
        ("get", every, daemon.ask("GET", f"{every}?limit=1"), 200),
        ("get", every, daemon.ask("GET", f"{every}?cursor=x"), 400),
        ("get", name, daemon.ask("GET", f"{every}/pub"), 200),
        ("get", name, daemon.ask("GET", f"{every}/pub", headers={"If-None-Match": '"1"'}), 304),
        ("get", name, daemon.ask("GET", f"{every}/missing"), 404),
        ("put", f"{name}/settings", daemon.ask("PUT", f"{every}/pub/settings", json_body={"primary": "drain"}), 200),
        (
            "put",
            f"{name}/settings",
            daemon.ask("PUT", f"{every}/pub/settings", json_body={}, headers={"If-Match": '"1"'}),
            412,
        ),
        ("post", written, daemon.ask("POST", f"{every}/pub/messages", json_body=posted), 201),
        ("post", written, daemon.ask("POST", f"{every}/pub/messages", json_body={**posted, "reply_to": 99}), 422),
        ("post", written, daemon.ask("POST", f"{every}/missing/messages", json_body=posted), 404),
        ("get", written, daemon.ask("GET", f"{every}/pub/messages"), 200),
        ("get", f"{written}/{{message}}", daemon.ask("GET", f"{every}/pub/messages/1"), 200),
        ("get", f"{written}/{{message}}", daemon.ask("GET", f"{every}/pub/messages/99"), 404),
        (
            "put",
            f"{written}/{{message}}/attachments/{{attachment}}",
            daemon.ask("PUT", f"{every}/pub/messages/1/attachments/a", json_body={"state": "processed", "text": "t"}),
            200,
        ),
        (
            "put",
            f"{written}/{{message}}/verdict",
            daemon.ask("PUT", f"{every}/pub/messages/1/verdict", json_body={"verdict": "right"}),
            200,
        ),
        ("get", f"{name}/stats", daemon.ask("GET", f"{every}/pub/stats"), 200),
        (
            "post",
            f"{name}/participants/{{participant}}/mute",
            daemon.ask("POST", f"{every}/pub/participants/drain/mute", json_body={"duration": "1h"}),
            200,
        ),
        (
            "delete",
            f"{name}/participants/{{participant}}",
            daemon.ask("DELETE", f"{every}/pub/participants/drain"),
            200,
        ),
        (
            "post",
            f"{name}/participants",
            daemon.ask("POST", f"{every}/pub/participants", json_body={"specialist": "drain"}),
            200,
        ),
    ]
    for method, path, answer, status in answers:
        assert answer.status == status, (method, path, answer.body)
        if status != 304:
            _check(document, method, path, answer)
    assert daemon.ask("DELETE", "/v1/specialists/drain").status == 204


def test_specialists_have_the_published_shape(daemon: Daemon, document: dict[str, Any]) -> None:
    every = "/v1/specialists"
    name = f"{every}/{{specialist_id}}"
    body = card("plumber", visibility="shared").document
    grant = {"grantee": "org:acme"}
    answers = [
        ("post", every, daemon.ask("POST", every, json_body=body), 201),
        ("post", every, daemon.ask("POST", every, json_body={**body, "keyword": "x"}), 422),
        ("post", every, daemon.ask("POST", every, json_body={**body, "id": "search"}), 422),
        ("get", every, daemon.ask("GET", f"{every}?limit=1"), 200),
        ("get", every, daemon.ask("GET", f"{every}?cursor=x"), 400),
        ("get", f"{every}/search", daemon.ask("GET", f"{every}/search?query=plumber%20work"), 200),
        ("get", f"{every}/search", daemon.ask("GET", f"{every}/search?query="), 422),
        ("get", name, daemon.ask("GET", f"{every}/plumber"), 200),
        ("get", name, daemon.ask("GET", f"{every}/plumber", headers={"If-None-Match": '"1"'}), 304),
        ("get", name, daemon.ask("GET", f"{every}/missing"), 404),
        ("put", name, daemon.ask("PUT", f"{every}/plumber", json_body={**body, "description": "Fixes pipes."}), 200),
        ("put", name, daemon.ask("PUT", f"{every}/other", json_body=body), 422),
        ("put", name, daemon.ask("PUT", f"{every}/plumber", json_body=body, headers={"If-Match": '"1"'}), 412),
        ("post", f"{name}/grants", daemon.ask("POST", f"{every}/plumber/grants", json_body=grant), 200),
        ("post", f"{name}/grants", daemon.ask("POST", f"{every}/plumber/grants", json_body={"grantee": "A B"}), 422),
        ("delete", f"{name}/grants/{{grantee}}", daemon.ask("DELETE", f"{every}/plumber/grants/org:acme"), 200),
        ("delete", name, daemon.ask("DELETE", f"{every}/plumber"), 204),
        ("delete", name, daemon.ask("DELETE", f"{every}/plumber"), 404),
    ]
    for method, path, answer, status in answers:
        assert answer.status == status, (method, path, answer.body)
        if status not in (204, 304):
            _check(document, method, path, answer)


def test_refusals_before_routing_have_the_published_shape(daemon: Daemon, document: dict[str, Any]) -> None:
    for headers in ({"Authorization": None}, {"Host": "evil.example"}, {"Origin": "https://evil.example"}):
        _check(document, "get", "/v1/status", daemon.ask("GET", "/v1/status", headers=headers))


NO_NUMBERS = ("1_0", "%2010", "10%20", "%2B10", "10.0", "1e1", "%D9%A3", "%EF%BC%91", "x", "", "nan", "0x10")


def test_each_whole_number_of_a_query_is_digits(daemon: Daemon, document: dict[str, Any]) -> None:
    results = [
        (path, parameter["name"])
        for path, methods in document["paths"].items()
        for parameter in methods.get("get", {}).get("parameters", ())
        if parameter["in"] == "query"
        and any(form.get("type") in ("integer", "number") for form in _forms(parameter["schema"]))
    ]
    assert len(results) > 10
    for path, name in results:
        for text in NO_NUMBERS:
            answer = daemon.ask("GET", f"{re.sub('{[^}]+}', 'x', path)}?{name}={text}")
            assert answer.status == 422, (path, name, text)
            remedies = {problem["field"]: problem["remedy"] for problem in answer.json()["problems"]}
            assert remedies.get(name) == "write digits only", (path, text, remedies)


def _forms(schema: dict[str, Any]) -> list[dict[str, Any]]:
    forms: list[dict[str, Any]] = schema.get("anyOf", [schema])
    return forms
