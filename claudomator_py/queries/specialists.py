"""Specialists in the shapes of the API, and searching them: by meaning where an encoder can tell, and by words."""

import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from sqlalchemy import Connection

from claudomator_py.domain.card import Registration
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.views import Page
from claudomator_py.domain.views.specialists import FoundSkillView, FoundSpecialistView, SearchView, SpecialistView
from claudomator_py.queries import cursors
from claudomator_py.store import full_text, specialist_rows
from claudomator_py.store.full_text import Found
from claudomator_py.tasks.specialists import may_change

Similarity = Callable[[str, Sequence[Registration]], Mapping[Found, float]]
"""How alike a query is to the skills of these cards, and to their own texts: cosines. May raise anything."""

SEMANTIC: Final = 0.7
TEXT: Final = 0.3
"""What each counts in a score, as in requirement C2: ``0.7 * semantic + 0.3 * text``."""
MOST_SKILLS: Final = 10
"""Of one card in an answer; the best."""
_LIST: Final = {"list": "specialists"}

log = logging.getLogger(__name__)


def view(found: Registration, by: Principal) -> SpecialistView:
    """The card in the shape of the API, for a principal for whom it exists."""
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
    """A part of the cards that exist for the principal, by id. Raises BadCursor."""
    after = None if cursor is None else cursors.read_text(cursor, _LIST)
    found = specialist_rows.seen(connection, by, after=after, limit=limit + 1)
    following = cursors.write_text(found[limit - 1].card.id, _LIST) if len(found) > limit else None
    return Page[SpecialistView](items=tuple(view(one, by) for one in found[:limit]), next_cursor=following)


def search(connection: Connection, query: str, by: Principal, limit: int, similarity: Similarity | None) -> SearchView:
    """The cards that match, of those that exist for the principal. similarity: None: only words can be compared."""
    cards = specialist_rows.seen(connection, by)
    words = full_text.words_of(query)
    text = text_scores(words, full_text.hits(connection, words, by), full_text.count(connection, by))
    semantic = None if similarity is None else _compared(similarity, query, cards)
    found = [one for one in (_found(card, text, semantic, by) for card in cards) if one is not None]
    found.sort(key=lambda one: (-one.score, one.specialist.id))
    return SearchView(items=tuple(found[:limit]), total=len(found), degraded=semantic is None)


def text_scores(words: Sequence[str], hits: Mapping[Found, Collection[str]], texts: int) -> Mapping[Found, float]:
    """How much of the query each text has, 0 to 1: the share of its words, each counting by how rare it is.

    A word counts ``ln(1 + (texts - n + 0.5) / (n + 0.5))`` where n texts have it: the inverse document frequency of
    BM25 (Robertson and Zaragoza 2009). Only texts that exist for whoever asks are in ``texts`` and ``hits``, so that no
    score tells of others.
    """
    having = {word: sum(word in there for there in hits.values()) for word in words}
    weight = {word: math.log1p((texts - n + 0.5) / (n + 0.5)) for word, n in having.items()}
    whole = sum(weight.values())
    return {place: round(sum(weight[word] for word in sorted(there)) / whole, 6) for place, there in hits.items()}


def _compared(similarity: Similarity, query: str, cards: Sequence[Registration]) -> Mapping[Found, float] | None:
    try:
        return similarity(query, cards)
    except Exception:  # whatever it is, words are still there to go by
        log.warning("the encoder failed; specialists are searched by words alone", exc_info=True)
        return None


def _found(
    card: Registration, text: Mapping[Found, float], semantic: Mapping[Found, float] | None, by: Principal
) -> FoundSpecialistView | None:
    def scored(skill_id: str | None) -> tuple[float, float, float | None]:
        place = (card.card.id, skill_id)
        words = text.get(place, 0.0)
        if semantic is None:
            return words, words, None
        alike = round(min(1.0, max(0.0, semantic.get(place, 0.0))), 6)
        return round(SEMANTIC * alike + TEXT * words, 6), words, alike

    skills = []
    for skill in card.card.skills:
        score, words, alike = scored(skill.id)
        if score > 0:
            skills.append(FoundSkillView(id=skill.id, name=skill.name, score=score, text=words, semantic=alike))
    skills.sort(key=lambda one: (-one.score, one.id))
    best = max(scored(None)[0], skills[0].score if skills else 0.0)
    if best <= 0:
        return None
    return FoundSpecialistView(
        score=best,
        best_skill_id=skills[0].id if skills else None,
        skills=tuple(skills[:MOST_SKILLS]),
        specialist=view(card, by),
    )
