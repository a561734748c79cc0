"""A wire to the daemon that breaks at the worst moment: the request has arrived, the answer does not."""

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.patience import PATIENCE_S


class Wire:
    """Passes on what is sent to a daemon. cuts: how many of the next answers get lost."""

    def __init__(self, address: str) -> None:
        self._host, _, self._port = address.rpartition(":")
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._stopping, self._stop = socket.socketpair()
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self.url = f"http://{self.address}"
        self.cuts = 0
        self.requests = 0

    def serve(self) -> None:
        """Connections one after the other, until ``close``."""
        while self._listening in select.select([self._listening, self._stopping], [], [])[0]:
            near, _ = self._listening.accept()
            with near, socket.create_connection((self._host, int(self._port)), timeout=PATIENCE_S) as far:
                self._pass_on(near, far)

    def close(self) -> None:
        """Let ``serve`` end."""
        self._stop.close()

    def _pass_on(self, near: socket.socket, far: socket.socket) -> None:
        while True:
            for ready in select.select([near, far, self._stopping], [], [], PATIENCE_S)[0]:
                data = ready.recv(65_536) if ready is not self._stopping else b""
                if not data:
                    return
                if ready is near:
                    self.requests += data.count(b" HTTP/1.1\r\n")
                    far.sendall(data.replace(self.address.encode(), f"{self._host}:{self._port}".encode()))
                elif self.cuts:
                    self.cuts -= 1
                    return
                else:
                    near.sendall(data)


@contextmanager
def wire_to(address: str) -> Iterator[Wire]:
    """A wire to the daemon at that address, until the block ends."""
    wire = Wire(address)
    thread = threading.Thread(target=wire.serve, name="wire")
    thread.start()
    try:
        yield wire
    finally:
        wire.close()
        thread.join()
        wire._listening.close()
        wire._stopping.close()
