"""Sessions of a browser: what is in the cookie, and whether it is ours, current and not logged out.

A session is signed with a key derived from the operator's token and stored nowhere, so it outlives a restart of the
daemon and ends with the token. What was logged out is remembered until it expires, or the daemon stops.
"""

import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable

from claudomator_py.core.units import HOUR_MS

LASTS_MS = 12 * HOUR_MS
_PURPOSE = b"claudomator browser session 2"
_NONCE_BYTES = 16
_LONGEST = 300


class Sessions:
    """Issues and judges sessions. clock: epoch milliseconds. Safe to use from many threads."""

    def __init__(self, token: str, clock: Callable[[], int]) -> None:
        self._key = hmac.digest(token.encode("ascii"), _PURPOSE, hashlib.sha256)
        self._clock = clock
        self._ended: dict[str, int] = {}
        self._lock = threading.Lock()

    def begin(self, principal_id: str) -> str:
        """A new session of that principal, as the cookie's value."""
        body = f"{self._clock() + LASTS_MS}.{secrets.token_urlsafe(_NONCE_BYTES)}.{principal_id}"
        return f"{body}.{self._signature(body)}"

    def holder(self, value: str) -> str | None:
        """Whose session it is, by the principal's id; None for one that is not ours, or has expired or ended."""
        expires_ms = self._expires_ms(value)
        if expires_ms is None or expires_ms <= self._clock():
            return None
        with self._lock:
            return None if value in self._ended else value.rpartition(".")[0].split(".", 2)[2]

    def end(self, value: str) -> None:
        """Log out: the value holds no more."""
        expires_ms = self._expires_ms(value)
        now_ms = self._clock()
        if expires_ms is None or expires_ms <= now_ms:
            return
        with self._lock:
            self._ended = {ended: until for ended, until in self._ended.items() if until > now_ms}
            self._ended[value] = expires_ms

    def _expires_ms(self, value: str) -> int | None:
        """When the session ends by itself; None for what we did not sign."""
        if len(value) > _LONGEST or not value.isascii():
            return None
        body, _, signature = value.rpartition(".")
        if not hmac.compare_digest(signature, self._signature(body)):
            return None
        return int(body.partition(".")[0])

    def _signature(self, body: str) -> str:
        return hmac.digest(self._key, body.encode("ascii"), hashlib.sha256).hex()
