"""Browsers that are logged in."""

from claudomator_py.core.view import Instant, View


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
