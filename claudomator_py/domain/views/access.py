"""Tokens of the API: who may ask, and what."""

from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field

from claudomator_py.domain.card import SHIPPER
from claudomator_py.domain.fields import Name, refusal
from claudomator_py.domain.principal import INBOX, OPERATOR, Role
from claudomator_py.domain.units import DAY_MS, parse_duration
from claudomator_py.domain.views.base import Instant, View

GivenRole = Literal["read", "operate", "admin"]
NEVER = "never"
DEFAULT_LIFE_MS = 90 * DAY_MS
TAKEN_NAMES = frozenset({OPERATOR.id, INBOX.id, SHIPPER, "clock", "daemon", "run", "schedule"})
"""Names that say who did something when it was no token."""


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


class TokenRequest(View):
    """A token to be made. name: how its holder is named in records; it is given once and never again.

    role: what its holder may do. organisation: whose tasks its holder sees; None: everybody's, or those of the
    organisation of whoever makes it. expires: how long it is good for, or ``never``; None: 90 days, or for as long as
    the token of whoever makes it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

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
        default=None, max_length=40, description="A duration such as `30d`, or `never`. Default: 90 days."
    )


class TokenView(View):
    """A token that was given out; the token itself is kept nowhere. creator: the name of whoever made it.

    used_at: when it was last seen, to within an hour. active: whether it is good now.
    """

    id: str
    name: str
    role: Role
    organisation: str | None = None
    creator: str
    created_at: Instant
    expires_at: Instant | None = None
    used_at: Instant | None = None
    revoked_at: Instant | None = None
    active: bool


class NewTokenView(TokenView):
    """A token that was just made. token: shown this once."""

    token: str


class SessionView(View):
    """A browser that is logged in. principal: as whom. host: where it logged in, and where alone it counts.

    used_at: when it was last seen. expires_at: when it ends unless it is used before. current: whether it is the one
    that asks.
    """

    id: str
    principal: str
    host: str
    browser: str
    created_at: Instant
    used_at: Instant
    expires_at: Instant
    current: bool = False
