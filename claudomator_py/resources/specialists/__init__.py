"""Views of specialists, and the operations on them. The order of fields is the order in JSON."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

from claudomator_py.domain.card import Card, CardWarning, Source, Transport, Visibility
from claudomator_py.domain.fields import NAME_PATTERN, Strict, refusal
from claudomator_py.domain.shape import Instant, Page, View, all_items
from claudomator_py.domain.wording import Known
from claudomator_py.surface import (
    ADMIN,
    OPERATE,
    READ,
    Calls,
    CardDocument,
    Cursor,
    InPath,
    InQuery,
    JsonField,
    Key,
    Limit,
    Version,
    operation,
)
from claudomator_py.values import regex

MAX_QUERY_LENGTH = 2_000
"""Characters of a search query."""
_GRANTEE = regex(rf"(?:org:)?(?:{NAME_PATTERN[1:-1]})")


class CardOrigin(StrEnum):
    """The author of a registered card: the caller, or somebody else."""

    OWN = "own"
    FETCHED = "fetched"


class CardWarningView(View):
    """A warning about a card: as text, and as a value, which is null if a newer version of Claudomator wrote it."""

    text: str
    warning: Known[CardWarning] = None


class SpecialistView(View):
    """A specialist: its card and its registration."""

    id: str
    name: str
    """Display name."""
    description: str
    version: int
    """Increases with each change, including grants. The author's own version is in ``card``."""
    visibility: Visibility
    creator: str
    """Who registered it."""
    organisation: str | None = None
    """The organisation that it belongs to."""
    source: Source
    """``shipped``, ``file``, ``api`` or ``hub``."""
    transport: Transport
    """How tasks reach its agent."""
    content_hash: str
    """Hash of the card."""
    created_at: Instant
    updated_at: Instant
    changeable: bool
    """True if the caller may change it. Only then are ``file_path`` and ``grants`` shown."""
    file_path: str | None = None
    """The file that defines it."""
    grants: tuple[str, ...] = ()
    """Who can see it in addition to its organisation, if it is shared."""
    admitted_by: str | None = None
    """The administrator who admitted this version of the card to the work of others; null if it may do only work of
    its own side."""
    card: dict[str, Any]
    """The card as its author wrote it, without defaults."""
    warnings: tuple[CardWarningView, ...] = ()
    """Oddities compared with other cards that the caller can see. Empty in lists."""

    @property
    def content(self) -> Card:
        """The card as a value. Raises ValueError for a card of a newer version of Claudomator."""
        return Card.model_validate(self.card)


def _grantee(text: str) -> str:
    if not _GRANTEE.fullmatch(text):
        remedy = "write the name of a token, such as acme-ci, or org:NAME for all of an organisation"
        raise refusal("names neither a principal nor an organisation", remedy)
    return text


Grantee = Annotated[str, AfterValidator(_grantee)]


class GrantRequest(Strict):
    """A grant of access to a shared specialist, to a token or to ``org:NAME``, a whole organisation. The grantee need
    not exist yet."""

    grantee: Grantee = Field(description="Name of a token, or `org:NAME` for everybody of an organisation.")


class FoundSkillView(View):
    """A matching skill."""

    id: str
    name: str
    score: float
    """From 0 to 1."""
    text: float
    """The share of the query's words that it contains, weighted by rarity."""
    semantic: float | None = None
    """Its similarity to the query; null if the encoder is not available."""


class FoundSpecialistView(View):
    """A matching specialist."""

    score: float
    """Score of its best match, a skill or the card's own text, 0 to 1."""
    best_skill_id: str | None = None
    """The best matching skill."""
    skills: tuple[FoundSkillView, ...] = ()
    """The matching skills, best first."""
    specialist: SpecialistView


class SearchView(View):
    """Search results, best first."""

    items: tuple[FoundSpecialistView, ...]
    total: int
    """Number of all matches, including those not listed."""
    degraded: bool
    """True if only words were compared, because the encoder is not available."""


SpecialistId = Annotated[str, InPath("A specialist's id.")]
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
        """List the specialists that the caller can see: public ones, shared ones of its organisation or with a grant,
        and its own. To the caller, all others do not exist: requests for them get the same answer."""

    def all_specialists(self) -> Iterator[SpecialistView]:
        """Yield all specialists, by id, fetching pages on demand."""
        return all_items(lambda cursor, limit: self.specialists(cursor=cursor, limit=limit))

    @operation(
        "POST /v1/specialists",
        "registerSpecialist",
        OPERATE,
        "Register a specialist",
        status=201,
        answer_note="Registered: it is durable",
        location="/v1/specialists/{id}",
    )
    def register_specialist(
        self,
        card: Annotated[Card, CardDocument(_EXAMPLES)],
        *,
        origin: Annotated[CardOrigin | None, InQuery("Who wrote the card. Default: `own`, the caller.")] = None,
        idempotency_key: Key = None,
    ) -> SpecialistView:
        """Register the card, or update the caller's own specialist with that id. If the caller is an administrator of
        the daemon, the card is also admitted to the work of others, unless it is `fetched`. 409 if the id is taken or a
        file defines it."""

    # Declared before the operations on a single specialist, so that this path is not taken for an id.
    @operation("GET /v1/specialists/search", "searchSpecialists", READ, "Search specialists")
    def search_specialists(
        self,
        query: Annotated[str, InQuery("What needs to be done, in your own words.", 1, MAX_QUERY_LENGTH)],
        *,
        limit: Annotated[int, InQuery("Maximum number of specialists, 1 to 100.", 1, 100)] = 10,
    ) -> SearchView:
        """Search the specialists that may do the caller's work, by meaning and by words. A skill, or the card's own
        text, scores 0.7 times its similarity plus 0.3 times its share of the words; a specialist scores as its best
        match. Without an encoder only words count, and `degraded` is true."""

    @operation("GET /v1/specialists/{specialist_id}", "getSpecialist", READ, "One specialist")
    def specialist(self, specialist_id: SpecialistId) -> SpecialistView:
        """Return the specialist with its card. With If-None-Match, 304 means that it is unchanged."""

    @operation(
        "PUT /v1/specialists/{specialist_id}", "changeSpecialist", OPERATE, "Change a specialist", refuses=(409,)
    )
    def replace_specialist(
        self, specialist_id: SpecialistId, card: Annotated[Card, CardDocument(_EXAMPLES)], *, if_version: Version = None
    ) -> SpecialistView:
        """Replace its card. Allowed for its creator and for administrators of the daemon or of its organisation. 409 if
        a file defines it: edit the file. An administrator's change of a shipped specialist is a card that overrides
        it."""

    def change_specialist(self, card: Card, *, if_version: int | None = None) -> SpecialistView:
        """Replace the card of the specialist with the card's id."""
        return self.replace_specialist(card.id, card, if_version=if_version)

    @operation(
        "DELETE /v1/specialists/{specialist_id}",
        "removeSpecialist",
        OPERATE,
        "Remove a specialist",
        status=204,
        refuses=(409,),
    )
    def remove_specialist(self, specialist_id: SpecialistId, *, if_version: Version = None) -> None:
        """Remove it with its grants. A shipped specialist that it overrode is back. 409 if a file defines it."""

    @operation(
        "POST /v1/specialists/{specialist_id}/grants",
        "grantSpecialist",
        OPERATE,
        "Grant access to a shared specialist",
        refuses=(409,),
    )
    def grant_specialist(
        self, specialist_id: SpecialistId, grantee: Annotated[str, JsonField(GrantRequest, _GRANTED)]
    ) -> SpecialistView:
        """Let a token or an organisation see it. Harmless when repeated. 409 if it is not shared."""

    @operation(
        "PUT /v1/specialists/{specialist_id}/admission",
        "admitSpecialist",
        ADMIN,
        "Admit a specialist to the work of others",
        refuses=(409,),
    )
    def admit_specialist(self, specialist_id: SpecialistId) -> SpecialistView:
        """Admit the current card, with its prompt and permissions; a changed card has to be admitted again. For
        administrators of the daemon. 409 if it is private. Harmless when repeated."""

    @operation("DELETE /v1/specialists/{specialist_id}/admission", "dismissSpecialist", ADMIN, "Take an admission back")
    def dismiss_specialist(self, specialist_id: SpecialistId) -> SpecialistView:
        """Let it do only the work of its own side again. For administrators of the daemon. Harmless when repeated."""

    @operation("DELETE /v1/specialists/{specialist_id}/grants/{grantee}", "revokeSpecialist", OPERATE, "Revoke a grant")
    def revoke_specialist(
        self, specialist_id: SpecialistId, grantee: Annotated[str, InPath("The grantee, as it was granted.")]
    ) -> SpecialistView:
        """Take a grant back. Harmless when repeated."""
