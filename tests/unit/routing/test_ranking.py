"""From a task to a decision on who does it."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.domain.card import Card
from claudomator_py.domain.rationale import RationaleCode, rationale
from claudomator_py.domain.routing import Risk
from claudomator_py.risk import assess
from claudomator_py.routing.calibration import CLASSIC, Calibration, Weights
from claudomator_py.routing.lessons import (
    SpecialistStats,
    Votes,
)
from claudomator_py.routing.profile import Likeness, Request
from claudomator_py.routing.ranking import (
    MAX_CANDIDATES,
    Needs,
    RoutingRules,
    close_of,
    decide,
    picked,
    rank,
    topic_of,
    unless_vague,
)
from claudomator_py.scheduler.records import Route, SpecialistRecord
from claudomator_py.schema.routing_settings import OnAmbiguity, OnVague

GPU = {"capabilities": ["gpu"]}
PLAIN = Calibration(encoder="e", threshold=0.3, margin=0.05, tie_break=Weights(semantic=0.0, performance=0.05))

WIDE = PLAIN.model_copy(update={"margin": 0.0605})


def card(specialist: str, **fields: Any) -> Card:
    return Card.model_validate({"id": specialist, "description": f"Does {specialist}.", **fields})


def decided(scores: dict[str, float], rules: RoutingRules, **more: Any) -> SpecialistRecord:
    cards = {name: card(name, **more.pop(name.replace("-", "_"), {})) for name in scores}
    likeness = {name: Likeness(score, None) for name, score in scores.items()}
    standings = more.pop("standings", {})
    ranked = rank(Request("do it"), list(cards.values()), likeness, rules.calibration, standings=standings)
    return decide(ranked, cards, rules, **more)


def test_words_count_beside_what_they_mean() -> None:
    calibration = Calibration(encoder="meaning", weights=Weights(semantic=0.6, words=0.4), threshold=0.2)
    likeness = {"one": Likeness(0.5, None), "other": Likeness(0.4, None)}

    ranked = rank(
        Request("x"), [card("one"), card("other")], likeness, calibration, words={"other": Likeness(0.3, None)}
    )

    assert [(result.specialist, result.parts) for result in ranked] == [
        ("other", {"semantic": 0.24, "words": 0.12}),
        ("one", {"semantic": 0.3, "words": 0.0}),
    ]


@pytest.mark.parametrize(("score", "route"), [(0.25, Route.CLARIFY), (0.26, Route.SPECIALIST)])
def test_a_vague_task_goes_to_somebody_only_if_it_is_very_much_like_something(score: float, route: Route) -> None:
    rules = RoutingRules(Calibration(encoder="e", threshold=0.16), default="generalist", on_vague=OnVague.ASK)
    record = decided({"one": score}, rules)

    assert record.route is Route.SPECIALIST
    assert unless_vague(record, assess("fix it please"), rules).route is route
    assert unless_vague(record, assess("fix the boiler please"), rules) == record
    unasked = unless_vague(record, assess("fix it please"), replace(rules, on_vague=OnVague.DEFAULT))
    to_default = route is Route.CLARIFY
    assert unasked.specialist == ("generalist" if to_default else "one")
    assert (unasked.reason.code is RationaleCode.VAGUE) is to_default


@pytest.mark.parametrize(("second", "route"), [(0.31, Route.DEFAULT), (0.29, Route.SPECIALIST)])
def test_a_role_gets_what_is_clearly_its_own(second: float, route: Route) -> None:
    rules = RoutingRules(PLAIN, default="generalist")
    record = decided({"one": 0.45, "other": second}, rules, one={"lead": 0.5})
    assert record.route is route
    if route is Route.DEFAULT:
        assert (record.specialist, record.reason.code) == ("generalist", RationaleCode.AMBIGUOUS)
        risky = decided({"one": 0.45, "other": second}, rules, one={"lead": 0.5}, needs=Needs(Risk.MEDIUM))
        assert (risky.route, risky.specialist) == (Route.SPECIALIST, "one"), "what carries risk goes to whom it matches"
        seen = decided({"one": 0.45, "other": second}, rules, one={"lead": 0.5}, needs=Needs(Risk.HIGH, approved=True))
        allowed = decided(
            {"one": 0.45, "other": second}, rules, one={"lead": 0.5}, needs=Needs(Risk.HIGH, permitted=True)
        )
        assert seen.specialist == allowed.specialist == "generalist"
        chosen = replace(rules, on_ambiguity=OnAmbiguity.SIGNALS)
        assert decided({"one": 0.45, "other": second}, chosen, one={"lead": 0.5}).specialist == "one"


def test_the_default_specialist_is_no_rival() -> None:
    record = decided({"one": 0.45, "generalist": 0.44}, RoutingRules(PLAIN, default="generalist"), one={"lead": 0.5})
    assert record.specialist == "one"


@pytest.mark.parametrize(
    ("semantic", "keyword", "score"),
    [(0.362, True, 0.467), (0.289, False, 0.273), (0.241, False, 0.245), (0.198, False, 0.219)],
)
def test_the_classic_blend(semantic: float, keyword: bool, score: float) -> None:
    entry = card("one", keywords=["login page"] if keyword else ["logout page"])

    (ranked,) = rank(Request("Fix the login page"), [entry], {"one": Likeness(semantic, None)}, CLASSIC)

    assert ranked.score == pytest.approx(score, abs=0.0005)
    assert sum(ranked.parts.values()) == pytest.approx(ranked.score, abs=1e-6)
    assert (decide([ranked], {"one": entry}, RoutingRules(CLASSIC)).route is Route.SPECIALIST) is (score >= 0.3)


def test_what_is_of_more_risk_only_because_it_cannot_be_read_goes_to_the_default() -> None:
    rules = RoutingRules(PLAIN, default="generalist")
    assert decided({"writer": 0.29}, rules, needs=Needs(Risk.MEDIUM, unread=True)).specialist == "generalist"
    assert decided({"writer": 0.29}, rules, needs=Needs(Risk.HIGH, unread=True)).route is Route.CLARIFY
    careful = decided({"writer": 0.9}, rules, needs=Needs(Risk.MEDIUM, unread=True), writer={"risk_ceiling": "low"})
    assert careful.specialist != "writer"


@pytest.mark.parametrize(
    ("risk", "route", "specialist"),
    [
        (None, Route.DEFAULT, "generalist"),
        (Risk.LOW, Route.DEFAULT, "generalist"),
        (Risk.MEDIUM, Route.CLARIFY, None),
        (Risk.HIGH, Route.CLARIFY, None),
    ],
)
def test_below_the_threshold_only_low_risk_goes_to_the_default(
    risk: Risk | None, route: Route, specialist: str | None
) -> None:
    record = decided({"writer": 0.29}, RoutingRules(PLAIN, default="generalist"), needs=Needs(risk))

    assert (record.route, record.specialist) == (route, specialist)
    assert record.reason.code is RationaleCode.NO_MATCH
    assert (record.confidence, record.threshold) == (0.29, 0.3)


def test_who_may_not_take_the_risk_or_lacks_a_capability_is_left_out_and_the_next_does_it() -> None:
    rules = RoutingRules(PLAIN)
    careful = decided({"a": 0.9, "b": 0.5}, rules, needs=Needs(Risk.MEDIUM), a={"risk_ceiling": "low"})
    able = decided({"a": 0.9, "b": 0.5}, rules, needs=Needs(capabilities=("gpu",)), b=GPU)

    assert [careful.specialist, able.specialist] == ["b", "b"]
    rejected = [record.specialist_candidates[0].rejected for record in (careful, able)]
    assert [entry and entry.code for entry in rejected] == [RationaleCode.TOO_RISKY, RationaleCode.LACKS]


def test_whom_a_rule_keeps_from_it_does_it_in_no_way() -> None:
    rules, needs = RoutingRules(PLAIN, default="g"), Needs(excluded=frozenset({"a", "g"}))

    next_ = decided({"a": 0.9, "b": 0.5}, rules, needs=needs)
    assert next_.specialist == "b"
    assert next_.specialist_candidates[0].rejected == rationale(RationaleCode.EXCLUDED)
    by_default = decided({"a": 0.9, "b": 0.2, "g": 0.1}, rules, needs=needs)
    assert (by_default.route, by_default.specialist, by_default.confidence) == (Route.DEFAULT, None, 0.2)


def test_a_card_may_ask_for_a_threshold_of_its_own() -> None:
    assert decided({"a": 0.5}, RoutingRules(PLAIN), a={"threshold": 0.6}).route is Route.DEFAULT
    assert decided({"a": 0.2}, RoutingRules(PLAIN), a={"threshold": 0.1}).specialist == "a"


@pytest.mark.parametrize(
    ("how", "specialist", "route"),
    [
        (OnAmbiguity.BEST, "a", Route.SPECIALIST),
        (OnAmbiguity.SIGNALS, "b", Route.SPECIALIST),
        (OnAmbiguity.CLARIFY, None, Route.CLARIFY),
    ],
)
def test_within_the_margin_the_configuration_says_what_decides(
    how: OnAmbiguity, specialist: str | None, route: Route
) -> None:
    standings = {("b", ""): SpecialistStats(performance=1.0), ("c", ""): SpecialistStats(performance=1.0)}

    rules = RoutingRules(PLAIN, on_ambiguity=how)
    record = decided({"a": 0.52, "b": 0.51, "c": 0.4}, rules, standings=standings)

    assert (record.specialist, record.route) == (specialist, route)


@pytest.mark.parametrize(
    ("signal", "specialist", "why"), [("a", "a", RationaleCode.BEST_MATCH), ("b", "b", RationaleCode.TIE_BREAK)]
)
def test_signals_are_the_reason_only_if_they_choose_another_than_likeness_does(
    signal: str, specialist: str, why: RationaleCode
) -> None:
    rules = RoutingRules(PLAIN, on_ambiguity=OnAmbiguity.SIGNALS)
    record = decided({"a": 0.52, "b": 0.51}, rules, standings={(signal, ""): SpecialistStats(performance=1.0)})

    assert (record.specialist, record.reason.code) == (specialist, why)
    (other,) = (
        specialist_candidate.rejected
        for specialist_candidate in record.specialist_candidates
        if specialist_candidate.rejected is not None
    )
    assert other.code is RationaleCode.AS_GOOD


def test_a_model_picks_one_of_those_as_good_as_the_best() -> None:
    cards = {name: card(name) for name in ("a", "b", "c", "d")}
    scores = {"a": 0.52, "b": 0.51, "c": 0.4, "d": 0.1}
    likeness = {name: Likeness(score, f"skill-{name}") for name, score in scores.items()}
    rules = RoutingRules(PLAIN, on_ambiguity=OnAmbiguity.CLASSIFIER)
    record = decide(rank(Request("do it"), list(cards.values()), likeness, PLAIN), cards, rules)
    assert close_of(record) == ("a", "b")

    other = picked(record, "b", "lite/1")

    assert (other.specialist, other.skill, other.confidence) == ("b", "skill-b", 0.51)
    assert other.reason == rationale(RationaleCode.PICKED, specialists=("a", "b"), specialist="b")
    assert other.versions.classifier == "lite/1"
    assert {
        specialist_candidate.specialist: specialist_candidate.rejected and specialist_candidate.rejected.code
        for specialist_candidate in other.specialist_candidates
    } == {
        "a": RationaleCode.AS_GOOD,
        "b": None,
        "c": RationaleCode.LESS_ALIKE,
        "d": RationaleCode.BELOW_THRESHOLD,
    }


def test_there_is_nothing_to_pick_where_a_person_is_asked() -> None:
    asking = decided({"a": 0.52, "b": 0.51}, RoutingRules(PLAIN, on_ambiguity=OnAmbiguity.CLARIFY))
    assert (asking.route, close_of(asking)) == (Route.CLARIFY, ())


@pytest.mark.parametrize(
    ("likeness", "topic"),
    [
        ({"a": (0.5, "taps"), "b": (0.7, "roofs"), "gone": (0.9, "roads")}, "roofs"),
        ({"b": (0.5, "roofs"), "a": (0.5, "taps")}, "taps"),
        ({"a": (0.5, None), "b": (0.4, "roofs")}, None),
        ({}, None),
    ],
)
def test_a_task_is_about_the_skill_that_is_most_like_it(
    likeness: dict[str, tuple[float, str | None]], topic: str | None
) -> None:
    alike = {name: Likeness(*texts) for name, texts in likeness.items()}
    assert topic_of([card("a"), card("b"), card("c")], alike) == topic


def test_where_there_is_nobody_nobody_in_particular_does_it() -> None:
    record = decided({}, RoutingRules(PLAIN))

    assert (record.route, record.specialist, record.confidence) == (Route.DEFAULT, None, None)
    assert (record.reason.code, record.reason.params.specialist) == (RationaleCode.NO_MATCH, None)


def test_who_gets_it_by_default_is_not_also_called_the_closest() -> None:
    rules = RoutingRules(PLAIN, default="g")
    assert decided({"g": 0.2, "w": 0.1}, rules).reason.params.specialist is None
    assert decided({"g": 0.1, "w": 0.2}, rules).reason.params.specialist == "w"


def test_the_bounds_belong_to_what_they_bound() -> None:
    bounds = PLAIN.model_copy(update={"threshold": 0.5, "margin": 0.25})
    asks = RoutingRules(bounds, on_ambiguity=OnAmbiguity.CLARIFY)

    assert decided({"a": 0.5}, asks).specialist == "a", "as much as is asked for is enough"
    near = decided({"a": 0.75, "b": 0.5}, asks)
    assert near.reason.params.specialists == ("a", "b"), "at the margin and at the threshold it is close"
    far = decided({"a": 0.75, "b": 0.49}, asks)
    assert far.specialist == "a", "nobody below the threshold is"
    payload = {
        specialist_candidate.specialist: specialist_candidate.rejected and specialist_candidate.rejected.code
        for specialist_candidate in far.specialist_candidates
    }
    assert payload == {"a": None, "b": RationaleCode.BELOW_THRESHOLD}
    payload = {
        specialist_candidate.specialist: specialist_candidate.rejected and specialist_candidate.rejected.code
        for specialist_candidate in decided({"a": 0.9, "b": 0.5}, asks).specialist_candidates
    }
    assert payload == {"a": None, "b": RationaleCode.LESS_ALIKE}


def test_below_the_threshold_nobody_gets_it_by_default_who_lacks_what_it_requires() -> None:
    rules = RoutingRules(PLAIN, default="g")
    record = decided({"w": 0.2, "g": 0.1}, rules, needs=Needs(Risk.LOW, ("gpu",)), w=GPU)

    assert (record.route, record.specialist) == (Route.CLARIFY, None)
    assert (record.reason.code, record.reason.params.specialist) == (RationaleCode.NO_MATCH, "w")
    nobody = decided({"w": 0.2}, RoutingRules(PLAIN))
    assert (nobody.route, nobody.specialist) == (Route.DEFAULT, None)


def test_a_tie_break_chooses_nobody_below_the_threshold_or_below_one_of_their_own() -> None:
    standings = {("b", ""): SpecialistStats(performance=1.0), ("c", ""): SpecialistStats(performance=1.0)}

    record = decided({"a": 0.31, "b": 0.29, "c": 0.3}, RoutingRules(PLAIN), standings=standings, c={"threshold": 0.9})

    assert record.specialist == "a"


def test_the_default_specialist_has_what_is_required_or_a_person_is_asked() -> None:
    record = decided({"g": 0.1}, RoutingRules(PLAIN, default="g"), needs=Needs(capabilities=("gpu",)))

    assert (record.route, record.specialist) == (Route.CLARIFY, None)
    assert record.required_capabilities == ("gpu",)
    assert record.reason.code is RationaleCode.NONE_MAY
    able = decided({"g": 0.1}, RoutingRules(PLAIN, default="g"), needs=Needs(Risk.LOW, ("gpu",)), g=GPU)
    assert (able.route, able.specialist) == (Route.DEFAULT, "g")


@given(st.dictionaries(st.sampled_from("abcdef"), st.floats(-1, 1), min_size=1), st.permutations("abcdef"))
def test_the_order_of_cards_changes_nothing(scores: dict[str, float], order: list[str]) -> None:
    rules = RoutingRules(PLAIN, default="generalist")
    shuffled = {name: scores[name] for name in order if name in scores}
    assert decided(scores, rules) == decided(shuffled, rules)


@given(st.dictionaries(st.sampled_from("abcdef"), st.floats(-1, 1), min_size=1))
def test_only_who_does_it_is_not_rejected(scores: dict[str, float]) -> None:
    record = decided(scores, RoutingRules(PLAIN))
    kept = [
        specialist_candidate.specialist
        for specialist_candidate in record.specialist_candidates
        if specialist_candidate.rejected is None
    ]
    assert kept == ([] if record.route is Route.DEFAULT else [record.specialist])


def test_of_a_great_many_the_record_tells_of_the_best_and_of_whoever_was_near() -> None:
    scores = {f"card-{number:03}": 0.9 - number / 1_000 for number in range(MAX_CANDIDATES + 30)}
    record = decided(scores, RoutingRules(WIDE), needs=Needs(Risk.HIGH), card_000={"risk_ceiling": "low"})
    specialist = [specialist_candidate.specialist for specialist_candidate in record.specialist_candidates]
    near = [name for name, score in scores.items() if score >= scores["card-001"] - WIDE.margin]
    assert record.specialist == "card-001"
    assert len(near) > MAX_CANDIDATES
    assert specialist == ["card-000", *near[1:]]
    narrow = decided(scores, RoutingRules(PLAIN.model_copy(update={"margin": 0.0})))
    assert [specialist_candidate.specialist for specialist_candidate in narrow.specialist_candidates] == list(scores)[
        :MAX_CANDIDATES
    ]


def test_somebody_far_behind_those_who_may_not_is_told_of() -> None:
    scores = {f"card-{number:03}": 0.9 - number / 1_000 for number in range(MAX_CANDIDATES + 5)}
    barred = {f"card_{number:03}": {"risk_ceiling": "low"} for number in range(MAX_CANDIDATES + 2)}
    record = decided(scores, RoutingRules(PLAIN.model_copy(update={"margin": 0.0})), needs=Needs(Risk.HIGH), **barred)
    assert record.specialist == f"card-{MAX_CANDIDATES + 2:03}"
    assert [specialist_candidate.specialist for specialist_candidate in record.specialist_candidates][
        MAX_CANDIDATES:
    ] == [record.specialist]


def test_what_was_learned_is_the_reason_where_likeness_alone_is_not() -> None:
    cards = {name: card(name) for name in ("a", "b")}
    likeness = {"a": Likeness(0.5, None), "b": Likeness(0.4, None)}
    calibration = PLAIN.model_copy(update={"learned": 0.4})

    def reason(corrected: str = "b", **shares: float) -> RationaleCode:
        votes = Votes(shares, frozenset(corrected))
        ranked = rank(Request("do it"), list(cards.values()), likeness, calibration, votes=votes)
        return decide(ranked, cards, RoutingRules(calibration), votes=votes).reason.code

    assert reason() is RationaleCode.BEST_MATCH
    assert reason(a=0.5) is RationaleCode.BEST_MATCH
    assert reason(b=0.5) is RationaleCode.CORRECTED
    assert reason(b=0.5, corrected="") is RationaleCode.GONE_WELL
    assert reason(a=-0.5) is RationaleCode.BEST_MATCH, "nobody was said to be wanted"


def test_whose_likeness_alone_is_just_enough_is_chosen_for_that() -> None:
    cards, calibration = {"a": card("a")}, PLAIN.model_copy(update={"threshold": 0.01})
    ranked = rank(
        Request("do it"), list(cards.values()), {"a": Likeness(0.01, None)}, calibration, votes=Votes({"a": 0.05})
    )

    assert ranked[0].parts == {"semantic": 0.01, "learned": 0.02}
    assert decide(ranked, cards, RoutingRules(calibration)).reason.code is RationaleCode.BEST_MATCH


def test_what_was_learned_may_bring_somebody_over_the_threshold() -> None:
    cards, calibration = {"a": card("a")}, PLAIN.model_copy(update={"learned": 0.4})
    votes = Votes({"a": 1.0}, frozenset("a"))
    ranked = rank(Request("do it"), list(cards.values()), {"a": Likeness(0.1, None)}, calibration, votes=votes)

    specialist = decide(ranked, cards, RoutingRules(calibration), votes=votes)

    assert (specialist.specialist, specialist.reason.code) == ("a", RationaleCode.CORRECTED)
    assert specialist.specialist_candidates[0].parts == {"semantic": 0.1, "learned": 0.4}
