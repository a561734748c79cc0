"""Tokens in memory: the same answers and refusals as the real ones, for a single operator."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from claudomator_py.domain.errors import Conflict, NotFound
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.units import format_instant, parse_duration
from claudomator_py.domain.views import NewTokenView, TokenRequest, TokenView
from claudomator_py.domain.views.access import DEFAULT_LIFE_MS, NEVER

NOW_MS = 1_790_000_000_000


@dataclass
class FakeTokens:
    """Answers from memory, and knows who holds a token. Implements ``Tokens`` and ``Holders``."""

    given: dict[str, NewTokenView] = field(default_factory=dict)
    _listeners: list[Callable[[], None]] = field(default_factory=list)

    def all(self) -> list[TokenView]:
        return [_plain(one) for one in reversed(self.given.values())]

    def create(self, request: TokenRequest) -> NewTokenView:
        if any(one.name == request.name for one in self.given.values()):
            raise Conflict(f"The name {request.name} was given before.", remedy="Choose another one.")
        life_ms = DEFAULT_LIFE_MS
        if request.expires is not None and request.expires != NEVER:
            life_ms = parse_duration(request.expires)
        made = NewTokenView(
            id=str(uuid.uuid4()),
            name=request.name,
            role=Role(request.role),
            organisation=request.organisation,
            creator=OPERATOR.id,
            created_at=format_instant(NOW_MS),
            expires_at=None if request.expires == NEVER else format_instant(NOW_MS + life_ms),
            active=True,
            token=f"cmt_{request.name}{'x' * 32}",
        )
        self.given[made.id] = made
        return made

    def revoke(self, ref: str) -> TokenView:
        found = next((one for one in self.given.values() if ref in (one.id, one.name)), None)
        if found is None:
            raise NotFound(f"There is no token {ref!r}.", remedy="List them.")
        self.given[found.id] = found.model_copy(update={"active": False, "revoked_at": format_instant(NOW_MS)})
        for callback in self._listeners:
            callback()
        return _plain(self.given[found.id])

    def holder(self, token: str) -> Principal | None:
        return next((self.named(one.name) for one in self.given.values() if one.token == token), None)

    def running(self, _token: str) -> Principal | None:
        return None

    def named(self, principal_id: str) -> Principal | None:
        if principal_id == OPERATOR.id:
            return OPERATOR
        found = next((one for one in self.given.values() if one.name == principal_id and one.active), None)
        return None if found is None else Principal(found.name, found.role, found.organisation)

    def on_change(self, callback: Callable[[], None]) -> None:
        self._listeners.append(callback)


def _plain(made: NewTokenView) -> TokenView:
    return TokenView(**made.model_dump(exclude={"token"}))
