"""The agent's process, and JSON-RPC messages with it, one a line.

Neither side can block the other: both pipes are read and written as they become ready.
"""

import json
import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
"""A longer line is skipped."""
_READ_BYTES: Final = 64 * 1024
_MAX_NOISE: Final = 20
"""Lines kept that are no messages."""

Message = dict[str, Any]


class RequestRefused(Exception):
    """The agent answered a request with an error."""

    def __init__(self, error: object) -> None:
        error_fields = error if isinstance(error, Mapping) else {}
        self.code = error_fields.get("code")
        self.message = str(error_fields.get("message", error))
        self.data = error_fields.get("data")
        super().__init__(self.message)


class PeerGone(Exception):
    """The agent has ended, or has closed its input or output."""


class RpcChannel(Protocol):
    """A connection to an agent."""

    noise: list[str]
    """Output of the agent that is no message."""

    def send(self, message: Message) -> None:
        """Queue a message. Raises PeerGone."""

    def receive(self, wait_s: float) -> Message | None:
        """Return the next message; None: none came in that time. Raises PeerGone."""


class Peer:
    """The process of an agent. Raises OSError if the program cannot be started."""

    def __init__(self, argv: Sequence[str]) -> None:
        theirs_in, self._in = os.pipe()
        self._out, theirs_out = os.pipe()
        try:
            self._process = subprocess.Popen(argv, stdin=theirs_in, stdout=theirs_out, start_new_session=True)
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._out, selectors.EVENT_READ)
        self._unsent = bytearray()
        self._pending = bytearray()
        self._skips = False
        self._messages: deque[Message] = deque()
        self.noise = []

    noise: list[str]

    def send(self, message: Message) -> None:
        """Queue a message, which is written as the agent reads. Raises PeerGone."""
        self._unsent += json.dumps(message, ensure_ascii=False).encode(errors="replace") + b"\n"
        self._write()

    def receive(self, wait_s: float) -> Message | None:
        deadline = time.monotonic() + wait_s
        while not self._messages:
            left = deadline - time.monotonic()
            if left <= 0 and wait_s > 0:
                return None
            for key, _ in self._selector.select(max(left, 0)):
                if key.fd == self._in:
                    self._write()
                else:
                    self._read()
            if wait_s <= 0 and not self._messages:
                return None
        return self._messages.popleft()

    def exit_code(self, wait_s: float) -> int | None:
        """Return the process's exit code, negative for a signal; None: it still runs after that time."""
        try:
            return self._process.wait(wait_s)
        except subprocess.TimeoutExpired:
            return None

    def end(self, patience_s: float, grace_s: float) -> None:
        """End the agent: close its input, then send TERM to its process group, then KILL. Anything that is left is
        ended by the run's supervisor, which finds it wherever it is."""
        self._selector.close()
        os.close(self._in)
        self._drain(patience_s)
        if self._process.poll() is None:
            self._signal(signal.SIGTERM)
            self._drain(grace_s)
        if self._process.poll() is None:
            self._signal(signal.SIGKILL)

    def _drain(self, wait_s: float) -> None:
        """Wait for the process to end, reading its output: a full pipe would keep it from ending."""
        deadline = time.monotonic() + wait_s
        while self._process.poll() is None and time.monotonic() < deadline:
            try:
                while os.read(self._out, _READ_BYTES):
                    pass
            except OSError:
                pass
            time.sleep(0.02)

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except OSError:
            self._process.send_signal(number)

    def _write(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: os.write(self._in, self._unsent[:_READ_BYTES])]
        except BlockingIOError:
            pass
        except OSError as error:
            # Read the rest of its output first, which may contain an answer.
            self._unsent.clear()
            self._read_all()
            if not self._messages:
                raise PeerGone(f"it reads no more: {error.strerror}") from None
        waits = self._in in self._selector.get_map()
        if self._unsent and not waits:
            self._selector.register(self._in, selectors.EVENT_WRITE)
        elif not self._unsent and waits:
            self._selector.unregister(self._in)

    def _read_all(self) -> None:
        try:
            while self._read():
                pass
        except PeerGone:
            pass

    def _read(self) -> bool:
        """Read what is available; False: nothing. Raises PeerGone at the end, once all messages have been taken."""
        try:
            data = os.read(self._out, _READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._line(bytes(self._pending))
            self._pending.clear()
            if self._messages:
                return False
            raise PeerGone("it ended")
        *lines, rest = data.split(b"\n")
        for line in lines:
            whole, skipped = bytes(self._pending) + line, self._skips
            self._pending.clear()
            self._skips = False
            if not skipped:
                self._line(whole)
        if len(self._pending) + len(rest) > MAX_LINE_BYTES:
            self._pending.clear()
            self._skips = True
        elif not self._skips:
            self._pending += rest
        return True

    def _line(self, line: bytes) -> None:
        line = line.strip(b"\0\r \t")
        if not line:
            return
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            document = None
        messages = document if isinstance(document, list) else [document]
        for message in messages:
            if isinstance(message, dict):
                self._messages.append(message)
            elif len(self.noise) < _MAX_NOISE:
                self.noise.append(line[:300].decode(errors="replace"))
