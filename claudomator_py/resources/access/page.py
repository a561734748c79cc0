"""/login, /logout and /sessions: log a browser in by a one-time code, list sessions, and end them.
Opening /login with a code does not use the code up, as link previews and browsers prefetch; only its form does.
"""

from contextlib import suppress
from typing import Annotated
from urllib.parse import quote

from fastapi import Depends, Form, Query, Request
from fastapi.responses import RedirectResponse, Response
from starlette.background import BackgroundTask
from starlette.datastructures import State

from claudomator_py.api.guard.sessions import MAX_MS
from claudomator_py.api.operation import Allowed, UnlistedRoutes
from claudomator_py.api.page.formatting import Ref
from claudomator_py.api.page.front import SHOWN
from claudomator_py.api.page.rendering import compile_templates, render
from claudomator_py.domain.errors import ServiceError
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.units import HOUR_MS
from claudomator_py.resources.access.http import Browsers, browsers
from claudomator_py.resources.overview.service import Overview
from claudomator_py.resources.report.night import Nights
from claudomator_py.resources.report.night_page import DEFAULT_HOURS
from claudomator_py.resources.report.service import Reports
from claudomator_py.resources.session import Session
from claudomator_py.surface import OPEN, READ
from claudomator_py.texts import one_line
from claudomator_py.values import regex

_MAX_CODE_LENGTH = 200
Code = Annotated[str, Query(max_length=_MAX_CODE_LENGTH)]
Seen = Annotated[Browsers, Depends(browsers)]
SentCode = Annotated[str, Form(max_length=_MAX_CODE_LENGTH)]


def _state(request: Request) -> State:
    state: State = request.app.state
    return state


App = Annotated[State, Depends(_state)]
"""What the application has for logins; see ``api.app.create_app``."""
routes = UnlistedRoutes()


@routes.get("/login", OPEN)
def ask(app: App, request: Request, code: Code = "") -> Response:
    is_good = app.login_codes.is_good(code)
    if request.headers["host"].lower() in app.settings.page_hosts():
        form = render("login.html", {"code": code, "refused": False})
        form.background = BackgroundTask(_prepare, app) if is_good else None
        return form
    if is_good:  # only then, as the name of the host is secret
        return RedirectResponse(f"http://{app.settings.page_host}/login?code={quote(code)}", 303)
    return render("login.html", {"code": "", "refused": bool(code)})


def _prepare(app: State) -> None:
    """Compile all templates, and the statements of the pages that a person opens first, once: somebody fills in the
    form meanwhile."""
    if app.is_prepared:
        return
    app.is_prepared = True
    compile_templates()
    granted: Session = app.access.as_(OPERATOR)
    with suppress(ServiceError, KeyError):  # whoever asks for the page is told; KeyError: an application of a few pages
        granted[Overview].status(SHOWN)
        now_ms = granted[Nights].clock()
        granted[Nights].night(now_ms - DEFAULT_HOURS * HOUR_MS, now_ms)
        granted[Reports].report()


@routes.post("/login", OPEN)
def log_in(app: App, request: Request, code: SentCode = "") -> Response:
    host = request.headers["host"].lower()
    if host not in app.settings.page_hosts():
        return render("login.html", {"code": "", "refused": False}, status=403)
    whose = app.login_codes.redeem(code)
    if whose is None:
        app.throttle.failure(request.client)
        return render("login.html", {"code": "", "refused": True}, status=403)
    session = app.sessions.begin(whose, host, browser_name(request.headers.get("user-agent", "")))
    return _logged_in(app.settings.cookie, session, request)


@routes.post("/logout", READ)
def log_out(app: App, granted: Allowed, request: Request) -> Response:
    session: str | None = request.state.session
    if session is not None:
        app.sessions.end([session], granted.by.id)
    return _logged_out(app)


@routes.get("/sessions", "listSessions")
def show(granted: Allowed, seen: Seen) -> Response:
    sessions = seen.all()
    strangers = any(session.principal != granted.by.id for session in sessions)
    return render("sessions.html", {"sessions": sessions, "strangers": strangers}, granted)


@routes.post("/sessions/end", "endSessions")
def end_all(app: App, seen: Seen) -> Response:
    seen.end_all()
    return _logged_out(app)


@routes.post("/sessions/{session_id}/end", "endSession")
def end(app: App, seen: Seen, session_id: Ref) -> Response:
    return _logged_out(app) if seen.end(session_id).current else RedirectResponse("/sessions", 303)


def _logged_in(cookie: str, session: str, request: Request) -> Response:
    """Return the response to a browser whose session has begun."""
    response = RedirectResponse("/", 303)
    # The origin of its pages shows whether a proxy speaks TLS; the daemon itself does not.
    secure = request.headers.get("origin", "").startswith("https:")
    response.set_cookie(
        cookie, session, max_age=MAX_MS // 1000, httponly=True, samesite="strict", path="/", secure=secure
    )
    return response


def _logged_out(app: State) -> Response:
    """Return the response to a browser whose session has ended."""
    response = RedirectResponse("/login", 303)
    response.delete_cookie(app.settings.cookie, path="/", httponly=True, samesite="strict")
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
