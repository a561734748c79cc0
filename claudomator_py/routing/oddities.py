"""Oddities of a card, alone and compared with others: tools both allowed and forbidden, keywords that point to nobody,
skills that duplicate others, and fallbacks or escalations that lead nowhere."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from claudomator_py.domain.card import SUCCESSOR_FIELDS, Card, CardWarning, CardWarningCode, card_warning
from claudomator_py.domain.routing import covers
from claudomator_py.routing.lessons import keyword_in
from claudomator_py.routing.profile import profile_of

if TYPE_CHECKING:
    from claudomator_py.routing.space import Twin

NEARLY: Final = 0.8
"""Cosine from which two skills count as nearly the same. Between the shipped cards' skills it is at most 0.27 with the
hashed encoder, and from a skill to itself more than 0.9."""
_OTHERS: Final = 2
"""Number of other cards whose texts contain a keyword from which it counts as a common phrase."""
_NAMED: Final = 3


def oddities(card: Card, cards: Mapping[str, Card]) -> list[CardWarning]:
    """Find oddities that words alone reveal. cards: those visible to the caller, by id."""
    others = [other_card for other_card in cards.values() if other_card.id != card.id]
    return [*_keywords(card, others), *_ways_on(card, cards), *_not_applied(card), *_never_allowed(card)]


def duplicates(twins: Iterable["Twin"], cards: Mapping[str, Card]) -> list[CardWarning]:
    """Return warnings about skills of others that nearly duplicate one of the card's. cards: see ``oddities``."""
    return [
        card_warning(CardWarningCode.NEAR_DUPLICATE, skill=twin.skill, other=twin.other, specialist=twin.specialist)
        for twin in twins
        if twin.specialist in cards
    ]


def _not_applied(card: Card) -> Iterator[CardWarning]:
    if card.not_applied:
        yield card_warning(CardWarningCode.NOT_APPLIED, fields=card.not_applied)


def _never_allowed(card: Card) -> Iterator[CardWarning]:
    """A warning about tools allowed in vain. A tool that is forbidden for some uses only is not one of them."""
    if card.permissions is None:
        return
    forbidden = card.permissions.disallowed_tools
    if tools := tuple(tool for tool in card.permissions.allowed_tools if covers(forbidden, tool)):
        yield card_warning(CardWarningCode.NEVER_ALLOWED, tools=tools)


def _keywords(card: Card, others: list[Card]) -> Iterator[CardWarning]:
    for keyword in card.keywords:
        folded = keyword.casefold()
        same = next(
            (other_card.id for other_card in others if folded in (other.casefold() for other in other_card.keywords)),
            None,
        )
        if same is not None:
            yield card_warning(CardWarningCode.SHARED_KEYWORD, keyword=keyword, specialist=same)
            continue
        saying = [other.id for other in others if keyword_in("\n".join(profile_of(other).texts), [keyword]) is not None]
        if len(saying) >= _OTHERS:
            yield card_warning(CardWarningCode.GENERIC_KEYWORD, keyword=keyword, specialists=tuple(saying[:_NAMED]))


def _ways_on(card: Card, cards: Mapping[str, Card]) -> Iterator[CardWarning]:
    """Warnings about the card's fallback and escalation, if they lead nowhere or in a circle."""
    for field, labels in SUCCESSOR_FIELDS.items():
        passed, at = [card.id], getattr(card, field)
        while at is not None and at not in labels:
            if at not in cards and at != card.id:
                if len(passed) == 1:  # otherwise the other card gets that warning
                    yield card_warning(CardWarningCode.UNKNOWN_SPECIALIST, field=field, specialist=at)
                break
            if at == card.id:
                yield card_warning(CardWarningCode.CIRCLE, field=field, specialists=tuple(passed))
                break
            if at in passed:
                break
            passed.append(at)
            at = getattr(cards[at], field)
