"""/v1/tokens: giving out tokens, listing and revoking them."""

from typing import Annotated

from fastapi import APIRouter, Path, Request

from claudomator_py.api.guard.asking import Asking
from claudomator_py.api.guard.without_secrets import GIVEN
from claudomator_py.api.openapi import problems, request_body, told
from claudomator_py.api.request import JsonObject
from claudomator_py.domain.errors import Invalid
from claudomator_py.domain.views import NewTokenView, Page, TokenRequest, TokenView
from claudomator_py.schema.validation import odd_values, validate
from claudomator_py.service.access import Access

Ref = Annotated[str, Path(max_length=128, description="A token's id or name.")]
_BODY = request_body(
    "TokenRequest",
    required=True,
    examples={
        "for_a_dashboard": {"name": "dashboard", "role": "read"},
        "for_an_organisation": {"name": "acme-ci", "role": "operate", "organisation": "acme", "expires": "30d"},
    },
)


def router(access: Access) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/v1/tokens", tags=["tokens"])

    @routes.get("", operation_id="listTokens", summary="Tokens, newest first", responses=problems(503))
    def list_tokens(by: Asking) -> Page[TokenView]:
        """Revoked and expired ones, too. The tokens themselves are kept nowhere."""
        return Page[TokenView](items=tuple(access.as_(by).tokens.all()))

    @routes.post(
        "",
        status_code=201,
        operation_id="createToken",
        summary="Create a token",
        responses=problems(
            400, 409, 413, 415, 422, 429, 503, also={201: told("Created: the token is shown only once")}
        ),
        openapi_extra=_BODY,
    )
    def create(by: Asking, document: JsonObject, request: Request) -> NewTokenView:
        """Nobody gives out a token that can do more than its own, sees another organisation, or lasts longer."""
        wanted = odd_values(document, {}) or validate(TokenRequest, document, {})
        if not isinstance(wanted, TokenRequest):
            detail = "; ".join(problem.render() for problem in wanted[:3])
            raise Invalid(detail, remedy="Fix the listed problems and retry.", problems=wanted)
        made = access.as_(by).tokens.create(wanted)
        setattr(request.state, GIVEN, True)
        return made

    @routes.delete(
        "/{ref}", operation_id="revokeToken", summary="Revoke a token", responses=problems(404, 422, 429, 503)
    )
    def revoke(by: Asking, ref: Ref) -> TokenView:
        """Immediate and permanent: its event streams and browser sessions end. Tokens that its holder issued stay.
        Harmless when repeated."""
        return access.as_(by).tokens.revoke(ref)

    return routes
