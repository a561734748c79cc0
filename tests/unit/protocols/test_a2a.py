"""A2A as we serve it: messages that come, tasks as they are told, and the card."""

import json
from typing import Any

import pytest
from a2a.client.card_resolver import parse_agent_card
from a2a.compat.v0_3 import types as types_0_3
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types import TaskState
from a2a.utils.proto_utils import validate_proto_required_fields

from claudomator_py.agents.a2a_client import wire
from claudomator_py.domain.card import Card
from claudomator_py.protocols.a2a import agent_card
from claudomator_py.protocols.a2a import tasks as shapes
from claudomator_py.protocols.a2a.messages import Message, RpcError, parse_listing, parse_message
from claudomator_py.resources.runs import InputView
from claudomator_py.resources.tasks import TaskView

AT = "2026-12-01T08:00:00.000Z"


def params(*, metadata: Any = None, outer: Any = None, **fields: Any) -> dict[str, Any]:
    payload = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "Paint it."}], **fields}
    results: dict[str, Any] = {"message": {**payload, **({"metadata": metadata} if metadata is not None else {})}}
    return {**results, **({"metadata": outer} if outer is not None else {})}


def view(**fields: Any) -> TaskView:
    given = {"id": "t1", "name": "a2a-x", "version": 3, "state": "RUNNING", "priority": "normal"}
    return TaskView.model_validate({**given, "created_at": AT, "updated_at": AT, **fields})


@pytest.mark.parametrize(
    "metadata",
    [
        {"executor": {"name": "writer"}, "skill_used": "prose"},
        {"executor.name": "writer", "skill_used": "prose"},
    ],
)
@pytest.mark.parametrize("where", ["metadata", "outer"])
def test_the_metadata_say_who_is_to_do_it(metadata: dict[str, Any], where: str) -> None:
    message = parse_message(params(**{where: metadata}))
    assert (message.specialist, message.skill) == ("writer", "prose")
    task = message.task("ann")
    assert (task.specialist, task.skill) == ("writer", "prose")


def test_a_skill_of_our_card_is_a_specialist() -> None:
    message = parse_message(params(metadata={"skill_used": "writer"}))
    assert (message.specialist, message.skill) == ("writer", None)
    anybody = parse_message(params(metadata={"skill_used": "task"}))
    assert (anybody.specialist, anybody.skill) == (None, None)


def test_a_message_of_either_version_is_the_same_task() -> None:
    old = parse_message(params(kind="message", role="user", parts=[{"kind": "text", "text": "Paint it."}]))
    new = parse_message(params())
    assert old.task("ann") == new.task("ann")
    assert new.task("ann").instructions == "Paint it."
    assert new.task("ann").name != parse_message(params(messageId="m-2")).task("ann").name
    assert new.task("ann").name != new.task("bob").name


def test_fields_have_either_name_of_protojson_and_enums_either_form() -> None:
    fields = {"message_id": "m-1", "role": 1, "parts": [{"text": "Paint it.", "media_type": "text/plain"}]}
    configuration = {"return_immediately": True, "history_length": None}
    message = parse_message(
        {"message": {**fields, "task_id": "t1", "context_id": "t0", "metadata": None}, "configuration": configuration}
    )
    assert (message.id, message.text, message.task_id, message.context_id) == ("m-1", "Paint it.", "t1", "t0")
    assert not message.waits
    assert parse_message(params(taskId=None, contextId=None)).task_id == ""


def test_a_context_is_named_and_one_too_long_is_refused_by_its_name() -> None:
    assert parse_message(params(contextId="chat 7/ü")).context_id == "chat 7/ü"
    with pytest.raises(RpcError, match="contextId"):
        parse_message(params(contextId="c" * 201))
    with pytest.raises(RpcError, match="contextId"):
        parse_message(params(contextId=7))


def test_a_listing_is_read_in_each_form_of_protojson() -> None:
    assert parse_listing({}) == parse_listing({"status": 0, "pageSize": None, "pageToken": "", "contextId": ""})
    given = {"context_id": "c", "status": 3, "page_size": "7", "status_timestamp_after": AT, "include_artifacts": True}
    assert parse_listing(given) == parse_listing(
        {
            "contextId": "c",
            "status": "TASK_STATE_COMPLETED",
            "pageSize": 7,
            "statusTimestampAfter": "2026-12-01T09:00:00+01:00",
            "includeArtifacts": True,
        }
    )


@pytest.mark.parametrize(
    "given",
    [
        {"pageSize": 0},
        {"pageSize": 101},
        {"pageSize": -1},
        {"pageSize": "x"},
        {"pageSize": True},
        {"pageSize": 1.5},
        {"status": "completed"},
        {"status": 9},
        {"status": True},
        {"status": "TASK_STATE_"},
        {"statusTimestampAfter": "yesterday"},
        {"statusTimestampAfter": "2026-12-01T08:00:00"},
        {"statusTimestampAfter": 7},
        {"pageToken": 7},
        {"contextId": 7},
    ],
)
def test_a_listing_that_cannot_be_read_is_refused_by_its_field(given: dict[str, Any]) -> None:
    with pytest.raises(RpcError, match=next(iter(given))):
        parse_listing(given)


def test_the_states_are_numbered_as_the_protocol_numbers_them() -> None:
    names = ["TASK_STATE_UNSPECIFIED", *map(shapes.name_of, shapes.STANDINGS)]
    assert dict(TaskState.items()) == {name: number for number, name in enumerate(names)}


@pytest.mark.parametrize("role", [None, "", 0, 2, True, "agent", "ROLE_AGENT", "ROLE_UNSPECIFIED"])
def test_only_users_send_messages(role: Any) -> None:
    with pytest.raises(RpcError, match="role"):
        parse_message(params(role=role))


@pytest.mark.parametrize("key", ["pushNotificationConfig", "taskPushNotificationConfig", "push_notification_config"])
def test_who_wants_to_be_notified_hears_at_once_that_nobody_will(key: str) -> None:
    with pytest.raises(RpcError) as refused:
        parse_message({**params(), "configuration": {key: {"url": "https://client.example/hook"}}})
    assert refused.value.document["code"] == -32003
    assert refused.value.document["data"][0]["reason"] == "PUSH_NOTIFICATION_NOT_SUPPORTED"


def test_another_message_under_the_same_id_has_another_fingerprint() -> None:
    message, other = parse_message(params()), parse_message(params(parts=[{"text": "Paint it red."}]))
    assert message.key.key == other.key.key
    assert message.key.fingerprint != other.key.fingerprint


@pytest.mark.parametrize(
    ("configuration", "waits"),
    [({}, True), ({"returnImmediately": True}, False), ({"blocking": False}, False), ({"blocking": True}, True)],
)
def test_a_client_waits_unless_it_says_otherwise(configuration: dict[str, Any], waits: bool) -> None:
    assert parse_message({**params(), "configuration": configuration}).waits is waits


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"metadata": {"executor": "writer"}}, "`executor` in the metadata is not an object"),
        ({"metadata": "writer"}, "`metadata` is not an object"),
        ({"metadata": []}, "`metadata` is not an object"),
        ({"configuration": 5}, "`configuration` is not an object"),
        ({"configuration": {"returnImmediately": "true"}}, "`configuration.returnImmediately` is neither"),
        ({"configuration": {"return_immediately": 1}}, "`configuration.returnImmediately` is neither"),
        ({"configuration": {"blocking": "no"}}, "`configuration.blocking` is neither"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_name_and_not_overlooked(given: dict[str, Any], named: str) -> None:
    with pytest.raises(RpcError, match=named):
        parse_message({**params(), **given})


@pytest.mark.parametrize("file", [{"url": "https://x"}, {"raw": "aGk="}, {"file": {"uri": "https://x"}}])
@pytest.mark.parametrize("beside", [{"text": "Look at this."}, {"data": {"a": 1}}, {"text": "a", "data": 1}])
def test_a_part_that_is_also_a_file_is_refused(file: dict[str, Any], beside: dict[str, Any]) -> None:
    with pytest.raises(RpcError, match="only `text` and `data` parts"):
        parse_message(params(parts=[{**beside, **file}]))


def test_what_a_part_leaves_empty_is_as_good_as_absent() -> None:
    parts = [{"text": "Paint it.", "data": None, "url": None}, {"text": None, "data": {"a": 1}}]
    assert parse_message(params(parts=parts)).text == 'Paint it.\n{"a": 1}'


def test_a_refused_task_names_its_fields() -> None:
    with pytest.raises(RpcError) as refused:
        parse_message(params(parts=[{"text": " "}])).task("ann")
    violations = refused.value.document["data"][0]["fieldViolations"]
    assert violations[0]["field"] == "instructions"


def answering(text: str) -> Message:
    return parse_message(params(parts=[{"text": text}], taskId="t1"))


def test_an_answer_that_says_nothing_is_refused() -> None:
    assert answering("Blue.").answer().text == "Blue."
    with pytest.raises(RpcError):
        answering(" ").answer()


STATES = [
    ({"state": "WAITING"}, "submitted"),
    ({"state": "QUEUED"}, "submitted"),
    ({"state": "QUEUED", "runs": 1}, "working"),
    ({"state": "RUNNING", "runs": 1}, "working"),
    ({"state": "NEEDS_INPUT"}, "input-required"),
    ({"state": "COMPLETED"}, "completed"),
    ({"state": "FAILED", "reason": "timeout"}, "failed"),
    ({"state": "FAILED", "reason": "rejected"}, "rejected"),
    ({"state": "CANCELLED"}, "canceled"),
]


@pytest.mark.parametrize("version", ["1.0", "0.3"])
@pytest.mark.parametrize(("fields", "state"), STATES)
def test_our_own_client_reads_what_is_told(version: shapes.Version, fields: dict[str, Any], state: str) -> None:
    task = view(**fields, thread="t0", reason_text="why")
    assert shapes.context_of(task.model_copy(update={"context": "chat"})) == "chat"
    for payload in (shapes.answer(task, version), shapes.whole(task, version), shapes.changes(task, version)[-1]):
        update = wire.read(json.loads(json.dumps(payload)))
        assert update is not None
        assert (update.task_id, update.context_id, update.state) == ("t1", "t0", state)
        assert update.text == ("" if state == "completed" else "why")


@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_result_question_and_use_are_told(version: shapes.Version) -> None:
    done = view(state="COMPLETED", result_text="painted", tokens={"input": 3, "output": 4}, cost_usd=0.5)
    update = wire.read(shapes.answer(done, version))
    assert update is not None
    assert [artifact.text for artifact in update.artifacts] == ["painted"]
    assert update.usage == {"input_tokens": 3, "output_tokens": 4, "cost_usd": 0.5}
    asks = InputView.model_validate({"kind": "question", "text": "Red or blue?", "since": AT})
    asked = wire.read(shapes.answer(view(state="NEEDS_INPUT", asks=asks), version))
    assert asked is not None
    assert asked.text == "Red or blue?"


def test_the_card_is_one_and_has_the_specialists_as_skills() -> None:
    skill = {"id": "prose", "name": "Prose", "examples": ["Write a page."]}
    cards = [
        Card.model_validate(
            {"id": "writer", "description": "Writes.", "skills": [skill], "keywords": ["write a page"]}
        ),
        Card.model_validate({"id": "plain", "name": "Plain", "description": "Does it plainly."}),
    ]
    document = agent_card("https://box.example:8484", cards)
    card = parse_agent_card(json.loads(json.dumps(document)))
    validate_proto_required_fields(card)
    assert [skill.id for skill in card.skills] == ["task", "writer", "plain"]
    assert list(card.skills[1].examples) == ["Write a page."]
    assert {
        (supported_interface.url, supported_interface.protocol_version)
        for supported_interface in card.supported_interfaces
    } == {
        ("https://box.example:8484/a2a", "1.0"),
        ("https://box.example:8484/a2a", "0.3"),
    }
    assert card.capabilities.streaming


def test_both_versions_read_that_a_bearer_token_is_needed() -> None:
    document = agent_card("https://box.example:8484", [])
    old = types_0_3.AgentCard.model_validate(document)
    assert old.security == [{"token": []}]
    assert old.security_schemes is not None
    scheme = old.security_schemes["token"].root
    assert isinstance(scheme, types_0_3.HTTPAuthSecurityScheme)
    assert scheme.scheme == "bearer"
    new = parse_agent_card(json.loads(json.dumps(document)))
    assert new.security_schemes["token"].http_auth_security_scheme.scheme == "bearer"
    assert [list(security_requirement.schemes) for security_requirement in new.security_requirements] == [["token"]]
    # As the SDK itself writes a card for clients of both.
    written = agent_card_to_dict(new)
    for key in ("security", "securitySchemes", "supportedInterfaces", "url", "preferredTransport"):
        assert document[key] == written[key]
