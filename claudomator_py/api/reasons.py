"""/v1/reasons: every reason code, and what follows from it."""

from fastapi import APIRouter

from claudomator_py.domain.outcome import REASON_POLICIES, Reason
from claudomator_py.domain.views import Page, ReasonView


def router() -> APIRouter:
    """The route. It needs no access: the codes are part of the program."""
    routes = APIRouter(prefix="/v1/reasons", tags=["reasons"])

    @routes.get("", operation_id="listReasons", summary="The reason codes, and what follows from each")
    def list_reasons() -> Page[ReasonView]:
        """The codes are stable: they are the same here, in tasks, in logs and in metrics."""
        return Page[ReasonView](items=tuple(ReasonView.of(REASON_POLICIES[reason], reason=reason) for reason in Reason))

    return routes
