"""What ``why`` says of who does a task, and to whom."""

from dataclasses import replace
from typing import Any

import pytest

from claudomator_py.domain.rationale import RationaleCode, rationale
from claudomator_py.resources.routing.service import specialist_sentences
from claudomator_py.scheduler.records import Route, SpecialistCandidate, SpecialistRecord

HIDDEN = "secret-agent"
ALL = frozenset({"writer", "editor", HIDDEN})
CANDIDATES = (
    SpecialistCandidate(specialist=HIDDEN, score=0.5),
    SpecialistCandidate(specialist="writer", score=0.4, rejected=rationale(RationaleCode.LESS_ALIKE)),
)


def record(route: Route, to: str | None, code: RationaleCode, **params: Any) -> SpecialistRecord:
    return SpecialistRecord(
        reason=rationale(code, **params),
        route=route,
        specialist=to,
        threshold=0.3,
        specialist_candidates=CANDIDATES,
    )


@pytest.mark.parametrize(
    "decided",
    [
        record(Route.SPECIALIST, HIDDEN, RationaleCode.BEST_MATCH, specialist=HIDDEN),
        record(Route.SPECIALIST, "writer", RationaleCode.TIE_BREAK, specialist="writer", chosen=HIDDEN),
        record(Route.DEFAULT, "writer", RationaleCode.NO_MATCH, specialist=HIDDEN),
        record(Route.CLARIFY, None, RationaleCode.AMBIGUOUS, specialists=("writer", HIDDEN)),
        record(Route.SPECIALIST, HIDDEN, RationaleCode.CONTINUED, specialist=HIDDEN),
        record(Route.SPECIALIST, HIDDEN, RationaleCode.BY_HAND, specialist=HIDDEN),
    ],
)
def test_nobody_is_named_who_does_not_exist_for_whoever_asks(decided: SpecialistRecord) -> None:
    assert HIDDEN in " ".join(specialist_sentences("task", decided, ALL))
    assert HIDDEN not in " ".join(specialist_sentences("task", decided, ALL - {HIDDEN}))


@pytest.mark.parametrize(
    ("score", "payload"), [(0.4, ["with 0.10 more"]), (0.494, ["with 0.01 more"]), (0.496, []), (0.5, [])]
)
def test_what_the_next_one_lacked_is_told_where_it_lacked_anything(score: float, payload: list[str]) -> None:
    decided = record(Route.SPECIALIST, HIDDEN, RationaleCode.BEST_MATCH, specialist=HIDDEN)
    next_one = replace(CANDIDATES[1], score=score)
    decided = decided.model_copy(update={"specialist_candidates": (CANDIDATES[0], next_one)})
    sentences = [
        specialist_sentence
        for specialist_sentence in specialist_sentences("task", decided, ALL)
        if "would have gone" in specialist_sentence
    ]
    assert sentences == [f"It would have gone to writer {lacked}." for lacked in payload]
