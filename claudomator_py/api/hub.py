"""/v1/hub: agents connect, by JSON-RPC 2.0 over WebSocket, and are given the tasks of the specialist that they are.

Who it is was settled before the connection was accepted (``guard/security.py``), and each frame is judged by that:
nothing that a frame says can end more than its own request, but for what is no text, too long or too much.
"""

import asyncio
import hashlib
import itertools
import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.websockets import WebSocket, WebSocketState

from claudomator_py.api.events import Streams
from claudomator_py.api.guard.roles import OPERATIONS, may, not_permitted
from claudomator_py.api.problem import Refused as Forbidden
from claudomator_py.dispatch.hub import Gone, Hub, Link, Refused
from claudomator_py.domain.card import Card
from claudomator_py.domain.errors import Conflict, Invalid, NotFound, ServiceError, problems_text
from claudomator_py.domain.fields import Name
from claudomator_py.domain.principal import Principal, RequestKey
from claudomator_py.schema.a2a_card import A2A_FIELDS, is_a2a, read_a2a
from claudomator_py.schema.taskfile import parse_task
from claudomator_py.schema.validation import MAX_PROBLEMS, odd_values, validate
from claudomator_py.service.access import Access, Granted
from claudomator_py.store.database import StoreUnavailable

log = logging.getLogger(__name__)

PATH: Final = "/v1/hub"
MOST_BYTES: Final = 1024 * 1024
"""Of a frame. Beyond it the connection is closed with 1009."""
FRAMES_A_SECOND: Final = 50.0
FRAMES_AT_ONCE: Final = 200
"""Beyond it the connection is closed with 1008."""
_CONNECTIONS: Final = 1_000
"""Of one principal; beyond it the next one is refused before it is accepted."""
_LONGEST_ERROR: Final = 500

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
NOT_PERMITTED, NOT_FOUND, CONFLICT, UNAVAILABLE = -32001, -32004, -32009, -32050


class RpcError(Exception):
    """What a request is answered with instead of a result."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def document(self) -> dict[str, Any]:
        """As JSON-RPC has it."""
        return {"code": self.code, "message": str(self)}


class _Params(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


_Id = Annotated[str, Field(min_length=1, max_length=200)]
_Text = Annotated[str, Field(max_length=MOST_BYTES)]


class _Register(_Params):
    agent_id: Name
    instance_id: _Id
    card: dict[str, Any]
    max_concurrent: Annotated[int, Field(ge=1, le=1_000)] = 1
    resume: Annotated[list[_Id], Field(max_length=1_000)] = Field(default_factory=list)


class _Search(_Params):
    query: Annotated[str, Field(min_length=1, max_length=1_000)]
    limit: Annotated[int, Field(ge=1, le=50)] = 10


class _Submit(_Params):
    name: _Id
    instructions: _Text
    specialist: str | None = None
    skill: str | None = None
    idempotency_key: Annotated[str, Field(min_length=1, max_length=255)] | None = None


class _Progress(_Params):
    assignment_id: _Id
    seq: Annotated[int, Field(ge=0, lt=2**53)] = 0
    text: Annotated[str, Field(max_length=100_000)] = ""
    percent: Annotated[float, Field(ge=0, le=100)] | None = None


class _Result(_Params):
    assignment_id: _Id
    status: Annotated[str, Field(pattern="^(succeeded|failed)$")]
    text: _Text = ""
    reason: Annotated[str, Field(max_length=200)] | None = None


class HubEndpoint:
    """Where agents connect. ``look`` is for any thread, the rest for the loop."""

    def __init__(self, hub: Hub, access: Access, streams: Streams) -> None:
        self._hub = hub
        self._access = access
        self._streams = streams
        self._open: set[_Connection] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __call__(self, websocket: WebSocket) -> None:
        """One connection, from its opening handshake to its end."""
        self._loop = asyncio.get_running_loop()
        state = websocket.scope["state"]
        by, standing = state["principal"], state["standing"]
        if sum(one.by == by for one in self._open) >= _CONNECTIONS:
            await websocket.close(1008)
            return
        connection = _Connection(websocket, self._hub, self._access.as_(by), self._streams, by, standing)
        self._open.add(connection)
        try:
            await websocket.accept()
            await connection.serve()
        finally:
            self._open.discard(connection)

    def look(self) -> None:
        """A token may have been revoked: whose it was is cut off, and given nothing more."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cut_off)

    def _cut_off(self) -> None:
        for connection in self._open:
            connection.check()


class _Connection:
    """One that was accepted. Implements ``dispatch.hub.Peer``."""

    def __init__(
        self,
        websocket: WebSocket,
        hub: Hub,
        granted: Granted,
        streams: Streams,
        by: Principal,
        standing: Callable[[], bool],
    ) -> None:
        self._websocket = websocket
        self._hub = hub
        self._granted = granted
        self._streams = streams
        self.by = by
        self._standing = standing
        self._link: Link | None = None
        self._ids = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._sending = asyncio.Lock()
        self._bucket = _Bucket()
        self._closing: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Take frames until the connection ends."""
        try:
            while True:
                message = await self._websocket.receive()
                if message["type"] != "websocket.receive":
                    return
                if message.get("text") is None:
                    await self._end(1003, "frames are text")
                    return
                if not self._bucket.take():
                    await self._end(1008, "too many messages")
                    return
                if not self.check():
                    return
                await self._take(message["text"])
        except Gone:
            return
        finally:
            for future in self._asked.values():
                future.cancel()
            if self._link is not None:
                self._hub.leave(self._link)

    # --- what the hub asks of it ----------------------------------------------------------------------------------

    async def ask(self, method: str, params: Mapping[str, Any], timeout_s: float) -> Any:
        """See ``Peer``."""
        number = next(self._ids)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        try:
            async with asyncio.timeout(timeout_s):
                await self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": dict(params)})
                return await answer
        except TimeoutError:
            raise Gone(f"no answer to {method} within {timeout_s:.0f} seconds") from None
        except asyncio.CancelledError:
            if answer.cancelled():
                raise Gone("the connection has ended") from None
            raise
        finally:
            self._asked.pop(number, None)

    def close(self, code: int, reason: str) -> None:
        """See ``Peer``."""
        task = asyncio.ensure_future(self._end(code, reason))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def check(self) -> bool:
        """Whether its token is still good; if not, it ends."""
        if self._standing():
            return True
        if self._link is not None:
            self._hub.leave(self._link)
        self.close(1008, "the token is no longer valid")
        return False

    async def _end(self, code: int, reason: str) -> None:
        if self._websocket.application_state is WebSocketState.CONNECTED:
            try:
                await self._websocket.close(code, reason[:100])
            except (RuntimeError, OSError):  # it has ended already
                return

    async def _send(self, document: Mapping[str, Any]) -> None:
        """Raises Gone."""
        text = json.dumps(document, ensure_ascii=False, allow_nan=False)
        async with self._sending:
            if self._websocket.application_state is not WebSocketState.CONNECTED:
                raise Gone("the connection has ended")
            try:
                await self._websocket.send_text(text)
            except Exception as error:  # whatever the server's library raises for a connection that is gone
                raise Gone(f"the connection has ended: {type(error).__name__}") from None

    # --- what the agent asks --------------------------------------------------------------------------------------

    async def _take(self, text: str) -> None:
        """Answer one frame. Raises Gone."""
        rpc_id: object = None
        try:
            document = _parsed(text)
            rpc_id = _id_of(document)
            if odd := odd_values(document, {}):
                raise RpcError(INVALID_REQUEST, problems_text(odd[:MAX_PROBLEMS]))
            if "method" not in document and ("result" in document or "error" in document):
                self._answered(document)
                return
            method, params, wanted = _request(document)
        except RpcError as error:
            await self._send({"jsonrpc": "2.0", "id": rpc_id, "error": error.document})
            return
        try:
            said: dict[str, Any] = {"result": await self._called(method, params)}
        except RpcError as error:
            said = {"error": error.document}
        except Exception:
            log.exception("%s of the hub failed", method)
            said = {"error": RpcError(INTERNAL, "the daemon failed at it; see its log").document}
        if wanted:
            await self._send({"jsonrpc": "2.0", "id": rpc_id, **said})

    def _answered(self, document: Mapping[str, Any]) -> None:
        """The agent answers a request of ours; what nobody asked is nothing."""
        number = document.get("id")
        future = self._asked.get(number) if isinstance(number, int) and not isinstance(number, bool) else None
        if future is None or future.done():
            return
        error = document.get("error")
        if error is None:
            future.set_result(document.get("result"))
            return
        code = error.get("code") if isinstance(error, Mapping) else None
        message = error.get("message") if isinstance(error, Mapping) else None
        words = str(message or "it gave no reason")[:_LONGEST_ERROR]
        future.set_exception(Refused(code if isinstance(code, int) else 0, words))

    async def _called(self, method: str, params: Mapping[str, Any]) -> Any:
        """The result. Raises RpcError."""
        match method:
            case "agent.register":
                return await self._register(_checked(_Register, params))
            case "agent.search":
                return await self._search(_checked(_Search, params))
            case "task.submit":
                return await self._submit(_checked(_Submit, params))
            case "task.progress":
                await self._progress(_checked(_Progress, params))
                return {}
            case "task.result":
                return await self._result(_checked(_Result, params))
            case "ping":
                return {}
        raise RpcError(NO_METHOD, f"there is no method {method[:60]!r}")

    async def _register(self, asked: _Register) -> dict[str, Any]:
        self._permit("registerSpecialist")
        if self._link is not None and self._link.agent_id != asked.agent_id:
            raise RpcError(CONFLICT, f"this connection is {self._link.agent_id}; open another one")
        # Where it is reached, and how much it takes, the connection says.
        said = {"url": f"ws-agent://{asked.agent_id}", "id": asked.agent_id, "max_concurrent": asked.max_concurrent}
        for key in () if is_a2a(asked.card) else ("url", "id"):
            if asked.card.get(key, said[key]) != said[key]:
                raise RpcError(INVALID_PARAMS, f"card.{key}: is not {said[key]}; leave it out")
        card = validate(Card, _own_fields(asked.card) | said, {}, ("card",))
        if isinstance(card, list):
            raise RpcError(INVALID_PARAMS, problems_text(card[:MAX_PROBLEMS]))
        await self._run(lambda: self._granted.specialists.register(card, source="hub"))
        if self._link is None:
            self._link = Link(asked.agent_id, asked.instance_id, asked.max_concurrent, self)
        self._link.instance_id, self._link.most = asked.instance_id, asked.max_concurrent
        resumed = await self._hub.join(self._link, asked.resume)
        return {"agent_id": asked.agent_id, "resumed": resumed}

    async def _search(self, asked: _Search) -> dict[str, Any]:
        own = None if self._link is None else self._link.agent_id
        found = await self._run(lambda: self._granted.specialists.search(asked.query, asked.limit + 1))
        others = [one for one in found.items if one.specialist.id != own]
        agents = [
            {
                "name": one.specialist.id,
                "description": one.specialist.content.description,
                "skills": [{"id": skill.id, "name": skill.name} for skill in one.specialist.content.skills],
                "score": one.score,
                "best_skill_id": one.best_skill_id,
            }
            for one in others[: asked.limit]
        ]
        return {"agents": agents, "total": found.total - (len(others) < len(found.items))}

    async def _submit(self, asked: _Submit) -> dict[str, Any]:
        self._permit("submitTask")
        document = asked.model_dump(exclude_none=True, exclude={"idempotency_key"})
        spec = parse_task(document)
        if isinstance(spec, list):
            raise RpcError(INVALID_PARAMS, problems_text(spec[:MAX_PROBLEMS]))
        key = None if asked.idempotency_key is None else _key(asked.idempotency_key, document)
        task = await self._run(lambda: self._granted.service.submit(spec, key=key))
        return {"task_id": task.id, "state": task.state}

    async def _progress(self, asked: _Progress) -> None:
        said = asked.model_dump(exclude={"assignment_id"}, exclude_none=True)
        if self._link is not None:
            await self._hub.progress(self._link.agent_id, asked.assignment_id, said)

    async def _result(self, asked: _Result) -> dict[str, Any]:
        if self._link is None:
            raise RpcError(CONFLICT, "register first")
        end: dict[str, Any] = {"type": "end", "outcome": "completed" if asked.status == "succeeded" else "failed"}
        end |= {key: value for key, value in (("text", asked.text), ("reason", asked.reason)) if value}
        try:
            duplicate = await self._hub.result(self._link, asked.assignment_id, end)
        except ServiceError as error:
            raise _refusal(error) from error
        except (StoreUnavailable, OSError) as error:
            raise RpcError(UNAVAILABLE, "it could not be recorded; send it again") from error
        return {"recorded": True, "duplicate": duplicate}

    def _permit(self, operation: str) -> None:
        if not may(self.by, operation):
            refused: Forbidden = not_permitted(self.by, OPERATIONS[operation])
            raise RpcError(NOT_PERMITTED, str(refused))

    async def _run(self, call: Callable[[], Any]) -> Any:
        """What the service says. Raises RpcError."""
        try:
            return await self._streams.run(call)
        except ServiceError as error:
            raise _refusal(error) from error


def _own_fields(card: dict[str, Any]) -> dict[str, Any]:
    """The card in our terms. One of A2A may have our keys beside its own. Raises RpcError."""
    if not is_a2a(card):
        return card
    ours = {key: card[key] for key in Card.model_fields.keys() - A2A_FIELDS if key in card}
    read = read_a2a({key: value for key, value in card.items() if key not in ours})
    if isinstance(read, list):
        raise RpcError(INVALID_PARAMS, problems_text(read[:MAX_PROBLEMS]))
    return read.document | ours


def _key(name: str, document: Mapping[str, Any]) -> RequestKey:
    """Apart from the keys that clients of the API choose."""
    said = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return RequestKey(f"hub:{name}", hashlib.sha256(said.encode()).hexdigest())


class _Bucket:
    """How many frames may come now."""

    def __init__(self) -> None:
        self._left = float(FRAMES_AT_ONCE)
        self._at_s = time.monotonic()

    def take(self) -> bool:
        """Whether this one may."""
        now_s = time.monotonic()
        self._left = min(FRAMES_AT_ONCE, self._left + (now_s - self._at_s) * FRAMES_A_SECOND)
        self._at_s = now_s
        if self._left < 1:
            return False
        self._left -= 1
        return True


def _parsed(text: str) -> Mapping[str, Any]:
    """Raises RpcError."""
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise RpcError(PARSE_ERROR, "this is not JSON") from None
    if not isinstance(document, dict):
        raise RpcError(INVALID_REQUEST, "this is not a JSON-RPC 2.0 request; batches are not offered")
    return document


def _id_of(document: Mapping[str, Any]) -> object:
    """By which the answer is known; None: it has none that could be sent back."""
    found = document.get("id")
    if isinstance(found, bool) or not isinstance(found, str | int | float) or odd_values({"id": found}, {}):
        return None
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _request(document: Mapping[str, Any]) -> tuple[str, Mapping[str, Any], bool]:
    """Method, parameters, and whether an answer is wanted. Raises RpcError."""
    method, rpc_id = document.get("method"), document.get("id")
    if document.get("jsonrpc") != "2.0" or not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "this is not a JSON-RPC 2.0 request")
    if isinstance(rpc_id, bool) or not isinstance(rpc_id, str | int | float | None):
        raise RpcError(INVALID_REQUEST, "`id` is neither text nor a number")
    params = document.get("params", {})
    if isinstance(params, list):
        raise RpcError(INVALID_PARAMS, "`params` is a list; name them in an object")
    if not isinstance(params, Mapping):
        raise RpcError(INVALID_REQUEST, "`params` is not an object")
    return method, params, "id" in document


def _checked(shape: type[Any], params: Mapping[str, Any]) -> Any:
    """Raises RpcError."""
    try:
        return shape.model_validate(params)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "params"
        raise RpcError(INVALID_PARAMS, f"{where}: {first['msg']}") from None


def _refusal(error: ServiceError) -> RpcError:
    code = CONFLICT if isinstance(error, Conflict) else NOT_FOUND if isinstance(error, NotFound) else INVALID_PARAMS
    if not isinstance(error, Conflict | NotFound | Invalid):
        code = {"forbidden": NOT_PERMITTED, "unavailable": UNAVAILABLE}.get(error.status, INVALID_PARAMS)
    return RpcError(code, f"{error.detail} {error.remedy}".strip())
