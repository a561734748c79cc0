"""To whom a run may hand its task on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.domain.outcome import HandoffRequest
from claudomator_py.domain.rationale import RationaleCode, rationale
from claudomator_py.domain.routing import Risk
from claudomator_py.routing.handing_on import decide, fall_back
from claudomator_py.scheduler.records import HandoffRecord, Route
from tests.fakes.cards import card

NAMES = ("a", "b", "c", "d")
CARDS = {name: card(name, description="Does things.") for name in NAMES}


@given(
    st.sampled_from([None, *NAMES]),
    st.lists(st.sampled_from([*NAMES, "unknown"]), max_size=10),
    st.integers(0, 5),
)
def test_no_chain_is_a_circle_or_longer_than_allowed(first: str | None, wishes: list[str], most: int) -> None:
    """Whatever each owner in turn asks for; one that is refused keeps the task."""
    before: list[HandoffRecord] = []
    owner = first
    for number, to in enumerate(wishes):
        asked = HandoffRequest(to=to)
        record = decide(asked, f"run-{number}", owner, before, CARDS, risk=None, max_handoffs=most)
        assert record.max_handoffs == most
        if record.accepted:
            before.append(record)
            owner = record.specialist
    owners = [first, *(entry.specialist for entry in before)]
    assert len(owners) == len(set(owners))
    assert len(before) <= most
    assert [entry.hop for entry in before] == list(range(1, len(before) + 1))


@pytest.mark.parametrize(
    ("to", "code"),
    [
        ("b", RationaleCode.HANDED_ON),
        ("nobody", RationaleCode.NO_SPECIALIST),
        ("a", RationaleCode.HANDOFF_LOOP),
    ],
)
def test_what_is_refused_goes_to_a_person_and_to_no_specialist(to: str, code: RationaleCode) -> None:
    record = decide(HandoffRequest(to=to), "run", "a", [], CARDS, risk=None, max_handoffs=1)
    accepted = code is RationaleCode.HANDED_ON
    assert (record.reason.code, record.accepted, record.hop) == (code, accepted, int(accepted))
    assert record.route is (Route.SPECIALIST if accepted else Route.HUMAN_REVIEW)
    assert record.specialist == (to if accepted else None)


@pytest.mark.parametrize(
    ("to", "seen", "code"),
    [
        ("nobody", True, RationaleCode.NOT_ADMITTED),
        ("nobody", False, RationaleCode.NO_SPECIALIST),
        ("a", True, RationaleCode.HANDOFF_LOOP),
        ("b", True, RationaleCode.HANDED_ON),
    ],
)
def test_only_a_card_that_is_no_target_although_it_is_seen_is_called_not_admitted(
    to: str, seen: bool, code: RationaleCode
) -> None:
    record = decide(HandoffRequest(to=to), "run", "a", [], CARDS, risk=None, max_handoffs=1, seen=seen)
    assert record.reason.code is code


def test_whose_card_allows_less_risk_is_not_given_it() -> None:
    cards = {"a": card("a", description="Does things.", risk_ceiling="medium")}
    asked = HandoffRequest(to="a")
    codes = {}
    for risk in (None, *Risk):
        codes[risk] = decide(asked, "run", None, [], cards, risk=risk, max_handoffs=1).reason.code
    assert codes == {
        None: RationaleCode.HANDED_ON,
        Risk.LOW: RationaleCode.HANDED_ON,
        Risk.MEDIUM: RationaleCode.HANDED_ON,
        Risk.HIGH: RationaleCode.TOO_RISKY,
    }


@pytest.mark.parametrize(
    ("named", "risk", "handed_on", "route", "hop"),
    [
        (Route.DEFAULT, None, 0, Route.DEFAULT, 1),
        (Route.DEFAULT, Risk.LOW, 1, Route.DEFAULT, 2),
        (Route.DEFAULT, Risk.LOW, 2, Route.HUMAN_REVIEW, 2),
        (Route.DEFAULT, Risk.MEDIUM, 0, Route.HUMAN_REVIEW, 0),
        (Route.HUMAN_REVIEW, Risk.LOW, 1, Route.HUMAN_REVIEW, 1),
        (Route.CLARIFY, Risk.HIGH, 2, Route.CLARIFY, 2),
    ],
)
def test_what_has_failed_twice_falls_to_the_default_only_at_low_risk_and_not_too_often(
    named: Route, risk: Risk | None, handed_on: int, route: Route, hop: int
) -> None:
    before = [decide(HandoffRequest(to="b"), "run", "a", [], CARDS, risk=risk, max_handoffs=2)] * handed_on

    record = fall_back(named, "run", "b", before, risk=risk, max_handoffs=2)

    assert (record.route, record.hop, record.specialist) == (route, hop, None)
    assert record.asked == HandoffRequest(to=named.value)
    assert record.reason == rationale(RationaleCode.FAILED_TWICE, by="b", specialist=route.value)
