"""Specialists in the shapes of the API, and searching them: by meaning where an encoder can tell, and by words."""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from sqlalchemy import Connection

from claudomator_py.domain.card import Registration
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.shape import Page
from claudomator_py.resources import cursors
from claudomator_py.resources.specialists import FoundSkillView, FoundSpecialistView, SearchView, SpecialistView
from claudomator_py.store import full_text, specialist_rows
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
    there = set(specialist_rows.ids_given(connection, by))
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
