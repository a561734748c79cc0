"""/notices: who was told about what, what did not arrive and why, and sending it again."""

from typing import Annotated

from fastapi import Path
from fastapi.responses import Response

from claudomator_py.api.operation import Allowed, UnlistedRoutes
from claudomator_py.api.page.formatting import PART, Cursor, address
from claudomator_py.api.page.rendering import button, render
from claudomator_py.api.request import DIGITS
from claudomator_py.domain.notice import DeliveryState
from claudomator_py.resources.notifications import DeliveryView, NotificationCalls
from claudomator_py.resources.notifications.service import Notices
from claudomator_py.surface.table import folded

_TONES = {DeliveryState.DELIVERED: "good", DeliveryState.DEAD: "bad"}
Delivery = Annotated[int, Path(ge=1, le=2**63 - 1), DIGITS]


routes = UnlistedRoutes("/notices")


@routes.get("", "listNotifications")
def show(granted: Allowed, state: DeliveryState | None = None, cursor: Cursor = None) -> Response:
    service = granted[Notices]
    page, counts = service.deliveries(state, cursor, PART), service.counts()
    states = [(state, state.value, counts.get(state.value, 0), f"/notices?state={state}") for state in DeliveryState]
    choices = [(None, "all", sum(counts.values()), "/notices"), *states]
    values = {
        "folds": folded(page.items, _same, lambda delivery: str(delivery.id), {}),
        "tones": _TONES,
        "spans": [(f"{word.capitalize()} ({number:,})", url, choice == state) for choice, word, number, url in choices],
        "state": state,
        "more": None if page.next_cursor is None else address("/notices", cursor=page.next_cursor, state=state),
        "place": "/notices",
    }
    return render("notices.html", values, granted)


button(routes, "/{delivery}/retry", NotificationCalls.retry_notification, Notices, "/notices")


def _same(delivery: DeliveryView) -> tuple[str, str, str | None] | None:
    """Return what equal notices have in common; None for one that a person may want to send again."""
    if delivery.state is not DeliveryState.DELIVERED:
        return None
    return delivery.target, delivery.notice.title, delivery.notice.task_id
