"""One HTTP connection: as uvicorn serves it, but a client that takes nothing of its answer is given up."""

import asyncio
import fcntl
import struct
import termios

from claudomator_py.web.protocol import GuardedProtocol

PATIENCE_S = 60.0
LAST_PATIENCE_S = 0.5
"""How long a server that was asked to stop waits for a client that takes nothing."""


class Connection(GuardedProtocol):
    """Drops the connection when its client takes not one byte for a minute, while there is something to take.

    An application only ever waits for its own client; here it is told when that is in vain.
    """

    patience_s = PATIENCE_S
    _left = 0
    _timer: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        """The client lags behind: see to it that it takes something."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._unwatch()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._unwatch()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """The server stops: what is being taken is finished, but nobody is waited for."""
        self.patience_s = LAST_PATIENCE_S
        super().shutdown()
        self._watch()

    def _watch(self) -> None:
        self._unwatch()
        self._left = self._untaken()
        if self._left:
            self._timer = self.loop.call_later(self.patience_s, self._look)

    def _look(self) -> None:
        if self._untaken() >= self._left:
            self.transport.abort()
        else:
            self._watch()

    def _untaken(self) -> int:
        """Bytes that the client has not taken, those in the kernel included: it holds megabytes, and says that it has
        room again only when much of that is gone."""
        socket = self.transport.get_extra_info("socket")
        if socket is None or socket.fileno() < 0:
            return 0
        in_kernel: int = struct.unpack("i", fcntl.ioctl(socket.fileno(), termios.TIOCOUTQ, bytes(4)))[0]
        return self.transport.get_write_buffer_size() + in_kernel

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
