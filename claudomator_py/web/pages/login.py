"""/login and /logout: a one-time code for a session, and its end.

Looking at /login with a code does not use the code up: previews of links and browsers look ahead. Only the form does.
"""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import RedirectResponse, Response

from claudomator_py.web.limits import Throttle
from claudomator_py.web.login_codes import LoginCodes
from claudomator_py.web.pages.rendering import render
from claudomator_py.web.sessions import LASTS_MS, Sessions

_LONGEST = 200
Code = Annotated[str, Query(max_length=_LONGEST)]
SentCode = Annotated[str, Form(max_length=_LONGEST)]


@dataclass(frozen=True, slots=True)
class Entrance:
    """What a login needs. cookie: the name of the session's."""

    sessions: Sessions
    codes: LoginCodes
    throttle: Throttle
    cookie: str


def router(entrance: Entrance) -> APIRouter:
    """The routes."""
    sessions, codes, cookie = entrance.sessions, entrance.codes, entrance.cookie
    routes = APIRouter(include_in_schema=False)

    @routes.get("/login")
    def ask(code: Code = "") -> Response:
        return render("login.html", {"code": code, "refused": False})

    @routes.post("/login")
    def log_in(request: Request, code: SentCode = "") -> Response:
        whose = codes.redeem(code)
        if whose is None:
            entrance.throttle.failure(request.client)
            return render("login.html", {"code": "", "refused": True}, 403)
        response = RedirectResponse("/", 303)
        # A proxy that speaks TLS shows in the origin of its pages; the daemon itself speaks none.
        secure = request.headers.get("origin", "").startswith("https:")
        response.set_cookie(
            cookie,
            sessions.begin(whose),
            max_age=LASTS_MS // 1000,
            httponly=True,
            samesite="strict",
            path="/",
            secure=secure,
        )
        return response

    @routes.post("/logout")
    def log_out(request: Request) -> Response:
        for pair in request.headers.get("cookie", "").split(";"):  # there may be another of that name
            name, _, value = pair.strip().partition("=")
            if name == cookie:
                sessions.end(value)
        response = RedirectResponse("/login", 303)
        response.delete_cookie(cookie, path="/", httponly=True, samesite="strict")
        return response

    return routes
