"""/routing: who would do a task."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form
from fastapi.responses import Response

from claudomator_py.api.guard.asking import Asking
from claudomator_py.api.page.rendering import render
from claudomator_py.api.page.route_model import RouteShown, route_of
from claudomator_py.api.page.wanted import read_fields
from claudomator_py.domain.errors import Conflict, Invalid, ServiceError
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.views.routing import LONGEST_TEXT, RouteRequest
from claudomator_py.service.access import Access

Text = Annotated[str, Form(max_length=LONGEST_TEXT)]
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
    routes = APIRouter(prefix="/routing", include_in_schema=False)

    @routes.get("")
    def show(by: Asking) -> Response:
        return _page(by, Asked())

    # A task's text may be long, and is nobody else's business: it stands in no address.
    @routes.post("")
    def who(by: Asking, text: Text = "", name: Field = "", tags: Field = "") -> Response:
        given = Asked(text, name, tags)
        try:
            return _page(by, given, route_of(access.as_(by).specialists.route(given.request())))
        except (Conflict, Invalid) as refusal:
            return _page(by, given, refusal=refusal)

    return routes


def _page(
    by: Principal, asked: Asked, route: RouteShown | None = None, refusal: ServiceError | None = None
) -> Response:
    values = {"asked": asked, "route": route, "refusal": refusal}
    return render("routing.html", values, 200 if refusal is None else _STATUS[type(refusal)], by=by)
