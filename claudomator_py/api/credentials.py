"""Who may ask: tokens, one-time login codes, and the browsers that are logged in."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Path, Request

from claudomator_py.api.guard.asking import Asking
from claudomator_py.api.guard.login_codes import LoginCodes
from claudomator_py.api.guard.sessions import Sessions
from claudomator_py.api.guard.without_secrets import GIVEN
from claudomator_py.api.operation import Allowed, Operations, body
from claudomator_py.api.settings import WebSettings
from claudomator_py.domain.errors import NotFound
from claudomator_py.domain.principal import Principal, Role
from claudomator_py.domain.views import LoginCodeView, NewTokenView, Page, SessionView, TokenRequest, TokenView
from claudomator_py.store.tables import BrowserSession
from claudomator_py.surface.operation import ADMIN, READ

credentials = Operations("tokens")

TokenRef = Annotated[str, Path(max_length=128, description="A token's id or name.")]
SessionId = Annotated[str, Path(max_length=128, description="A session's id.")]


@credentials.operation("GET /v1/tokens", "listTokens", ADMIN, "Tokens, newest first")
def list_tokens(granted: Allowed) -> Page[TokenView]:
    """Revoked and expired ones, too. The tokens themselves are kept nowhere."""
    return Page[TokenView](items=tuple(granted.tokens.all()))


@credentials.operation(
    "POST /v1/tokens",
    "createToken",
    ADMIN,
    "Create a token",
    status=201,
    refuses=(409,),
    told="Created: the token is shown only once",
)
def create_token(
    granted: Allowed,
    wanted: Annotated[
        TokenRequest,
        body(
            TokenRequest,
            required=True,
            for_a_dashboard={"name": "dashboard", "role": "read"},
            for_an_organisation={"name": "acme-ci", "role": "operate", "organisation": "acme", "expires": "30d"},
        ),
    ],
    request: Request,
) -> NewTokenView:
    """Nobody gives out a token that can do more than its own, sees another organisation, or lasts longer."""
    made = granted.tokens.create(wanted)
    setattr(request.state, GIVEN, True)
    return made


@credentials.operation("DELETE /v1/tokens/{ref}", "revokeToken", ADMIN, "Revoke a token", refuses=(404,))
def revoke_token(granted: Allowed, ref: TokenRef) -> TokenView:
    """Immediate and permanent: its event streams and browser sessions end. Tokens that its holder issued stay.
    Harmless when repeated."""
    return granted.tokens.revoke(ref)


@credentials.operation(
    "POST /v1/login-codes",
    "createLoginCode",
    READ,
    "A code that lets one browser in, once, within a minute",
    status=201,
    tag="login",
)
def create_login_code(by: Asking, request: Request) -> LoginCodeView:
    """`claudomator open` asks for one. The code is no secret for longer than it takes to use it.

    The browser may do what the token may that asks.
    """
    codes: LoginCodes = request.app.state.login_codes
    code, expires_ms = codes.issue(by.id)
    path = f"/login?code={code}"
    url = f"{_page_url(request, request.app.state.settings)}{path}"
    return LoginCodeView.of(None, code=code, path=path, url=url, expires_at=expires_ms)


def _page_url(request: Request, settings: WebSettings) -> str:
    """Where the browser has to go: by the way that the request came, if browsers can log in there."""
    host = request.headers["host"].lower()
    if host not in settings.page_hosts():
        return f"http://{settings.page_host}"
    # Only a proxy speaks TLS; whoever asks has the token, and is told about its own way in.
    scheme = "https" if request.headers.get("x-forwarded-proto") == "https" else "http"
    return f"{scheme}://{host}"


@credentials.operation(
    "GET /v1/sessions", "listSessions", READ, "The browsers that are logged in, the last used first", tag="login"
)
def list_sessions(by: Asking, request: Request) -> Page[SessionView]:
    """Those of who asks; of everybody for an administrator of the whole daemon."""
    return Page[SessionView](items=views_of(seen_by(_sessions(request), by), request))


@credentials.operation("DELETE /v1/sessions", "endSessions", READ, "Log out everywhere", tag="login")
def end_sessions(by: Asking, request: Request) -> Page[SessionView]:
    """End all sessions that who asks can see, at once, with their event streams; the answer has what has ended."""
    ended = seen_by(_sessions(request), by)
    told = views_of(ended, request)
    _sessions(request).end([one.id for one in ended], by.id)
    return Page[SessionView](items=told)


@credentials.operation(
    "DELETE /v1/sessions/{session_id}", "endSession", READ, "Log one browser out", refuses=(404,), tag="login"
)
def end_session(by: Asking, request: Request, session_id: SessionId) -> SessionView:
    """At once, with its event streams."""
    found = named(_sessions(request), by, session_id)
    (told,) = views_of([found], request)
    _sessions(request).end([found.id], by.id)
    return told


def _sessions(request: Request) -> Sessions:
    sessions: Sessions = request.app.state.sessions
    return sessions


def seen_by(sessions: Sessions, by: Principal) -> list[BrowserSession]:
    """The sessions that concern the principal, the last used first."""
    whole = by.role is Role.ADMIN and by.organisation is None
    return [one for one in sessions.all() if whole or one.principal == by.id]


def named(sessions: Sessions, by: Principal, session_id: str) -> BrowserSession:
    """The session of that id. Raises NotFound."""
    found = next((one for one in seen_by(sessions, by) if one.id == session_id), None)
    if found is None:
        raise NotFound(
            "There is no such session, or it has ended.", remedy="List them with `claudomator sessions list`."
        )
    return found


def views_of(found: Sequence[BrowserSession], request: Request) -> tuple[SessionView, ...]:
    """As the API tells of them. request: what asks; its own session is marked."""
    return tuple(SessionView.of(one, current=one.id == request.state.session) for one in found)
