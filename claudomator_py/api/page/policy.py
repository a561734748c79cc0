"""/policy: the rules in force, what waits for an approval, and what became of others."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from claudomator_py.api.guard.asking import Asking
from claudomator_py.api.page.policy_model import page_of
from claudomator_py.api.page.rendering import render
from claudomator_py.service.access import Access

Days = Annotated[int, Query(ge=1, le=365)]


def router(access: Access) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/policy", include_in_schema=False)

    @routes.get("")
    def show(by: Asking, days: Days = 30) -> Response:
        policy = access.as_(by).policy
        return render("policy.html", {"page": page_of(policy.view(days), policy.approvals())}, by=by)

    return routes
