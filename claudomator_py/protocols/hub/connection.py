"""JSON-RPC 2.0 over WebSocket: the agents' connections, and the frames on them.

``guard/security.py`` authenticates before the connection is accepted. A bad frame fails its own request only, unless
it is binary, too long or exceeds the rate: that closes the connection.
"""

import asyncio
import itertools
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, Protocol

from starlette.types import Receive, Scope, Send

from claudomator_py.api.guard.limits import Rate, TokenBucket
from claudomator_py.api.guard.pace import Pace, Paces
from claudomator_py.api.streams import Streams
from claudomator_py.daemon import give_back
from claudomator_py.domain.errors import ServiceError, problems_text
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.json_fields import refuse_constant
from claudomator_py.protocols.hub import Hub
from claudomator_py.protocols.hub.assignment import AgentGone, AgentRefused
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
from claudomator_py.schema.validation import MAX_JSON_PARTS, MAX_PROBLEMS, has_too_many_parts, value_problems
from claudomator_py.values import dataclass

log = logging.getLogger(__name__)

PATH: Final = "/v1/hub"
FRAMES: Final = Rate(50, 200)
"""Frames per second and burst; beyond that the connection is closed with 1008."""
_MAX_CONNECTIONS: Final = 1_000
"""Connections per principal; further ones are refused before they are accepted."""
_MAX_ERROR_LENGTH: Final = 500
_CONNECTION_S: Final = 0.002
_MESSAGE_S: Final = 0.0003
_CHARACTER_S: Final = 1e-8
"""Approximate processor seconds that a handshake, a message and each of its characters cost the loop."""
_CROWD: Final = 100
"""Closed connections after which memory is returned to the system, once no more of them close."""
_SETTLED_S: Final = 2.0
"""Quiet time after the last close before memory is returned."""
_TOGETHER_S: Final = 1.0
"""Cards registered within this time are checked for oddities in one batch."""


class Seat(Protocol):
    """A connection's slot in the server."""

    pace: Pace | None
    """The account that its frames are charged to."""

    @property
    def share(self) -> int:
        """How many slots one principal may have."""

    def keep(self) -> None:
        """Keep the slot even when others need one."""

    def hand_over(self, taker: Callable[[Mapping[str, Any]], Awaitable[bool]]) -> None:
        """Pass each message to ``taker`` as it arrives, until that returns False."""


class HubEndpoint:
    """The ASGI endpoint for agents. ``look`` may be called from any thread, the rest from the loop."""

    def __init__(self, hub: Hub, access: Access, streams: Streams, paces: Paces) -> None:
        self._hub = hub
        self._access = access
        self._streams = streams
        self._open: set[_Connection] = set()
        self._paces = paces
        self._new: set[str] = set()
        self._reporting: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = 0
        self._return_timer: asyncio.TimerHandle | None = None
        self._returning: asyncio.Future[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Accept a connection and hand it over, or refuse the handshake with HTTP 403."""
        if scope["path"] != PATH:
            await send({"type": "websocket.close", "code": 1000})
            return
        self._loop = asyncio.get_running_loop()
        seat: Seat = scope["state"]["seat"]
        by, standing = scope["state"]["principal"], scope["state"]["standing"]
        others = [other for other in self._open if other.guest.by == by]
        if len(others) >= min(_MAX_CONNECTIONS, seat.share):
            await send({"type": "websocket.close", "code": 1008})
            return
        guest = others[0].guest if others else _Guest(by, self._access.as_(by), standing, self._paces.of(by))
        seat.pace = guest.pace
        connection = _Connection(send, seat, self._hub, guest, self._streams, self._registered, self._left)
        self._open.add(connection)
        try:
            if guest.pace is not None:
                await guest.pace.turn(_CONNECTION_S)
            await receive()
            await send({"type": "websocket.accept"})
        except BaseException:
            self._left(connection)
            raise
        seat.hand_over(connection.take)

    def _left(self, connection: "_Connection") -> None:
        self._open.discard(connection)
        self._closed += 1
        if self._closed < _CROWD:
            return
        if self._return_timer is not None:
            self._return_timer.cancel()
        loop = asyncio.get_running_loop()
        self._return_timer = loop.call_later(_SETTLED_S, self._return_memory, loop)

    def _return_memory(self, loop: asyncio.AbstractEventLoop) -> None:
        self._closed, self._return_timer = 0, None
        self._returning = loop.run_in_executor(None, give_back)

    def look(self) -> None:
        """Close the connections whose token has been revoked."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cut_off)

    def _registered(self, specialist_id: str) -> None:
        self._new.add(specialist_id)
        if self._reporting is None or self._reporting.done():
            self._reporting = asyncio.ensure_future(self._report_odd())

    async def _report_odd(self) -> None:
        """Report oddities of new cards, in one batch for those that register together."""
        while self._new:
            await asyncio.sleep(_TOGETHER_S)
            new, self._new = self._new, set()
            try:
                await self._streams.run(partial(self._access.as_(OPERATOR)[Specialists].log_oddities, new))
            except ServiceError as error:
                log.warning("the cards of %d agents were not looked at: %s", len(new), error)

    def _cut_off(self) -> None:
        for connection in self._open:
            connection.check()


@dataclass(frozen=True, slots=True)
class _Guest:
    """What all connections of a principal share."""

    by: Principal
    granted: Session
    standing: Callable[[], bool]
    pace: Pace | None


class _Connection:
    """An accepted connection. Implements ``HubPeer``."""

    __slots__ = (
        *("_asked", "_bucket", "_closing", "_ids", "_is_over", "_left", "_methods", "_seat", "_send_message"),
        *("_sending", "guest"),
    )

    def __init__(
        self,
        send: Send,
        seat: Seat,
        hub: Hub,
        guest: _Guest,
        streams: Streams,
        registered: Callable[[str], None],
        left: Callable[["_Connection"], None],
    ) -> None:
        self.guest = guest
        self._methods = Methods(hub, guest.granted, streams, guest.by, self, registered, guest.pace)
        self._ids = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._sending = asyncio.Lock()
        self._send_message = send
        self._bucket = TokenBucket(FRAMES)
        self._seat = seat
        self._left = left
        self._is_over = False
        self._closing: asyncio.Task[None] | None = None

    async def take(self, message: Mapping[str, Any]) -> bool:
        """Handle a frame or the end of the connection. Return whether the connection goes on."""
        goes_on = False
        try:
            goes_on = message["type"] == "websocket.receive" and await self._handle(message.get("text"))
        except AgentGone:
            pass
        finally:
            if not goes_on:
                self._is_over = True
                for future in self._asked.values():
                    future.cancel()
                self._methods.leave()
                self._left(self)
        return goes_on

    async def _handle(self, text: str | None) -> bool:
        """Handle a frame. Return whether the connection goes on. Raises AgentGone."""
        if text is None:
            await self._end(1003, "frames are text")
            return False
        if self._bucket.take():
            await self._end(1008, "too many messages")
            return False
        if self.guest.pace is not None:
            await self.guest.pace.turn(_MESSAGE_S + len(text) * _CHARACTER_S)
        if not self.check():
            return False
        await self._take(text)
        return True

    # --- requests of the hub to the agent -------------------------------------------------------------------------

    async def ask(self, method: str, params: Mapping[str, Any], timeout_s: float) -> Any:
        """See ``HubPeer``."""
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
        """See ``HubPeer``."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._end(code, reason))

    def check(self) -> bool:
        """Return whether the token is still valid. If not, close the connection."""
        if self.guest.standing():
            return True
        self._methods.leave()
        self.close(1008, "the token is no longer valid")
        return False

    async def _end(self, code: int, reason: str) -> None:
        if self._is_over:
            return
        self._is_over = True
        with suppress(RuntimeError, OSError):  # already closed
            await self._send_message({"type": "websocket.close", "code": code, "reason": reason[:100]})

    async def _send(self, document: Mapping[str, Any]) -> None:
        """Send a JSON document. Raises AgentGone."""
        text = json.dumps(document, ensure_ascii=False, allow_nan=False)
        async with self._sending:
            if self._is_over:
                raise AgentGone("the connection has ended")
            try:
                await self._send_message({"type": "websocket.send", "text": text})
            except Exception as error:  # the server's libraries raise various errors for a lost connection
                raise AgentGone(f"the connection has ended: {type(error).__name__}") from None

    # --- requests of the agent ------------------------------------------------------------------------------------

    async def _take(self, text: str) -> None:
        """Answer one frame. Raises AgentGone."""
        rpc_id: object = None
        began_s = time.thread_time()
        try:
            document = _parsed(text)
            rpc_id = _id_of(document)
            if odd := value_problems(document, {}):
                raise HubError(INVALID_REQUEST, problems_text(odd[:MAX_PROBLEMS]))
            if "method" not in document and ("result" in document or "error" in document):
                self._resolve(document)
                return
            method, params, wanted = _request(document)
        except HubError as error:
            await self._send({"jsonrpc": "2.0", "id": rpc_id, "error": error.document})
            return
        finally:
            if self.guest.pace is not None:  # the cost of parsing varies a hundredfold for texts of one length
                self.guest.pace.charge(time.thread_time() - began_s)
        try:
            response: dict[str, Any] = {"result": await self._methods.call(method, params)}
        except HubError as error:
            response = {"error": error.document}
        except Exception:
            log.exception("%s of the hub failed", method)
            response = {"error": HubError(INTERNAL, "the daemon failed; see its log").document}
        if self._methods.has_registered:
            self._seat.keep()
        if wanted:
            await self._send({"jsonrpc": "2.0", "id": rpc_id, **response})

    def _resolve(self, document: Mapping[str, Any]) -> None:
        """Pass the agent's response to whoever asked; ignore a response that nobody waits for."""
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
    """Return the frame's JSON object. Raises HubError."""
    if has_too_many_parts(text):
        raise HubError(PARSE_ERROR, f"it has more than {MAX_JSON_PARTS:,} texts, lists, objects and commas")
    try:
        document = json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        raise HubError(PARSE_ERROR, "this is not JSON") from None
    if not isinstance(document, dict):
        raise HubError(INVALID_REQUEST, "this is not a JSON-RPC 2.0 request; batches are not offered")
    return document


def _id_of(document: Mapping[str, Any]) -> object:
    """Return the request's id, or None if it has none that could be sent back."""
    message_id = document.get("id")
    if (
        isinstance(message_id, bool)
        or not isinstance(message_id, str | int | float)
        or value_problems({"id": message_id}, {})
    ):
        return None
    return message_id


def _request(document: Mapping[str, Any]) -> tuple[str, Mapping[str, Any], bool]:
    """Return the method, its parameters, and whether a response is wanted. Raises HubError."""
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
