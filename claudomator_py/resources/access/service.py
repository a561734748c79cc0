"""Create, list and revoke tokens; the issued ones are kept in memory so that a request need not wait for the database.

A token is 256 random bits, so storing its SHA-256 is enough: nobody can find such a value by trying, and a slow hash,
which protects passwords, would only slow down each request. Tokens are looked up by that digest. The time of a lookup
reveals at most something about the digest, which a client without the token cannot choose.
"""

import hashlib
import secrets
import threading
import uuid
from collections.abc import Callable, Mapping

from sqlalchemy import Connection

from claudomator_py.domain.errors import Conflict, Forbidden, Invalid, NotFound, Problem
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.units import HOUR_MS, format_instant, parse_duration
from claudomator_py.environment.secrets import RunTokens
from claudomator_py.ports import Clock
from claudomator_py.resources.access import DEFAULT_LIFE_MS, NEVER, NewTokenView, TokenCalls, TokenRequest, TokenView
from claudomator_py.resources.session import Service
from claudomator_py.store import access_rows, run_rows, task_rows
from claudomator_py.store.database import Database, StoreUnavailable, or_unavailable, read_or_refuse
from claudomator_py.store.events import record
from claudomator_py.store.tables import ApiToken
from claudomator_py.surface import answers
from claudomator_py.values import dataclass

PREFIX = "cmt_"
"""Lets secret scanners, and our own redactor, recognise a token."""
USED_EVERY_MS = HOUR_MS
"""How often the use of a token is recorded."""
_RANDOM_BYTES = 32


def new_token() -> str:
    """Return a new random token."""
    return PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)


_ROLES = frozenset(Role)


def hash_of(token: str) -> str:
    """Return the stored form of a token."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def principal_of(token: ApiToken) -> Principal:
    """Return the principal of a token."""
    return Principal(token.name, Role(token.role), token.organisation)


def is_good(token: ApiToken, now_ms: int) -> bool:
    """Return whether a token is neither revoked nor expired, nor changed by hand so that nobody can tell."""
    end = token.expires_ms
    return (
        token.role in _ROLES and token.revoked_ms is None and (end is None or (isinstance(end, int) and now_ms < end))
    )


@dataclass(frozen=True, slots=True)
class _CachedToken:
    by_hash: Mapping[str, ApiToken]
    by_name: Mapping[str, ApiToken]


class Keyring:
    """The tokens of one database. Thread-safe; ``holder`` and ``named`` never block."""

    def __init__(self, database: Database, clock: Clock, run_tokens: RunTokens) -> None:
        """Raises StoreUnavailable."""
        self._run_tokens = run_tokens
        self.database = database
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
            given = self.database.read(access_rows.tokens)
            self._known = _CachedToken({token.hash: token for token in given}, {token.name: token for token in given})
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

        return read_or_refuse(self.database, read)

    def named(self, principal_id: str) -> Principal | None:
        """Return the principal of that name while its token is valid; the operator always."""
        if principal_id == OPERATOR.id:
            return OPERATOR
        token = self._known.by_name.get(principal_id)
        return principal_of(token) if token is not None and is_good(token, self._clock()) else None

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
            self.database.submit(note)
        except StoreUnavailable:
            return  # the daemon is ending


@dataclass(eq=False, repr=False)
class AccessTokens(Service):
    """The service of tokens. Every method may raise ``domain.errors.ServiceError``."""

    keyring: Keyring
    clock: Clock

    @answers(TokenCalls.tokens)
    def all(self) -> list[TokenView]:
        """Return all issued tokens, newest first; for a principal of an organisation, those of its organisation."""
        now_ms = self.clock()
        tokens = self._read(access_rows.tokens)
        return [_view(token, now_ms) for token in tokens if self._by.sees(token.organisation)]

    @answers(TokenCalls.create_token)
    def create(self, request: TokenRequest) -> NewTokenView:
        """Create a token, which is shown only now. Raises Forbidden if it would have more rights than its creator, and
        Conflict for a name that was used before."""
        token = new_token()

        def transaction(connection: Connection) -> ApiToken:
            now_ms = self.clock()
            row = ApiToken(
                id=str(uuid.uuid4()),
                name=request.name,
                hash=hash_of(token),
                role=request.role,
                organisation=self._organisation(request),
                creator=self._by.id,
                created_ms=now_ms,
                expires_ms=self._expires_ms(connection, request, now_ms),
            )
            if access_rows.token_named(connection, request.name) is not None:
                remedy = "Choose another name; names are never reused, not even after a token is revoked."
                raise Conflict(f"The name {request.name} was already used for a token.", remedy=remedy)
            row.insert(connection)
            data = {"name": row.name, "role": row.role, "organisation": row.organisation, "expires": row.expires_ms}
            record(
                connection,
                now_ms,
                "token_created",
                data={key: value for key, value in data.items() if value is not None},
            )
            return row

        if not self._by.role.permits(Role(request.role)):
            detail = f"{self._by.id} has the role {self._by.role.value}, and cannot grant {request.role}."
            raise Forbidden(detail, remedy=f"Ask for at most {self._by.role.value}.")
        row = self._change(transaction)
        return NewTokenView.of(_view(row, row.created_ms), token=token)

    @answers(TokenCalls.revoke_token)
    def revoke(self, ref: str) -> TokenView:
        """Revoke the token of that id or name, immediately and permanently. Harmless when repeated. Raises NotFound."""

        def transaction(connection: Connection) -> ApiToken:
            row = _token_named(connection, ref)
            if row is None or not self._by.sees(row.organisation):
                names = [token.name for token in access_rows.tokens(connection) if self._by.sees(token.organisation)]
                raise NotFound.among("token", ref, names, listing="claudomator token list")
            now_ms = self.clock()
            if row.revoked_ms is None:
                access_rows.change_token(connection, row.id, revoked_ms=now_ms)
                record(connection, now_ms, "token_revoked", data={"name": row.name})
            return _token_named(connection, row.id) or row

        return _view(self._change(transaction), self.clock())

    def _organisation(self, request: TokenRequest) -> str | None:
        if self._by.organisation is not None and request.organisation not in (None, self._by.organisation):
            detail = f"{self._by.id} belongs to {self._by.organisation}, and cannot create a token for another one."
            raise Forbidden(detail, remedy="Leave `organisation` out.")
        return request.organisation or self._by.organisation

    def _expires_ms(self, connection: Connection, request: TokenRequest, now_ms: int) -> int | None:
        own = access_rows.token_named(connection, self._by.id)
        limit = None if own is None else own.expires_ms
        if request.expires is None:
            usual = now_ms + DEFAULT_LIFE_MS
            return usual if limit is None else min(usual, limit)
        requested_ms = None if request.expires == NEVER else now_ms + parse_duration(request.expires)
        if limit is not None and (requested_ms is None or requested_ms > limit):
            message = f"is later than {format_instant(limit)}, when the token of {self._by.id} itself expires"
            raise Invalid.of([Problem(field="expires", message=message, remedy="leave it out, or ask for less")])
        return requested_ms

    def _change(self, transaction: Callable[[Connection], ApiToken]) -> ApiToken:
        row = self._write(transaction)
        with or_unavailable():
            self.keyring.reload()
        return row


def _token_named(connection: Connection, ref: str) -> ApiToken | None:
    return None if "\0" in ref else access_rows.find_token(connection, ref)


def _view(token: ApiToken, now_ms: int) -> TokenView:
    return TokenView.legible(token, active=is_good(token, now_ms))
