"""Decisions, figures and cards in the words of the pages."""

import pytest

from claudomator_py.domain.card import Registration
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.resources.routing import (
    CorrectionView,
    LearnedView,
    RouteCandidateView,
    RouteView,
    RoutingFiguresView,
    RoutingGapView,
    RoutingSignalView,
    RoutingStatsView,
    StandingView,
)
from claudomator_py.resources.routing.page import NOBODY, corrections_of, figures_of, route_of, standings_of
from claudomator_py.resources.specialists.page_model import page_of
from claudomator_py.resources.specialists.service import view
from tests.fakes.cards import card

AT = "2026-09-21T14:13:20.000Z"


def test_a_candidate_has_what_its_score_is_made_of_and_what_it_lacks() -> None:
    parts = {"semantic": 0.25, "top_example": -0.0125}
    chosen = RouteCandidateView(specialist="a", skill="s", score=1.25, parts=parts, tie_break=0.05)
    other = RouteCandidateView(specialist="b", score=-0.5, rejected="a weaker match", needs=1.75)
    shown = route_of(RouteView(route="specialist", reason="r", threshold=0.3, candidates=(chosen, other)))
    assert shown.threshold == "0.300"
    first, second = shown.candidates
    assert first.parts == (("semantic", "0.250"), ("top example", "-0.013"), ("tie break", "+ 0.050"))
    assert (first.score, first.share, first.needs, first.verdict, first.picked) == (
        "1.250",
        "1.000",
        None,
        "chosen",
        True,
    )
    assert (second.score, second.share, second.needs, second.verdict) == ("-0.500", "0.000", "1.750", "a weaker match")
    assert (second.picked, second.url, second.parts) == (False, "/specialists/b", ())


def test_figures_without_anything_to_tell_by_are_empty() -> None:
    shown = figures_of(RoutingStatsView(days=1, total=RoutingFiguresView(decisions=0)))
    assert shown.summary == "Nothing was routed in a day."
    assert (shown.total.confidence, shown.total.overridden, shown.total.answer) == ("", "", "")
    assert [(words, chosen) for words, _, chosen in shown.spans] == [
        ("a day", True),
        ("7 days", False),
        ("30 days", False),
        ("90 days", False),
    ]


def test_figures_in_words() -> None:
    total = RoutingFiguresView(
        decisions=1_234, confidence=0.456, overridden=0.125, failed=0.5, answer_chars=2_345.6, performance=0.5
    )
    nobody = total.model_copy(update={"decisions": 1, "topic": "leaks"})
    shown = figures_of(
        RoutingStatsView(
            days=30,
            total=total,
            specialists=(total.model_copy(update={"specialist": "plumber"}), nobody),
            topics=(nobody,),
            sampled=1,
            gaps=(RoutingGapView(decisions=2, confidence=0.1, tasks=("a", "b")),),
            signals=(RoutingSignalView(signal="tie_break", decisions=4, decided=3, right=2, wrong=1),),
        )
    )
    assert shown.summary == ("1,234 decisions in 30 days, with a mean confidence of 0.46, 12% overridden, 50% failed.")
    plumber, other = shown.specialists
    assert plumber.who is not None
    assert other.who is not None
    assert (plumber.who.url, other.who.name, other.who.url) == ("/specialists/plumber", NOBODY, None)
    assert (plumber.decisions, plumber.answer, plumber.performance) == ("1,234", "2,346", "0.50")
    assert (shown.topics[0].who, shown.topics[0].topic, shown.sampled) == (None, "leaks", "1 decision")
    (gap,) = shown.gaps
    assert (gap.who.name, gap.tasks, gap.confidence) == (NOBODY, "a, b", "0.10")
    (signal,) = shown.signals
    assert (signal.name, signal.decisions, signal.decided, signal.right, signal.wrong) == ("tie break", *"4321")


def test_what_was_learned_of_one_is_told_of_it_alone_altogether_first() -> None:
    def standing(specialist: str, topic: str | None) -> StandingView:
        return StandingView(specialist=specialist, topic=topic, performance=0.55, positive=2, negative=1, updated_at=AT)

    known = LearnedView(standings=(standing("a", "zinc"), standing("a", None), standing("b", None)))
    assert [(one.topic, one.performance) for one in standings_of(known, "a")] == [("all", "0.55"), ("zinc", "0.55")]


def test_corrections_are_those_from_it_and_to_it() -> None:
    given = [("a", "b"), (None, "a"), ("b", "c")]
    views = [CorrectionView(specialist=one, wanted=wanted, tasks=1, last_at=AT) for one, wanted in given]
    assert len(corrections_of(views)) == 3
    assert [(one.given_by.name, one.wanted.name) for one in corrections_of(views, "a")] == [("a", "b"), (NOBODY, "a")]


@pytest.mark.parametrize(
    ("visibility", "organisation", "words"),
    [
        ("public", "acme", "Everyone can see and use it."),
        ("shared", "acme", "Everyone in acme, and everyone with a grant, can see and use it."),
        ("shared", None, "Everyone without an organisation, and everyone with a grant, can see and use it."),
        ("private", "acme", "Only its creator, ann, can see and use it."),
    ],
)
def test_for_whom_a_specialist_exists(visibility: str, organisation: str | None, words: str) -> None:
    registration = Registration(
        card=card("plumber", visibility=visibility), creator="ann", organisation=organisation, source="api"
    )
    assert page_of(view(registration, OPERATOR)).exists_for == words
