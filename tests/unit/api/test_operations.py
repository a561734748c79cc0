"""What holds for every operation of the API, whichever comes to it next: one table, made of its own document."""

from functools import cache
from typing import Any

import pytest

from claudomator_py.domain.lifecycle import InputKind, NeedsInput
from tests.fakes.cards import card
from tests.fakes.daemon import Answer, Daemon, openapi_document
from tests.fakes.prepared import PreparedService

# Written down, since the document takes half a second to make, which each worker would spend on collecting.
_TASKS = ("cancelTask", "restartTask", "answerTask", "approveTask", "rejectTask")
_BOUND = (*_TASKS, "editTask", "changeSpecialist", "removeSpecialist", "changeChannelSettings", "deleteChannel")
_KEYED = (
    *_TASKS,
    *("submitTask", "addSchedule", "runSchedule", "holdAgent", "releaseAgent", "registerSpecialist"),
    *("createChannel", "postMessage", "createSubtask"),
)
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


@cache
def _operations() -> dict[str, tuple[str, str, dict[str, Any]]]:
    return {
        operation["operationId"]: (method.upper(), path, operation)
        for path, methods in openapi_document()["paths"].items()
        for method, operation in methods.items()
    }


def _body(name: str) -> dict[str, Any] | None:
    _, _, operation = _operations()[name]
    results: dict[str, Any] | None = operation.get("requestBody", {}).get("content", {}).get("application/json")
    return results


def _with_bodies() -> list[str]:
    return [name for name in _operations() if _body(name)]


def _taking(header: str) -> list[str]:
    return [
        name
        for name, (_, _, operation) in _operations().items()
        if any(parameter["name"] == header for parameter in operation.get("parameters", ()))
    ]


def _example(name: str) -> dict[str, Any]:
    body = _body(name)
    return dict(next(iter(body["examples"].values()))["value"]) if body else {}


def _ask(daemon: Daemon, name: str, *, query: str = "", body: object = None, **headers: str) -> Answer:
    method, path, _ = _operations()[name]
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


def _refused(answer: Answer) -> list[str] | tuple[int, bytes]:
    """The fields that it is about; what was answered, if that is no refusal of fields."""
    if answer.status != 422 or answer.json()["code"] != "invalid":
        return answer.status, answer.body
    return [problem["field"] for problem in answer.json()["problems"]]


def test_a_parameter_that_is_not_known_is_refused(daemon: Daemon) -> None:
    refused = {name: _refused(_ask(daemon, name, query="?wanted=1")) for name in _operations()}
    assert refused == {name: ["wanted"] for name in _operations()}


def test_a_key_that_is_not_known_is_refused(daemon: Daemon) -> None:
    refused = {
        name: _refused(_ask(daemon, name, body={**_example(name), "nonsense_key": 1})) for name in _with_bodies()
    }
    assert refused == {name: ["nonsense_key"] for name in _with_bodies()}


def test_a_value_of_the_wrong_type_is_refused(daemon: Daemon) -> None:
    schemas = openapi_document()["components"]["schemas"]
    for name in _with_bodies():
        body = _body(name)
        assert body is not None
        for field in schemas[body["schema"]["$ref"].rpartition("/")[2]]["properties"]:
            wrong = {**_example(name), field: [[{"of": "no type"}]]}
            refused = _refused(_ask(daemon, name, body=wrong))
            assert any(str(entry).startswith(field) for entry in refused), (name, field, refused)
        assert _ask(daemon, name, body=["no", "object"]).status == 422, name


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


def test_the_document_says_the_same() -> None:
    assert set(_BOUND) == {name for name in _taking("If-Match") if _operations()[name][0] != "GET"}
    assert set(_KEYED) == set(_taking("Idempotency-Key"))
    assert {"drain", "cleanUp", "createToken"} < set(_with_bodies())


def _whole_numbers(operation: dict[str, Any]) -> list[tuple[str, str]]:
    """The parameters of an operation without a body that are whole numbers, each with where it stands."""
    return [
        (parameter["name"], parameter["in"])
        for parameter in operation.get("parameters", ())
        if "integer" in str(parameter["schema"]) and "requestBody" not in operation
    ]


@pytest.mark.parametrize("written", ["1_0", "10.0", "+1", "%201", "0x1", "1e1", "%D9%A1", ""])
def test_a_whole_number_is_written_in_digits(daemon: Daemon, written: str) -> None:
    asked = 0
    for method, path, operation in _operations().values():
        for name, place in _whole_numbers(operation):
            if place == "path" and not written:
                continue
            parts = {**_PARTS, name: written} if place == "path" else _PARTS
            answer = daemon.ask(method, path.format(**parts) + (f"?{name}={written}" if place == "query" else ""))
            assert answer.status == 422, (method, path, name, answer.status)
            assert name in [problem["field"] for problem in answer.json()["problems"]]
            asked += 1
    assert asked > 10
