"""Whose work a specialist is given, by every way in which work comes to it: as the documentation has it."""

import pytest

from tests.contract.ways_in import CARDS, PEOPLE, WAYS, documented, of_way


@pytest.mark.parametrize("way", WAYS)
def test_a_card_is_given_the_work_that_the_documentation_says(way: str) -> None:
    expected = documented()[way]
    assert {described: of_way(WAYS[way], described) for described in CARDS} == expected


def test_the_documentation_has_every_way_card_and_person() -> None:
    results = documented()
    assert results.keys() == WAYS.keys()
    assert all(tuple(cards) == CARDS for cards in results.values())
    assert all(PEOPLE.keys() >= set(who) for cards in results.values() for who in cards.values())
