"""The shapes and operations of API tokens and browser sessions. Field order is the order of the JSON."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from claudomator_py.domain.card import SHIPPER
from claudomator_py.domain.fields import Name, refusal
from claudomator_py.domain.principal import INBOX, OPERATOR, Role
from claudomator_py.domain.shape import Instant, View
from claudomator_py.domain.units import DAY_MS, parse_duration
from claudomator_py.surface import ADMIN, READ, Calls, InPath, JsonBody, operation

GivenRole = Literal["read", "operate", "admin"]
NEVER = "never"
DEFAULT_LIFE_MS = 90 * DAY_MS
TAKEN_NAMES = frozenset({OPERATOR.id, INBOX.id, SHIPPER, "clock", "daemon", "run", "schedule"})
"""Names that records use for actors that are no token."""


def _free(name: str) -> str:
    if name in TAKEN_NAMES:
        raise refusal(f"`{name}` is a name that Claudomator uses itself", "choose another one")
    return name


def _expiry(text: str) -> str:
    if text == NEVER:
        return text
    try:
        if parse_duration(text) > 0:
            return text
    except ValueError:
        pass
    raise refusal("is neither a duration nor `never`", "write 30d, 12h or never")


class TokenRequest(View, frozen=True, extra="forbid"):
    """A token to create."""

    name: Annotated[Name, AfterValidator(_free)] = Field(
        description="Name of the holder in the audit log. Never reused."
    )
    role: GivenRole = Field(
        description="`read`: view; `operate`: also change tasks and schedules; `admin`: everything."
    )
    organisation: Name | None = Field(
        default=None,
        description="Limit the token to tasks of this organisation. Default: the organisation of its creator, if any.",
    )
    expires: Annotated[str, AfterValidator(_expiry)] | None = Field(
        default=None,
        max_length=40,
        description="A duration such as `30d`, or `never`. Default: 90 days, but no longer than its creator's token.",
    )


class TokenView(View):
    """A token that was issued; the token itself is not stored."""

    id: str
    name: str
    """The name of its holder in records."""
    role: Role
    """What its holder may do."""
    organisation: str | None = None
    """Whose tasks its holder sees; null: everybody's."""
    creator: str
    """The name of the principal that created it."""
    created_at: Instant
    expires_at: Instant | None = None
    """Null: never."""
    used_at: Instant | None = None
    """When it was last used, to within an hour."""
    revoked_at: Instant | None = None
    active: bool
    """Whether it is valid now."""


class NewTokenView(TokenView):
    """A token that was just created."""

    token: str
    """Shown only this once."""


class SessionView(View):
    """A browser that is logged in."""

    id: str
    principal: str
    """The principal that it is logged in as."""
    host: str
    """Where it logged in; the session is valid only there."""
    browser: str
    created_at: Instant
    used_at: Instant
    """When it was last used."""
    expires_at: Instant
    """When it ends unless it is used before."""
    current: bool = False
    """Whether it is the session of this request."""


class LoginCodeView(View):
    """A code that logs one browser in, once."""

    code: str
    path: str
    """The part of `url` after the host."""
    url: str
    """The URL to open in the browser."""
    expires_at: Instant


_CREATED = {
    "for_a_dashboard": {"name": "dashboard", "role": "read"},
    "for_an_organisation": {"name": "acme-ci", "role": "operate", "organisation": "acme", "expires": "30d"},
}


class TokenCalls(Calls):
    """The operations on tokens, as the client calls them."""

    @operation("GET /v1/tokens", "listTokens", ADMIN, "Tokens, newest first")
    def tokens(self) -> list[TokenView]:
        """Includes revoked and expired ones. The tokens themselves are not stored."""

    @operation(
        "POST /v1/tokens",
        "createToken",
        ADMIN,
        "Create a token",
        status=201,
        refuses=(409,),
        answer_note="Created: the token is shown only once",
        secret=True,
    )
    def create_token(self, wanted: Annotated[TokenRequest, JsonBody(_CREATED)]) -> NewTokenView:
        """A token can have no more rights than its creator's, belong to no other organisation, and not outlast it."""

    @operation("DELETE /v1/tokens/{ref}", "revokeToken", ADMIN, "Revoke a token")
    def revoke_token(self, ref: Annotated[str, InPath("A token's id or name.")]) -> TokenView:
        """Immediate and permanent: its event streams and browser sessions end. Tokens that its holder issued stay
        valid. Harmless when repeated."""


class LoginCalls(Calls):
    """The operations on browser sessions, as the client calls them."""

    @operation(
        "POST /v1/login-codes",
        "createLoginCode",
        READ,
        "A code that logs one browser in, once, within a minute",
        status=201,
    )
    def login_code(self) -> LoginCodeView:
        """`claudomator open` requests one. The code is secret only until it is used.
        The browser may do what the token of this request may.
        """

    @operation("GET /v1/sessions", "listSessions", READ, "The browsers that are logged in, the last used first")
    def sessions(self) -> list[SessionView]:
        """Those of the token's own principal; all of them for an administrator of the whole daemon."""

    @operation("DELETE /v1/sessions", "endSessions", READ, "Log out everywhere")
    def end_sessions(self) -> list[SessionView]:
        """End all sessions that the token can see, at once, with their event streams. Returns the ended sessions."""

    @operation("DELETE /v1/sessions/{session_id}", "endSession", READ, "Log one browser out")
    def end_session(self, session_id: Annotated[str, InPath("A session's id.")]) -> SessionView:
        """At once, with its event streams."""
