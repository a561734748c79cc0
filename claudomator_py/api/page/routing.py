"""/routing: who would do a task, how routing does, and what operators corrected."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Query
from fastapi.responses import RedirectResponse, Response

from claudomator_py.api.guard.asking import Asking
from claudomator_py.api.page.rendering import render
from claudomator_py.api.page.route_model import route_of
from claudomator_py.api.page.routing_model import corrections_of, figures_of
from claudomator_py.api.page.wanted import read_fields
from claudomator_py.api.section import guarded
from claudomator_py.domain.errors import Conflict, Invalid, ServiceError
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.task import LONGEST_INSTRUCTIONS
from claudomator_py.domain.views.routing import ForgetRequest, RouteRequest
from claudomator_py.service.access import Access

Text = Annotated[str, Form(max_length=LONGEST_INSTRUCTIONS)]
Days = Annotated[int, Query(ge=1, le=365)]
Field = Annotated[str, Form(max_length=2_000)]
_STATUS: dict[type[ServiceError], int] = {Conflict: 409, Invalid: 422}


@dataclass(frozen=True, slots=True)
class Asked:
    """A task that there is not, as the form has it. tags: with commas between them."""

    text: str = ""
    name: str = ""
    tags: str = ""

    def request(self) -> RouteRequest:
        """What is asked. Raises Invalid."""
        tags = [tag.strip() for tag in self.tags.split(",") if tag.strip()]
        given = {"instructions": self.text.strip(), "name": self.name.strip(), "tags": tags}
        return read_fields(RouteRequest, given)


def router(access: Access) -> APIRouter:
    """The routes."""
    routes = guarded("/routing")

    @routes.get("")
    def show(by: Asking, days: Days = 30) -> Response:
        learned = access.as_(by).learned
        known = learned.all()
        values = {
            "figures": figures_of(learned.stats(days)),
            "corrections": corrections_of(known.corrections),
            "frozen": known.frozen_at,
            "waiting": known.waiting,
        }
        return _page(by, Asked(), values)

    # A task's text may be long, and is nobody else's business: it stands in no address.
    @routes.post("")
    def who(by: Asking, text: Text = "", name: Field = "", tags: Field = "") -> Response:
        given = Asked(text, name, tags)
        try:
            return _page(by, given, {"route": route_of(access.as_(by).specialists.route(given.request()))})
        except (Conflict, Invalid) as refusal:
            return _page(by, given, {"refusal": refusal}, _STATUS[type(refusal)])

    @routes.get("/forget")
    def ask_to_forget(by: Asking) -> Response:
        return render("forget.html", {"page": None}, by=by)

    @routes.post("/forget")
    def forget(by: Asking) -> Response:
        access.as_(by).learned.forget(ForgetRequest())
        return _back()

    @routes.post("/freeze")
    def freeze(by: Asking) -> Response:
        access.as_(by).learned.freeze()
        return _back()

    @routes.post("/unfreeze")
    def unfreeze(by: Asking) -> Response:
        access.as_(by).learned.unfreeze()
        return _back()

    return routes


def _back() -> Response:
    return RedirectResponse("/routing#learning", 303)


def _page(by: Principal, asked: Asked, values: Mapping[str, object], status: int = 200) -> Response:
    whole = {"asked": asked, "route": None, "refusal": None, "figures": None, **values}
    return render("routing.html", whole, status, by=by)
