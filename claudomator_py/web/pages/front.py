"""The front page: everything at a glance, or the tasks that match the filters in the URL."""

from collections.abc import Mapping
from typing import Annotated, TypeVar

from fastapi import APIRouter, Form, Query
from fastapi.responses import RedirectResponse, Response

from claudomator_py.core.errors import Invalid
from claudomator_py.core.validation import validate
from claudomator_py.core.view import View
from claudomator_py.core.views import ReleaseRequest, TaskFilter
from claudomator_py.service.desk.desk import Desk
from claudomator_py.web.pages.front_model import filters_of, found_of, front_of
from claudomator_py.web.pages.rendering import render

V = TypeVar("V", bound=View)
_PART = 50
Text = Annotated[str, Query(max_length=200)]
Cursor = Annotated[str | None, Query(max_length=500)]


def router(desk: Desk) -> APIRouter:
    """The routes, on this desk."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/")
    def front(state: Text = "", q: Text = "", tag: Text = "", cursor: Cursor = None) -> Response:
        wanted = _read(TaskFilter, {"state": state, "text": q.strip(), "tag": tag.strip()})
        filters = filters_of(wanted)
        if filters.any:
            model = found_of(wanted, desk.tasks(wanted, cursor, _PART), desk.agents())
        else:
            model = front_of(desk.status())
        return render("front.html", {"front": model, "filters": filters})

    @routes.post("/agents/{name}/release")
    def release(name: str, family: Annotated[str, Form(max_length=64)] = "") -> Response:
        desk.release(name, _read(ReleaseRequest, {"family": family}))
        return RedirectResponse("/#agents", 303)

    return routes


def _read(kind: type[V], given: Mapping[str, str]) -> V:
    """What the fields that are filled in say. Raises Invalid."""
    found = validate(kind, {key: value for key, value in given.items() if value}, {})
    if isinstance(found, list):
        detail = "; ".join(problem.render() for problem in found)
        raise Invalid(detail, remedy="Go back, and choose something else.", problems=found)
    return found
