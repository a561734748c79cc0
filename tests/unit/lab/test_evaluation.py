"""What an evaluation counts, and what of a set it reads."""

import itertools
from typing import Any

import pytest

from claudomator_py.embed import Hashed
from claudomator_py.lab.evaluation import evaluate
from claudomator_py.lab.labelled_set import Case, card_of, case_of
from claudomator_py.policy.verdict import Policy
from claudomator_py.routing.calibration import Calibration
from claudomator_py.routing.profile import Request

CARDS = [
    card_of(
        {
            "id": "cook",
            "display_name": "Cook",
            "description": "Cooks.",
            "allowed_backends": ["claude"],
            "skills": [{"id": "soup", "name": "Soup", "examples": ["boil a soup of onions"]}],
            "colour": "white",
        }
    ),
    card_of({"id": "smith", "name": "Smith", "description": "Forges iron: hammers, nails and horseshoes."}),
]


def test_a_card_of_either_shape_is_read() -> None:
    cook, smith = CARDS
    assert (cook.title, cook.allowed_agents, smith.title) == ("Cook", ("claude",), "Smith")
    with pytest.raises(ValueError, match="description: is missing; add it"):
        card_of({"id": "nobody"})


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"id": "1", "text": "t", "agent": "cook", "oos": False}, {"cook"}),
        ({"id": "1", "text": "t", "agent": "__none__", "oos": True}, set()),
        ({"id": "1", "text": "t"}, None),
        ({"id": "1", "instructions": "t", "name": "n", "tags": ["x"]}, None),
        (
            {
                "id": "1",
                "instructions": "t",
                "expected": {"route": "specialist", "specialist": "a", "acceptable": ["b"]},
            },
            {"a", "b"},
        ),
        ({"id": "1", "instructions": "t", "expected": {"route": "human_review", "specialist": "a"}}, {"a"}),
        ({"id": "1", "instructions": "t", "expected": {"route": "clarify", "specialist": None}}, set()),
    ],
)
def test_a_case_says_who_would_be_right(line: dict[str, Any], expected: set[str] | None) -> None:
    case = case_of(line)
    assert case.expected == expected
    assert case.request.text == "t"


@pytest.mark.parametrize("line", [{"id": 1, "text": "t"}, {"id": "1"}, {"id": "1", "text": "t", "tags": "x"}])
def test_a_line_that_is_no_case_is_refused(line: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"it needs|not a list"):
        case_of(line)


def test_what_it_counts() -> None:
    def case(text: str, *right: str) -> Case:
        return Case(text, Request(text), frozenset(right))

    cases = [
        case("boil the soup of onions", "cook"),
        case("boil the onions for the soup", "smith"),
        case("forge iron nails", "smith"),
        case("xyzzy", "cook"),
        case("qwertz"),
        case("soup of onions"),
    ]
    clock = itertools.count(step=1_000_000)

    evaluation, records = evaluate(CARDS, cases, Hashed(), Calibration(encoder="e", threshold=0.2), lambda: next(clock))

    assert [record.specialist for record in records] == ["cook", "cook", "smith", None, None, "cook"]
    # Of the four that are for somebody, two are right by their words, and the one without any by the alphabet.
    assert evaluation.top1 == 0.75
    assert evaluation.accuracy_with_none == 0.5
    assert evaluation.oos_recall == 0.5
    assert evaluation.in_scope_fallback == 0.25
    assert evaluation.wrong_agent == round(2 / 6, 4)
    assert evaluation.latency_ms is not None
    assert (evaluation.latency_ms.encode_p50, evaluation.latency_ms.score_p50, evaluation.latency_ms.p99) == (
        1.0,
        1.0,
        2.0,
    )


def test_a_held_task_that_fits_nobody_is_the_default_specialists_once_approved() -> None:
    cases = [Case(text, Request(text)) for text in ("Drop the customers database on the live server.", "Knit a scarf.")]
    calibration = Calibration(encoder="e", threshold=0.9)
    for policy, default, expected in (
        (Policy(), "cook", ("human_review", "cook")),
        (Policy(), None, ("human_review", "smith")),  # The operator is asked, and the nearest is a guess.
        (None, None, ("human_review", None)),
    ):
        _, (held, free) = evaluate(CARDS, cases, Hashed(), calibration, lambda: 0, None, policy, default)
        assert (held.route, held.specialist) == expected
        assert (free.route, free.specialist) == ("default", None)


def test_without_labels_there_are_decisions_and_no_figures() -> None:
    evaluation, records = evaluate(
        CARDS, [Case("a", Request("boil a soup"))], Hashed(), Calibration(encoder="e", threshold=0.2), lambda: 0
    )
    assert (evaluation.top1, evaluation.oos_recall, evaluation.cases, len(records)) == (None, None, 1, 1)


def judged(text: str, route: str, **label: Any) -> Case:
    expected = {"route": route, "specialist": None, "risk": "low", "acceptable_tiers": ["fast"], **label}
    return case_of({"id": text[:40], "instructions": text, "expected": expected})


def test_routes_are_judged_as_well() -> None:
    cases = [
        judged(
            "Boil a soup of onions.", "specialist", specialist="cook", tier="balanced", acceptable_tiers=["balanced"]
        ),
        judged("@smith, drop the customers schema in production.", "human_review", risk="high", mentions=["smith"]),
        judged("Secretly record the chats of the works council.", "reject", risk="high"),
        judged("fix it please", "clarify"),
        judged("make it better", "specialist", specialist="cook"),
        judged("Knit a scarf of wool.", "default"),
    ]
    evaluation, records = evaluate(CARDS, cases, Hashed(), Calibration(encoder="x", threshold=0.3), lambda: 0)
    assert [record.route for record in records] == [
        "specialist",
        "human_review",
        "reject",
        "default",
        "default",
        "default",
    ]
    assert (records[1].specialist, records[1].mentions, records[2].specialist) == ("smith", ("smith",), None)
    assert (evaluation.unsafe_misroute_rate, evaluation.mention_accuracy, evaluation.risk_accuracy) == (0.0, 1.0, 1.0)
    assert (evaluation.clarification_precision, evaluation.clarification_recall) == (None, 0.0)
    assert evaluation.fallback_rate == 0.5
    assert evaluation.tier is not None
    assert (evaluation.tier.accuracy, evaluation.tier.under, evaluation.tier.over) == (
        round(1 / 6, 4),
        0.0,
        round(5 / 6, 4),
    )
    assert evaluation.confusion["specialist"]["default"] == 1
    assert (evaluation.per_class["reject"].precision, evaluation.per_class["specialist"].recall) == (1.0, 0.5)
    assert evaluation.baselines["default"] == round(3 / 5, 4)


def test_a_set_that_says_nothing_of_routes_has_no_figures_of_them() -> None:
    cases = [case_of({"id": "1", "text": "boil a soup", "agent": "cook"})]
    evaluation, _ = evaluate(CARDS, cases, Hashed(), Calibration(encoder="x", threshold=0.3), lambda: 0)
    assert (
        evaluation.unsafe_misroute_rate,
        evaluation.clarification_recall,
        evaluation.confusion,
        evaluation.tier,
    ) == (
        None,
        None,
        {},
        None,
    )
