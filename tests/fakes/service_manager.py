"""A service manager's end of the notify protocol: a datagram socket, and what was heard on it."""

import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.patience import PATIENCE_S

Message = dict[str, str]


class ServiceManager:
    """Listens at a path, or at an abstract address, ``@`` and a name. Messages are kept in order."""

    def __init__(self, address: Path | str) -> None:
        self.address = str(address)
        self.heard: list[Message] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.bind("\0" + self.address[1:] if self.address.startswith("@") else self.address)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def next(self, wanted: Callable[[Message], object], what: str) -> Message:
        """The next message that is wanted; those before it are heard and passed over."""
        end = time.monotonic() + PATIENCE_S
        while (left := end - time.monotonic()) > 0:
            message = self._hear(left)
            if message is not None and wanted(message):
                return message
        raise AssertionError(f"waited {PATIENCE_S:.0f} s in vain for {what}; heard {self.heard}")

    def status(self, part: str) -> str:
        """The next status line with that part."""
        return self.next(lambda message: part in message.get("STATUS", ""), f"a status with {part!r}")["STATUS"]

    def pending(self) -> list[Message]:
        """What has been sent already and was not heard yet."""
        results = []
        while (message := self._hear(0)) is not None:
            results.append(message)
        return results

    def silent_for(self, seconds: float) -> bool:
        """Whether nothing is sent for so long."""
        return self._hear(seconds) is None

    def _hear(self, timeout_s: float) -> Message | None:
        self._socket.settimeout(timeout_s)
        try:
            text = self._socket.recv(4096).decode()
        except (TimeoutError, BlockingIOError):
            return None
        message = dict(line.split("=", 1) for line in text.splitlines())
        self.heard.append(message)
        return message
