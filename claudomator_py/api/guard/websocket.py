"""The limits of a WebSocket: a rate for frames of every kind, and a place among the connections."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, cast

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from claudomator_py.api.guard.limits import ConnectionLimit, Rate, TokenBucket
from claudomator_py.api.guard.pace import Pace

FRAMES: Final = Rate(500, 4_000)
"""Frames of a connection: messages, their fragments, pings and pongs."""
_SLICE_BYTES = 4 * 1024
"""Parsed at once: hundreds of the shortest frames, so that a flood is noticed before it costs much."""
_READ_BYTES = 16 * 1024
"""Read at once. asyncio would read 256 KiB from each connection before serving another."""
_MAX_UNTAKEN_BYTES = 8 * 1024 * 1024
_FRAME_S = 0.00003
_BYTE_S = 1e-8
"""Approximate seconds of processor time to read a frame and a byte."""
_TOO_MANY = 1008
_LINGER_S = 2.0


class _MessageQueue:
    """What uvicorn uses of ``asyncio.Queue``, in a tenth of its memory, as most connections are silent."""

    __slots__ = ("_arrived", "_messages")

    def __init__(self, arrived: Callable[[], None]) -> None:
        """arrived: called after each message."""
        self._arrived = arrived
        self._messages: list[Any] = []

    def put_nowait(self, message: Any) -> None:
        self._messages.append(message)
        self._arrived()

    def empty(self) -> bool:
        return not self._messages

    async def get(self) -> Any:
        """Return the oldest message. Only called when there is one."""
        return self._messages.pop(0)


_OPEN: Final = asyncio.Event()
"""Shared by all connections that can be written to."""
_OPEN.set()


Taker = Callable[[Mapping[str, Any]], Awaitable[bool]]
"""Handles one message; returns whether it wants more."""


class GuardedWebSocket(WebSocketsSansIOProtocol):
    """A WebSocket with limits. Until ``keep`` is called, it may be closed to make room, the most silent ones first."""

    # Includes the attributes of uvicorn's class: in a dictionary, forty of them take four times the memory.
    __slots__ = (
        *("app", "app_state", "asgi_version", "client", "close_sent", "close_timeout", "close_timer", "config", "conn"),
        *("connections", "curr_msg_data_type", "default_headers", "disconnected", "frames", "handshake_complete"),
        *("handshake_initiated", "initial_response", "last_ping_rtt", "logger", "loop", "pending_ping_payload"),
        *("ping_interval", "ping_sent_at", "ping_timeout", "ping_timer", "pong_timer", "queue", "read_paused"),
        *("request", "response", "root_path", "scheme", "scope", "server", "tasks", "transport", "writable"),
        *("_frames", "_has_failed", "_held", "_is_at_work", "_is_kept", "_limit", "_taker", "_turn", "_unread"),
        *("_framed", "_framed_bytes", "pace"),
    )

    def __init__(self, *, limit: ConnectionLimit, **server: Any) -> None:
        """limit: of WebSockets. server: uvicorn's arguments."""
        super().__init__(**server)
        self.queue = cast("asyncio.Queue[Any]", _MessageQueue(self._arrived))
        self._is_at_work = True
        self._taker: Taker | None = None
        self.writable = _OPEN
        self._limit = limit
        self._frames = TokenBucket(FRAMES)
        self._is_kept = False
        self._has_failed = False
        self.pace: Pace | None = None
        """Charged with what the connection costs; None: nobody is."""
        self._turn: asyncio.Task[None] | None = None
        """Must be done before more is read."""
        self._unread = b""
        """Data that arrived before its turn."""
        self._framed = self._framed_bytes = 0
        """Fragments of the message that is arriving, and their bytes."""
        self._held = 0
        """Bytes of incomplete input that the pace counts."""
        self.app_state = {**self.app_state, "seat": self}

    @property
    def share(self) -> int:
        """How many WebSockets one principal may have."""
        return max(1, self._limit.most // 2)

    def keep(self) -> None:
        """Keep the connection: an agent has registered over it, and gets work."""
        self._is_kept = True
        self._limit.works(self)

    def may_go(self) -> bool:
        """Return whether no agent has registered over it."""
        return not self._is_kept

    def hand_over(self, taker: Taker) -> None:
        """Pass each message to ``taker`` once the ASGI application, which calls this, has returned. The last message
        is ``websocket.disconnect``.

        No task waits for messages then: it would take more memory than the rest of a silent connection.
        """
        self._taker = taker

    async def run_asgi(self) -> None:
        """Run the application, or pass the messages to the taker, until there are none left."""
        goes_on = False
        try:
            if self._taker is None:
                await self.app(self.scope, self.receive, self.send)
            while self._taker is not None and not self.queue.empty():
                if not await self._taker(await self.receive()):
                    self._taker = None
            goes_on = self._taker is not None
        except ClientDisconnected:
            pass
        except Exception:
            self.logger.exception("the handler of a WebSocket failed")
        finally:
            self._is_at_work = False
            if not goes_on:
                self._taker = None
                self.send_500_response()  # does nothing if a response was sent
                if self.close_timer is None:
                    self.transport.close()

    def _arrived(self) -> None:
        """Start a task for the messages, unless one is running."""
        if self._taker is None or self._is_at_work:
            return
        self._is_at_work = True
        task = self.loop.create_task(self.run_asgi())
        task.add_done_callback(self.on_task_complete)
        self.tasks.add(task)

    def drop(self) -> None:
        """Close it at once."""
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a place, or close if there is none."""
        super().connection_made(transport)
        if hasattr(transport, "max_size"):
            transport.max_size = _READ_BYTES
        if not self._limit.enter(self):
            self.drop()

    def pause_writing(self) -> None:
        """Make writers wait, on an event of this connection's own."""
        self.writable = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        """Free the place."""
        self._limit.leave(self)
        if self.pace is not None:
            self.pace.hold(-self._held)
        if self._turn is not None:
            self._turn.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take data, now or when it is this connection's turn: never while the operator waits."""
        if self._turn is None and (self.pace is None or self.pace.is_next):
            self._take(data)
        else:
            self._unread += data
            self._wait_for_turn()

    def _take(self, data: bytes) -> None:
        """Parse data in slices, as long as the connection is good."""
        began_s, computed_s = time.perf_counter(), time.thread_time()
        for start in range(0, len(data), _SLICE_BYTES):
            if self._has_failed or self.transport.is_closing():
                return
            super().data_received(data[start : start + _SLICE_BYTES])
            self._hold()
        if self.pace is not None:
            self.pace.strain.saw(time.perf_counter() - began_s, time.thread_time() - computed_s)
            self._pay(self.pace, len(data) * _BYTE_S)

    def _hold(self) -> None:
        """Count what is incomplete, and fail when the principal has too much of it."""
        if self.pace is None:
            return
        self._framed_bytes += sum(map(len, self.frames[self._framed :]))
        self._framed = len(self.frames)
        held, self._held = self._held, len(self.conn.reader.buffer) + self._framed_bytes
        if self.pace.hold(self._held - held) or self._has_failed:
            return
        self.conn.fail(_TOO_MANY, "too many incomplete messages")
        self.handle_parser_exception()
        self.conn.reader.discard()
        self.frames.clear()
        self.pace.hold(-self._held)
        self._held = 0

    def _pay(self, pace: Pace, seconds: float) -> None:
        """Charge the cost, and stop reading until it is this connection's turn. Messages wait for their own turns."""
        pace.charge(seconds)
        if not (pace.is_even or self.read_paused):
            self._wait_for_turn()

    def _wait_for_turn(self) -> None:
        if self.pace is None or self._turn is not None or self.transport.is_closing():
            return
        self.transport.pause_reading()
        self._turn = self.loop.create_task(self.pace.turn(0))
        self._turn.add_done_callback(self._read_on)

    def _read_on(self, turn: asyncio.Task[None]) -> None:
        self._turn = None
        if turn.cancelled() or self.transport.is_closing():
            return
        unread, self._unread = self._unread, b""
        if unread:
            self._take(unread)
        if not (self._turn is not None or self.read_paused or self.transport.is_closing()):
            self.transport.resume_reading()

    def handle_events(self) -> None:
        """Handle the complete frames, unless they are too many or the client does not read the answers."""
        # Includes frames that are answered already, as the library answers pings when it reads them.
        frames = len(self.conn.events)
        if self.pace is not None:
            self.pace.charge(frames * _FRAME_S)
        if self._frames.take(frames):
            self.conn.fail(_TOO_MANY, "too many frames")
            self.handle_parser_exception()
        elif self.transport.get_write_buffer_size() > _MAX_UNTAKEN_BYTES:
            self.drop()
        else:
            super().handle_events()

    def start_keepalive(self) -> None:
        """Begin once the connection is accepted, and drop the handshake, which is no longer needed."""
        # In place, as others may hold copies of the scope, and the frame parser keeps the request.
        cast("list[tuple[bytes, bytes]]", self.scope["headers"]).clear()
        self.request.headers.clear()
        del self.request, self.response, self.scope, self.app_state, self.default_headers
        super().start_keepalive()

    def send_receive_event_to_app(self) -> None:
        """Pass on a message, which shows that the client is not silent."""
        self._limit.spoke(self)
        self._framed = self._framed_bytes = 0
        super().send_receive_event_to_app()

    def handle_parser_exception(self) -> None:
        """Tell the client why the connection ends, and discard further input for a moment: closing at once, with bytes
        unread, would reset the connection, and the client might never read the reason.
        """
        close_sent = self.conn.close_sent
        if close_sent is None:  # the handshake is incomplete, so nobody can be told
            self.drop()
            return
        self._has_failed = self.close_sent = True
        self.queue.put_nowait({"type": "websocket.disconnect", "code": close_sent.code, "reason": close_sent.reason})
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_timer = self.loop.call_later(_LINGER_S, self.transport.close)
