"""Specialists: who there is for whoever asks, and registering, changing, removing and sharing them."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from sqlalchemy import Connection

from claudomator_py.domain.card import Card, Registration, Transport, Visibility
from claudomator_py.domain.card_warnings import CardWarning, CardWarningCode, card_warning
from claudomator_py.domain.encoder import EncoderFault
from claudomator_py.domain.errors import Invalid, Problem
from claudomator_py.domain.principal import OPERATOR, RequestKey
from claudomator_py.domain.shape import Page
from claudomator_py.ports import Clock
from claudomator_py.resources.session import Service
from claudomator_py.resources.specialists import (
    CardOrigin,
    CardWarningView,
    GrantRequest,
    SearchView,
    SpecialistCalls,
    SpecialistView,
)
from claudomator_py.routing.oddities import duplicates, oddities
from claudomator_py.store import specialist_rows
from claudomator_py.store.database import Database, StoreUnavailable, or_unavailable
from claudomator_py.surface import answers
from claudomator_py.tasks import specialists as changes
from claudomator_py.tasks.idempotency import IdempotentRequests

if TYPE_CHECKING:
    from claudomator_py.routing.space import Twin

import math
from collections import defaultdict
from typing import Final

from claudomator_py.domain.principal import Principal
from claudomator_py.resources import cursors
from claudomator_py.resources.specialists import FoundSkillView, FoundSpecialistView
from claudomator_py.store import full_text
from claudomator_py.store.full_text import Found
from claudomator_py.tasks.specialists import may_change
from claudomator_py.values import dataclass

Similarity = Callable[[str], Mapping[Found, float] | None]
"""How alike a query is to the skills of all cards, and to the cards' own texts, whoever sees them: cosines. None: there
is no encoder.

Asked outside of any transaction, as an encoder may be far away. Raises StoreUnavailable, EncoderFault.
"""

SEMANTIC: Final = 0.7
TEXT: Final = 0.3
"""What each counts in a score, as in requirement C2: ``0.7 * semantic + 0.3 * text``."""
MAX_SKILLS: Final = 10
"""Of one card in an answer; the best."""
_LIST: Final = {"list": "specialists"}


def view(found: Registration, by: Principal) -> SpecialistView:
    """Return the card in the shape of the API, for a principal for whom it exists."""
    changeable = may_change(found, by)
    return SpecialistView.of(
        found,
        id=found.card.id,
        name=found.card.title,
        description=found.card.description,
        visibility=found.card.visibility,
        transport=found.card.transport,
        changeable=changeable,
        file_path=found.file_path if changeable else None,
        grants=found.grants if changeable else (),
        card=found.card.document,
    )


def page(connection: Connection, by: Principal, cursor: str | None, limit: int) -> Page[SpecialistView]:
    """Return a part of the cards that exist for the principal, by id. Raises BadCursor."""
    after = None if cursor is None else cursors.read_text(cursor, _LIST)
    found = specialist_rows.seen(connection, by, after=after, limit=limit + 1)
    part, following = cursors.part(found, limit, lambda one: cursors.write_text(one.card.id, _LIST))
    return Page[SpecialistView](items=tuple(view(one, by) for one in part), next_cursor=following)


def search(
    connection: Connection, query: str, by: Principal, limit: int, semantic: Mapping[Found, float] | None
) -> SearchView:
    """Return the cards that match, of those that may be given work of the principal's: who searches looks for somebody
    to do something. semantic: what ``Similarity`` says of the query; None: nothing, and only words can be compared."""
    there = set(specialist_rows.assignable_ids(connection, by))
    words = full_text.words_of(query)
    text = text_scores(words, full_text.hits(connection, words, by), full_text.count(connection, by))
    scores: dict[str, dict[str | None, _Score]] = defaultdict(dict)
    for place in text.keys() | (semantic or {}).keys():
        score = _Score.of(text.get(place, 0.0), None if semantic is None else semantic.get(place, 0.0))
        if place[0] in there and score.whole > 0:
            scores[place[0]][place[1]] = score
    best = sorted(scores, key=lambda one: (-max(score.whole for score in scores[one].values()), one))[:limit]
    cards = {one.card.id: one for one in specialist_rows.seen(connection, by, ids=best)}
    found = tuple(_found(cards[one], scores[one], by) for one in best)
    return SearchView(items=found, total=len(scores), degraded=semantic is None)


def text_scores(words: Sequence[str], hits: Mapping[Found, Collection[str]], texts: int) -> Mapping[Found, float]:
    """Return how much of the query each text has, 0 to 1: the share of its words, each counting by how rare it is.

    A word counts ``ln(1 + (texts - n + 0.5) / (n + 0.5))`` where n texts have it: the inverse document frequency of
    BM25 (Robertson and Zaragoza 2009). Only texts of cards that may be given work of whoever asks are in
    ``texts`` and ``hits``, so that no score tells of others.
    """
    having = {word: sum(word in there for there in hits.values()) for word in words}
    weight = {word: math.log1p((texts - n + 0.5) / (n + 0.5)) for word, n in having.items()}
    whole = sum(weight.values())
    return {place: round(sum(weight[word] for word in sorted(there)) / whole, 6) for place, there in hits.items()}


@dataclass(frozen=True, slots=True)
class _Score:
    """Of one text, each 0 to 1. semantic: None: that could not be found out, and the words are all there is."""

    whole: float
    text: float
    semantic: float | None

    @classmethod
    def of(cls, text: float, cosine: float | None) -> "_Score":
        if cosine is None:
            return cls(text, text, None)
        semantic = round(min(1.0, max(0.0, cosine)), 6)
        return cls(round(SEMANTIC * semantic + TEXT * text, 6), text, semantic)


def _found(card: Registration, scores: Mapping[str | None, _Score], by: Principal) -> FoundSpecialistView:
    skills = [
        FoundSkillView(id=skill.id, name=skill.name, score=score.whole, text=score.text, semantic=score.semantic)
        for skill in card.card.skills
        if (score := scores.get(skill.id)) is not None
    ]
    skills.sort(key=lambda one: (-one.score, one.id))
    return FoundSpecialistView(
        score=max(score.whole for score in scores.values()),
        best_skill_id=skills[0].id if skills else None,
        skills=tuple(skills[:MAX_SKILLS]),
        specialist=view(card, by),
    )


T = TypeVar("T")

Twins = Callable[[str], "Sequence[Twin]"]
"""Skills of others, whoever sees them, that are nearly one of that specialist's. Raises StoreUnavailable,
EncoderFault."""

log = logging.getLogger(__name__)


class HubRegistration(NamedTuple):
    """What came of the card with which an agent has connected."""

    is_new: bool
    """Whether anything of what is registered has changed."""
    ignored: tuple[str, ...]
    """Fields of its card that do not count, as another card of its creator says otherwise."""


class Specialists(Service):
    """What can be asked about specialists. Every method may raise ``domain.errors.ServiceError``: NotFound in the same
    words for a card that does not exist and for one that does not exist for whoever asks.

    versions: the change is made only if the card has one of these; None: any.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        repeats: IdempotentRequests,
        similarity: Similarity = lambda _: None,
        twins: Twins = lambda _: (),
    ) -> None:
        super().__init__(database, repeats)
        self._clock = clock
        self._similarity = similarity
        self._twins = twins

    @answers(SpecialistCalls.specialists)
    def page(self, cursor: str | None = None, limit: int = 50) -> Page[SpecialistView]:
        """Return a part of the list, by id. Raises BadCursor."""
        return self._read(lambda connection: page(connection, self._by, cursor, limit))

    def public_cards(self) -> list[Card]:
        """Return the cards that everybody may know of, by id."""
        found = self._read(specialist_rows.seen)
        return [one.card for one in found if one.card.visibility is Visibility.PUBLIC]

    @answers(SpecialistCalls.specialist)
    def one(self, specialist_id: str) -> SpecialistView:
        """Return the specialist of that id."""

        def find(connection: Connection) -> SpecialistView:
            found = specialist_rows.find(connection, specialist_id, self._by)
            if found is None:
                raise changes.unknown(connection, specialist_id, self._by)
            return view(found, self._by)

        return self._warned(self._read(find))

    @answers(SpecialistCalls.search_specialists)
    def search(self, query: str, limit: int = 10) -> SearchView:
        """Return the specialists that match, of those that may be given work of whoever asks, the best first; by words
        alone where the encoder fails."""
        try:
            with or_unavailable():
                semantic = self._similarity(query)
        except EncoderFault as fault:
            log.warning("the encoder failed; specialists are searched by words alone: %s", fault)
            semantic = None
        return self._read(lambda connection: search(connection, query, self._by, limit, semantic))

    @answers(SpecialistCalls.register_specialist)
    def register(
        self, card: Card, *, origin: CardOrigin | None = None, key: RequestKey | None = None
    ) -> SpecialistView:
        """Add the card, or update one's own of that id; harmless when repeated. Raises Conflict, Forbidden, Invalid."""
        is_own = origin is not CardOrigin.FETCHED

        def change(connection: Connection) -> SpecialistView:
            stored = changes.register(connection, card, self._by, self._clock(), is_own=is_own)
            return view(stored, self._by)

        return self._warned(self._once(key, SpecialistView, lambda: change))

    def register_itself(self, card: Card) -> HubRegistration:
        """Do the same for an agent that has connected. What is odd about its card is not looked for, as all cards are
        compared for that, and agents come by hundreds after a restart: see ``tell_odd``."""

        def transaction(connection: Connection) -> HubRegistration:
            before = specialist_rows.find(connection, card.id, self._by)
            stored = changes.register_itself(connection, card, self._by, self._clock())
            said, kept = card.document, stored.card.document
            ignored = tuple(sorted(key for key in said if key != "max_concurrent" and kept.get(key) != said[key]))
            return HubRegistration(before is None or before.version != stored.version, ignored)

        return self._write(transaction)

    def tell_odd(self, ids: Set[str]) -> None:
        """Tell the log what is odd about the cards of these agents, whom no person hears."""
        cards = self._cards()
        for specialist_id in sorted(ids & cards.keys()):
            for odd in self._odd(cards[specialist_id], cards):
                log.warning("the card of %s, which registered itself: %s", specialist_id, odd.text)

    def change(self, card: Card, *, versions: Collection[int] | None = None) -> SpecialistView:
        """Give the specialist of the card's id that content. Raises Forbidden, StaleVersion, Conflict."""
        return self._warned(
            self._changed(
                lambda connection, now_ms: changes.change(connection, card, self._by, now_ms, versions=versions)
            )
        )

    @answers(SpecialistCalls.replace_specialist)
    def replace(self, specialist_id: str, card: Card, *, versions: Collection[int] | None = None) -> SpecialistView:
        """Do the same for the specialist of that id. Raises Invalid where that is not the card's."""
        if card.id != specialist_id:
            raise Invalid.of([Problem(field="id", message="is not that of the path", remedy=f"write {specialist_id}")])
        return self.change(card, versions=versions)

    @answers(SpecialistCalls.remove_specialist)
    def remove(self, specialist_id: str, *, versions: Collection[int] | None = None) -> None:
        """Remove it. Raises Forbidden, StaleVersion, Conflict."""
        self._write(
            lambda connection: changes.remove(connection, specialist_id, self._by, self._clock(), versions=versions)
        )

    @answers(SpecialistCalls.grant_specialist)
    def grant(self, specialist_id: str, wanted: GrantRequest) -> SpecialistView:
        """Let a shared card exist for a principal, or ``org:NAME``. Harmless when repeated."""
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
        """Admit its card, as it is, to the work of others. Harmless when repeated. Raises Forbidden, Conflict."""
        return self._changed(lambda connection, now_ms: changes.admit(connection, specialist_id, self._by, now_ms))

    @answers(SpecialistCalls.dismiss_specialist)
    def dismiss(self, specialist_id: str) -> SpecialistView:
        """Take its admission back. Harmless when repeated. Raises Forbidden."""
        return self._changed(lambda connection, now_ms: changes.dismiss(connection, specialist_id, self._by, now_ms))

    def _warned(self, told: SpecialistView) -> SpecialistView:
        """With what is odd about it."""
        odd = [*self._odd(told.content, self._cards())]
        if told.content.transport is Transport.HTTP and told.creator != OPERATOR.id:
            odd.append(card_warning(CardWarningCode.NOT_REACHED))
        shown = tuple(CardWarningView(text=one.text, warning=one) for one in odd)
        return told.model_copy(update={"warnings": shown})

    def _cards(self) -> Mapping[str, Card]:
        """All that exist for whoever asks, by id."""
        found = self._read(lambda connection: specialist_rows.seen(connection, self._by))
        return {one.card.id: one.card for one in found}

    def _odd(self, card: Card, cards: Mapping[str, Card]) -> Sequence[CardWarning]:
        """What is odd about it beside these: by words alone where the encoder fails, or nothing is encoded."""
        found = oddities(card, cards)
        try:
            found += duplicates(self._twins(card.id), cards)
        except (EncoderFault, StoreUnavailable) as fault:
            log.warning("skills of %s are not compared: %s", card.id, fault)
        return found

    def _changed(self, change: Callable[[Connection, int], Registration]) -> SpecialistView:
        return self._write(lambda connection: view(change(connection, self._clock()), self._by))
