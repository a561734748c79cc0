"""Decisions that 0.1 has stored, in words: they are shown as they were."""

from typing import Any

from claudomator_py.resources.decisions import DecisionView
from claudomator_py.resources.decisions.sentences import decision_sentences
from claudomator_py.resources.decisions.service import view_of
from claudomator_py.scheduler.records import DecisionRecord
from claudomator_py.store.decision_log import Recorded
from claudomator_py.store.tables import Decision
from tests.fakes.decisions import placement_of

AT = 1_790_000_000_000
_SEEN = {"active": 0, "max_concurrent": 2, "limited": False, "limited_until": None, "eligible": True}
STORED = {
    "agent": "one",
    "tier": "fast",
    "model": "small",
    "reason": "least active",
    "classification": {"source": "default"},
    "candidates": [
        {**_SEEN, "agent": "one", "rejected_because": None},
        {**_SEEN, "agent": "two", "rejected_because": "as active as one, and comes after it in the alphabet"},
        {
            **_SEEN,
            "agent": "three",
            "limited": True,
            "limited_until": AT + 60_000,
            "limit": "5h window, reported",
            "rejected_code": "limited",
            "rejected_because": "limited (5h window, reported)",
        },
    ],
    "overridden_hint": "three: three was limited (5h window, reported)",
    "overridden": {"agent": "three", "why": "three was limited (5h window, reported)"},
}


def shown(stored: dict[str, Any]) -> DecisionView:
    """The decision that was stored so."""
    row = Decision(id="d", kind="placement", run_id="r", task_id="t", at_ms=AT, data=stored)
    return view_of(Recorded(row, None, None, None, overridden=False, route=None, run=None), set(), {})


def test_a_decision_in_words_is_told_in_its_words() -> None:
    assert decision_sentences(DecisionRecord.model_validate(STORED), 1, AT, AT)[1:4] == [
        "The task prefers three, which could not take it.",
        "two was as active as one, and comes after it in the alphabet.",
        "three was limited (5h window, reported) until 14:14 UTC.",
    ]


def test_the_api_gives_the_words_and_says_that_there_is_no_code() -> None:
    view = shown(STORED)
    assert placement_of(view).overridden_hint == "three: three was limited (5h window, reported)"
    candidate, two, three = view.agents
    assert (candidate.rejected, candidate.rejected_because) == (None, None)
    assert two.rejected_because == "as active as one, and comes after it in the alphabet"
    assert three.rejected_because == "limited (5h window, reported) until 14:14 UTC"
    assert two.rejected is not None
    assert two.rejected.code == "text"


def test_what_is_older_than_hints_as_values_has_its_line() -> None:
    stored = {name: value for name, value in STORED.items() if name != "overridden"}
    record = DecisionRecord.model_validate(stored)
    text = "The task's preference was overridden: three: three was limited (5h window, reported)."
    assert decision_sentences(record, 1, AT, AT)[1] == text
    view = shown(stored)
    assert placement_of(view).overridden_hint == stored["overridden_hint"]


def test_reasons_in_words_are_told_in_their_words() -> None:
    fallback = "every agent is limited; tried all the same"
    stored = STORED | {"reason": "least active; small is its fallback_model after overloaded", "fallback": fallback}
    first, _, tried, *_ = decision_sentences(DecisionRecord.model_validate(stored), 1, AT, AT)
    assert first.endswith("went to one: least active; small is its fallback_model after overloaded (0 of 2 slots).")
    assert tried == "Every agent is limited; one was tried anyway."
    view = shown(stored)
    placement = placement_of(view)
    assert (view.reason, placement.fallback) == (stored["reason"], "every agent is limited; one was tried anyway")
    assert view.rationale is not None
    assert (view.rationale.code, placement.fallback_code, placement.stands_in) == ("text", "all_limited", None)
