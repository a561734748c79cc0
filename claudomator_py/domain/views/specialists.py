"""The JSON shapes of specialists. Field order is the order of the JSON."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field

from claudomator_py.domain.card import Card, Source, Transport, Visibility
from claudomator_py.domain.card_warnings import ShownCardWarning
from claudomator_py.domain.fields import NAME_PATTERN, refusal
from claudomator_py.domain.views.base import Instant, View

MAX_QUERY_LENGTH = 2_000
"""Characters of what is searched for."""
_GRANTEE = re.compile(rf"(?:org:)?(?:{NAME_PATTERN[1:-1]})")


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


class GrantRequest(View):
    """For whom a shared specialist is to exist, too: the name of a token, or ``org:NAME`` for all of an organisation.

    It need not exist yet.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    grantee: Grantee = Field(description="Name of a token, or `org:NAME` for everybody of an organisation.")


class FoundSkillView(View):
    """A skill that matches. score: 0 to 1. text: its share of the query's words, the rare ones counting most.
    semantic: how alike it is to the query; None: that could not be found out."""

    id: str
    name: str
    score: float
    text: float
    semantic: float | None = None


class FoundSpecialistView(View):
    """A specialist that matches. score: that of what matches best, a skill or the card's own text, 0 to 1.

    best_skill_id: the skill that matches best. skills: those that match, the best first.
    """

    score: float
    best_skill_id: str | None = None
    skills: tuple[FoundSkillView, ...] = ()
    specialist: SpecialistView


class SearchView(View):
    """What was found, the best first. total: how many match, listed or not. degraded: only words were compared,
    because the encoder that compares meaning is not available."""

    items: tuple[FoundSpecialistView, ...]
    total: int
    degraded: bool
