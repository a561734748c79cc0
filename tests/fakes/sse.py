"""A client of event streams that sees every line as it comes over the wire."""

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from tests.fakes.daemon import Daemon
from tests.patience import PATIENCE_S


@dataclass(frozen=True, slots=True)
class Message:
    """One event. id: what a client would send as Last-Event-ID after it."""

    id: str
    kind: str
    data: Any


class EventSource:
    """An open stream. Use it in a ``with`` block."""

    def __init__(self, daemon: Daemon, path: str, headers: Mapping[str, str] | None = None) -> None:
        self._connection = http.client.HTTPConnection(daemon.address, timeout=PATIENCE_S)
        own = {"Accept": "text/event-stream", "Authorization": f"Bearer {daemon.token}"}
        self._connection.request("GET", path, headers={**own, **(headers or {})})
        self._socket = self._connection.sock
        self.response = self._connection.getresponse()
        self.last_id = ""
        self.retry_ms: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave in the middle of whatever comes."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self.response.close()
        self._connection.close()

    def blocks(self) -> Iterator[list[str]]:
        """The lines between empty ones."""
        lines: list[str] = []
        while raw := self.response.readline():
            line = raw.decode().removesuffix("\n")
            if line:
                lines.append(line)
            else:
                yield lines
                lines = []

    def messages(self) -> Iterator[Message]:
        """The events, read as a browser does."""
        for block in self.blocks():
            fields = dict(line.split(": ", 1) for line in block if not line.startswith(":"))
            self.last_id = fields.get("id", self.last_id)
            self.retry_ms = int(fields["retry"]) if "retry" in fields else self.retry_ms
            if "data" in fields:
                yield Message(self.last_id, fields["event"], json.loads(fields["data"]))

    def opened(self) -> Self:
        """Wait for the block that every stream begins with."""
        fields = dict(line.split(": ", 1) for line in next(self.blocks()))
        self.last_id, self.retry_ms = fields["id"], int(fields["retry"])
        return self
