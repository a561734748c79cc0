"""The front page: everything at a glance, or the tasks that match the filters in the URL."""

from typing import Annotated

from fastapi import APIRouter, Form, Query
from fastapi.responses import RedirectResponse, Response

from claudomator_py.api.guard.asking import Asking
from claudomator_py.api.page.front_model import filters_of, found_of, front_of
from claudomator_py.api.page.rendering import render
from claudomator_py.api.page.wanted import read_fields, read_filter
from claudomator_py.api.section import guarded
from claudomator_py.domain.views import ReleaseRequest
from claudomator_py.service.access import Access

_PART = 50
Text = Annotated[str, Query(max_length=200)]
Cursor = Annotated[str | None, Query(max_length=500)]


def router(access: Access) -> APIRouter:
    """The routes."""
    routes = guarded()

    @routes.get("/")
    def front(
        by: Asking, state: Text = "", q: Text = "", tag: Text = "", specialist: Text = "", cursor: Cursor = None
    ) -> Response:
        granted = access.as_(by)
        wanted = read_filter(state, q, tag, specialist)
        filters = filters_of(wanted)
        if filters.any:
            model = found_of(wanted, granted.queries.tasks(wanted, cursor, _PART), granted.queries.agents())
        else:
            model = front_of(granted.queries.status())
        return render("front.html", {"front": model, "filters": filters}, by=by)

    @routes.post("/agents/{name}/release")
    def release(by: Asking, name: str, family: Annotated[str, Form(max_length=64)] = "") -> Response:
        access.as_(by).service.release(name, read_fields(ReleaseRequest, {"family": family}))
        return RedirectResponse("/#agents", 303)

    return routes
