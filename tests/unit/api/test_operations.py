"""What holds for every operation of the API, whichever comes to it next: one table, made of its own document."""

from typing import Any

import pytest

from claudomator_py.domain.lifecycle import InputKind, NeedsInput
from tests.fakes.cards import card
from tests.fakes.daemon import Answer, Daemon, openapi_document
from tests.fakes.prepared import PreparedService

_DOCUMENT = openapi_document()
_OPERATIONS: dict[str, tuple[str, str, dict[str, Any]]] = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in _DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
_SCHEDULE = {"name": "nightly", "instructions": "Do it.", "schedule": "0 3 * * *"}
_PARTS = {
    "ref": "it",
    "name": "claude",
    "run_id": "any",
    "delivery": "1",
    "target": "me",
    "session_id": "any",
    "specialist_id": "plumber",
    "grantee": "any",
    "decision_id": "any",
    "channel": "shop",
    "participant": "plumber",
    "message": "1",
    "attachment": "a1",
}


def _body(operation: dict[str, Any]) -> dict[str, Any] | None:
    found: dict[str, Any] | None = operation.get("requestBody", {}).get("content", {}).get("application/json")
    return found


def _taking(header: str) -> list[str]:
    return [
        name
        for name, (_, _, operation) in _OPERATIONS.items()
        if any(one["name"] == header for one in operation.get("parameters", ()))
    ]


_WITH_BODIES = [name for name, (_, _, operation) in _OPERATIONS.items() if _body(operation)]
_BOUND = [name for name in _taking("If-Match") if _OPERATIONS[name][0] != "GET"]
_KEYED = _taking("Idempotency-Key")


def _example(name: str) -> dict[str, Any]:
    body = _body(_OPERATIONS[name][2])
    return dict(next(iter(body["examples"].values()))["value"]) if body else {}


def _ask(daemon: Daemon, name: str, *, query: str = "", body: object = None, **headers: str) -> Answer:
    method, path, _ = _OPERATIONS[name]
    parts = {**_PARTS, "name": "nightly"} if path.startswith("/v1/schedules") else _PARTS
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return daemon.ask(method, path.format(**parts) + query, json_body=body, headers=named)


@pytest.fixture
def task_id(daemon: Daemon, prepared: PreparedService, request: pytest.FixtureRequest) -> str:
    """A task, an agent, a schedule and a specialist to which every operation can be done."""
    prepared.add_agent("claude")
    kind = InputKind.APPROVAL if "approveTask" in request.node.name else InputKind.QUESTION
    task_id = prepared.add("it", NeedsInput(kind))
    _PARTS["run_id"] = prepared.add_run(task_id, "claude")
    if "addSchedule" not in request.node.name:
        assert daemon.ask("POST", "/v1/schedules", json_body=_SCHEDULE).status == 201
    assert daemon.ask("POST", "/v1/specialists", json_body=card("plumber").document).status == 201
    if "createChannel" not in request.node.name:
        assert daemon.ask("POST", "/v1/channels", json_body={"name": "shop"}).status == 201
    return task_id


def _fields(answer: Answer) -> list[str]:
    assert (answer.status, answer.json()["code"]) == (422, "invalid"), answer.body
    return [one["field"] for one in answer.json()["problems"]]


@pytest.mark.parametrize("name", _OPERATIONS)
def test_a_parameter_that_is_not_known_is_refused(daemon: Daemon, name: str) -> None:
    assert _fields(_ask(daemon, name, query="?wanted=1")) == ["wanted"]


@pytest.mark.parametrize("name", _WITH_BODIES)
def test_a_key_that_is_not_known_is_refused(daemon: Daemon, name: str) -> None:
    body = {**_example(name), "nonsense_key": 1}
    assert _fields(_ask(daemon, name, body=body)) == ["nonsense_key"]


@pytest.mark.parametrize("name", _WITH_BODIES)
def test_a_value_of_the_wrong_type_is_refused(daemon: Daemon, name: str) -> None:
    body = _body(_OPERATIONS[name][2])
    assert body is not None
    schema = _DOCUMENT["components"]["schemas"][body["schema"]["$ref"].rpartition("/")[2]]
    for field in schema["properties"]:
        wrong = {**_example(name), field: [[{"of": "no type"}]]}
        assert any(one.startswith(field) for one in _fields(_ask(daemon, name, body=wrong))), field
    assert _ask(daemon, name, body=["no", "object"]).status == 422


@pytest.mark.parametrize("name", _BOUND)
@pytest.mark.usefixtures("task_id")
def test_nothing_is_done_to_another_version_than_was_seen(daemon: Daemon, prepared: PreparedService, name: str) -> None:
    before = prepared.task("it"), daemon.ask("GET", "/v1/specialists").body
    answer = _ask(daemon, name, body=_example(name), If_Match='"99"')
    assert (answer.status, answer.json()["code"]) == (412, "stale_version")
    assert (prepared.task("it"), daemon.ask("GET", "/v1/specialists").body) == before


@pytest.mark.parametrize("name", _KEYED)
@pytest.mark.usefixtures("task_id")
def test_what_is_sent_again_is_answered_as_it_was(daemon: Daemon, name: str) -> None:
    first, again = (_ask(daemon, name, body=_example(name), Idempotency_Key=f'"{name}"') for _ in range(2))
    assert first.status in (200, 201, 202), first.body
    assert (again.status, again.body, again.headers.get("etag")) == (
        first.status,
        first.body,
        first.headers.get("etag"),
    )


def test_the_table_has_something_of_each() -> None:
    tasks = {"cancelTask", "restartTask", "answerTask", "approveTask", "rejectTask"}
    assert tasks | {"changeSpecialist", "removeSpecialist", "changeChannelSettings"} == set(_BOUND)
    assert {
        "submitTask",
        "addSchedule",
        "runSchedule",
        "holdAgent",
        "releaseAgent",
        "registerSpecialist",
        "createChannel",
        "postMessage",
        "createSubtask",
        *tasks,
    } == set(_KEYED)
    assert {"drain", "cleanUp", "createToken"} < set(_WITH_BODIES)
