"""What is odd about a card beside the others, and what is not."""

import pytest

from claudomator_py.domain.card import Card, CardWarningCode, card_warning
from claudomator_py.embed import Hashed
from claudomator_py.lab.evaluation import space_of
from claudomator_py.routing.calibration import calibration_for
from claudomator_py.routing.oddities import NEARLY, duplicates, oddities
from claudomator_py.schema.cardfile import shipped_cards, shipped_files
from claudomator_py.schema.routing_settings import Preset
from tests.fakes.cards import card


def found(entry: Card, *others: Card) -> list[str]:
    return [odd.text for odd in oddities(entry, {other.id: other for other in (entry, *others)})]


def test_the_shipped_cards_are_not_odd() -> None:
    cards = shipped_cards(shipped_files())

    assert [found(card, *cards) for card in cards] == [[]] * len(cards)


def test_a_keyword_of_two_points_to_neither() -> None:
    entry, other = card("a", keywords=["Drip"]), card("b", keywords=["drip"])

    assert found(entry, other) == ["its keyword `Drip` is one of b, too: it points to neither"]


def test_a_keyword_in_what_several_do_is_too_common() -> None:
    entry = card("a", keywords=["write"])
    others = [card(name, description="Can write what you want.") for name in ("b", "c")]

    assert found(entry, *others[:1]) == []
    assert found(entry, *others) == ["its keyword `write` is in what b, c do, too: choose a longer phrase"]
    assert found(card("a", keywords=["write a migration"]), *others) == []


@pytest.mark.parametrize("field", ["fallback", "escalation"])
def test_ways_on_that_lead_nowhere_are_told(field: str) -> None:
    assert found(card("a", **{field: "b"})) == [f"its `{field}` names b, and there is no such specialist"]
    assert found(card("a", **{field: "b"}), card("b")) == []
    assert found(card("a", **{field: "human_review"})) == []
    assert found(card("a", **{field: "a"})) == [f"its `{field}` leads back to itself, by way of a"]
    circle = [card("a", **{field: "b"}), card("b", **{field: "c"}), card("c", **{field: "a"})]
    assert found(*circle) == [f"its `{field}` leads back to itself, by way of a, b, c"]
    # What is wrong further on is said of the others.
    assert found(card("a", **{field: "b"}), card("b", **{field: "gone"})) == []
    assert found(card("a", **{field: "b"}), card("b", **{field: "c"}), card("c", **{field: "b"})) == []


@pytest.mark.parametrize(
    ("allowed", "forbidden", "vain"),
    [
        (["Bash", "Read"], ["Bash"], "Bash"),
        (["Bash(git *)", "Edit"], ["Edit", "Bash"], "Bash(git *), Edit"),
        (["Bash"], ["Bash(rm *)"], ""),
        (["Read"], ["Bash"], ""),
        ([], ["Bash"], ""),
    ],
)
def test_a_tool_that_is_allowed_in_vain_is_told(allowed: list[str], forbidden: list[str], vain: str) -> None:
    entry = card("a", permissions={"allowed_tools": allowed, "disallowed_tools": forbidden})
    words = f"it allows {vain} in vain, as it forbids the same: remove one of the two"
    assert found(entry) == ([words] if vain else [])


def test_a_skill_that_is_nearly_anothers_is_told() -> None:
    skill = {"id": "taps", "name": "Taps", "examples": ["The tap drips all night", "Mend the dripping tap"]}
    other = {"id": "roofs", "name": "Roofs", "examples": ["The roof lets water in", "Replace three tiles"]}
    cards = [card("a", skills=[skill]), card("b", skills=[other, skill]), card("c", skills=[other])]
    calibration = calibration_for(Preset.CALIBRATED, Hashed.id)
    space = space_of(cards, Hashed(), calibration)

    twins = space.twins("a", NEARLY)

    assert [(twin.skill, twin.specialist, twin.other) for twin in twins] == [("taps", "b", "taps")]
    assert space.twins("nobody", NEARLY) == []
    seen = {card.id: card for card in cards}
    assert duplicates(twins, seen) == [
        card_warning(CardWarningCode.NEAR_DUPLICATE, skill="taps", other="taps", specialist="b")
    ]
    del seen["b"]
    assert duplicates(twins, seen) == []


def test_no_skill_of_the_shipped_cards_is_nearly_anothers() -> None:
    cards = shipped_cards(shipped_files())
    space = space_of(cards, Hashed(), calibration_for(Preset.CALIBRATED, Hashed.id))

    assert [space.twins(card.id, 0.5) for card in cards] == [[]] * len(cards)


def test_a_code_has_no_other_parameters() -> None:
    with pytest.raises(TypeError, match="has no skill"):
        card_warning(CardWarningCode.SHARED_KEYWORD, skill="x")
