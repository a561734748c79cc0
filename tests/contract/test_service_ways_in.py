"""Whose work a specialist is given, by every way in which work comes to it: as the documentation has it."""

import pytest

from tests.contract.ways_in import CARDS, PEOPLE, WAYS, documented, of_way


@pytest.mark.parametrize("way", WAYS)
def test_a_card_is_given_the_work_that_the_documentation_says(way: str) -> None:
    """Every third card, beginning with another one for the next way, so that each card meets a third of the ways."""
    _is_as_documented(way, CARDS[[*WAYS].index(way) % 3 :: 3])


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_every_card_is_given_the_work_that_the_documentation_says(way: str) -> None:
    _is_as_documented(way, CARDS)


def _is_as_documented(way: str, cards: tuple[str, ...]) -> None:
    expected = documented()[way]
    assert {described: of_way(WAYS[way], described) for described in cards} == {name: expected[name] for name in cards}


def test_the_documentation_has_every_way_card_and_person() -> None:
    results = documented()
    assert results.keys() == WAYS.keys()
    assert all(tuple(cards) == CARDS for cards in results.values())
    assert all(PEOPLE.keys() >= set(who) for cards in results.values() for who in cards.values())
