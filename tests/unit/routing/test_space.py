"""Cards as vectors: how alike a text is to each skill, and to what a card says as a whole."""

import numpy as np
import pytest

from claudomator_py.routing.profile import Profile, SkillTexts, text_hash
from claudomator_py.routing.space import Space, cosine

VECTORS = {
    "east": [1.0, 0.0],
    "north": [0.0, 1.0],
    "north-east": [3.0, 3.0],
    "west": [-2.0, 0.0],
}
KEPT = {text_hash(text): np.array(vector, dtype=np.float32) for text, vector in VECTORS.items()}
COMPASS = Profile("compass", "north", (SkillTexts("right", ("east",)), SkillTexts("between", ("east", "north"))))
BARE = Profile("bare", "west", ())


def space(*profiles: Profile) -> Space:
    return Space(profiles, KEPT, weighs_rarity=False, own_share=0.5)


def test_each_skill_and_each_card_has_its_own_cosine() -> None:
    asked = KEPT[text_hash("north-east")]
    cosines = space(COMPASS, BARE).cosines(asked)
    half = pytest.approx(0.5**0.5)
    assert cosines == {
        ("compass", None): half,
        ("compass", "right"): half,
        ("compass", "between"): pytest.approx(1.0),
        ("bare", None): pytest.approx(-(0.5**0.5)),
    }
    assert cosines["bare", None] == pytest.approx(cosine(asked, KEPT[text_hash("west")]))


def test_nothing_is_compared_with_no_cards_or_with_no_skills() -> None:
    assert space().cosines(KEPT[text_hash("east")]) == {}
    assert space(BARE).cosines(KEPT[text_hash("west")]) == {("bare", None): 1.0}


def test_a_text_without_words_is_like_nothing() -> None:
    assert set(space(COMPASS, BARE).cosines(np.zeros(2, dtype=np.float32)).values()) == {0.0}


def test_only_counted_cards_say_how_rare_a_feature_is() -> None:
    asked = KEPT[text_hash("north-east")]
    other = Profile("other", "north", ())

    def found(*profiles: Profile) -> float:
        whole = Space(profiles, KEPT, weighs_rarity=True, own_share=0.5, counted={"compass"})
        return whole.cosines(asked)["compass", "right"]

    assert found(COMPASS) == found(COMPASS, other) == found(COMPASS, other, BARE)
    uncounted = Space((COMPASS, other), KEPT, weighs_rarity=True, own_share=0.5).cosines(asked)
    assert uncounted["compass", "right"] != pytest.approx(found(COMPASS))


def test_the_first_of_equally_good_skills_is_named() -> None:
    twins = Profile("twins", "north", (SkillTexts("one", ("east",)), SkillTexts("other", ("east",))))
    results = space(BARE, twins, COMPASS).likeness(KEPT[text_hash("east")])
    assert {name: entry.skill for name, entry in results.items()} == {"bare": None, "twins": "one", "compass": "right"}


def test_a_card_is_what_it_says_all_its_skills_and_the_best_of_them() -> None:
    whole = Space((COMPASS, BARE), KEPT, weighs_rarity=False, own_share=0.2, card_share=0.3)
    results = whole.likeness(KEPT[text_hash("east")])
    skills = np.array([[1.0, 0.0], [0.5**0.5, 0.5**0.5]])
    together = float((skills.mean(axis=0) / np.linalg.norm(skills.mean(axis=0)))[0])

    assert results["compass"].semantic == pytest.approx(0.2 * 0.0 + 0.3 * together + 0.5 * 1.0)
    assert results["bare"].semantic == pytest.approx(-1.0)
    own, card, best = whole.compared(KEPT[text_hash("east")])
    assert (own[0], card[0], best[0]) == pytest.approx((0.0, together, 1.0))


def test_likeness_is_that_of_each_card_alone() -> None:
    chance = np.random.default_rng(1)
    texts = [f"text {number}" for number in range(120)]
    kept = dict(zip(map(text_hash, texts), chance.standard_normal((len(texts), 8)).astype(np.float32), strict=True))
    left, profiles = iter(texts), []
    for number in range(20):
        skills = tuple(SkillTexts(f"skill-{name}", (next(left), next(left))) for name in range(number % 4))
        profiles.append(Profile(f"card-{number}", next(left), skills))
    asked = chance.standard_normal(8).astype(np.float32)

    together = Space(profiles, kept, weighs_rarity=False, own_share=0.35).likeness(asked)
    assert list(together) == [profile.specialist for profile in profiles]
    for profile in profiles:
        (entry,) = Space([profile], kept, weighs_rarity=False, own_share=0.35).likeness(asked).values()
        assert together[profile.specialist].skill == entry.skill
        assert together[profile.specialist].semantic == pytest.approx(entry.semantic, abs=1e-6)
