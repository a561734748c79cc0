"""What is fitted on a labelled set: the same decisions as routing makes, and parameters that the set can tell."""

import random

import pytest

from claudomator_py.domain.card import Card, Skill
from claudomator_py.embed import Hashed
from claudomator_py.lab.evaluation import evaluate
from claudomator_py.lab.fitting import MIN_TASKS, fit
from claudomator_py.lab.labelled_set import Case
from claudomator_py.routing.calibration import SHIPPED, Calibration, Weights
from claudomator_py.routing.profile import Request

ENCODER = Hashed()
START = SHIPPED[ENCODER.id]
WORDS = {
    "cook": ["soup", "onion", "kettle", "stew", "pepper", "oven", "broth", "ladle", "roast", "simmer"],
    "smith": ["iron", "hammer", "anvil", "nail", "forge", "horseshoe", "rivet", "bellows", "tongs", "steel"],
    "tailor": ["cloth", "needle", "thread", "seam", "button", "sleeve", "hem", "pattern", "wool", "collar"],
}
EVERYBODYS = [word for words in WORDS.values() for word in words]
NOBODYS = ["planet", "orbit", "comet", "moon", "eclipse", "galaxy", "star", "rocket", "crater", "nebula"]
CARDS = [
    Card(
        id=name,
        description=f"Works with {words[0]} and {words[1]}.",
        keywords=(words[2],),
        skills=(Skill(id="one", name=words[3], examples=(" ".join(words[:5]), " ".join(words[4:8]))),)
        if name != "tailor"
        else (),
        threshold=0.05 if name == "tailor" else None,
    )
    for name, words in WORDS.items()
]


def cases(number: int, *, named: bool, nobody: bool = True) -> list[Case]:
    chance, cases = random.Random(1), []
    for at in range(number):
        label = ("cook", "smith", "tailor", None)[at % (4 if nobody else 3)]
        words = NOBODYS if label is None else WORDS[label]
        text = " ".join([*chance.sample(words, 3), *chance.sample(EVERYBODYS, 2), "please"])
        name = " ".join(chance.sample(words, 2)) if named and at % 8 < 4 else ""
        expected = frozenset[str]() if label is None else frozenset({label})
        cases.append(Case(f"case-{at}", Request(text, name), expected))
    return cases


OF_RUNS = dict.fromkeys(("handoff_validity", "authority_expansion", "loop_rate", "completion_rate"))
"""What is told of runs, which no threshold changes, is measured by an evaluation alone."""


@pytest.mark.parametrize(
    "start",
    [
        START,
        Calibration(encoder="x", threshold=0.25, margin=0.05, weights=Weights(semantic=0.8, keyword=0.1)),
        START.model_copy(update={"own_share": 1.0, "card_share": 0.0, "margin": 0.3}),
    ],
)
def test_its_figures_are_those_of_routing_itself(start: Calibration) -> None:
    labelled = cases(160, named=True)
    result = fit(CARDS, labelled, ENCODER, start)
    for calibration, figures in ((start, result.before), (result.calibration, result.in_sample)):
        routed, _ = evaluate(CARDS, labelled, ENCODER, calibration, lambda: 0)
        assert (
            routed.model_copy(
                update={"latency_ms": None, "baselines": {}, "per_specialist": {}, "wrong": (), **OF_RUNS}
            )
            == figures
        )


def test_a_threshold_that_lets_everything_through_is_moved() -> None:
    start = START.model_copy(update={"threshold": 0.0})
    result = fit(CARDS, cases(160, named=True), ENCODER, start)
    assert result.kept == ()
    assert result.calibration.threshold > 0
    before, after = result.before.oos_recall, result.in_sample.oos_recall
    assert before is not None
    assert after is not None
    assert before < 0.1 < 0.5 < after
    accuracy_with_none = [entry.accuracy_with_none for entry in (result.before, result.expected, result.in_sample)]
    assert accuracy_with_none == sorted(entry for entry in accuracy_with_none if entry is not None)


def test_without_a_task_for_nobody_thresholds_stay() -> None:
    result = fit(CARDS, cases(60, named=True, nobody=False), ENCODER, START)
    assert result.kept == ("threshold",)
    assert result.calibration.threshold == START.threshold


def test_cards_that_have_to_be_ahead_are_fitted_so() -> None:
    cards = [card.model_copy(update={"lead": 0.5}) for card in CARDS]
    labelled = cases(160, named=True)
    result = fit(cards, labelled, ENCODER, START)
    routed, _ = evaluate(cards, labelled, ENCODER, result.calibration, lambda: 0)
    assert routed.accuracy_with_none == pytest.approx(result.in_sample.accuracy_with_none, abs=0.01)


def test_the_same_set_in_another_order_gives_the_same_fit() -> None:
    labelled = cases(120, named=True)
    assert fit(CARDS, labelled, ENCODER, START) == fit(CARDS[::-1], labelled[::-1], ENCODER, START)


def test_too_small_a_set_is_refused() -> None:
    few = [*cases(MIN_TASKS - 1, named=False), Case("without a label", Request("iron"))]
    with pytest.raises(ValueError, match=f"has {MIN_TASKS - 1} labelled tasks"):
        fit(CARDS, few, ENCODER, START)
    with pytest.raises(ValueError, match="no cards"):
        fit([], cases(MIN_TASKS, named=False), ENCODER, START)
