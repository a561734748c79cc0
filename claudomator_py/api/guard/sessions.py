"""Browser sessions: a random value in a cookie, and a row with its owner, its host and when it expires.

Every request looks one up on the event loop, so sessions are kept in memory as well. Only the writes that have to
outlive a restart are waited for: the beginning and the end of a session.
"""

import hashlib
import hmac
import logging
import secrets
import threading
import uuid
from collections.abc import Callable, Collection, Sequence
from typing import Final

from sqlalchemy import Connection

from claudomator_py.domain.units import DAY_MS, HOUR_MS, MINUTE_MS
from claudomator_py.store import access_rows
from claudomator_py.store.database import Database, StoreUnavailable, write_or_refuse
from claudomator_py.store.events import record
from claudomator_py.store.tables import BrowserSession

LASTS_MS = MINUTE_MS
MAX_CODES = 16
_CODE_BYTES = 24


class LoginCodes:
    """The valid login codes, at most ``MAX_CODES``; a further one replaces the oldest. Thread-safe.

    clock: epoch milliseconds.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._issued: dict[bytes, tuple[int, str]] = {}
        self._lock = threading.Lock()

    def issue(self, principal_id: str) -> tuple[str, int]:
        """Return a new code for a browser of that principal, and when it expires, in epoch milliseconds."""
        code = secrets.token_urlsafe(_CODE_BYTES)
        with self._lock:
            now_ms = self._clock()
            self._drop_expired(now_ms)
            while len(self._issued) >= MAX_CODES:
                del self._issued[next(iter(self._issued))]
            self._issued[_hash_of_code(code)] = (now_ms + LASTS_MS, principal_id)
        return code, now_ms + LASTS_MS

    def is_good(self, code: str) -> bool:
        """Return whether the code is valid, without using it up."""
        given = _hash_of_code(code)
        with self._lock:
            self._drop_expired(self._clock())
            return sum(hmac.compare_digest(known, given) for known in self._issued) > 0

    def redeem(self, code: str) -> str | None:
        """Return whose code it was and use it up; None if it is not valid."""
        given = _hash_of_code(code)
        with self._lock:
            self._drop_expired(self._clock())
            # Compare all of them, so that the time reveals nothing.
            matching = [known for known in self._issued if hmac.compare_digest(known, given)]
            whose = [self._issued.pop(known)[1] for known in matching]
        return whose[0] if whose else None

    def _drop_expired(self, now_ms: int) -> None:
        self._issued = {code: kept for code, kept in self._issued.items() if kept[0] > now_ms}


def _hash_of_code(code: str) -> bytes:
    return hashlib.sha256(code.encode("utf-8", "replace")).digest()


IDLE_MS: Final = 2 * HOUR_MS
"""How long a session lasts after its last use. An open page uses it."""
MAX_MS: Final = 7 * DAY_MS
"""How long a session lasts at most."""
MAX_SESSIONS: Final = 64
"""Maximum number of sessions; a further one replaces the one used least recently."""
WRITTEN_EVERY_MS: Final = 5 * MINUTE_MS
_PURPOSE = b"claudomator browser session"
_RANDOM_BYTES = 32
_MAX_LENGTH = 200

log = logging.getLogger(__name__)


class Sessions:
    """Begins, checks and ends sessions. Thread-safe.

    Sessions end with the operator's token: those issued under another one are not loaded. database: where they are
    kept; None: nowhere, so they end with the process. clock: epoch milliseconds.
    """

    def __init__(self, database: Database | None, token: str, clock: Callable[[], int]) -> None:
        """Raises StoreUnavailable."""
        self._database = database
        self._issuer = hmac.digest(token.encode("ascii"), _PURPOSE, hashlib.sha256).hex()
        self._clock = clock
        self._lock = threading.Lock()
        self._listeners: tuple[Callable[[], None], ...] = ()
        known = self._kept(clock())
        self._by_hash = {session.hash: session for session in known}
        self._written_ms = {session.id: session.used_ms for session in known}

    def on_end(self, callback: Callable[[], None]) -> None:
        """Call callback after sessions have ended, on any thread. It must be quick and must not block."""
        self._listeners = (*self._listeners, callback)

    def begin(self, principal_id: str, host: str, browser: str) -> str:
        """Begin a session and return the value of its cookie, once it is stored. host: the only one where it is valid.

        Raises Unavailable.
        """
        value = secrets.token_urlsafe(_RANDOM_BYTES)
        now_ms = self._clock()
        session = BrowserSession(
            id=str(uuid.uuid4()),
            hash=_hash(value),
            principal=principal_id,
            host=host,
            issuer=self._issuer,
            browser=browser,
            created_ms=now_ms,
            used_ms=now_ms,
            expires_ms=now_ms + IDLE_MS,
        )
        surplus = [session.id for session in self.all()[MAX_SESSIONS - 1 :]]
        if surplus:
            self.end(surplus, principal_id)

        def keep(connection: Connection) -> None:
            access_rows.add_session(connection, session)
            data = {"browser": browser, "host": host}
            record(connection, now_ms, "session_started", data=data)

        self._write(principal_id, keep)
        with self._lock:
            self._drop_expired(now_ms)
            self._by_hash[session.hash] = session
            self._written_ms[session.id] = now_ms
        return value

    def find(self, value: str, host: str) -> BrowserSession | None:
        """Return the cookie's session if it is valid on that host, else None. This counts as use."""
        # A lookup by digest, so that the time reveals nothing about valid values.
        session = self._by_hash.get(_hash(value)) if len(value) <= _MAX_LENGTH else None
        now_ms = self._clock()
        if session is None or session.expires_ms <= now_ms or session.host != host:
            return None
        with self._lock:
            session.used_ms = max(session.used_ms, now_ms)
            session.expires_ms = max(session.expires_ms, min(now_ms + IDLE_MS, session.created_ms + MAX_MS))
            due = now_ms - self._written_ms.get(session.id, now_ms) >= WRITTEN_EVERY_MS
            if due:
                self._written_ms[session.id] = now_ms
        if due:
            self._note_use(session)
        return session

    def all(self) -> list[BrowserSession]:
        """Return the valid sessions, the one used last first."""
        now_ms = self._clock()
        with self._lock:
            current = [session for session in self._by_hash.values() if session.expires_ms > now_ms]
        return sorted(current, key=lambda session: (-session.used_ms, session.id))

    def end(self, session_ids: Collection[str], by: str) -> None:
        """End sessions at once, and durably on return. by: the principal that ends them.

        Raises Unavailable; then they have ended, but a restart of the daemon brings them back.
        """
        with self._lock:
            self._by_hash = {key: session for key, session in self._by_hash.items() if session.id not in session_ids}
        for callback in self._listeners:
            callback()
        now_ms = self._clock()

        def end(connection: Connection) -> None:
            for ended in access_rows.end_sessions(connection, session_ids, now_ms):
                record(connection, now_ms, "session_ended", data={"browser": ended.browser, "of": ended.principal})

        self._write(by, end)

    def _kept(self, now_ms: int) -> Sequence[BrowserSession]:
        if self._database is None:
            return ()
        return self._database.read(lambda connection: access_rows.current_sessions(connection, self._issuer, now_ms))

    def _write(self, by: str, transaction: Callable[[Connection], None]) -> None:
        """Write durably. Raises Unavailable."""
        if self._database is None:
            return
        write_or_refuse(self._database, transaction, by)

    def _note_use(self, session: BrowserSession) -> None:
        """Have the use written, without waiting."""
        if self._database is None:
            return
        session_id, used_ms, expires_ms = session.id, session.used_ms, session.expires_ms
        try:
            self._database.submit(
                lambda connection: access_rows.note_session_use(connection, session_id, used_ms, expires_ms)
            )
        except StoreUnavailable as error:
            log.debug("the use of a session is not written: %s", error)

    def _drop_expired(self, now_ms: int) -> None:
        self._by_hash = {key: session for key, session in self._by_hash.items() if session.expires_ms > now_ms}
        ids = {session.id for session in self._by_hash.values()}
        self._written_ms = {key: value for key, value in self._written_ms.items() if key in ids}


def _hash(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()
