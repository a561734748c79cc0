"""Send requests to the daemon in the run's name, over its Unix socket or at the address in its endpoint file.

A run outlives its daemon: while the daemon restarts, a request waits.
"""

import http.client
import json
import socket
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from claudomator_py.agents.mcp_server import DaemonUnreachable, ToolFailed

SOCKET: Final = "api.sock"
ENDPOINT: Final = "endpoint"
ANSWER_S: Final = 20.0
"""How long to wait for an answer."""
PATIENCE_S: Final = 40.0
"""How long to wait for a daemon that is down. Every CLI gives a tool at least a minute."""
_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.1, 2.0
_MAX_ANSWER_LENGTH = 1024 * 1024
_BUSY = (502, 503, 504)


class DaemonClient:
    """The daemon with that state folder, as a run may use it."""

    def __init__(self, state: Path, run_id: str, token: str, patience_s: float = PATIENCE_S) -> None:
        self._state = state
        self._run = f"/v1/runs/{quote(run_id, safe='')}"
        self._token = token
        self._patience_s = patience_s

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the answer to a request below the run's path. It may be sent repeatedly; the daemon does it once.
        Raises ToolFailed with the daemon's refusal, and DaemonUnreachable if no daemon answers in time."""
        key = str(uuid.uuid4())
        until, pause_s = time.monotonic() + self._patience_s, _FIRST_PAUSE_S
        while True:
            try:
                status, answer = self._once(method, f"{self._run}{path}", body, key)
            except (OSError, http.client.HTTPException, ValueError) as error:
                problem = str(error) or type(error).__name__
            else:
                if status < http.client.BAD_REQUEST:
                    return answer
                if status not in _BUSY:
                    raise ToolFailed(_problem(answer) or f"The daemon answered with {status}.")
                problem = f"it answers with {status}"
            if time.monotonic() + pause_s > until:
                raise DaemonUnreachable(f"The daemon cannot be reached: {problem}.")
            time.sleep(pause_s)
            pause_s = min(_MAX_PAUSE_S, pause_s * 2)

    def _once(self, method: str, path: str, body: Mapping[str, Any] | None, key: str) -> tuple[int, dict[str, Any]]:
        """Send the request once. Raises OSError, HTTPException or ValueError if no daemon answers."""
        connection = self._connection()
        try:
            headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
            data = None
            if body is not None:
                data = json.dumps(body).encode("ascii")
                headers |= {"Content-Type": "application/json", "Idempotency-Key": key}
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            text = response.read(_MAX_ANSWER_LENGTH + 1)
        finally:
            connection.close()
        if len(text) > _MAX_ANSWER_LENGTH:
            raise ValueError("its answer is too long")
        answer = json.loads(text) if text else {}
        if not isinstance(answer, dict):
            raise ValueError("its answer is not an object")
        return response.status, answer

    def _connection(self) -> http.client.HTTPConnection:
        """Return a connection over the Unix socket, which works only on the daemon's machine: the folder may be shared
        with others. Raises OSError, ValueError."""
        own = _UnixConnection(self._state / SOCKET)
        try:
            own.connect()
        except OSError:
            own.close()
        else:
            return own
        address = (self._state / ENDPOINT).read_text(encoding="utf-8").strip()
        parts = urlsplit(address)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        remote = kind(parts.hostname or "", parts.port, timeout=ANSWER_S)
        try:
            remote.connect()
        except OSError as error:
            remedy = "from another machine than its own, it is reached only at an address in its http.listen"
            raise ConnectionError(f"{address}: {error.strerror or error}; {remedy}") from error
        return remote


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=ANSWER_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def _problem(answer: Mapping[str, Any]) -> str:
    """Return the detail and the remedy of a problem document."""
    return " ".join(answer[key] for key in ("detail", "remedy") if isinstance(answer.get(key), str))
