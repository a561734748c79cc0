"""The operator's page: rendered on the server, live through event streams, and usable without scripts.

Here are its routes, and refusals as pages: the API's problem, with its cause and remedy, for a browser.
"""

from collections.abc import Awaitable, Callable
from importlib import import_module
from inspect import isawaitable
from pkgutil import walk_packages
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute
from starlette.types import Scope

from claudomator_py import resources
from claudomator_py.api.guard.security import STALE, is_page
from claudomator_py.api.problem import MEDIA_TYPE, Refused
from claudomator_py.domain.errors import ServiceError
from claudomator_py.domain.shape import ProblemDetails
from claudomator_py.resources.session import Session

_OWN = ("front", "selection", "tasks", "writing", "rendering")
_Handler = Callable[[Request, Exception], Response | Awaitable[Response]]
_REFUSALS: tuple[type[Exception], ...] = (ServiceError, Refused, RequestValidationError, HTTPException)
_API = ("/v1/", "/static/")
_PAGE_REMEDIES = {"no_such_path": "Open the overview and find it there.", "invalid": "Go back and fix it."}


def routes() -> list[BaseRoute]:
    """Return the routes of all pages: those here, and those of each resource's modules named ``page`` or ``..._page``,
    which are imported."""
    modules = walk_packages(resources.__path__, f"{resources.__name__}.")
    pages = [module.name for module in modules if module.name.endswith("page")]
    return [
        route
        for name in (*(f"{__name__}.{name}" for name in _OWN), *pages)
        for route in import_module(name).routes.routes
    ]


def install(app: FastAPI) -> None:
    """Turn refusals of pages into pages. Call it after the API's exception handlers are installed."""
    for kind in _REFUSALS:
        app.add_exception_handler(kind, _dressed(app.exception_handlers[kind]))


def dress(scope: Scope, response: Response) -> Response:
    """Return the response as a page if it is a refusal and a browser asked for a page, else unchanged."""
    wants_page = "text/html" in Headers(scope=scope).get("accept", "") and not scope["path"].startswith(_API)
    if not wants_page or response.media_type != MEDIA_TYPE:
        return response
    problem = ProblemDetails.model_validate_json(bytes(response.body))
    by = scope["state"].get("principal")
    granted = None if by is None else scope["app"].state.access.as_(by)
    return _login_needed(scope) if problem.status == 401 else problem_page(problem, granted)


def problem_page(problem: ProblemDetails, granted: Session | None) -> Response:
    """Return a page that shows the problem. granted: the viewer's session, if the viewer is known."""
    from claudomator_py.api.page.rendering import render  # late, see ``api.app``

    remedy = _PAGE_REMEDIES.get(problem.code, problem.remedy)
    return render("problem.html", {"problem": problem, "remedy": remedy}, granted, problem.status)


def _login_needed(scope: Scope) -> Response:
    """Return the page for a request without a session. A request from another site's link arrives without its session
    as well, hence the link onward."""
    from claudomator_py.api.page.rendering import render  # late, see ``api.app``

    path, query = "/", b""
    if scope["method"] == "GET" and is_page(scope["path"]):
        path, query = quote(scope["path"]), scope["query_string"]
    onward = f"{path}?{query.decode('latin-1')}" if query else path
    response = render("login_needed.html", {"onward": onward}, status=401)
    if (stale := scope.get(STALE)) is not None:
        # The page may learn that its session has ended before the answer to logging out has removed the cookie.
        response.delete_cookie(stale, path="/", httponly=True, samesite="strict")
    return response


def _dressed(plain: Any) -> _Handler:
    async def handler(request: Request, error: Exception) -> Response:
        response = plain(request, error)
        if isawaitable(response):
            response = await response
        return dress(request.scope, response)

    return handler
