"""Lists, searches, registers, changes, removes and shares specialists."""

import logging
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import Connection

from claudomator_py.domain.card import (
    Card,
    CardWarning,
    CardWarningCode,
    Registration,
    Transport,
    Visibility,
    card_warning,
)
from claudomator_py.domain.errors import Invalid, Problem
from claudomator_py.domain.principal import OPERATOR, Principal, RequestKey
from claudomator_py.domain.shape import Page
from claudomator_py.ports import Clock, EncoderFault
from claudomator_py.resources import cursors
from claudomator_py.resources.session import KeyedService, reading, writing
from claudomator_py.resources.specialists import (
    CardOrigin,
    CardWarningView,
    FoundSkillView,
    FoundSpecialistView,
    GrantRequest,
    SearchView,
    SpecialistCalls,
    SpecialistView,
)
from claudomator_py.routing.oddities import duplicates, oddities
from claudomator_py.store import full_text, specialist_rows
from claudomator_py.store.database import StoreUnavailable, or_unavailable
from claudomator_py.store.full_text import Found
from claudomator_py.surface import answers
from claudomator_py.tasks import specialists as changes
from claudomator_py.tasks.specialists import may_change
from claudomator_py.values import dataclass

if TYPE_CHECKING:
    from claudomator_py.routing.space import Twin

Similarity = Callable[[str], Mapping[Found, float] | None]
"""Returns the cosine similarity of a query to the skills and own texts of all cards, whatever their visibility; None
without an encoder.

Called outside of transactions, because the encoder may be a remote service. Raises StoreUnavailable, EncoderFault.
"""

SEMANTIC: Final = 0.7
TEXT: Final = 0.3
"""Weights of a score: ``0.7 * semantic + 0.3 * text``."""
MAX_SKILLS: Final = 10
"""Skills per card in a search result: the best ones."""
_LIST: Final = {"list": "specialists"}


def view(registration: Registration, by: Principal) -> SpecialistView:
    """Return the view of a specialist that the principal can see."""
    changeable = may_change(registration, by)
    return SpecialistView.legible(
        registration,
        id=registration.card.id,
        name=registration.card.title,
        description=registration.card.description,
        visibility=registration.card.visibility,
        transport=registration.card.transport,
        changeable=changeable,
        file_path=registration.file_path if changeable else None,
        grants=registration.grants if changeable else (),
        card=registration.card.document,
    )


def text_scores(words: Sequence[str], hits: Mapping[Found, Collection[str]], texts: int) -> Mapping[Found, float]:
    """Return the share of the query's words that each text contains, weighted by rarity, 0 to 1.

    The weight of a word in n texts is ``ln(1 + (texts - n + 0.5) / (n + 0.5))``, the inverse document frequency of BM25
    (Robertson and Zaragoza 2009). ``texts`` and ``hits`` cover only cards that may do the caller's work, so that scores
    reveal no others.
    """
    having = {word: sum(word in there for there in hits.values()) for word in words}
    weight = {word: math.log1p((texts - n + 0.5) / (n + 0.5)) for word, n in having.items()}
    whole = sum(weight.values())
    return {place: round(sum(weight[word] for word in sorted(there)) / whole, 6) for place, there in hits.items()}


@dataclass(frozen=True, slots=True)
class _Score:
    """The score of a text, each part 0 to 1. semantic: None if only words were compared."""

    whole: float
    text: float
    semantic: float | None

    @classmethod
    def of(cls, text: float, cosine: float | None) -> "_Score":
        if cosine is None:
            return cls(text, text, None)
        semantic = round(min(1.0, max(0.0, cosine)), 6)
        return cls(round(SEMANTIC * semantic + TEXT * text, 6), text, semantic)


def _match_view(card: Registration, scores: Mapping[str | None, _Score], by: Principal) -> FoundSpecialistView:
    skills = [
        FoundSkillView(id=skill.id, name=skill.name, score=score.whole, text=score.text, semantic=score.semantic)
        for skill in card.card.skills
        if (score := scores.get(skill.id)) is not None
    ]
    skills.sort(key=lambda skill: (-skill.score, skill.id))
    return FoundSpecialistView(
        score=max(score.whole for score in scores.values()),
        best_skill_id=skills[0].id if skills else None,
        skills=tuple(skills[:MAX_SKILLS]),
        specialist=view(card, by),
    )


Twins = Callable[[str], "Sequence[Twin]"]
"""Returns skills of other specialists, whatever their visibility, that nearly duplicate one of this specialist's.
Raises StoreUnavailable, EncoderFault."""

log = logging.getLogger(__name__)


class HubRegistration(NamedTuple):
    """The result of registering the card of a connecting agent."""

    is_new: bool
    """Whether the registration has changed."""
    ignored: tuple[str, ...]
    """Fields of the card that are ignored in favour of another card of its creator."""


@dataclass(eq=False, repr=False)
class Specialists(KeyedService):
    """The operations on specialists, for a principal. Every method may raise ``domain.errors.ServiceError``; NotFound
    does not distinguish a hidden card from one that does not exist.

    versions: refuse the change unless the card has one of these; None for any.
    """

    clock: Clock
    similarity: Similarity = lambda _: None
    twins: Twins = lambda _: ()

    @reading(SpecialistCalls.specialists)
    def page(self, connection: Connection, cursor: str | None = None, limit: int = 50) -> Page[SpecialistView]:
        """Return a page of specialists, by id. Raises BadCursor."""
        after = cursors.read_text(cursor, _LIST)
        rows = specialist_rows.seen(connection, self._by, after=after, limit=limit + 1)
        return cursors.page(
            rows, limit, _LIST, lambda row: (row.card.id,), lambda part: [view(row, self._by) for row in part]
        )

    def public_cards(self) -> list[Card]:
        """Return the public cards, by id."""
        registrations = self._read(specialist_rows.seen)
        return [
            registration.card for registration in registrations if registration.card.visibility is Visibility.PUBLIC
        ]

    @answers(SpecialistCalls.specialist)
    def get(self, specialist_id: str) -> SpecialistView:
        """Return the specialist with that id."""

        def find(connection: Connection) -> SpecialistView:
            registration = specialist_rows.find(connection, specialist_id, self._by)
            if registration is None:
                raise changes.unknown(connection, specialist_id, self._by)
            return view(registration, self._by)

        return self._warned(self._read(find))

    @answers(SpecialistCalls.search_specialists)
    def search(self, query: str, limit: int = 10) -> SearchView:
        """Return the matching specialists that may do the caller's work, best first. If the encoder fails, only words
        are compared."""
        try:
            with or_unavailable():
                semantic = self.similarity(query)
        except EncoderFault as fault:
            log.warning("the encoder failed; specialists are searched only by words: %s", fault)
            semantic = None

        def read(connection: Connection) -> SearchView:
            there = set(specialist_rows.assignable_ids(connection, self._by))
            words = full_text.words_of(query)
            text = text_scores(
                words, full_text.hits(connection, words, self._by), full_text.count(connection, self._by)
            )
            scores: dict[str, dict[str | None, _Score]] = defaultdict(dict)
            for place in text.keys() | (semantic or {}).keys():
                score = _Score.of(text.get(place, 0.0), None if semantic is None else semantic.get(place, 0.0))
                if place[0] in there and score.whole > 0:
                    scores[place[0]][place[1]] = score
            best = sorted(
                scores,
                key=lambda specialist_id: (
                    -max(score.whole for score in scores[specialist_id].values()),
                    specialist_id,
                ),
            )[:limit]
            cards = {
                registration.card.id: registration
                for registration in specialist_rows.seen(connection, self._by, ids=best)
            }
            matches = tuple(
                _match_view(cards[specialist_id], scores[specialist_id], self._by) for specialist_id in best
            )
            return SearchView(items=matches, total=len(scores), degraded=semantic is None)

        return self._read(read)

    @answers(SpecialistCalls.register_specialist)
    def register(
        self, card: Card, *, origin: CardOrigin | None = None, key: RequestKey | None = None
    ) -> SpecialistView:
        """Register the card, or update the caller's own specialist with that id. Harmless when repeated. Raises
        Conflict, Forbidden, Invalid."""
        is_own = origin is not CardOrigin.FETCHED

        def change(connection: Connection) -> SpecialistView:
            stored = changes.register(connection, card, self._by, self.clock(), is_own=is_own)
            return view(stored, self._by)

        return self._warned(self._once(key, SpecialistView, lambda: change))

    @writing()
    def register_itself(self, connection: Connection, card: Card) -> HubRegistration:
        """Register the card of a connecting agent. Its oddities are logged separately, see ``log_oddities``: finding
        them compares all cards, and hundreds of agents may connect after a restart."""
        before = specialist_rows.find(connection, card.id, self._by)
        stored = changes.register_itself(connection, card, self._by, self.clock())
        sent, kept = card.document, stored.card.document
        ignored = tuple(sorted(key for key in sent if key != "max_concurrent" and kept.get(key) != sent[key]))
        return HubRegistration(before is None or before.version != stored.version, ignored)

    def log_oddities(self, ids: Set[str]) -> None:
        """Log the oddities of the cards of these agents, which have no other way to learn of them."""
        cards = self._cards()
        for specialist_id in sorted(ids & cards.keys()):
            for odd in self._odd(cards[specialist_id], cards):
                log.warning("the card of %s, which registered itself: %s", specialist_id, odd.text)

    def change(self, card: Card, *, versions: Collection[int] | None = None) -> SpecialistView:
        """Replace the card of the specialist with its id. Raises Forbidden, StaleVersion, Conflict."""
        return self._warned(
            self._changed(
                lambda connection, now_ms: changes.change(connection, card, self._by, now_ms, versions=versions)
            )
        )

    @answers(SpecialistCalls.replace_specialist)
    def replace(self, specialist_id: str, card: Card, *, versions: Collection[int] | None = None) -> SpecialistView:
        """Replace the specialist's card, see ``change``. Raises Invalid if the card has another id."""
        if card.id != specialist_id:
            problem = Problem(field="id", message="is not the id in the path", remedy=f"write {specialist_id}")
            raise Invalid.of([problem])
        return self.change(card, versions=versions)

    @writing(SpecialistCalls.remove_specialist)
    def remove(self, connection: Connection, specialist_id: str, *, versions: Collection[int] | None = None) -> None:
        """Remove the specialist. Raises Forbidden, StaleVersion, Conflict."""
        changes.remove(connection, specialist_id, self._by, self.clock(), versions=versions)

    @answers(SpecialistCalls.grant_specialist)
    def grant(self, specialist_id: str, wanted: GrantRequest) -> SpecialistView:
        """Let a principal, or ``org:NAME``, see a shared specialist. Harmless when repeated."""
        return self._changed(
            lambda connection, now_ms: changes.grant(connection, specialist_id, wanted.grantee, self._by, now_ms)
        )

    @answers(SpecialistCalls.revoke_specialist)
    def revoke(self, specialist_id: str, grantee: str) -> SpecialistView:
        """Take a grant back. Harmless when repeated."""
        return self._changed(
            lambda connection, now_ms: changes.revoke(connection, specialist_id, grantee, self._by, now_ms)
        )

    @answers(SpecialistCalls.admit_specialist)
    def admit(self, specialist_id: str) -> SpecialistView:
        """Admit the current card to the work of others. Harmless when repeated. Raises Forbidden, Conflict."""
        return self._changed(lambda connection, now_ms: changes.admit(connection, specialist_id, self._by, now_ms))

    @answers(SpecialistCalls.dismiss_specialist)
    def dismiss(self, specialist_id: str) -> SpecialistView:
        """Take the admission back. Harmless when repeated. Raises Forbidden."""
        return self._changed(lambda connection, now_ms: changes.dismiss(connection, specialist_id, self._by, now_ms))

    def _warned(self, view: SpecialistView) -> SpecialistView:
        """Return the view with its warnings."""
        odd = [*self._odd(view.content, self._cards())]
        if view.content.transport is Transport.HTTP and view.creator != OPERATOR.id:
            odd.append(card_warning(CardWarningCode.NOT_REACHED))
        shown = tuple(CardWarningView(text=warning.text, warning=warning) for warning in odd)
        return view.model_copy(update={"warnings": shown})

    def _cards(self) -> Mapping[str, Card]:
        """Return all cards that the principal can see, by id."""
        registrations = self._read(lambda connection: specialist_rows.seen(connection, self._by))
        return {registration.card.id: registration.card for registration in registrations}

    def _odd(self, card: Card, cards: Mapping[str, Card]) -> Sequence[CardWarning]:
        """Return the card's oddities compared with these. If the encoder fails, only words are compared."""
        odd_keys = oddities(card, cards)
        try:
            odd_keys += duplicates(self.twins(card.id), cards)
        except (EncoderFault, StoreUnavailable) as fault:
            log.warning("skills of %s are not compared: %s", card.id, fault)
        return odd_keys

    @writing()
    def _changed(self, connection: Connection, change: Callable[[Connection, int], Registration]) -> SpecialistView:
        return view(change(connection, self.clock()), self._by)
