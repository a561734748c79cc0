"""One-time codes by which a browser gets a session: short-lived, used once, and kept as hashes in memory only."""

import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable

from claudomator_py.core.units import MINUTE_MS

LASTS_MS = MINUTE_MS
MOST = 16
_RANDOM_BYTES = 24


class LoginCodes:
    """The codes that are good now, ``MOST`` at a time; a further one replaces the oldest. Safe to use from threads.

    clock: epoch milliseconds.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._expires_ms: dict[bytes, int] = {}
        self._lock = threading.Lock()

    def issue(self) -> tuple[str, int]:
        """A new code, and when it expires."""
        code = secrets.token_urlsafe(_RANDOM_BYTES)
        with self._lock:
            now_ms = self._clock()
            self._drop_expired(now_ms)
            while len(self._expires_ms) >= MOST:
                del self._expires_ms[next(iter(self._expires_ms))]
            self._expires_ms[_hash(code)] = now_ms + LASTS_MS
        return code, now_ms + LASTS_MS

    def redeem(self, code: str) -> bool:
        """Whether the code was good; it is not any more."""
        given = _hash(code)
        with self._lock:
            self._drop_expired(self._clock())
            # All are compared, so that the time taken tells nothing.
            matching = [known for known in self._expires_ms if hmac.compare_digest(known, given)]
            for known in matching:
                del self._expires_ms[known]
        return bool(matching)

    def _drop_expired(self, now_ms: int) -> None:
        self._expires_ms = {code: until for code, until in self._expires_ms.items() if until > now_ms}


def _hash(code: str) -> bytes:
    return hashlib.sha256(code.encode("utf-8", "replace")).digest()
