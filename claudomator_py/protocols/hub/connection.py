"""JSON-RPC 2.0 over WebSocket: connections of agents, and the frames on them.

Who it is was settled before the connection was accepted (``guard/security.py``), and each frame is judged by that:
nothing that a frame says can end more than its own request, but for what is no text, too long or too much.
"""

import asyncio
import itertools
import json
import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol

from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketState

from claudomator_py.api.guard.limits import Rate, TokenBucket
from claudomator_py.api.guard.pace import Pace, Paces
from claudomator_py.api.streams import Streams
from claudomator_py.daemon.process import give_back
from claudomator_py.domain.errors import ServiceError, problems_text
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.protocols.hub.hub import AgentGone, AgentRefused, Hub
from claudomator_py.protocols.hub.methods import (
    INTERNAL,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    HubError,
    Methods,
)
from claudomator_py.resources.session import Access, Session
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.schema.validation import MAX_JSON_PARTS, MAX_PROBLEMS, has_too_many_parts, odd_values

log = logging.getLogger(__name__)

PATH: Final = "/v1/hub"
FRAMES: Final = Rate(50, 200)
"""Beyond it the connection is closed with 1008."""
_MAX_CONNECTIONS: Final = 1_000
"""Of one principal; beyond it the next one is refused before it is accepted."""
_MAX_ERROR_LENGTH: Final = 500
_CONNECTION_S: Final = 0.002
_MESSAGE_S: Final = 0.0003
_CHARACTER_S: Final = 1e-8
"""Seconds of processor time that an opening handshake or a message costs the loop, about."""
_CROWD: Final = 100
"""Connections that are over: what they took is given back to the system, once no more of them end."""
_SETTLED_S: Final = 2.0
_TOGETHER_S: Final = 1.0
"""Agents that register within it of each other have their cards looked at together."""


class Seat(Protocol):
    """A connection's place among those that the server has; absent where no server is."""

    pace: Pace | None
    """What its frames are charged to."""

    @property
    def share(self) -> int:
        """How many places one principal may have."""

    def keep(self) -> None:
        """Keep it, also when others need a place."""


class HubEndpoint:
    """Where agents connect. ``look`` is for any thread, the rest for the loop."""

    def __init__(self, hub: Hub, access: Access, streams: Streams, paces: Paces) -> None:
        self._hub = hub
        self._access = access
        self._streams = streams
        self._open: set[_Connection] = set()
        self._paces = paces
        self._new: set[str] = set()
        self._telling: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over = 0
        self._settling: asyncio.TimerHandle | None = None
        self._giving_back: asyncio.Future[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection, from its opening handshake to its end."""
        websocket = WebSocket(scope, receive, send)
        if scope["path"] != PATH:
            await websocket.close()  # before it is accepted: HTTP 403
            return
        self._loop = asyncio.get_running_loop()
        state = websocket.scope["state"]
        by, standing = state["principal"], state["standing"]
        seat: Seat | None = state.get("seat")
        most = _MAX_CONNECTIONS if seat is None else min(_MAX_CONNECTIONS, seat.share)
        others = [one for one in self._open if one.by == by]
        if len(others) >= most:
            await websocket.close(1008)
            return
        granted = others[0].granted if others else self._access.as_(by)
        pace = self._paces.of(by)
        if seat is not None:
            seat.pace = pace
        connection = _Connection(websocket, self._hub, granted, self._streams, by, pace, standing, self._registered)
        self._open.add(connection)
        try:
            if pace is not None:
                await pace.turn(_CONNECTION_S)
            await websocket.accept()
            await connection.serve()
        finally:
            self._open.discard(connection)
            self._leaves(self._loop)

    def _leaves(self, loop: asyncio.AbstractEventLoop) -> None:
        self._over += 1
        if self._over < _CROWD:
            return
        if self._settling is not None:
            self._settling.cancel()
        self._settling = loop.call_later(_SETTLED_S, self._settled, loop)

    def _settled(self, loop: asyncio.AbstractEventLoop) -> None:
        self._over, self._settling = 0, None
        self._giving_back = loop.run_in_executor(None, give_back)

    def look(self) -> None:
        """Look at the tokens, one of which may have been revoked: whose it was is cut off, and given nothing more."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cut_off)

    def _registered(self, specialist_id: str) -> None:
        self._new.add(specialist_id)
        if self._telling is None or self._telling.done():
            self._telling = asyncio.ensure_future(self._tell_odd())

    async def _tell_odd(self) -> None:
        """Tell what is odd about new cards, of those that come together at once."""
        while self._new:
            await asyncio.sleep(_TOGETHER_S)
            new, self._new = self._new, set()
            try:
                await self._streams.run(partial(self._access.as_(OPERATOR)[Specialists].tell_odd, new))
            except ServiceError as error:
                log.warning("the cards of %d agents were not looked at: %s", len(new), error)

    def _cut_off(self) -> None:
        for connection in self._open:
            connection.check()


class _Connection:
    """One that was accepted. Implements ``dispatch.hub.Peer``."""

    def __init__(
        self,
        websocket: WebSocket,
        hub: Hub,
        granted: Session,
        streams: Streams,
        by: Principal,
        pace: Pace | None,
        standing: Callable[[], bool],
        registered: Callable[[str], None],
    ) -> None:
        self._websocket = websocket
        self.granted = granted
        """What its principal may ask, once for all of that one's connections."""
        self._methods = Methods(hub, granted, streams, by, self, registered, pace)
        self._pace = pace
        self.by = by
        self._standing = standing
        self._ids = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._sending = asyncio.Lock()
        self._bucket = TokenBucket(FRAMES)
        self._seat: Seat | None = websocket.scope["state"].get("seat")
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
                if self._bucket.take():
                    await self._end(1008, "too many messages")
                    return
                if self._pace is not None:
                    await self._pace.turn(_MESSAGE_S + len(message["text"]) * _CHARACTER_S)
                if not self.check():
                    return
                await self._take(message["text"])
        except AgentGone:
            return
        finally:
            for future in self._asked.values():
                future.cancel()
            self._methods.leave()

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
            raise AgentGone(f"no answer to {method} within {timeout_s:.0f} seconds") from None
        except asyncio.CancelledError:
            if answer.cancelled():
                raise AgentGone("the connection has ended") from None
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
        self._methods.leave()
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
                raise AgentGone("the connection has ended")
            try:
                await self._websocket.send_text(text)
            except Exception as error:  # whatever the server's library raises for a connection that is gone
                raise AgentGone(f"the connection has ended: {type(error).__name__}") from None

    # --- what the agent asks --------------------------------------------------------------------------------------

    async def _take(self, text: str) -> None:
        """Answer one frame. Raises Gone."""
        rpc_id: object = None
        began_s = time.thread_time()
        try:
            document = _parsed(text)
            rpc_id = _id_of(document)
            if odd := odd_values(document, {}):
                raise HubError(INVALID_REQUEST, problems_text(odd[:MAX_PROBLEMS]))
            if "method" not in document and ("result" in document or "error" in document):
                self._answered(document)
                return
            method, params, wanted = _request(document)
        except HubError as error:
            await self._send({"jsonrpc": "2.0", "id": rpc_id, "error": error.document})
            return
        finally:
            if self._pace is not None:  # texts of one length differ a hundredfold
                self._pace.charge(time.thread_time() - began_s)
        try:
            said: dict[str, Any] = {"result": await self._methods.call(method, params)}
        except HubError as error:
            said = {"error": error.document}
        except Exception:
            log.exception("%s of the hub failed", method)
            said = {"error": HubError(INTERNAL, "the daemon failed; see its log").document}
        if self._methods.has_registered and self._seat is not None:
            self._seat.keep()
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
        words = str(message or "it gave no reason")[:_MAX_ERROR_LENGTH]
        future.set_exception(AgentRefused(code if isinstance(code, int) else 0, words))


def _parsed(text: str) -> Mapping[str, Any]:
    """Raises RpcError."""
    if has_too_many_parts(text):
        raise HubError(PARSE_ERROR, f"it has more than {MAX_JSON_PARTS:,} texts, lists, objects and commas")
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise HubError(PARSE_ERROR, "this is not JSON") from None
    if not isinstance(document, dict):
        raise HubError(INVALID_REQUEST, "this is not a JSON-RPC 2.0 request; batches are not offered")
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
        raise HubError(INVALID_REQUEST, "this is not a JSON-RPC 2.0 request")
    if isinstance(rpc_id, bool) or not isinstance(rpc_id, str | int | float | None):
        raise HubError(INVALID_REQUEST, "`id` is neither text nor a number")
    params = document.get("params", {})
    if isinstance(params, list):
        raise HubError(INVALID_PARAMS, "`params` is a list; name them in an object")
    if not isinstance(params, Mapping):
        raise HubError(INVALID_REQUEST, "`params` is not an object")
    return method, params, "id" in document
