"""Create, list and revoke tokens."""

import uuid
from collections.abc import Callable

from sqlalchemy import Connection

from claudomator_py.domain.errors import Conflict, Forbidden, Invalid, NotFound, Problem
from claudomator_py.domain.principal import Role
from claudomator_py.domain.units import format_instant, parse_duration
from claudomator_py.ports import Clock
from claudomator_py.resources.access import (
    DEFAULT_LIFE_MS,
    NEVER,
    NewTokenView,
    TokenCalls,
    TokenRequest,
    TokenView,
)
from claudomator_py.resources.access.keyring import Keyring, hash_of, is_good, new_token
from claudomator_py.resources.session import Service
from claudomator_py.store import access_rows
from claudomator_py.store.database import Database, or_unavailable
from claudomator_py.store.events import record
from claudomator_py.store.tables import ApiToken
from claudomator_py.surface import answers


class Tokens(Service):
    """The service of tokens. Every method may raise ``domain.errors.ServiceError``."""

    def __init__(self, database: Database, keyring: Keyring, clock: Clock) -> None:
        super().__init__(database)
        self._keyring = keyring
        self._clock = clock

    @answers(TokenCalls.tokens)
    def all(self) -> list[TokenView]:
        """Return all issued tokens, newest first; for a principal of an organisation, those of its organisation."""
        now_ms = self._clock()
        tokens = self._read(access_rows.tokens)
        return [_view(token, now_ms) for token in tokens if self._by.sees(token.organisation)]

    @answers(TokenCalls.create_token)
    def create(self, request: TokenRequest) -> NewTokenView:
        """Create a token, which is shown only now. Raises Forbidden if it would have more rights than its creator, and
        Conflict for a name that was used before."""
        token = new_token()

        def transaction(connection: Connection) -> ApiToken:
            now_ms = self._clock()
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
            access_rows.add_token(connection, row)
            data = {"name": row.name, "role": row.role, "organisation": row.organisation, "expires": row.expires_ms}
            record(connection, now_ms, "token_created", data={key: one for key, one in data.items() if one is not None})
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
            row = _found(connection, ref)
            if row is None or not self._by.sees(row.organisation):
                names = [one.name for one in access_rows.tokens(connection) if self._by.sees(one.organisation)]
                raise NotFound.among("token", ref, names, listing="claudomator token list")
            now_ms = self._clock()
            if row.revoked_ms is None:
                access_rows.change_token(connection, row.id, revoked_ms=now_ms)
                record(connection, now_ms, "token_revoked", data={"name": row.name})
            return _found(connection, row.id) or row

        return _view(self._change(transaction), self._clock())

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
            self._keyring.reload()
        return row


def _found(connection: Connection, ref: str) -> ApiToken | None:
    return None if "\0" in ref else access_rows.find_token(connection, ref)


def _view(token: ApiToken, now_ms: int) -> TokenView:
    return TokenView.of(token, active=is_good(token, now_ms))
