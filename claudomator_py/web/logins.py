"""/v1/login-codes: who has the token can let a browser in, without the token ever being in a URL."""

from fastapi import APIRouter

from claudomator_py.core.units import format_instant
from claudomator_py.core.views import LoginCodeView
from claudomator_py.web.asking import Asking
from claudomator_py.web.login_codes import LoginCodes


def router(codes: LoginCodes) -> APIRouter:
    """The route, on these codes."""
    routes = APIRouter(prefix="/v1", tags=["login"])

    @routes.post(
        "/login-codes",
        status_code=201,
        operation_id="createLoginCode",
        summary="A code that lets one browser in, once, within a minute",
    )
    def create(by: Asking) -> LoginCodeView:
        """`claudomator open` asks for one. The code is no secret for longer than it takes to use it.

        The browser may do what the token may that asks.
        """
        code, expires_ms = codes.issue(by.id)
        return LoginCodeView(code=code, path=f"/login?code={code}", expires_at=format_instant(expires_ms))

    return routes
