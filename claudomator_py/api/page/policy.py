"""/policy: the rules in force, what they would say of a task, what waits for an approval, and what became of others."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Form, Query
from fastapi.responses import Response

from claudomator_py.api.guard.asking import Asking
from claudomator_py.api.page.policy_model import page_of, verdict_of
from claudomator_py.api.page.rendering import render
from claudomator_py.api.section import guarded
from claudomator_py.domain.errors import Invalid
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.task import LONGEST_INSTRUCTIONS
from claudomator_py.domain.views.policy import VerdictView
from claudomator_py.service.access import Access
from claudomator_py.service.policy import PolicyDesk

Days = Annotated[int, Query(ge=1, le=365)]
Text = Annotated[str, Form(max_length=LONGEST_INSTRUCTIONS)]


def router(access: Access) -> APIRouter:
    """The routes."""
    routes = guarded("/policy")

    @routes.get("")
    def show(by: Asking, days: Days = 30) -> Response:
        return _page(access.as_(by).policy, by, days)

    # A task's text may be long, and is nobody else's business: it stands in no address.
    @routes.post("")
    def test(by: Asking, text: Text = "") -> Response:
        desk = access.as_(by).policy
        try:
            return _page(desk, by, text=text, verdicts=desk.test(text))
        except Invalid as refusal:
            return _page(desk, by, text=text, refusal=refusal)

    return routes


def _page(
    desk: PolicyDesk,
    by: Principal,
    days: int = 30,
    *,
    text: str = "",
    verdicts: Sequence[VerdictView] = (),
    refusal: Invalid | None = None,
) -> Response:
    values = {
        "page": page_of(desk.view(days), desk.approvals()),
        "text": text,
        "verdicts": tuple(map(verdict_of, verdicts)),
        "refusal": refusal,
    }
    return render("policy.html", values, 200 if refusal is None else 422, by=by)
