"""/.well-known/agent-card.json and /a2a: other agents submit tasks, follow them, and answer their questions.

Roles are those of the API: reading needs ``read``, anything else the role of its operation. A missing role is an HTTP
error as everywhere; errors that A2A defines are JSON-RPC errors.

The card follows a2a-protocol.org, specification 1.0, section 4.4, and 0.3, section 5.5. Where the versions differ, as
in security, it has the fields of both, so that one document serves all clients.
"""

import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from fastapi import Request
from fastapi.responses import JSONResponse, Response

from claudomator_py import __version__
from claudomator_py.api.guard.roles import OPERATIONS, Asking, Standing, may, not_permitted
from claudomator_py.api.operation import Allowed, UnlistedRoutes, access_of
from claudomator_py.api.problem import Refused
from claudomator_py.api.request import read_json
from claudomator_py.api.streams import HEARTBEAT, HEARTBEAT_S, MEDIA_TYPE, EventStream, Following, Streams, wants_stream
from claudomator_py.domain.card import Card
from claudomator_py.domain.errors import (
    Ambiguous,
    BadCursor,
    Conflict,
    Invalid,
    KeyReused,
    NotFound,
    ServiceError,
    problems_text,
)
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.protocols.a2a import tasks as shapes
from claudomator_py.protocols.a2a.messages import (
    ANY_SKILL,
    INVALID_PARAMS,
    INVALID_REQUEST,
    NO_EXTENDED_CARD,
    NO_METHOD,
    NO_VERSION,
    NOT_CANCELABLE,
    PARSE_ERROR,
    TASK_NOT_FOUND,
    UNSUPPORTED,
    Listing,
    Message,
    RpcError,
    no_push,
    parse_listing,
    parse_message,
)
from claudomator_py.protocols.a2a.tasks import Version
from claudomator_py.resources.session import Session
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.resources.tasks import TaskView
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.schema.validation import MAX_PROBLEMS, value_problems
from claudomator_py.surface import OPEN, READ
from claudomator_py.values import dataclass, regex

a2a = UnlistedRoutes()
"""Not part of the OpenAPI document: the agent card and the A2A specification describe it."""

log = logging.getLogger(__name__)

MAX_WAIT_S: Final = 600.0
"""How long one request waits for the task to end. After that it is answered with the task as it is."""

_METHODS: Final[Mapping[str, tuple[str, Version]]] = {
    "SendMessage": ("send", "1.0"),
    "SendStreamingMessage": ("stream", "1.0"),
    "GetTask": ("get", "1.0"),
    "ListTasks": ("list", "1.0"),
    "CancelTask": ("cancel", "1.0"),
    "SubscribeToTask": ("subscribe", "1.0"),
    "message/send": ("send", "0.3"),
    "message/stream": ("stream", "0.3"),
    "tasks/get": ("get", "0.3"),
    "tasks/cancel": ("cancel", "0.3"),
    "tasks/resubscribe": ("subscribe", "0.3"),
}
_NOT_OFFERED: Final = {
    # 1.0 reserves -32007 for a card that is advertised but missing; 0.3 has no other code for it.
    "GetExtendedAgentCard": UNSUPPORTED,
    "agent/getAuthenticatedExtendedCard": NO_EXTENDED_CARD,
}
_VERSION: Final = "A2A-Version"
_NEEDS: Final = {"send": "submitTask", "stream": "submitTask", "cancel": "cancelTask"}
_VERSIONS: Final = regex(r"(?:0\.3(?:\.\d+)?|1(?:\.\d+){0,2})?")
"""Accepted versions. Minor versions are compatible with earlier ones of the same major version (specification 1.0,
section 3.6). Empty means 0.3."""
_STREAMED: Final = ("stream", "subscribe")


@a2a.get("/.well-known/agent-card.json", OPEN)
def read_card(request: Request) -> dict[str, Any]:
    """Return the agent card, which needs no token and contains public specialists only."""
    specialists = access_of(request).as_(OPERATOR)[Specialists]
    return agent_card(str(request.base_url).rstrip("/"), specialists.public_cards())


@a2a.post("/a2a", READ)
async def call(request: Request, granted: Allowed, by: Asking, streams: Following, standing: Standing) -> Response:
    """Answer one JSON-RPC request, by a document or a stream of events."""
    rpc_id: object = None
    as_event = False
    try:
        document = await _document(request)
        as_event = _is_read_as_event(request, document.get("method"))
        # Text that the database cannot hold cannot be sent in an answer either.
        if odd := value_problems(document, {}):
            raise RpcError(INVALID_PARAMS, problems_text(odd[:MAX_PROBLEMS]), tuple(odd[:MAX_PROBLEMS]))
        rpc_id = _rpc_id(document)
        wanted = request.headers.get(_VERSION) or request.query_params.get(_VERSION, "")
        method, version, params = _read(document, wanted)
        if (operation := _NEEDS.get(method)) is not None and not may(by, operation):
            raise not_permitted(by, OPERATIONS[operation])
        caller = _Caller(granted, by, streams, standing, version, rpc_id)
        if method in _STREAMED:
            task = await streams.run(partial(_task_to_stream, caller, method, params))
            return EventStream(streams, _stream(caller, task))
        return JSONResponse(_result(rpc_id, await _outcome(request, caller, method, params)))
    except RpcError as error:
        response = {"jsonrpc": "2.0", "id": rpc_id, "error": error.document}
        return Response(_data(response), media_type=MEDIA_TYPE) if as_event else JSONResponse(response)


def _is_read_as_event(request: Request, method: object) -> bool:
    """Return whether an error is sent as an event: if the client asked for a stream, or is of version 0.3, whose
    clients read nothing else for a streaming method."""
    action, version = _METHODS.get(str(method), ("", "1.0"))
    return action in _STREAMED and (version == "0.3" or wants_stream(request))


async def _document(request: Request) -> dict[str, Any]:
    """Return the request's body. Raises RpcError if it is not a request, Refused for another media type."""
    try:
        document = await read_json(request)
    except Refused as refused:
        if refused.code != "bad_json":
            raise
        raise RpcError(PARSE_ERROR, str(refused)) from refused
    if isinstance(document, dict):
        return document
    batch = "; batches are not offered" if isinstance(document, list) else ""
    raise RpcError(INVALID_REQUEST, f"this is not a JSON-RPC 2.0 request{batch}")


@dataclass(frozen=True, slots=True)
class _Caller:
    """The caller of one request, and what is needed to answer it."""

    granted: Session
    by: Principal
    streams: Streams
    standing: Callable[[], bool]
    version: Version
    rpc_id: object

    def task(self, task_id: str) -> TaskView:
        """Return the task with exactly this id, not a prefix. Raises RpcError."""
        try:
            task = self.granted[Tasks].get(task_id)
        except (NotFound, Ambiguous):
            task = None
        if task is None or task.id != task_id:
            raise RpcError(TASK_NOT_FOUND, "there is no such task")
        return task


def _rpc_id(document: Mapping[str, Any]) -> object:
    """Return the request's id, or None if it has none. Raises RpcError for any other type."""
    task_id = document.get("id")
    if isinstance(task_id, bool) or not isinstance(task_id, str | int | None):
        raise RpcError(INVALID_REQUEST, "`id` is neither text nor a whole number")
    return task_id


def _read(document: Mapping[str, Any], wanted: str) -> tuple[str, Version, Mapping[str, Any]]:
    """Return the action, the protocol version and the parameters. Raises RpcError."""
    name, params = document.get("method"), document.get("params")
    if document.get("jsonrpc") != "2.0" or not isinstance(name, str):
        raise RpcError(INVALID_REQUEST, "this is not a JSON-RPC 2.0 request")
    if _VERSIONS.fullmatch(wanted.strip()) is None:
        raise RpcError(NO_VERSION, f"A2A {wanted[:20]!r} is not supported; use 1.0 or 0.3")
    if name in _NOT_OFFERED:
        raise RpcError(_NOT_OFFERED[name], f"{name} is not offered")
    if "PushNotificationConfig" in name or "pushNotificationConfig" in name:
        raise no_push()
    if name not in _METHODS:
        raise RpcError(NO_METHOD, f"there is no method {name[:60]!r}")
    if not isinstance(params, Mapping | None):
        raise RpcError(INVALID_PARAMS, "`params` is not an object")
    return (*_METHODS[name], params or {})


async def _outcome(request: Request, caller: _Caller, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a method that does not stream. Raises RpcError."""
    run = caller.streams.run
    if method == "get":
        return shapes.whole(await run(lambda: caller.task(_id(params))), caller.version)
    if method == "list":
        return await run(lambda: _listed(caller, parse_listing(params)))
    if method == "cancel":
        return shapes.whole(await run(lambda: _cancel(caller, _id(params))), caller.version)
    message = parse_message(params)
    task = await run(lambda: _send(caller, message))
    if message.waits:
        task = await _wait_until_settled(request, caller, task)
    return shapes.answer(task, caller.version)


def _task_to_stream(caller: _Caller, method: str, params: Mapping[str, Any]) -> TaskView:
    """Return the task to be streamed, which a message may create. Raises RpcError."""
    if method == "stream":
        return _send(caller, parse_message(params))
    task = caller.task(_id(params))
    if shapes.state_of(task) in shapes.ENDS:
        raise RpcError(UNSUPPORTED, f"the task is {task.state} and will not change any more; use GetTask")
    return task


def _id(params: Mapping[str, Any]) -> str:
    rpc_id = params.get("id")
    if not isinstance(rpc_id, str) or not rpc_id:
        raise RpcError(INVALID_PARAMS, "`id` names no task")
    return rpc_id


def _send(caller: _Caller, message: Message) -> TaskView:
    """Submit or answer a task, and return it as it is now. Raises RpcError."""
    service = caller.granted[Tasks]
    try:
        if message.task_id:
            task = caller.task(message.task_id)
            if message.context_id not in ("", shapes.context_of(task)):
                raise RpcError(INVALID_PARAMS, "`message.contextId` is not that of the task")
            reply = service.answer(task.id, message.answer(), key=message.key)
        else:
            reply = service.submit(message.task(caller.by.id), key=message.key, context=message.context_id or None)
    except Conflict as error:
        raise RpcError(UNSUPPORTED, _words(error)) from error
    except KeyReused as error:
        detail = "this `messageId` was sent before, with another message; give each message an id of its own"
        raise RpcError(INVALID_PARAMS, detail) from error
    except Invalid as error:
        raise RpcError(INVALID_PARAMS, _words(error), tuple(error.problems)) from error
    # To a repeated message the service returns the task as it was at first.
    return caller.task(reply.id)


def _listed(caller: _Caller, listing: Listing) -> dict[str, Any]:
    """Return a page of the list of tasks. Raises RpcError."""
    try:
        tasks, total = caller.granted[Tasks].latest(listing.wanted, listing.token, listing.size)
    except BadCursor as error:
        detail = "`pageToken` does not belong to this list; send nextPageToken unchanged, with the same filters"
        raise RpcError(INVALID_PARAMS, detail) from error
    return shapes.page(tasks, total, listing.size, artifacts=listing.artifacts)


def _cancel(caller: _Caller, task_id: str) -> TaskView:
    task = caller.task(task_id)
    try:
        caller.granted[Tasks].cancel(task.id)
    except Conflict as error:
        raise RpcError(NOT_CANCELABLE, _words(error)) from error
    return caller.task(task.id)


def _words(error: ServiceError) -> str:
    return f"{error.detail} {error.remedy}" if error.remedy else error.detail


async def _wait_until_settled(request: Request, caller: _Caller, task: TaskView) -> TaskView:
    """Wait until the task has ended or asks something, the client is gone or time is up, and return it."""
    until = time.monotonic() + MAX_WAIT_S
    streams = caller.streams
    with streams.place(request.state.principal):
        while not shapes.is_settled(task) and not streams.closing and time.monotonic() < until:
            bell = streams.bell()
            task = await streams.run(partial(caller.task, task.id))
            if shapes.is_settled(task):
                break
            while not await streams.wait(bell, HEARTBEAT_S):
                if not caller.standing() or time.monotonic() >= until or await request.is_disconnected():
                    return task
    return task


async def _stream(caller: _Caller, task: TaskView) -> AsyncIterator[bytes]:
    """Yield the task and its changes as events, until it has ended or asks something."""
    try:
        async for event in _changes(caller, task):
            yield event
    except (ServiceError, RpcError) as error:
        log.warning("a stream of a task ends early: %s", error)  # the client can still get the task


async def _changes(caller: _Caller, task: TaskView) -> AsyncIterator[bytes]:
    yield _event(caller, shapes.answer(task, caller.version))
    sent, streams = shapes.mark(task), caller.streams
    while not shapes.is_settled(task) and not streams.closing:
        bell = streams.bell()
        task = await streams.run(partial(caller.task, task.id))
        if not caller.standing():
            return
        if shapes.mark(task) != sent:
            sent = shapes.mark(task)
            yield b"".join(_event(caller, change) for change in shapes.changes(task, caller.version))
            continue
        while not await streams.wait(bell, HEARTBEAT_S):
            if not caller.standing():
                return
            yield HEARTBEAT


def _event(caller: _Caller, result: dict[str, Any]) -> bytes:
    return _data(_result(caller.rpc_id, result))


def _data(document: Mapping[str, Any]) -> bytes:
    """Return the document as one server-sent event."""
    return f"data: {json.dumps(document)}\n\n".encode()


def _result(rpc_id: object, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": rpc_id, "result": result}


MAX_EXAMPLES: Final = 5
_TEXT: Final = ["text/plain"]
_BEARER: Final = {"scheme": "bearer"}
_ANY: Final = {
    "id": ANY_SKILL,
    "name": "Do a task",
    "description": "Gives the task to the agent that suits it.",
    "tags": ["task"],
}


def agent_card(base: str, cards: Sequence[Card]) -> dict[str, Any]:
    """Return the card as JSON. base: the URL that the request was sent to. cards: the public specialists."""
    url = f"{base}/a2a"
    versions = ("1.0", "0.3")
    interfaces = [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": version} for version in versions]
    return {
        "name": "Claudomator",
        "description": "Dispatches tasks to coding agents, unattended. A task without `executor.name` goes to whoever "
        "suits it; `executor.name` in the message's metadata names one of the skills below, and `skill_used` a "
        "skill of that one.",
        "version": __version__,
        "supportedInterfaces": interfaces,
        "capabilities": {"streaming": True, "pushNotifications": False},
        "securitySchemes": {"token": {"httpAuthSecurityScheme": _BEARER, "type": "http", **_BEARER}},
        "securityRequirements": [{"schemes": {"token": {"list": []}}}],
        "security": [{"token": []}],
        "defaultInputModes": _TEXT,
        "defaultOutputModes": _TEXT,
        "skills": [_ANY, *map(_skill, cards)],
        "url": url,
        "preferredTransport": "JSONRPC",
        "protocolVersion": "0.3.0",
    }


def _skill(card: Card) -> dict[str, Any]:
    """Return a specialist as an A2A skill; its own skills are listed in the description."""
    examples = [example for skill in card.skills for example in skill.examples][:MAX_EXAMPLES]
    able = ", ".join(f"{skill.name} (`{skill.id}`)" for skill in card.skills)
    return {
        "id": card.id,
        "name": card.title,
        "description": f"{card.description}{f' Skills, for `skill_used`: {able}.' if able else ''}",
        "tags": list(card.keywords) or [card.id],
        **({"examples": examples} if examples else {}),
    }
