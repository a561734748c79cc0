"""What is odd about a card beside the others: keywords that point to nobody, skills that are another's, and ways on
that lead nowhere."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from claudomator_py.domain.card import WAYS_ON, Card
from claudomator_py.domain.card_warnings import CardWarning, CardWarningCode, card_warning
from claudomator_py.routing.lessons import keyword_in
from claudomator_py.routing.profile import profile_of

if TYPE_CHECKING:
    from claudomator_py.routing.space import Twin

NEARLY: Final = 0.8
"""The cosine from which on two skills are nearly the same. Between those of the shipped cards it is 0.27 at
most with the hashed encoder, and of a skill to itself more than 0.9."""
_OTHERS: Final = 2
"""So many others in whose texts a keyword is make it a common phrase."""
_NAMED: Final = 3


def oddities(card: Card, cards: Mapping[str, Card]) -> list[CardWarning]:
    """Find what is odd by words alone. cards: those that exist for whoever asks, by id."""
    others = [one for one in cards.values() if one.id != card.id]
    return [*_keywords(card, others), *_ways_on(card, cards), *_not_applied(card)]


def duplicates(twins: Iterable["Twin"], cards: Mapping[str, Card]) -> list[CardWarning]:
    """Return skills of others that are nearly one of the card's. cards: see ``oddities``."""
    return [
        card_warning(CardWarningCode.NEAR_DUPLICATE, skill=one.skill, other=one.other, specialist=one.specialist)
        for one in twins
        if one.specialist in cards
    ]


def _not_applied(card: Card) -> Iterator[CardWarning]:
    if card.not_applied:
        yield card_warning(CardWarningCode.NOT_APPLIED, fields=card.not_applied)


def _keywords(card: Card, others: list[Card]) -> Iterator[CardWarning]:
    for keyword in card.keywords:
        folded = keyword.casefold()
        same = next((one.id for one in others if folded in (other.casefold() for other in one.keywords)), None)
        if same is not None:
            yield card_warning(CardWarningCode.SHARED_KEYWORD, keyword=keyword, specialist=same)
            continue
        saying = [one.id for one in others if keyword_in("\n".join(profile_of(one).texts), [keyword]) is not None]
        if len(saying) >= _OTHERS:
            yield card_warning(CardWarningCode.GENERIC_KEYWORD, keyword=keyword, specialists=tuple(saying[:_NAMED]))


def _ways_on(card: Card, cards: Mapping[str, Card]) -> Iterator[CardWarning]:
    """Where it is to be handed on, and whether that ends anywhere."""
    for field, labels in WAYS_ON.items():
        passed, at = [card.id], getattr(card, field)
        while at is not None and at not in labels:
            if at not in cards and at != card.id:
                if len(passed) == 1:  # else that is said of the other card
                    yield card_warning(CardWarningCode.UNKNOWN_SPECIALIST, field=field, specialist=at)
                break
            if at == card.id:
                yield card_warning(CardWarningCode.CIRCLE, field=field, specialists=tuple(passed))
                break
            if at in passed:
                break
            passed.append(at)
            at = getattr(cards[at], field)
