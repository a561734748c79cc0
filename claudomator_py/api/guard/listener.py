"""Accept connections from a listening socket, however many come, even when the process has no file left to open.

asyncio's server sets up a connection before it has sent a byte, and accepts as many at once as its queue holds. Out of
files, Python 3.11 logs an error for each of them. Here a new connection waits for its first byte, which costs next to
nothing, and when too many wait, the one that has been silent longest is closed. So the kernel's queue, in which nobody
can tell clients apart, stays short.
"""

import asyncio
import errno
import logging
import select
import socket
from collections.abc import Callable

from claudomator_py.api.guard.limits import ConnectionLimit

_AT_ONCE_SHARE = 8
"""Each turn of the loop accepts at most one such part of the maximum of connections, and reads from as many silent
ones. The first bytes of a new connection are read two turns later: if the maximum could arrive meanwhile, it would push
out connections with a complete request."""
_PAUSE_S = 0.1
_WARNING_INTERVAL_S = 60.0
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

log = logging.getLogger(__name__)


class _SilentConnections:
    """Connections that have sent nothing yet, in order of arrival.

    most: the maximum. at_once: how many are read in a turn. patience_s: how long each may be silent. speaks: called
    with one that has sent something.
    """

    def __init__(self, most: int, at_once: int, patience_s: float, speaks: Callable[[socket.socket], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._most = most
        self._at_once = at_once
        self._patience_s = patience_s
        self._speaks = speaks
        self._waiting: dict[int, tuple[socket.socket, float]] = {}
        self._epoll = select.epoll()  # one for all, which costs a fraction of the loop's own reader for each
        self._timer: asyncio.TimerHandle | None = None
        self._loop.add_reader(self._epoll, self._hear)

    def enter(self, sock: socket.socket) -> None:
        """Add a new connection."""
        if len(self._waiting) >= self._most:
            self.make_room()
        sock.setblocking(False)
        number = sock.fileno()
        self._waiting[number] = sock, self._loop.time()
        self._epoll.register(number, select.EPOLLIN)
        if self._timer is None:
            self._timer = self._loop.call_later(self._patience_s, self._drop_silent)

    def make_room(self) -> bool:
        """Let the oldest connection go: on, if it has sent something by now, else closed. False if there is none."""
        for number in self._waiting:
            self._let_go(number)
            return True
        return False

    def close(self) -> None:
        """Close all of them."""
        if self._timer is not None:
            self._timer.cancel()
        for number in list(self._waiting):
            self._take_out(number).close()
        self._loop.remove_reader(self._epoll)
        self._epoll.close()

    def _hear(self) -> None:
        for number, _ in self._epoll.poll(0, self._at_once):
            self._let_go(number)

    def _let_go(self, number: int) -> None:
        sock = self._take_out(number)
        try:
            speaks = bool(sock.recv(1, socket.MSG_PEEK))
        except OSError:  # silent, or its client has gone
            speaks = False
        if speaks:
            self._speaks(sock)
        else:
            sock.close()

    def _drop_silent(self) -> None:
        self._timer = None
        now_s = self._loop.time()
        for number, (_, since_s) in list(self._waiting.items()):
            remaining_s = since_s + self._patience_s - now_s
            if remaining_s > 0:
                self._timer = self._loop.call_later(remaining_s, self._drop_silent)
                return
            self._take_out(number).close()

    def _take_out(self, number: int) -> socket.socket:
        sock, _ = self._waiting.pop(number)
        self._epoll.unregister(number)
        return sock


class Listener:
    """Accepts the connections of a listening socket until it is closed. The socket remains its owner's to close.

    make: returns the protocol of a connection that has sent something. patience_s: how long one may be silent.
    """

    def __init__(
        self, sock: socket.socket, make: Callable[[], asyncio.Protocol], limit: ConnectionLimit, patience_s: float
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = sock
        self._make = make
        self._limit = limit
        self._at_once = max(1, limit.most // _AT_ONCE_SHARE)
        self._silent = _SilentConnections(max(1, limit.most // 2), self._at_once, patience_s, self._begin)
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._said_s: float | None = None
        sock.setblocking(False)
        self._resume()

    def close(self) -> None:
        """Stop accepting."""
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._socket)
        self._silent.close()

    async def wait_closed(self) -> None:
        """Return once all accepted connections have their protocols."""
        await asyncio.gather(*self._tasks)

    def _resume(self) -> None:
        self._timer = None
        self._loop.add_reader(self._socket, self._take_some)

    def _take_some(self) -> None:
        for _ in range(self._at_once):
            try:
                taken, _address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                self._pause(error)
                return
            self._silent.enter(taken)

    def _begin(self, taken: socket.socket) -> None:
        task = self._loop.create_task(self._serve(taken))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, taken: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make, taken)
        except OSError as error:  # its client has gone
            log.debug("a connection ended before it was accepted: %s", error)
            taken.close()

    def _pause(self, error: OSError) -> None:
        """Stop accepting until a dropped connection, or something else, frees a file."""
        self._loop.remove_reader(self._socket)
        dropped = self._silent.make_room() or self._limit.make_room()
        now_s = self._loop.time()
        if self._said_s is None or now_s - self._said_s > _WARNING_INTERVAL_S:
            self._said_s = now_s
            log.warning(
                "cannot accept connections (%s)%s; raise the daemon's limit of open files (LimitNOFILE)",
                error.strerror,
                "; dropping the one that has waited longest" if dropped else "",
            )
        self._timer = self._loop.call_later(0 if dropped else _PAUSE_S, self._resume)
