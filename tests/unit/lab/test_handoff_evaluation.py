"""What the runs of a labelled task would be told, and how that is counted."""

from typing import Any

import pytest

from claudomator_py.domain.card import Card
from claudomator_py.domain.decision import Versions
from claudomator_py.domain.handoff import Defect
from claudomator_py.domain.rationale import RationaleCode, rationale
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.task import PermissionMode, Permissions
from claudomator_py.lab.handoff_evaluation import HandedOver, HandoffDemand, demand_of, figures, handed_over, plain
from claudomator_py.routing.ranking import to
from claudomator_py.scheduler.records import Route, SpecialistRecord

CARDS = {name: Card(id=name, description="Works.") for name in ("cook", "smith", "baker", "tailor")}
RECORD = to(RationaleCode.MENTIONED, "cook", Versions())


def demanded(**fields: Any) -> HandoffDemand:
    handoff_demand = demand_of(fields, "Fix src/pot.py for ABC-7.")
    assert handoff_demand is not None
    return handoff_demand


def outcome(record: SpecialistRecord = RECORD, cards: dict[str, Card] = CARDS, **fields: Any) -> HandedOver:
    result = handed_over(demanded(**fields), record, cards)
    assert result is not None
    return result


def test_a_line_without_demands_has_none() -> None:
    assert demand_of({"id": "1", "permissions": {"mode": "plan"}, "expected": {"route": "specialist"}}, "t") is None


def test_demands_stand_beside_the_label_or_in_it() -> None:
    assert demanded(max_authority="read") == demanded(expected={"max_authority": "read"})


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"max_authority": "all"}, "max_authority.*read, draft, write_after_approval"),
        ({"max_handoffs": -1}, "max_handoffs"),
        ({"max_handoffs": True}, "max_handoffs"),
        ({"required_fields": "intent"}, "required_fields.*not a list"),
        ({"required_fields": ["colour"]}, "no field colour"),
        ({"forbidden_fields": ["intent", 1]}, "forbidden_fields.*not a list"),
        ({"ends_with": 1}, "ends_with"),
        ({"max_handoffs": 1, "permissions": {"mode": "godlike"}}, "permissions.mode"),
    ],
)
def test_what_is_no_demand_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        demand_of(fields, "t")


def test_whoever_has_it_last_must_be_told_what_is_required() -> None:
    fields = ["before.left", "evidence.runs", "extracted.tickets", "budget_left.runs"]
    handed_over = outcome(required_fields=fields, hands_on_to=["smith"], budget={"runs": 3})
    assert (handed_over.owners, handed_over.ended_with, handed_over.defects) == (("cook", "smith"), "smith", ())
    assert outcome(required_fields=fields[:2]).defects == (
        (Defect.LACKS, "before.left"),
        (Defect.LACKS, "evidence.runs"),
    )


def test_nobody_on_the_way_is_told_what_is_forbidden() -> None:
    assert outcome(forbidden_fields=["extracted.files"], hands_on_to=["smith"]).defects == (
        (Defect.TELLS, "extracted.files"),
    )


def test_a_run_that_may_do_more_than_allowed_is_counted() -> None:
    assert outcome(max_authority="read").defects == ((Defect.AUTHORITY_EXPANDED, "permissions.mode"),)
    assert outcome(max_authority="read", permissions={"mode": "plan"}).defects == ()


def test_authority_is_that_of_each_owner() -> None:
    bold = CARDS["smith"].model_copy(update={"permissions": Permissions(mode=PermissionMode.ACCEPT_EDITS)})
    handed_over = outcome(cards={**CARDS, "smith": bold}, max_authority="draft", hands_on_to=["smith", "baker"])
    assert handed_over.owners == ("cook", "smith", "baker")
    assert handed_over.defects == ((Defect.AUTHORITY_EXPANDED, "permissions.mode"),)


def test_it_may_not_be_handed_on_more_often_than_the_set_allows() -> None:
    assert outcome(max_handoffs=1).defects == ((Defect.TOO_MANY_HANDOFFS, "max_handoffs"),)
    assert outcome(max_handoffs=2).defects == ()


@pytest.mark.parametrize(
    ("wanted", "owners"),
    [
        (["cook"], ("cook",)),
        (["smith", "cook"], ("cook", "smith")),
        (["nobody"], ("cook",)),
        (["smith", "baker", "tailor"], ("cook", "smith", "baker")),
    ],
)
def test_a_person_is_asked_where_it_cannot_be_handed_on(wanted: list[str], owners: tuple[str, ...]) -> None:
    handed_over = outcome(hands_on_to=wanted)
    assert (handed_over.owners, handed_over.ended_with) == (owners, "human_review")


def test_a_task_that_is_refused_is_handed_to_nobody() -> None:
    refused = RECORD.model_copy(
        update={
            "route": Route.REJECT,
            "specialist": None,
            "reason": rationale(RationaleCode.REFUSED, rule="r", text=None),
        }
    )
    assert handed_over(demanded(max_handoffs=2), refused, CARDS) is None


def test_who_may_not_do_what_is_risky_is_not_handed_it() -> None:
    careful = CARDS["smith"].model_copy(update={"risk_ceiling": Risk.LOW})
    risky = RECORD.model_copy(update={"risk": Risk.HIGH, "route": Route.HUMAN_REVIEW})
    handed_over = outcome(risky, {**CARDS, "smith": careful}, hands_on_to=["smith"])
    assert (handed_over.owners, handed_over.refused) == (("cook",), True)


def test_what_it_counts() -> None:
    fine, looping = HandedOver(("a", "b"), False, ()), HandedOver(("a", "b", "a"), False, ())
    bold = HandedOver(("a",), True, ((Defect.AUTHORITY_EXPANDED, "permissions.mode"),))
    on = demanded(hands_on_to=["b"], ends_with="b")
    limited = demanded(max_authority="read", ends_with="human_review")
    assert figures([on, on, limited, on, None], [fine, looping, bold, None, None]) == {
        "handoff_validity": 0.6667,
        "authority_expansion": 0.3333,
        "loop_rate": 0.3333,
        "completion_rate": 0.5,
    }
    assert set(figures([None], [None]).values()) == {None}


def test_without_labels_of_its_own_a_task_is_done_by_whoever_is_right_and_is_told_enough() -> None:
    task = plain("Bake bread.")
    assert task is not None
    fine, other = HandedOver(("a",), False, ()), HandedOver(("b",), False, ())
    lacking = HandedOver(("a",), False, ((Defect.LACKS, "intent"),))
    right = [frozenset({"a"})] * 3 + [frozenset[str](), None]
    results = figures([task] * 5, [fine, other, lacking, fine, fine], right)
    assert results["completion_rate"] == 0.3333
    assert plain("") is None
