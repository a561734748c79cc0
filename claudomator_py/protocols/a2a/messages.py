"""Parsing of A2A requests: from JSON of either version to a message or a listing, or an error."""

import contextlib
import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from claudomator_py.domain.errors import Problem, problems_text
from claudomator_py.domain.principal import RequestKey
from claudomator_py.domain.requests import LatestFilter, StateSelection
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import parse_instant
from claudomator_py.protocols.a2a.tasks import STANDINGS, name_of
from claudomator_py.resources.tasks import AnswerRequest
from claudomator_py.schema.taskfile import parse_task
from claudomator_py.schema.validation import validate
from claudomator_py.values import dataclass, regex

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
NO_METHOD: Final = -32601
INVALID_PARAMS: Final = -32602
TASK_NOT_FOUND: Final = -32001
NOT_CANCELABLE: Final = -32002
NO_PUSH: Final = -32003
UNSUPPORTED: Final = -32004
NO_CONTENT_TYPE: Final = -32005
NO_EXTENDED_CARD: Final = -32007
NO_VERSION: Final = -32009
_REASONS: Final = {
    TASK_NOT_FOUND: "TASK_NOT_FOUND",
    NOT_CANCELABLE: "TASK_NOT_CANCELABLE",
    NO_PUSH: "PUSH_NOTIFICATION_NOT_SUPPORTED",
    UNSUPPORTED: "UNSUPPORTED_OPERATION",
    NO_CONTENT_TYPE: "CONTENT_TYPE_NOT_SUPPORTED",
    NO_EXTENDED_CARD: "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
    NO_VERSION: "VERSION_NOT_SUPPORTED",
}
"""Reasons of the A2A-specific errors (specification 1.0, section 9.5)."""

ANY_SKILL: Final = "task"
"""The skill in our card that leaves the choice of the specialist to routing."""
MAX_ID_LENGTH: Final = 200
"""Characters of a message's or a context's id."""
MAX_LISTED: Final = 100
"""Tasks on one page of a list (specification 1.0, section 3.1.4)."""
_KEY_PREFIX: Final = "a2a:"
"""Keeps message ids apart from idempotency keys of the API."""
_USER: Final = ("ROLE_USER", "user", 1)
_CAPITAL = regex("[A-Z]")
_FILES: Final = ("url", "raw", "file")
"""Keys that make a part a file: ``url`` and ``raw`` in 1.0, ``file`` in 0.3."""


class RpcError(Exception):
    """A JSON-RPC error response. problems: validation problems, for INVALID_PARAMS."""

    def __init__(self, code: int, message: str, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.problems = problems

    @property
    def document(self) -> dict[str, Any]:
        """The JSON-RPC error object, with google.rpc.BadRequest and google.rpc.ErrorInfo in ``data``."""
        data: list[dict[str, Any]] = []
        if self.problems:
            violations = [{"field": problem.field or "", "description": problem.render()} for problem in self.problems]
            data.append({"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations})
        if (reason := _REASONS.get(self.code)) is not None:
            info = {"reason": reason, "domain": "a2a-protocol.org"}
            data.append({"@type": "type.googleapis.com/google.rpc.ErrorInfo", **info})
        return {"code": self.code, "message": str(self), **({"data": data} if data else {})}


def no_push() -> RpcError:
    """Return the error for requests that ask for push notifications."""
    return RpcError(NO_PUSH, "push notifications are not offered; subscribe to the task instead")


@dataclass(frozen=True, slots=True)
class Message:
    """A message from a client."""

    id: str
    text: str
    task_id: str
    """The task that the message is addressed to. Empty: it starts a new task."""
    context_id: str
    """The client's or our id of the conversation. Empty: a new conversation."""
    specialist: str | None
    """The requested specialist, from ``executor.name``."""
    skill: str | None
    """The requested skill of that specialist, from ``skill_used``."""
    waits: bool
    """Whether the response is to wait until the task has ended or asks something."""
    key: RequestKey
    """Identifies a repeated message."""

    def task(self, creator: str) -> TaskSpec:
        """Return the new task that the message describes. creator: id of the sending principal. Raises RpcError."""
        digest = hashlib.sha256(f"{creator}\0{self.id}".encode()).hexdigest()[:12]
        asked = {"specialist": self.specialist, "skill": self.skill}
        document = {"name": f"a2a-{digest}", "instructions": self.text, "tags": ["a2a"]}
        parsed = parse_task(document | {key: value for key, value in asked.items() if value is not None})
        if isinstance(parsed, TaskSpec):
            return parsed
        raise RpcError(INVALID_PARAMS, problems_text(parsed), tuple(parsed))

    def answer(self) -> AnswerRequest:
        """Return the message as an answer to a task's question. Raises RpcError."""
        parsed = validate(AnswerRequest, {"text": self.text}, {})
        if isinstance(parsed, AnswerRequest):
            return parsed
        raise RpcError(INVALID_PARAMS, problems_text(parsed), tuple(parsed))


def field(value: Mapping[str, Any], name: str) -> Any:
    """Return the field under either of its ProtoJSON names, such as ``messageId`` or ``message_id``. None if it is
    null or absent, which ProtoJSON treats alike."""
    member = value.get(name)
    return value.get(_CAPITAL.sub(lambda letter: f"_{letter[0].lower()}", name)) if member is None else member


def parse_message(params: Mapping[str, Any]) -> Message:
    """Return the message in the parameters, of either version. Raises RpcError."""
    message = params.get("message")
    if not isinstance(message, Mapping):
        raise RpcError(INVALID_PARAMS, "`message` is missing")
    message_id = field(message, "messageId")
    if not isinstance(message_id, str) or not 0 < len(message_id) <= MAX_ID_LENGTH:
        raise RpcError(INVALID_PARAMS, f"`message.messageId` is not text of 1 to {MAX_ID_LENGTH} characters")
    role = message.get("role")
    if isinstance(role, bool) or role not in _USER:
        raise RpcError(INVALID_PARAMS, "`message.role` is not the user's")
    configuration = _mapping(params, "configuration")
    at_once = _flag(configuration, "returnImmediately") is True or _flag(configuration, "blocking") is False
    if field(configuration, "taskPushNotificationConfig") or field(configuration, "pushNotificationConfig"):
        raise no_push()
    metadata = {**_mapping(params, "metadata"), **_mapping(message, "metadata", " of the message")}
    specialist = _named(metadata, "executor.name") or _named(_mapping(metadata, "executor", " in the metadata"), "name")
    skill = _named(metadata, "skill_used")
    if specialist is None:
        # The skills in our card are specialists, so a skill without an executor names a specialist.
        specialist, skill = (None if skill == ANY_SKILL else skill), None
    context_id = _optional(message, "contextId") or ""
    if len(context_id) > MAX_ID_LENGTH:
        raise RpcError(INVALID_PARAMS, f"`message.contextId` has more than {MAX_ID_LENGTH} characters")
    fingerprint = hashlib.sha256(json.dumps([message, metadata], sort_keys=True).encode()).hexdigest()
    return Message(
        id=message_id,
        text=_text(message.get("parts")),
        task_id=_optional(message, "taskId") or "",
        context_id=context_id,
        specialist=specialist,
        skill=skill,
        waits=not at_once,
        key=RequestKey(f"{_KEY_PREFIX}{message_id}", fingerprint),
    )


@dataclass(frozen=True, slots=True)
class Listing:
    """A request for a page of tasks."""

    wanted: LatestFilter
    size: int
    """The maximum number of tasks on the page."""
    token: str | None
    """The cursor of the page. None: the first page."""
    artifacts: bool
    """Whether to include results."""


def parse_listing(params: Mapping[str, Any]) -> Listing:
    """Return the listing that parameters of ``ListTasks`` ask for. Raises RpcError."""
    size = _whole(params, "pageSize", MAX_LISTED // 2)
    if not 1 <= size <= MAX_LISTED:
        raise RpcError(INVALID_PARAMS, f"`pageSize` is not 1 to {MAX_LISTED}")
    after = _optional(params, "statusTimestampAfter", "")
    return Listing(
        LatestFilter(
            context=_optional(params, "contextId", "") or None,
            standings=_standings(params.get("status")),
            since_ms=None if after is None else _instant_ms(after),
        ),
        size,
        _optional(params, "pageToken", "") or None,
        field(params, "includeArtifacts") is True,
    )


def _standings(status: object) -> tuple[StateSelection, ...] | None:
    """Return the selection of our tasks for an A2A state, given by name or enum number. Raises RpcError."""
    if status in (None, 0, "TASK_STATE_UNSPECIFIED") and not isinstance(status, bool):
        return None
    for number, (state, standings) in enumerate(STANDINGS.items(), 1):
        if status == name_of(state) or (status == number and not isinstance(status, bool)):
            return standings
    raise RpcError(INVALID_PARAMS, f"`status` is not a state; use one of {', '.join(map(name_of, STANDINGS))}")


def _whole(value: Mapping[str, Any], name: str, otherwise: int) -> int:
    """Return the integer field, which ProtoJSON allows as a string, too. Raises RpcError."""
    text = field(value, name)
    if text is None:
        return otherwise
    if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < len(str(2**31)):
        return int(text)
    if isinstance(text, bool) or not isinstance(text, int | float) or text != int(text):
        raise RpcError(INVALID_PARAMS, f"`{name}` is not a whole number")
    return int(text)


def _instant_ms(text: str) -> int:
    with contextlib.suppress(ValueError, OverflowError):
        if datetime.fromisoformat(text).tzinfo is not None:
            return parse_instant(text)
    raise RpcError(INVALID_PARAMS, "`statusTimestampAfter` is not an instant such as 2026-12-01T08:00:00Z")


def _text(parts: object) -> str:
    if not isinstance(parts, list) or not parts:
        raise RpcError(INVALID_PARAMS, "`message.parts` is empty")
    return "\n".join(_part(part) for part in parts)


def _part(part: object) -> str:
    # A part has exactly one kind of content. A file beside a text would be ignored silently, so it is refused.
    given = (
        {key for key in ("text", "data", *_FILES) if part.get(key) is not None} if isinstance(part, Mapping) else set()
    )
    if isinstance(part, Mapping) and given <= {"text"} and isinstance(text := part.get("text"), str):
        return text
    if isinstance(part, Mapping) and "data" in part and given <= {"data"}:
        return json.dumps(part["data"], ensure_ascii=False)
    raise RpcError(NO_CONTENT_TYPE, "only `text` and `data` parts are supported; for a file, write where to find it")


def _mapping(value: Mapping[str, Any], key: str, where: str = "") -> Mapping[str, Any]:
    """Return the object, or an empty one if it is absent. Raises RpcError for any other type, not to ignore it."""
    item = value.get(key)
    if item is not None and not isinstance(item, Mapping):
        raise RpcError(INVALID_PARAMS, f"`{key}`{where} is not an object")
    return item or {}


def _flag(value: Mapping[str, Any], name: str) -> bool | None:
    text = field(value, name)
    if text is not None and not isinstance(text, bool):
        raise RpcError(INVALID_PARAMS, f"`configuration.{name}` is neither true nor false")
    return text


def _optional(value: Mapping[str, Any], key: str, prefix: str = "message.") -> str | None:
    text = field(value, key)
    if text is not None and not isinstance(text, str):
        raise RpcError(INVALID_PARAMS, f"`{prefix}{key}` is not text")
    return text


def _named(metadata: Mapping[str, Any], key: str) -> str | None:
    item = metadata.get(key)
    if item is not None and not isinstance(item, str):
        raise RpcError(INVALID_PARAMS, f"`{key}` in the metadata is not text")
    return item or None
