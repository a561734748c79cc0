"""/login, /logout and /sessions: log a browser in by a one-time code, list sessions, and end them.
Opening /login with a code does not use the code up, as link previews and browsers prefetch; only its form does.
"""

from collections.abc import Callable
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import RedirectResponse, Response
from starlette.background import BackgroundTask

from claudomator_py.api.guard.limits import Throttle
from claudomator_py.api.guard.roles import Asking
from claudomator_py.api.guard.sessions import MAX_MS, LoginCodes, Sessions
from claudomator_py.api.operation import guarded
from claudomator_py.api.page.formatting import Ref
from claudomator_py.api.page.rendering import render
from claudomator_py.api.settings import WebSettings
from claudomator_py.domain.text import one_line
from claudomator_py.resources.access.http import Browsers, browsers
from claudomator_py.values import dataclass, regex

_MAX_CODE_LENGTH = 200
Code = Annotated[str, Query(max_length=_MAX_CODE_LENGTH)]
Seen = Annotated[Browsers, Depends(browsers)]
SentCode = Annotated[str, Form(max_length=_MAX_CODE_LENGTH)]


@dataclass(frozen=True, slots=True)
class Entrance:
    """The services that a login needs."""

    sessions: Sessions
    codes: LoginCodes
    throttle: Throttle
    settings: WebSettings


def router(entrance: Entrance, prepare: Callable[[], None]) -> APIRouter:
    """Return the routes. prepare: makes the first page that is asked for as fast as those that follow; called once the
    form has been sent, which somebody fills in meanwhile."""
    sessions, codes, settings = entrance.sessions, entrance.codes, entrance.settings
    page_host, page_hosts = settings.page_host, settings.page_hosts()
    routes = guarded()

    @routes.get("/login")
    def ask(request: Request, code: Code = "") -> Response:
        if request.headers["host"].lower() in page_hosts:
            form = render("login.html", {"code": code, "refused": False})
            form.background = BackgroundTask(prepare) if codes.is_good(code) else None
            return form
        if codes.is_good(code):  # only then, as the name of the host is secret
            return RedirectResponse(f"http://{page_host}/login?code={quote(code)}", 303)
        return render("login.html", {"code": "", "refused": bool(code)})

    @routes.post("/login")
    def log_in(request: Request, code: SentCode = "") -> Response:
        host = request.headers["host"].lower()
        if host not in page_hosts:
            return render("login.html", {"code": "", "refused": False}, 403)
        whose = codes.redeem(code)
        if whose is None:
            entrance.throttle.failure(request.client)
            return render("login.html", {"code": "", "refused": True}, 403)
        session = sessions.begin(whose, host, browser_name(request.headers.get("user-agent", "")))
        return _logged_in(settings.cookie, session, request)

    @routes.post("/logout")
    def log_out(by: Asking, request: Request) -> Response:
        session: str | None = request.state.session
        if session is not None:
            sessions.end([session], by.id)
        return _logged_out(entrance)

    @routes.get("/sessions")
    def show(by: Asking, seen: Seen) -> Response:
        sessions = seen.all()
        strangers = any(session.principal != by.id for session in sessions)
        return render("sessions.html", {"sessions": sessions, "strangers": strangers}, by=by)

    @routes.post("/sessions/end")
    def end_all(seen: Seen) -> Response:
        seen.end_all()
        return _logged_out(entrance)

    @routes.post("/sessions/{session_id}/end")
    def end(seen: Seen, session_id: Ref) -> Response:
        return _logged_out(entrance) if seen.end(session_id).current else RedirectResponse("/sessions", 303)

    return routes


def _logged_in(cookie: str, session: str, request: Request) -> Response:
    """Return the response to a browser whose session has begun."""
    response = RedirectResponse("/", 303)
    # The origin of its pages shows whether a proxy speaks TLS; the daemon itself does not.
    secure = request.headers.get("origin", "").startswith("https:")
    response.set_cookie(
        cookie, session, max_age=MAX_MS // 1000, httponly=True, samesite="strict", path="/", secure=secure
    )
    return response


def _logged_out(entrance: Entrance) -> Response:
    """Return the response to a browser whose session has ended."""
    response = RedirectResponse("/login", 303)
    response.delete_cookie(entrance.settings.cookie, path="/", httponly=True, samesite="strict")
    return response


_MAX_LENGTH = 60
# The first match counts, as most browsers also claim to be those further down.
_BROWSERS = (
    ("Edge", regex(r"\bEdgA?/(\d+)")),
    ("Opera", regex(r"\bOPR/(\d+)")),
    ("Firefox", regex(r"\b(?:Firefox|FxiOS)/(\d+)")),
    ("Chrome", regex(r"\b(?:HeadlessChrome|Chrome|CriOS)/(\d+)")),
    ("Safari", regex(r"\bVersion/(\d+)\S* (?:\S+ )?Safari/")),
)
_SYSTEMS = (
    ("Android", "Android"),
    ("iOS", "iPhone"),
    ("iPadOS", "iPad"),
    ("Windows", "Windows"),
    ("macOS", "Mac OS X"),
    ("ChromeOS", "CrOS"),
    ("Linux", "Linux"),
)


def browser_name(user_agent: str) -> str:
    """Return the browser's name, such as ``Firefox 131 on Linux``, or the beginning of an unknown user agent. Never
    empty."""
    name = next((f"{name} {match[1]}" for name, known in _BROWSERS if (match := known.search(user_agent))), None)
    if name is None:
        text = one_line(user_agent)
        return f"{text[:_MAX_LENGTH]}…" if len(text) > _MAX_LENGTH else text or "unknown"
    system = next((name for name, part in _SYSTEMS if part in user_agent), None)
    return name if system is None else f"{name} on {system}"
