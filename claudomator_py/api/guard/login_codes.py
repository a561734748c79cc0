"""One-time codes by which a browser gets a session: short-lived, used once, and kept as hashes in memory only."""

import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable

from claudomator_py.domain.units import MINUTE_MS

LASTS_MS = MINUTE_MS
MAX_CODES = 16
_RANDOM_BYTES = 24


class LoginCodes:
    """The codes that are good now, ``MAX_CODES`` at a time; a further one replaces the oldest. Safe for threads.

    clock: epoch milliseconds.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._issued: dict[bytes, tuple[int, str]] = {}
        self._lock = threading.Lock()

    def issue(self, principal_id: str) -> tuple[str, int]:
        """Return a new code for a browser of that principal, and when it expires."""
        code = secrets.token_urlsafe(_RANDOM_BYTES)
        with self._lock:
            now_ms = self._clock()
            self._drop_expired(now_ms)
            while len(self._issued) >= MAX_CODES:
                del self._issued[next(iter(self._issued))]
            self._issued[_hash(code)] = (now_ms + LASTS_MS, principal_id)
        return code, now_ms + LASTS_MS

    def is_good(self, code: str) -> bool:
        """Return whether the code is good. It stays so."""
        given = _hash(code)
        with self._lock:
            self._drop_expired(self._clock())
            return sum(hmac.compare_digest(known, given) for known in self._issued) > 0

    def redeem(self, code: str) -> str | None:
        """Return whose code it was, if it was good; it is not any more."""
        given = _hash(code)
        with self._lock:
            self._drop_expired(self._clock())
            # All are compared, so that the time taken tells nothing.
            matching = [known for known in self._issued if hmac.compare_digest(known, given)]
            whose = [self._issued.pop(known)[1] for known in matching]
        return whose[0] if whose else None

    def _drop_expired(self, now_ms: int) -> None:
        self._issued = {code: kept for code, kept in self._issued.items() if kept[0] > now_ms}


def _hash(code: str) -> bytes:
    return hashlib.sha256(code.encode("utf-8", "replace")).digest()
