"""Specialists as they are shown, and what can be asked about them. Field order is the order of the JSON."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

from claudomator_py.domain.card import Card, Source, Transport, Visibility
from claudomator_py.domain.card_warnings import ShownCardWarning
from claudomator_py.domain.fields import NAME_PATTERN, Strict, refusal
from claudomator_py.domain.shape import Instant, Page, View, all_items
from claudomator_py.surface import (
    ADMIN,
    OPERATE,
    READ,
    Calls,
    CardDocument,
    Cursor,
    JsonField,
    Key,
    Limit,
    PathText,
    QueryChoice,
    QueryNumber,
    QueryText,
    Version,
    operation,
)
from claudomator_py.values import regex

MAX_QUERY_LENGTH = 2_000
"""Characters of what is searched for."""
_GRANTEE = regex(rf"(?:org:)?(?:{NAME_PATTERN[1:-1]})")


class CardOrigin(StrEnum):
    """Who wrote a card that somebody registers."""

    OWN = "own"
    FETCHED = "fetched"


class CardWarningView(View):
    """Something odd about a card: in words, and as a value, null where it is of a newer version."""

    text: str
    warning: ShownCardWarning = None


class SpecialistView(View):
    """A specialist: its card, and what the registry knows of it."""

    id: str
    name: str
    """Shown to people."""
    description: str
    version: int
    """Rises with each change, of grants too; the one that its author writes is in ``card``."""
    visibility: Visibility
    creator: str
    """Who registered it."""
    organisation: str | None = None
    """Whose it is."""
    source: Source
    """``shipped``, ``file``, ``api`` or ``hub``."""
    transport: Transport
    """How it is reached."""
    content_hash: str
    """Of the card."""
    created_at: Instant
    updated_at: Instant
    changeable: bool
    """Whether whoever asks may change it, and is told about ``file_path`` and ``grants``."""
    file_path: str | None = None
    """The file that it follows."""
    grants: tuple[str, ...] = ()
    """For whom it exists beside its organisation, if it is shared."""
    admitted_by: str | None = None
    """The administrator who admitted the card, as it is, to the work of others; null: it does that of its own side."""
    card: dict[str, Any]
    """As its author wrote it, without what is only a default."""
    warnings: tuple[CardWarningView, ...] = ()
    """What is odd about it, as far as it shows beside what exists for whoever asks. Empty in lists."""

    @property
    def content(self) -> Card:
        """The card as a value. Raises ValueError for one of a newer version of Claudomator."""
        return Card.model_validate(self.card)


def _grantee(text: str) -> str:
    if not _GRANTEE.fullmatch(text):
        remedy = "write the name of a token, such as acme-ci, or org:NAME for all of an organisation"
        raise refusal("names neither a principal nor an organisation", remedy)
    return text


Grantee = Annotated[str, AfterValidator(_grantee)]


class GrantRequest(Strict):
    """For whom a shared specialist is to exist, too: the name of a token, or ``org:NAME`` for all of an organisation.

    It need not exist yet.
    """

    grantee: Grantee = Field(description="Name of a token, or `org:NAME` for everybody of an organisation.")


class FoundSkillView(View):
    """A skill that matches."""

    id: str
    name: str
    score: float
    """From 0 to 1."""
    text: float
    """Its share of the query's words, the rare ones counting most."""
    semantic: float | None = None
    """How alike it is to the query; null: that could not be found out."""


class FoundSpecialistView(View):
    """A specialist that matches."""

    score: float
    """That of what matches best, a skill or the card's own text, 0 to 1."""
    best_skill_id: str | None = None
    """The skill that matches best."""
    skills: tuple[FoundSkillView, ...] = ()
    """Those that match, the best first."""
    specialist: SpecialistView


class SearchView(View):
    """What was found, the best first."""

    items: tuple[FoundSpecialistView, ...]
    total: int
    """How many match, listed or not."""
    degraded: bool
    """Whether only words were compared, as the encoder that compares meaning is not available."""


SpecialistId = Annotated[str, PathText("A specialist's id.")]
_EXAMPLES: Final[dict[str, object]] = {
    "the_least": {"id": "plumber", "description": "Fixes leaks in resource handling: handles, sockets, memory."},
    "shared_with_an_organisation": {
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
}
_GRANTED = {"to_a_token": {"grantee": "acme-ci"}, "to_all_of_one": {"grantee": "org:acme"}}


class SpecialistCalls(Calls):
    """Every operation on specialists, as the client calls it."""

    @operation("GET /v1/specialists", "listSpecialists", READ, "Specialists, by id")
    def specialists(self, *, cursor: Cursor = None, limit: Limit = 50) -> Page[SpecialistView]:
        """Those that exist for whoever asks: public ones, which is the default, shared ones of its organisation or with
        a grant, and its own. All others are not listed, found or counted, and refused as what does not exist."""

    def all_specialists(self) -> Iterator[SpecialistView]:
        """Return all specialists, by id, fetched as they are read."""
        return all_items(lambda cursor, limit: self.specialists(cursor=cursor, limit=limit))

    @operation(
        "POST /v1/specialists",
        "registerSpecialist",
        OPERATE,
        "Register a specialist",
        status=201,
        refuses=(403,),
        answer_note="Registered: it is durable",
        location="/v1/specialists/{id}",
        tagged=True,
    )
    def register_specialist(
        self,
        card: Annotated[Card, CardDocument(_EXAMPLES)],
        *,
        origin: Annotated[CardOrigin | None, QueryChoice("Who wrote it; default: `own`, whoever registers it.")] = None,
        idempotency_key: Key = None,
    ) -> SpecialistView:
        """Add it, or update one's own of that id. An administrator of the daemon admits to the work of others what is
        his own, not what is `fetched`. 409 for an id that is taken, or follows a file."""

    # Before the operations on one specialist, so that this path is not taken for an id; no card may have it.
    @operation("GET /v1/specialists/search", "searchSpecialists", READ, "Search specialists")
    def search_specialists(
        self,
        query: Annotated[str, QueryText("What needs to be done, in your own words.", MAX_QUERY_LENGTH, 1)],
        *,
        limit: Annotated[int, QueryNumber("Maximum number of specialists, 1 to 100.", 1, 100)] = 10,
    ) -> SearchView:
        """Those who may be given work of whoever asks, by meaning and by words: a skill, or the card's own text, scores
        0.7 times the one and 0.3 times the other, a specialist as its best. Without an encoder, the words alone count,
        and `degraded` says so."""

    @operation(
        "GET /v1/specialists/{specialist_id}",
        "getSpecialist",
        READ,
        "One specialist",
        refuses=(404,),
        tagged=True,
        conditional=True,
    )
    def specialist(self, specialist_id: SpecialistId) -> SpecialistView:
        """The specialist with its card. With If-None-Match, 304 says that it has not been changed since."""

    @operation(
        "PUT /v1/specialists/{specialist_id}",
        "changeSpecialist",
        OPERATE,
        "Change a specialist",
        refuses=(403, 404, 409),
        tagged=True,
    )
    def replace_specialist(
        self, specialist_id: SpecialistId, card: Annotated[Card, CardDocument(_EXAMPLES)], *, if_version: Version = None
    ) -> SpecialistView:
        """Replace its card. For its creator, and for administrators of the daemon or of its organisation. 409 for one
        that follows a file: edit the file. An administrator's change of a shipped one is a card that stands for it."""

    def change_specialist(self, card: Card, *, if_version: int | None = None) -> SpecialistView:
        """Replace the card of the specialist that has its id."""
        return self.replace_specialist(card.id, card, if_version=if_version)

    @operation(
        "DELETE /v1/specialists/{specialist_id}",
        "removeSpecialist",
        OPERATE,
        "Remove a specialist",
        status=204,
        refuses=(403, 404, 409),
    )
    def remove_specialist(self, specialist_id: SpecialistId, *, if_version: Version = None) -> None:
        """With its grants. A shipped one for which it stood is there again. 409 for one that follows a file."""

    @operation(
        "POST /v1/specialists/{specialist_id}/grants",
        "grantSpecialist",
        OPERATE,
        "Grant access to a shared specialist",
        refuses=(403, 404, 409),
        tagged=True,
    )
    def grant_specialist(
        self, specialist_id: SpecialistId, grantee: Annotated[str, JsonField(GrantRequest, _GRANTED)]
    ) -> SpecialistView:
        """Harmless when repeated. 409 for one that is not shared."""

    @operation(
        "PUT /v1/specialists/{specialist_id}/admission",
        "admitSpecialist",
        ADMIN,
        "Admit a specialist to the work of others",
        refuses=(403, 404, 409),
        tagged=True,
    )
    def admit_specialist(self, specialist_id: SpecialistId) -> SpecialistView:
        """As its card is now, with its prompt and its permissions; a changed card has to be admitted again. For
        administrators of the daemon. 409 for a private one. Harmless when repeated."""

    @operation(
        "DELETE /v1/specialists/{specialist_id}/admission",
        "dismissSpecialist",
        ADMIN,
        "Take an admission back",
        refuses=(403, 404),
        tagged=True,
    )
    def dismiss_specialist(self, specialist_id: SpecialistId) -> SpecialistView:
        """It does the work of its own side alone. For administrators of the daemon. Harmless when repeated."""

    @operation(
        "DELETE /v1/specialists/{specialist_id}/grants/{grantee}",
        "revokeSpecialist",
        OPERATE,
        "Revoke a grant",
        refuses=(403, 404),
        tagged=True,
    )
    def revoke_specialist(
        self, specialist_id: SpecialistId, grantee: Annotated[str, PathText("As it was granted.")]
    ) -> SpecialistView:
        """Harmless when repeated."""
