"""Decisions, figures and cards in the words of the pages."""

import re

import pytest

from claudomator_py.api.page.formatting import day_spans
from claudomator_py.api.page.rendering import render
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
from claudomator_py.resources.routing.page import RouteForm, corrections_of, figures_of, standings_of, summary_of
from claudomator_py.resources.specialists.page import exists_for
from claudomator_py.resources.specialists.service import view
from tests.fakes.cards import card
from tests.unit.api.page.conftest import text_of

AT = "2026-09-21T14:13:20.000Z"


def shown(template: str, **values: object) -> str:
    """The text of a page with these values."""
    none = {"asked": RouteForm(), "route": None, "refusal": None, "stats": None, "summary": "", "spans": ()}
    return text_of(render(template, {**none, "learned": LearnedView(), **values}))


def test_a_candidate_has_what_its_score_is_made_of_and_what_it_lacks() -> None:
    parts = {"semantic": 0.25, "top_example": -0.0125}
    chosen = RouteCandidateView(specialist="a", skill="s", score=1.25, parts=parts, tie_break=0.05)
    other = RouteCandidateView(specialist="b", score=-0.5, rejected="a weaker match", needs=1.75)
    route = RouteView(route="specialist", reason="r", threshold=0.3, candidates=(chosen, other))
    page = render("routing.html", {"asked": RouteForm(), "route": route, "refusal": None, "stats": None})
    text = text_of(page)
    assert "a s 1.250 semantic 0.250 top example -0.013 tie break + 0.050 chosen" in text
    assert "b -0.500 1.750 a weaker match" in text
    html = bytes(page.body).decode()
    assert re.findall(r'<meter min="0" max="1" value="([^"]*)"', html) == ["1.000", "0.000"]
    assert html.count("class=picked") == 1
    assert 'href="/specialists/b"' in html


def test_figures_without_anything_to_tell_by_are_empty() -> None:
    total = RoutingFiguresView(decisions=0)
    assert summary_of(RoutingStatsView(days=1, total=total)) == "Nothing was routed in a day."
    text = shown("routing.html", **figures_of(RoutingStatsView(days=1, total=total, specialists=(total.model_copy(),))))
    assert "Performance no specialist 0 all 0" in text
    assert [(words, chosen) for words, _, chosen in day_spans("/routing", 1, "figures")] == [
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
    stats = RoutingStatsView(
        days=30,
        total=total,
        specialists=(total.model_copy(update={"specialist": "plumber"}), nobody),
        topics=(nobody,),
        sampled=1,
        gaps=(RoutingGapView(decisions=2, confidence=0.1, tasks=("a", "b")),),
        signals=(RoutingSignalView(signal="tie_break", decisions=4, decided=3, right=2, wrong=1),),
    )
    assert summary_of(stats) == (
        "1,234 decisions in 30 days, with a mean confidence of 0.46, 12% overridden, 50% failed."
    )
    text = shown("routing.html", **figures_of(stats))
    assert "plumber 1,234 0.46 12% 50% 2,346 chars 0.50" in text
    assert "no specialist 1 0.46" in text
    assert "leaks 1 0.46" in text
    assert "Of the newest 1 decision." in text
    assert "2 0.10 no specialist a, b" in text
    assert "tie break 4 3 2 1" in text


def test_what_was_learned_of_one_is_told_of_it_alone_altogether_first() -> None:
    def standing(specialist: str, topic: str | None) -> StandingView:
        return StandingView(specialist=specialist, topic=topic, performance=0.55, positive=2, negative=1, updated_at=AT)

    known = LearnedView(standings=(standing("a", "zinc"), standing("a", None), standing("b", None)))
    assert [(entry.specialist, entry.topic) for entry in standings_of(known, "a")] == [("a", None), ("a", "zinc")]


def test_corrections_are_those_from_it_and_to_it() -> None:
    given = [("a", "b"), (None, "a"), ("b", "c")]
    views = tuple(CorrectionView(specialist=entry, wanted=wanted, tasks=1, last_at=AT) for entry, wanted in given)
    learned = LearnedView(corrections=views)
    assert corrections_of(learned, "a") == list(views[:2])
    figures = figures_of(RoutingStatsView(days=1, total=RoutingFiguresView(decisions=0)))
    text = shown("routing.html", **figures, learned=learned)
    assert "a b 1" in text
    assert "no specialist a 1" in text


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
    assert exists_for(view(registration, OPERATOR)) == words
