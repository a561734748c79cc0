"""Every refusal as problem+json (RFC 9457): what was wrong, and what to do next."""

import json
import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from claudomator_py.domain.errors import ErrorStatus, Problem, ServiceError, field_name, problems_text, shown
from claudomator_py.domain.shape import ProblemDetails
from claudomator_py.schema.validation import wording

MEDIA_TYPE: Final = "application/problem+json"

log = logging.getLogger(__name__)

_HTTP_STATUS: dict[ErrorStatus, int] = {
    "not_found": 404,
    "ambiguous": 409,
    "not_permitted": 403,
    "conflict": 409,
    "stale_version": 412,
    "invalid": 422,
    "bad_cursor": 400,
    "gone": 410,
    "idempotency_key_in_use": 409,
    "idempotency_key_reused": 422,
    "unavailable": 503,
}


def status_of(refusal: ServiceError) -> int:
    """Return the HTTP status of an answer with this refusal."""
    return _HTTP_STATUS[refusal.status]


# Refusals by the framework itself: code and remedy.
_PLAIN: dict[int, tuple[str, str]] = {
    400: ("bad_request", "Send well-formed JSON."),
    404: ("no_such_path", "See /openapi.json for the paths there are."),
    405: ("method_not_allowed", "See the Allow header for the supported methods."),
    413: ("too_large", "Send at most 1 MiB."),
    415: ("unsupported_media_type", "Send application/json."),
    422: ("invalid", "Fix the listed problems and retry."),
}
_METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")
_OTHERWISE = ("refused", "See /openapi.json for what is accepted.")
_INTERNAL_REMEDY = "Check the daemon's log; the request may be retried."


class Refused(Exception):
    """A request that is refused before it reaches a service."""

    def __init__(
        self, status: int, code: str, detail: str, remedy: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.remedy = remedy
        self.headers = dict(headers or {})

    def response(self, path: str) -> Response:
        """Return the refusal as an answer to a request for that path."""
        title = HTTPStatus(self.status).phrase
        return problem_response(path, self.status, self.code, title, self.detail, self.remedy, headers=self.headers)


def problem_response(
    path: str,
    status: int,
    code: str,
    title: str,
    detail: str,
    remedy: str,
    *,
    problems: Sequence[Problem] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return the response for a refusal. code: its stable name."""
    body = ProblemDetails(
        type=f"urn:problem-type:claudomator:{code}",
        title=title,
        status=status,
        detail=detail,
        instance=quote(path),
        code=code,
        remedy=remedy,
        problems=tuple(problems),
    )
    content = json.dumps(body.model_dump(mode="json"), ensure_ascii=False).encode("utf-8", "backslashreplace")
    return Response(content, status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def unexpected(path: str) -> Response:
    """Return the response for an internal error, without internal details."""
    title = HTTPStatus.INTERNAL_SERVER_ERROR.phrase
    return problem_response(path, 500, "internal", title, "Something went wrong in the daemon.", _INTERNAL_REMEDY)


def install(app: FastAPI) -> None:
    """Turn every exception that a request can raise into a problem document."""
    app.exception_handler(ServiceError)(_service_error)
    app.exception_handler(Refused)(_refused)
    app.exception_handler(RequestValidationError)(_validation)
    app.exception_handler(HTTPException)(_framework)


def _service_error(request: Request, error: ServiceError) -> Response:
    return problem_response(
        request.url.path,
        status_of(error),
        error.status,
        error.title,
        error.detail,
        error.remedy,
        problems=error.problems,
    )


def _refused(request: Request, error: Refused) -> Response:
    return error.response(request.url.path)


def _validation(request: Request, error: RequestValidationError) -> Response:
    problems = [_as_problem(item) for item in error.errors()]
    detail = problems_text(problems[:3])
    code, remedy = _PLAIN[422]
    return problem_response(request.url.path, 422, code, "Not valid", detail, remedy, problems=problems)


def _as_problem(item: Any) -> Problem:
    place = item["loc"][1:]  # without "query", "path" or "body"
    message, remedy = wording(item)
    return Problem(field=field_name(tuple(place)), message=message, remedy=remedy)


def _framework(request: Request, error: HTTPException) -> Response:
    code, remedy = _PLAIN.get(error.status_code, _OTHERWISE)
    title = HTTPStatus(error.status_code).phrase
    method, path = request.method, request.url.path
    detail = {
        404: f"There is no such path: {shown(path)}.",
        405: f"{method} is not possible on {shown(path)}.",
    }.get(error.status_code, str(error.detail))
    headers = {"Allow": _allowed(request)} if error.status_code == 405 else error.headers
    return problem_response(path, error.status_code, code, title, detail, remedy, headers=headers)


def _allowed(request: Request) -> str:
    """Return all methods of the path; the framework names only those of the first matching route."""
    routes = request.app.routes

    def taken(method: str) -> bool:
        return any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in routes)

    allowed_methods = {method for method in _METHODS if taken(method)}
    return ", ".join(sorted(allowed_methods | ({"HEAD"} if "GET" in allowed_methods else set())))
