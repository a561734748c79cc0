"""/v1/login-codes: who has the token can let a browser in, without the token ever being in a URL."""

from fastapi import APIRouter, Request

from claudomator_py.core.units import format_instant
from claudomator_py.core.views import LoginCodeView
from claudomator_py.web.asking import Asking
from claudomator_py.web.login_codes import LoginCodes
from claudomator_py.web.settings import WebSettings


def router(codes: LoginCodes, settings: WebSettings) -> APIRouter:
    """The route, on these codes."""
    routes = APIRouter(prefix="/v1", tags=["login"])

    @routes.post(
        "/login-codes",
        status_code=201,
        operation_id="createLoginCode",
        summary="A code that lets one browser in, once, within a minute",
    )
    def create(by: Asking, request: Request) -> LoginCodeView:
        """`claudomator open` asks for one. The code is no secret for longer than it takes to use it.

        The browser may do what the token may that asks.
        """
        code, expires_ms = codes.issue(by.id)
        path = f"/login?code={code}"
        url = f"{_page_url(request, settings)}{path}"
        return LoginCodeView(code=code, path=path, url=url, expires_at=format_instant(expires_ms))

    return routes


def _page_url(request: Request, settings: WebSettings) -> str:
    """Where the browser has to go: by the way that the request came, if browsers can log in there."""
    host = request.headers["host"].lower()
    if host not in settings.page_hosts():
        return f"http://{settings.page_host}"
    # Only a proxy speaks TLS; whoever asks has the token, and is told of its own way in.
    scheme = "https" if request.headers.get("x-forwarded-proto") == "https" else "http"
    return f"{scheme}://{host}"
