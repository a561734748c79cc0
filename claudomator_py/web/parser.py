"""The parser of HTTP/1.1, with bounds on what it is given to parse.

h11 bounds a head that is not complete. One that comes whole, of any size, it parses, and many small headers or chunks
take it far longer than as many bytes in one.
"""

import re
from typing import Final

import h11

HEAD_BYTES: Final = 32 * 1024
"""The longest head of a request: its first line and all headers."""
HEADERS: Final = 100
"""The most headers of a request."""
CHUNKS: Final = 4_096
"""The most chunks in a body: one of the largest size in parts of 256 bytes."""

_OTHER_LINES = 2  # the request's first one, and the empty one at the end
_END = re.compile(rb"\n\r?\n")


class Parser(h11.Connection):
    """The server's side of a connection. Raises h11.RemoteProtocolError with status 431 or 413 beyond the bounds."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, HEAD_BYTES)
        self._chunks = 0

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """The next thing that the client said."""
        if self.their_state is h11.IDLE:
            self._chunks = 0
            _check_head(self.trailing_data[0])
        event = super().next_event()
        if isinstance(event, h11.Data) and event.chunk_start:
            self._chunks += 1
            if self._chunks > CHUNKS:
                raise h11.RemoteProtocolError("too many chunks", error_status_hint=413)
        return event


def _check_head(received: bytes) -> None:
    found = _END.search(received, 0, HEAD_BYTES)
    end = found.end() if found else len(received)
    if end > HEAD_BYTES or received.count(b"\n", 0, end) > HEADERS + _OTHER_LINES:
        raise h11.RemoteProtocolError("head too large", error_status_hint=431)
