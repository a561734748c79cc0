"""/v1/specialists: the roles that tasks are given to, for whom each exists, and finding one."""

from typing import Annotated

from fastapi import Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from claudomator_py.api.conditional import NOT_MODIFIED, IdempotencyKey, IfMatch, IfNoneMatch
from claudomator_py.api.operation import Allowed, Operations, Tagged, body, card_document, location
from claudomator_py.api.request import PageQuery, WholeNumber
from claudomator_py.domain.card import Card
from claudomator_py.domain.errors import Invalid, Problem
from claudomator_py.domain.views.base import Page
from claudomator_py.domain.views.specialists import MAX_QUERY_LENGTH, GrantRequest, SearchView, SpecialistView
from claudomator_py.service.specialists import Specialists
from claudomator_py.surface.operation import ADMIN, OPERATE, READ

specialists = Operations("specialists")

SpecialistId = Annotated[str, Path(max_length=128, description="A specialist's id.")]

_Card = Annotated[
    Card,
    card_document(
        the_least={"id": "plumber", "description": "Fixes leaks in resource handling: handles, sockets, memory."},
        shared_with_an_organisation={
            "id": "release-manager",
            "name": "Release Manager",
            "description": "Cuts releases: versions, changelogs, tags. Not for fixing what a release finds.",
            "system_prompt": "You cut releases. Change nothing but versions and changelogs.",
            "keywords": ["release candidate", "cut a release"],
            "skills": [
                {
                    "id": "changelog",
                    "name": "Changelogs",
                    "description": "Turns commits into a changelog.",
                    "examples": ["Write the changelog of 2.4 from the commits since v2.3"],
                }
            ],
            "risk_ceiling": "medium",
            "visibility": "shared",
        },
    ),
]


class SearchQuery(BaseModel):
    """What to search for, and how much of what is found."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    query: str = Field(
        min_length=1, max_length=MAX_QUERY_LENGTH, description="What needs to be done, in your own words."
    )
    limit: WholeNumber = Field(default=10, ge=1, le=100, description="Maximum number of specialists, 1 to 100.")


@specialists.operation("GET /v1/specialists", "listSpecialists", READ, "Specialists, by id")
def list_specialists(granted: Allowed, query: Annotated[PageQuery, Query()]) -> Page[SpecialistView]:
    """Those that exist for whoever asks: public ones, which is the default, shared ones of its organisation or with a
    grant, and its own. All others are not listed, found or counted, and refused as what does not exist."""
    return granted[Specialists].page(query.cursor, query.limit)


@specialists.operation(
    "POST /v1/specialists",
    "registerSpecialist",
    OPERATE,
    "Register a specialist",
    status=201,
    refuses=(403,),
    told="Registered: it is durable",
    headers=location("URL of the specialist"),
)
def register(granted: Allowed, card: _Card, key: IdempotencyKey, tagged: Tagged, response: Response) -> SpecialistView:
    """Add it, or update one's own of that id. 409 for an id that is taken, or follows a file."""
    view = tagged(granted[Specialists].register(card, key=key))
    response.headers["Location"] = f"/v1/specialists/{view.id}"
    return view


# Before the operations on one specialist, so that this path is not taken for an id; no card may have it.
@specialists.operation("GET /v1/specialists/search", "searchSpecialists", READ, "Search specialists")
def search(granted: Allowed, query: Annotated[SearchQuery, Query()]) -> SearchView:
    """Those who may be given work of whoever asks, by meaning and by words: a skill, or the card's own text, scores 0.7
    times the one and 0.3 times the other, a specialist as its best. Without an encoder, the words alone count, and
    `degraded` says so."""
    return granted[Specialists].search(query.query, query.limit)


@specialists.operation(
    "GET /v1/specialists/{specialist_id}",
    "getSpecialist",
    READ,
    "One specialist",
    refuses=(404,),
    responses={304: NOT_MODIFIED},
    response_model=SpecialistView,
)
def get_specialist(
    granted: Allowed, specialist_id: SpecialistId, if_none_match: IfNoneMatch, tagged: Tagged
) -> SpecialistView | Response:
    """The specialist with its card. With If-None-Match, 304 says that it has not been changed since."""
    return tagged.unless(if_none_match, granted[Specialists].one(specialist_id))


@specialists.operation(
    "PUT /v1/specialists/{specialist_id}",
    "changeSpecialist",
    OPERATE,
    "Change a specialist",
    refuses=(403, 404, 409),
)
def change(
    granted: Allowed, specialist_id: SpecialistId, card: _Card, if_match: IfMatch, tagged: Tagged
) -> SpecialistView:
    """Replace its card. For its creator, and for administrators of the daemon or of its organisation. 409 for one that
    follows a file: edit the file. An administrator's change of a shipped one is a card that stands for it."""
    if card.id != specialist_id:
        raise Invalid.of([Problem(field="id", message="is not that of the path", remedy=f"write {specialist_id}")])
    return tagged(granted[Specialists].change(card, versions=if_match))


@specialists.operation(
    "DELETE /v1/specialists/{specialist_id}",
    "removeSpecialist",
    OPERATE,
    "Remove a specialist",
    status=204,
    refuses=(403, 404, 409),
)
def remove(granted: Allowed, specialist_id: SpecialistId, if_match: IfMatch) -> None:
    """With its grants. A shipped one for which it stood is there again. 409 for one that follows a file."""
    granted[Specialists].remove(specialist_id, versions=if_match)


@specialists.operation(
    "POST /v1/specialists/{specialist_id}/grants",
    "grantSpecialist",
    OPERATE,
    "Grant access to a shared specialist",
    refuses=(403, 404, 409),
)
def grant(
    granted: Allowed,
    specialist_id: SpecialistId,
    wanted: Annotated[
        GrantRequest,
        body(GrantRequest, required=True, to_a_token={"grantee": "acme-ci"}, to_all_of_one={"grantee": "org:acme"}),
    ],
    tagged: Tagged,
) -> SpecialistView:
    """Harmless when repeated. 409 for one that is not shared."""
    return tagged(granted[Specialists].grant(specialist_id, wanted.grantee))


@specialists.operation(
    "PUT /v1/specialists/{specialist_id}/admission",
    "admitSpecialist",
    ADMIN,
    "Admit a specialist to the work of others",
    refuses=(403, 404, 409),
)
def admit(granted: Allowed, specialist_id: SpecialistId, tagged: Tagged) -> SpecialistView:
    """As its card is now, with its prompt and its permissions; a changed card has to be admitted again. For
    administrators of the daemon. 409 for a private one. Harmless when repeated."""
    return tagged(granted[Specialists].admit(specialist_id))


@specialists.operation(
    "DELETE /v1/specialists/{specialist_id}/admission",
    "dismissSpecialist",
    ADMIN,
    "Take an admission back",
    refuses=(403, 404),
)
def dismiss(granted: Allowed, specialist_id: SpecialistId, tagged: Tagged) -> SpecialistView:
    """It does the work of its own side alone. For administrators of the daemon. Harmless when repeated."""
    return tagged(granted[Specialists].dismiss(specialist_id))


@specialists.operation(
    "DELETE /v1/specialists/{specialist_id}/grants/{grantee}",
    "revokeSpecialist",
    OPERATE,
    "Revoke a grant",
    refuses=(403, 404),
)
def revoke(
    granted: Allowed,
    specialist_id: SpecialistId,
    grantee: Annotated[str, Path(max_length=128, description="As it was granted.")],
    tagged: Tagged,
) -> SpecialistView:
    """Harmless when repeated."""
    return tagged(granted[Specialists].revoke(specialist_id, grantee))
