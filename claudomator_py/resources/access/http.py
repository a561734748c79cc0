"""The routes of /v1/tokens, /v1/login-codes and /v1/sessions."""

from fastapi import Request

from claudomator_py.api.guard.roles import Asking
from claudomator_py.api.guard.sessions import LoginCodes, Sessions
from claudomator_py.api.served import serve
from claudomator_py.api.settings import WebSettings
from claudomator_py.domain.errors import NotFound
from claudomator_py.domain.principal import Principal, Role
from claudomator_py.resources.access import LoginCalls, LoginCodeView, SessionView, TokenCalls
from claudomator_py.resources.access.service import AccessTokens
from claudomator_py.surface import answers
from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class Browsers:
    """The browser sessions that the principal of a request may see."""

    request: Request
    by: Principal

    @answers(LoginCalls.login_code)
    def login_code(self) -> LoginCodeView:
        """Return a new code that logs a browser in as that principal."""
        codes: LoginCodes = self.request.app.state.login_codes
        code, expires_ms = codes.issue(self.by.id)
        path = f"/login?code={code}"
        url = f"{_page_url(self.request, self.request.app.state.settings)}{path}"
        return LoginCodeView.of(None, code=code, path=path, url=url, expires_at=expires_ms)

    @answers(LoginCalls.sessions)
    def all(self) -> list[SessionView]:
        """Return the sessions, the one used last first, with that of the request marked."""
        whole = self.by.role is Role.ADMIN and self.by.organisation is None
        current: str | None = self.request.state.session
        return [
            SessionView.legible(session, current=session.id == current)
            for session in self._sessions.all()
            if whole or session.principal == self.by.id
        ]

    @answers(LoginCalls.end_sessions)
    def end_all(self) -> list[SessionView]:
        """End all of them, and return them."""
        ended = self.all()
        self._sessions.end([session.id for session in ended], self.by.id)
        return ended

    @answers(LoginCalls.end_session)
    def end(self, session_id: str) -> SessionView:
        """End the session of that id, and return it. Raises NotFound."""
        ended = next((session for session in self.all() if session.id == session_id), None)
        if ended is None:
            raise NotFound(
                "There is no such session, or it has ended.", remedy="List them with `claudomator sessions list`."
            )
        self._sessions.end([ended.id], self.by.id)
        return ended

    @property
    def _sessions(self) -> Sessions:
        sessions: Sessions = self.request.app.state.sessions
        return sessions


def browsers(request: Request, by: Asking) -> Browsers:
    """Return the browser sessions for the sender of the request."""
    return Browsers(request, by)


def _page_url(request: Request, settings: WebSettings) -> str:
    """Return the URL for the browser: the host of this request, if browsers can log in there, else the page's own."""
    host = request.headers["host"].lower()
    if host not in settings.page_hosts():
        return f"http://{settings.page_host}"
    # Only a proxy speaks TLS. The client has a token, so its header can be trusted for its own link.
    scheme = "https" if request.headers.get("x-forwarded-proto") == "https" else "http"
    return f"{scheme}://{host}"


tokens = serve("tokens", AccessTokens, TokenCalls)
logins = serve("login", browsers, LoginCalls)
