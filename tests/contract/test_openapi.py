"""The API as published: the OpenAPI document is sound and whole, and says what a client has to know."""

from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

from claudomator_py.api.app import RESOURCES
from claudomator_py.api.guard import roles
from claudomator_py.api.request import query_parameters
from tests.fakes.daemon import openapi_document

OPERATIONS = {
    ("post", "/v1/tasks"): "submitTask",
    ("get", "/v1/tasks"): "listTasks",
    ("get", "/v1/tasks/{ref}"): "getTask",
    ("put", "/v1/tasks/{ref}"): "editTask",
    ("post", "/v1/tasks/{ref}/cancel"): "cancelTask",
    ("post", "/v1/tasks/{ref}/restart"): "restartTask",
    ("post", "/v1/tasks/{ref}/answer"): "answerTask",
    ("post", "/v1/tasks/{ref}/approve"): "approveTask",
    ("post", "/v1/tasks/{ref}/reject"): "rejectTask",
    ("get", "/v1/tasks/{ref}/why"): "explainTask",
    ("get", "/v1/tasks/{ref}/runs"): "listRuns",
    ("get", "/v1/channels"): "listChannels",
    ("post", "/v1/channels"): "createChannel",
    ("get", "/v1/channels/{channel}"): "getChannel",
    ("put", "/v1/channels/{channel}/settings"): "changeChannelSettings",
    ("post", "/v1/channels/{channel}/participants"): "joinChannel",
    ("delete", "/v1/channels/{channel}"): "deleteChannel",
    ("delete", "/v1/channels/{channel}/participants/{participant}"): "leaveChannel",
    ("post", "/v1/channels/{channel}/participants/{participant}/mute"): "muteParticipant",
    ("get", "/v1/channels/{channel}/messages"): "listMessages",
    ("post", "/v1/channels/{channel}/messages"): "postMessage",
    ("get", "/v1/channels/{channel}/messages/{message}"): "getMessage",
    ("put", "/v1/channels/{channel}/messages/{message}/attachments/{attachment}"): "processAttachment",
    ("put", "/v1/channels/{channel}/messages/{message}/verdict"): "markMessage",
    ("get", "/v1/channels/{channel}/stats"): "getChannelStats",
    ("get", "/v1/specialists"): "listSpecialists",
    ("post", "/v1/specialists"): "registerSpecialist",
    ("get", "/v1/decisions"): "listDecisions",
    ("get", "/v1/decisions/{decision_id}"): "getDecision",
    ("post", "/v1/route"): "route",
    ("get", "/v1/policy"): "getPolicy",
    ("get", "/v1/routing/stats"): "getRoutingStats",
    ("get", "/v1/routing/learned"): "getLearned",
    ("get", "/v1/routing/labels"): "listLabels",
    ("post", "/v1/routing/reset"): "resetLearned",
    ("post", "/v1/routing/freeze"): "freezeLearning",
    ("post", "/v1/routing/unfreeze"): "unfreezeLearning",
    ("get", "/v1/specialists/search"): "searchSpecialists",
    ("get", "/v1/specialists/{specialist_id}"): "getSpecialist",
    ("put", "/v1/specialists/{specialist_id}"): "changeSpecialist",
    ("delete", "/v1/specialists/{specialist_id}"): "removeSpecialist",
    ("post", "/v1/specialists/{specialist_id}/grants"): "grantSpecialist",
    ("put", "/v1/specialists/{specialist_id}/admission"): "admitSpecialist",
    ("delete", "/v1/specialists/{specialist_id}/admission"): "dismissSpecialist",
    ("delete", "/v1/specialists/{specialist_id}/grants/{grantee}"): "revokeSpecialist",
    ("get", "/v1/tasks/{ref}/changes"): "listChanges",
    ("get", "/v1/branches"): "listBranches",
    ("get", "/v1/hosts"): "listHosts",
    ("post", "/v1/hosts/{name}/drain"): "drainHost",
    ("post", "/v1/hosts/{name}/undrain"): "undrainHost",
    ("post", "/v1/tasks/{ref}/merge"): "mergeTask",
    ("post", "/v1/tasks/{ref}/discard"): "discardTask",
    ("get", "/v1/runs/{run_id}/patch"): "getPatch",
    ("get", "/v1/schedules"): "listSchedules",
    ("post", "/v1/schedules"): "addSchedule",
    ("get", "/v1/schedules/{name}"): "getSchedule",
    ("delete", "/v1/schedules/{name}"): "deleteSchedule",
    ("post", "/v1/schedules/{name}/pause"): "pauseSchedule",
    ("post", "/v1/schedules/{name}/resume"): "resumeSchedule",
    ("post", "/v1/schedules/{name}/run"): "runSchedule",
    ("get", "/v1/runs/{run_id}"): "getRun",
    ("get", "/v1/runs/{run_id}/handoff"): "getHandoff",
    ("post", "/v1/runs/{run_id}/handoff"): "handOn",
    ("post", "/v1/runs/{run_id}/questions"): "ask",
    ("post", "/v1/runs/{run_id}/progress"): "reportProgress",
    ("post", "/v1/runs/{run_id}/subtasks"): "createSubtask",
    ("get", "/v1/runs/{run_id}/log"): "readLog",
    ("get", "/v1/agents"): "listAgents",
    ("post", "/v1/agents/{name}/hold"): "holdAgent",
    ("post", "/v1/agents/{name}/release"): "releaseAgent",
    ("get", "/v1/events"): "listEvents",
    ("get", "/v1/reasons"): "listReasons",
    ("get", "/v1/status"): "getStatus",
    ("get", "/v1/report"): "getReport",
    ("get", "/v1/inbox"): "listFileProblems",
    ("get", "/v1/drain"): "getDrain",
    ("post", "/v1/drain"): "drain",
    ("post", "/v1/undrain"): "undrain",
    ("post", "/v1/cleanup"): "cleanUp",
    ("get", "/v1/notifications"): "listNotifications",
    ("post", "/v1/notifications/{delivery}/retry"): "retryNotification",
    ("post", "/v1/notifications/test/{target}"): "testNotification",
    ("post", "/v1/backups"): "makeBackup",
    ("get", "/v1/tokens"): "listTokens",
    ("post", "/v1/tokens"): "createToken",
    ("delete", "/v1/tokens/{ref}"): "revokeToken",
    ("post", "/v1/login-codes"): "createLoginCode",
    ("get", "/v1/sessions"): "listSessions",
    ("delete", "/v1/sessions"): "endSessions",
    ("delete", "/v1/sessions/{session_id}"): "endSession",
    ("get", "/metrics"): "getMetrics",
    ("get", "/livez"): "getLiveness",
    ("get", "/readyz"): "getReadiness",
}


def _operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in openapi_document()["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def test_every_operation_is_there_under_its_name() -> None:
    assert openapi_document()["openapi"].startswith("3.1.")
    assert {(method, path): entry["operationId"] for method, path, entry in _operations()} == OPERATIONS


def test_every_reference_leads_somewhere() -> None:
    def references(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            for key, value in node.items():
                if key == "$ref":
                    yield value
                else:
                    yield from references(value)
        elif isinstance(node, list):
            for value in node:
                yield from references(value)

    results = set(references(openapi_document()))
    assert results
    assert results <= {f"#/components/schemas/{name}" for name in openapi_document()["components"]["schemas"]}


def test_every_schema_is_sound() -> None:
    for schema in openapi_document()["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_every_default_is_what_its_own_schema_allows() -> None:
    known = openapi_document()["components"]

    def refused(node: Any) -> Iterator[Any]:
        if isinstance(node, dict):
            # A whole shape leaves out what is null in it.
            simple = "default" in node and not isinstance(node["default"], dict)
            if simple and not Draft202012Validator({**node, "components": known}).is_valid(node["default"]):
                yield node
            node = list(node.values())
        if isinstance(node, list):
            for value in node:
                yield from refused(value)

    assert [node["default"] for node in refused(openapi_document())] == []


def test_every_operation_announces_its_refusals_as_problems() -> None:
    for _, path, operation in _operations():
        is_open = path in ("/livez", "/readyz")
        expected = {"400", "403", "408", "413", "414", "421", "422", "429", "431", "500"}
        expected |= set() if is_open else {"401", "503"}
        assert expected <= set(operation["responses"])
        assert operation["security"] == (
            [{}] if is_open else [{"token": [roles.OPERATIONS[operation["operationId"]].role]}]
        )
        for status, response in operation["responses"].items():
            if int(status) >= 400 and not (is_open and status == "503"):
                assert list(response["content"]) == ["application/problem+json"], (path, status)
    assert "HTTPValidationError" not in openapi_document()["components"]["schemas"]


def test_every_operation_and_every_answer_is_described() -> None:
    for _, _, operation in _operations():
        name = operation["operationId"]
        assert operation["summary"], name
        assert not operation["summary"].endswith("."), name
        assert len(operation.get("description", "")) > len("A sentence."), name
        for status, response in operation["responses"].items():
            assert response["description"] not in ("", "Successful Response"), (name, status)
        for parameter in operation.get("parameters", ()):
            assert parameter.get("description"), (name, parameter["name"])


def test_what_is_told_to_wait_is_told_how_long() -> None:
    for _, _, operation in _operations():
        assert "Retry-After" in operation["responses"]["429"]["headers"]


def test_the_bounds_of_a_page_are_in_the_schema() -> None:
    for path in ("/v1/tasks", "/v1/notifications", "/v1/events"):
        (limit,) = (
            parameter
            for parameter in openapi_document()["paths"][path]["get"]["parameters"]
            if parameter["name"] == "limit"
        )
        assert (limit["schema"]["minimum"], limit["schema"]["maximum"]) in ((1, 200), (1, 500))


def test_what_a_query_may_say_is_what_is_published() -> None:
    def published(operation: dict[str, Any]) -> dict[str, bool]:
        given = {
            parameter["name"]: parameter["schema"]
            for parameter in operation.get("parameters", [])
            if parameter["in"] == "query"
        }
        forms = {name: schema.get("anyOf", [schema]) for name, schema in given.items()}
        return {name: any(form.get("type") == "array" for form in them) for name, them in forms.items()}

    taken = {
        (method.lower(), route.path): dict(query_parameters(route.dependant))
        for resource in RESOURCES
        for route in resource.routes
        for method in route.methods or ()
    }
    assert taken == {(method, path): published(operation) for method, path, operation in _operations()}


def test_every_link_leads_to_an_operation_with_that_parameter() -> None:
    known = {entry["operationId"]: entry for _, _, entry in _operations()}
    links = [
        link
        for operation in known.values()
        for response in operation["responses"].values()
        for link in response.get("links", {}).values()
    ]
    assert len(links) > 20
    for link in links:
        parameters = {parameter["name"]: parameter for parameter in known[link["operationId"]]["parameters"]}
        assert set(link["parameters"]) <= set(parameters)
        assert link["description"]


def test_every_body_has_examples_that_keep_to_its_schema() -> None:
    with_bodies = [operation for _, _, operation in _operations() if "requestBody" in operation]
    assert with_bodies
    for operation in with_bodies:
        content = operation["requestBody"]["content"]["application/json"]
        assert content["examples"], operation["operationId"]
        for example in content["examples"].values():
            whole = {**content["schema"], "components": openapi_document()["components"]}
            Draft202012Validator(whole, format_checker=FormatChecker()).validate(example["value"])


def test_the_shapes_leave_nothing_open() -> None:
    for name in ("TaskView", "RunView", "OutcomeView", "DecisionView", "AgentView", "StatusView", "WhyView"):
        schema = openapi_document()["components"]["schemas"][name]
        assert set(schema["required"]) == set(schema["properties"]), name
