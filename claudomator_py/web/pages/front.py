"""The front page: everything at a glance, or the tasks that match the filters in the URL."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import RedirectResponse, Response

from claudomator_py.core.errors import Invalid
from claudomator_py.core.validation import validate
from claudomator_py.core.views import TaskFilter
from claudomator_py.service.desk.desk import Desk
from claudomator_py.web.pages.front_model import filters_of, found_of, front_of
from claudomator_py.web.pages.rendering import render

_PART = 50
Text = Annotated[str, Query(max_length=200)]
Cursor = Annotated[str | None, Query(max_length=500)]


def router(desk: Desk) -> APIRouter:
    """The routes, on this desk."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/")
    def front(state: Text = "", q: Text = "", tag: Text = "", cursor: Cursor = None) -> Response:
        wanted = _filter(state, q.strip(), tag.strip())
        filters = filters_of(wanted)
        if filters.any:
            model = found_of(wanted, desk.tasks(wanted, cursor, _PART), desk.agents())
        else:
            model = front_of(desk.status())
        return render("front.html", {"front": model, "filters": filters})

    @routes.post("/agents/{name}/release")
    def release(name: str) -> Response:
        desk.release(name)
        return RedirectResponse("/#agents", 303)

    return routes


def _filter(state: str, text: str, tag: str) -> TaskFilter:
    given = {"state": state, "text": text, "tag": tag}
    found = validate(TaskFilter, {key: value for key, value in given.items() if value}, {})
    if not isinstance(found, TaskFilter):
        detail = "; ".join(problem.render() for problem in found)
        raise Invalid(detail, remedy="Choose other filters.", problems=found)
    return found
