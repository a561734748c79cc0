"""A2A 1.0 and 0.3 as JSON: requests, and answers of both versions as one value.

Source: a2a-protocol.org, specification 1.0 (methods in section 9, enum values as ProtoJSON) and 0.3.
"""

import json
from typing import Any, Final

from claudomator_py.json_fields import Event, event_of, objects_of, text_of
from claudomator_py.values import dataclass

V1: Final = "1.0"
V0_3: Final = "0.3"

SEND, STREAM, GET, CANCEL, SUBSCRIBE = "send", "stream", "get", "cancel", "subscribe"
METHODS: Final = {
    V1: {
        SEND: "SendMessage",
        STREAM: "SendStreamingMessage",
        GET: "GetTask",
        CANCEL: "CancelTask",
        SUBSCRIBE: "SubscribeToTask",
    },
    V0_3: {
        SEND: "message/send",
        STREAM: "message/stream",
        GET: "tasks/get",
        CANCEL: "tasks/cancel",
        SUBSCRIBE: "tasks/resubscribe",
    },
}
ENDS: Final = frozenset({"completed", "failed", "canceled", "rejected"})
"""States in which a task takes no more messages."""
ASKS: Final = frozenset({"input-required", "auth-required"})
"""States in which a task waits for a message."""

TASK_NOT_FOUND: Final = -32001


@dataclass(frozen=True)
class Artifact:
    """A result, or a part of one."""

    id: str
    name: str
    text: str
    append: bool
    """Whether the text continues the artifact of that id."""


@dataclass(frozen=True)
class Update:
    """What an answer or an event says about a task, whole or in part."""

    task_id: str = ""
    """Empty: not given."""
    context_id: str = ""
    """Empty: not given."""
    state: str = ""
    """In the notation of 0.3, such as ``input-required``; empty: not given."""
    mark: tuple[str, str] = ("", "")
    """Tells two statuses of the same state apart: the time and the message's id."""
    text: str = ""
    """The text of the status's message, or of the message itself."""
    artifacts: tuple[Artifact, ...] = ()
    is_message: bool = False
    """Whether it is an answer without a task, which ends the run."""
    usage: Event | None = None
    """The object ``metadata.usage``, if there is one."""


def request(version: str, method: str, params: dict[str, Any]) -> bytes:
    """Return a JSON-RPC request. method: a key of ``METHODS``."""
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": METHODS[version][method], "params": params}).encode()


def message(
    version: str, text: str, message_id: str, *, task_id: str = "", context_id: str = "", metadata: dict[str, Any]
) -> dict[str, Any]:
    """Return the parameters of a message that is answered before its task has ended."""
    message: dict[str, Any] = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}]}
    configuration: dict[str, Any] = {"returnImmediately": True}
    if version == V0_3:
        message |= {"kind": "message", "role": "user", "parts": [{"kind": "text", "text": text}]}
        configuration = {"blocking": False}
    message |= {"taskId": task_id} if task_id else {}
    message |= {"contextId": context_id} if context_id else {}
    if not metadata:
        return {"message": message, "configuration": configuration}
    # In both places: servers pass on the metadata of either the message or the request.
    return {"message": message | {"metadata": metadata}, "configuration": configuration, "metadata": metadata}


def read(value: Any) -> Update | None:
    """Return the update in a result of either version; None: not one that is known."""
    if not isinstance(value, dict):
        return None
    for key in ("task", "message", "statusUpdate", "artifactUpdate"):
        if isinstance(value.get(key), dict) and "kind" not in value:
            return _READ[key](value[key])
    kinds = {"task": "task", "message": "message", "status-update": "statusUpdate", "artifact-update": "artifactUpdate"}
    if (kind := kinds.get(_text(value, "kind"))) is not None:
        return _READ[kind](value)
    return _task(value) if _text(value, "id") and isinstance(value.get("status"), dict) else None


def _task(task: Event) -> Update:
    status = event_of(task, "status")
    artifacts = [_artifact(artifact, append=False) for artifact in objects_of(task, "artifacts")]
    replies = [entry for entry in objects_of(task, "history") if _text(entry, "role") in ("agent", "ROLE_AGENT")]
    words = _parts(event_of(status, "message")) or (_parts(replies[-1]) if replies and not artifacts else "")
    return Update(
        task_id=_text(task, "id"),
        context_id=_text(task, "contextId"),
        state=_state(status),
        mark=_mark(status),
        text=words,
        artifacts=tuple(artifacts),
        usage=_usage(task) or _usage(event_of(status, "message")),
    )


def _message(message: Event) -> Update:
    return Update(
        task_id=_text(message, "taskId"),
        context_id=_text(message, "contextId"),
        text=_parts(message),
        is_message=True,
        usage=_usage(message),
    )


def _status(update: Event) -> Update:
    status = event_of(update, "status")
    return Update(
        task_id=_text(update, "taskId"),
        context_id=_text(update, "contextId"),
        state=_state(status),
        mark=_mark(status),
        text=_parts(event_of(status, "message")),
        usage=_usage(update) or _usage(event_of(status, "message")),
    )


def _artifact_update(update: Event) -> Update:
    piece = _artifact(event_of(update, "artifact"), append=update.get("append") is True)
    return Update(
        task_id=_text(update, "taskId"),
        context_id=_text(update, "contextId"),
        artifacts=(piece,),
        usage=_usage(update),
    )


_READ: Final = {"task": _task, "message": _message, "statusUpdate": _status, "artifactUpdate": _artifact_update}


def _artifact(value: Event, *, append: bool) -> Artifact:
    return Artifact(_text(value, "artifactId"), _text(value, "name"), _parts(value), append)


def _parts(value: Event) -> str:
    """Return the text of the parts: text parts joined as they are, as in a stream, others on lines of their own."""
    detail = ""
    after_text = True
    for part in objects_of(value, "parts"):
        is_text = "text" in part
        if words := _part(part):
            detail += words if (is_text and after_text) or not detail else f"\n{words}"
            after_text = is_text
    return detail


def _part(part: Event) -> str:
    """Return text as it is, data as JSON, and of a file only its name and place: nothing is fetched."""
    if "text" in part:
        return _text(part, "text")
    if "data" in part:
        return json.dumps(part["data"], ensure_ascii=False)
    file = event_of(part, "file") or part
    where = _text(file, "uri") or _text(file, "url")
    held = _text(file, "bytes") or _text(file, "raw")
    name = _text(file, "name") or _text(file, "filename") or "a file"
    kind = _text(file, "mimeType") or _text(file, "mediaType")
    what = where or f"{len(held) * 3 // 4} bytes"
    return f"[{name}{f', {kind}' if kind else ''}: {what}]" if where or held else ""


def _state(status: Event) -> str:
    return _text(status, "state").removeprefix("TASK_STATE_").lower().replace("_", "-").replace("cancelled", "canceled")


def _mark(status: Event) -> tuple[str, str]:
    return _text(status, "timestamp"), _text(event_of(status, "message"), "messageId")


def _usage(value: Event) -> Event | None:
    return event_of(event_of(value, "metadata"), "usage") or None


def _text(value: Event, key: str) -> str:
    return text_of(value, key) or ""
