"""The issued tokens, kept in memory so that a request need not wait for the database.
A token is 256 random bits, so storing its SHA-256 is enough: nobody can find such a value by trying, and a slow hash,
which protects passwords, would only slow down each request. Tokens are looked up by that digest. The time of a lookup
reveals at most something about the digest, which a client without the token cannot choose.
"""

import hashlib
import secrets
import threading
from collections.abc import Callable, Mapping

from sqlalchemy import Connection

from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.units import HOUR_MS
from claudomator_py.environment.secrets import RunTokens
from claudomator_py.ports import Clock
from claudomator_py.store import access_rows, run_rows, task_rows
from claudomator_py.store.database import Database, StoreUnavailable, read_or_refuse
from claudomator_py.store.tables import ApiToken
from claudomator_py.values import dataclass

PREFIX = "cmt_"
"""Lets secret scanners, and our own redactor, recognise a token."""
USED_EVERY_MS = HOUR_MS
"""How often the use of a token is recorded."""
_RANDOM_BYTES = 32


def new_token() -> str:
    """Return a new random token."""
    return PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)


def hash_of(token: str) -> str:
    """Return the stored form of a token."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def principal_of(token: ApiToken) -> Principal:
    """Return the principal of a token."""
    return Principal(token.name, Role(token.role), token.organisation)


def is_good(token: ApiToken, now_ms: int) -> bool:
    """Return whether a token is neither revoked nor expired."""
    return token.revoked_ms is None and (token.expires_ms is None or now_ms < token.expires_ms)


@dataclass(frozen=True, slots=True)
class _CachedToken:
    by_hash: Mapping[str, ApiToken]
    by_name: Mapping[str, ApiToken]


class Keyring:
    """The tokens of one database. Thread-safe; ``holder`` and ``named`` never block."""

    def __init__(self, database: Database, clock: Clock, run_tokens: RunTokens) -> None:
        """Raises StoreUnavailable."""
        self._run_tokens = run_tokens
        self._database = database
        self._clock = clock
        self._used: dict[str, int] = {}
        self._lock = threading.Lock()
        self._listeners: tuple[Callable[[], None], ...] = ()
        self._known = _CachedToken({}, {})
        self.reload()

    def reload(self) -> None:
        """Read the tokens again. Call it after one was created or revoked, but not on the event loop."""
        # One read at a time, so that no older state replaces a newer one.
        with self._lock:
            given = self._database.read(access_rows.tokens)
            self._known = _CachedToken({one.hash: one for one in given}, {one.name: one for one in given})
        for callback in self._listeners:
            callback()

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call callback after each ``reload``, on its thread. It must be quick and must not block."""
        self._listeners = (*self._listeners, callback)

    def holder(self, token: str) -> Principal | None:
        """Return the principal of a valid token; None: it is not valid."""
        row = self._known.by_hash.get(hash_of(token))
        if row is None or not is_good(row, self._clock()):
            return None
        self._note_use(row)
        return principal_of(row)

    def running(self, token: str) -> Principal | None:
        """Return the run whose token it is, while the run lasts and nobody has asked to cancel or restart its task.
        Reads the database.
        Raises Unavailable.
        """
        run_id = self._run_tokens.run_id(token)
        if run_id is None:
            return None

        def read(connection: Connection) -> Principal | None:
            run = run_rows.find(connection, run_id)
            if run is None or not run.live:
                return None
            task = task_rows.get(connection, run.task_id)
            if task.cancel_requested_ms is not None or task.restart_requested is not None:
                return None
            return Principal(f"run:{run.id}", Role.RUN, task.organisation, run.id)

        return read_or_refuse(self._database, read)

    def named(self, principal_id: str) -> Principal | None:
        """Return the principal of that name while its token is valid; the operator always."""
        if principal_id == OPERATOR.id:
            return OPERATOR
        found = self._known.by_name.get(principal_id)
        return principal_of(found) if found is not None and is_good(found, self._clock()) else None

    def _note_use(self, token: ApiToken) -> None:
        """Have the use of the token recorded, later and rarely."""
        now_ms = self._clock()
        last_ms = max(token.used_ms or 0, self._used.get(token.id, 0))
        if now_ms - last_ms < USED_EVERY_MS:
            return
        self._used[token.id] = now_ms

        def note(connection: Connection) -> None:
            access_rows.change_token(connection, token.id, used_ms=now_ms)

        try:
            self._database.submit(note)
        except StoreUnavailable:
            return  # the daemon is ending
