"""What the fallback of a specialist's card does with a task at which it has failed twice."""

from typing import Any

import pytest

from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.requests import DecisionFilter
from claudomator_py.domain.units import HOUR_MS
from claudomator_py.policy.rule import Rule
from claudomator_py.resources.tasks import AnswerRequest, ApproveRequest, RejectRequest
from claudomator_py.scheduler.records import Route
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Run
from tests.contract.handing_on import begin, document, go_on, hand_on, outcome, prompt, records, world_of_specialists
from tests.fakes.cards import card
from tests.fakes.world import World


@pytest.fixture
def world(database: Database) -> World:
    return world_of_specialists(database)


def test_who_fails_twice_is_followed_by_the_fallback(world: World) -> None:
    world.specialists.register(card("eve", description="Does what eve does.", fallback="ben"))
    begin(world, specialist="eve")
    world.fail("t", "agent_error")
    world.tick(HOUR_MS)
    assert world.live("t").specialist == "eve"
    world.answer("t")
    world.fail("t", "agent_error")
    second = go_on(world)
    assert second.specialist == "ben"
    (record,) = records(world)
    assert record.reason.text == "eve failed twice, and ben is the fallback"
    payload = document(world)
    assert [(failure["specialist"], failure["reason"]) for failure in payload["failures"]] == [
        ("eve", "agent_error")
    ] * 2
    assert payload["handoffs"] == 1
    assert "# Handoff" in prompt(world)


@pytest.mark.parametrize(
    ("fallback", "reason"),
    [(None, "agent_error"), ("human_review", "stalled"), ("ben", "stalled")],
)
def test_without_a_fallback_it_is_tried_again(world: World, fallback: str | None, reason: str) -> None:
    world.specialists.register(card("eve", description="Does what eve does.", fallback=fallback))
    begin(world, specialist="eve")
    for _ in range(2):
        world.fail("t", reason)
        world.tick(HOUR_MS)
    assert world.live("t").specialist == "eve"
    assert records(world) == []


def failing_twice(world: World, fallback: str, *, risk: str = "low", **fields: Any) -> Run:
    """A task at which eve, whose card has that fallback, has failed twice. Returns her second run."""
    world.policy_rules = (Rule.model_validate({"name": "so-risky", "risk": risk}),)
    world.restarted_daemon()
    world.specialists.register(card("eve", description="Does what eve does.", fallback=fallback))
    begin(world, specialist="eve", **fields)
    world.fail("t", "agent_error")
    world.tick(HOUR_MS)
    second = world.live("t")
    assert second.specialist == "eve"
    world.answer("t")
    world.fail("t", "agent_error", detail="The joint broke.")
    world.tick()
    return second


@pytest.mark.parametrize("risk", ["low", "medium"])
def test_a_person_decides_after_two_failures_where_the_card_says_so(world: World, risk: str) -> None:
    # Nothing risky falls to the default.
    failed = failing_twice(world, "human_review" if risk == "low" else "default", risk=risk)
    assert world.state("t") == "NEEDS_INPUT approval"
    asks = world.task("t").asks
    assert asks is not None
    why = "Its card has a person decide" if risk == "low" else "Nobody takes it over by default, as its risk is medium"
    assert asks.text == f"failed twice. The joint broke. {why}. If you approve, claude continues with it"
    (record,) = records(world)
    assert (record.route, record.accepted) == (Route.HUMAN_REVIEW, False)
    assert record.reason.text == "eve failed twice, and human_review is the fallback"
    assert outcome(world, failed).reason is Reason.AGENT_ERROR

    world.service.approve("t", ApproveRequest())
    assert go_on(world).specialist == "eve"
    world.fail("t", "agent_error")
    world.tick()
    assert world.state("t") == "NEEDS_INPUT approval"
    world.service.reject("t", RejectRequest())
    assert world.state("t") == "FAILED rejected"


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        ("had it", "It was not handed on to ben: ben already had it."),
        ("is gone", "It was not handed on to ben: there is no specialist ben."),
        (
            "is for less risk",
            "It was not handed on to ben: ben takes tasks up to low risk, and this one has medium risk.",
        ),
    ],
)
def test_a_person_decides_after_two_failures_where_the_fallback_may_not_have_it(
    world: World, refused: str, why: str
) -> None:
    world.policy_rules = (Rule.model_validate({"name": "so-risky", "risk": "medium"}),)
    world.restarted_daemon()
    world.specialists.register(card("ben", risk_ceiling="low" if refused == "is for less risk" else "high"))
    world.specialists.register(card("eve", description="Does what eve does.", fallback="ben"))
    if refused == "is gone":
        world.specialists.remove("ben")
    begin(world, specialist="ben" if refused == "had it" else "eve")
    if refused == "had it":
        hand_on(world, "eve")
        go_on(world)
    for _ in range(2):
        world.answer("t")
        world.fail("t", "agent_error", detail="The joint broke.")
        world.tick(HOUR_MS)
    assert world.state("t") == "NEEDS_INPUT approval"
    asks = world.task("t").asks
    assert asks is not None
    assert asks.text == f"failed twice. The joint broke. {why} If you approve, claude continues with it"
    assert records(world)[-1].accepted is False
    world.service.approve("t", ApproveRequest())
    assert go_on(world).specialist == "eve"


@pytest.mark.both_databases
def test_a_person_is_asked_who_does_it_instead(world: World) -> None:
    failing_twice(world, "clarify")
    assert world.state("t") == "NEEDS_INPUT clarification"
    asks = world.task("t").asks
    assert asks is not None
    assert asks.text.startswith("It failed twice. The joint broke. Which specialist should do it")
    world.service.answer("t", AnswerRequest(text="ben"))
    second = go_on(world)
    assert (second.specialist, second.resumes) == ("ben", None)
    assert [failure["specialist"] for failure in document(world)["failures"]] == ["eve", "eve"]


def test_what_a_person_says_instead_becomes_part_of_the_task(world: World) -> None:
    failing_twice(world, "clarify")
    world.service.answer("t", AnswerRequest(text="Use the other torch."))
    assert go_on(world).specialist == "eve"
    assert "Use the other torch." in prompt(world)


@pytest.mark.parametrize("default", [pytest.param("generalist", marks=pytest.mark.both_databases), None])
def test_the_default_takes_over_after_two_failures(world: World, default: str | None) -> None:
    if default is not None:
        world.specialists.register(card(default, description="Does what fits nobody."))
    failing_twice(world, "default")
    assert world.state("t") == "QUEUED routing"
    second = go_on(world)
    assert (second.specialist, second.resumes) == (default, None)
    (record,) = records(world)
    assert (record.route, record.accepted, record.hop) == (Route.DEFAULT, True, 1)
    assert document(world)["before"]["specialist"] == "eve"
    sentences = " ".join(world.service.why("t").sentences)
    assert "eve failed twice, and default is the fallback" in sentences
    decision = world.decisions.page(DecisionFilter(task="t", kind="handoff"), None, 5).items[0]
    assert (decision.route, decision.handoff and decision.handoff.to) == ("default", "default")
    assert "whoever does what fits no specialist" in world.decisions.explained(decision.id).sentences[0]


@pytest.mark.parametrize("fallback", ["human_review", "gone"])
def test_a_task_that_asks_nobody_is_tried_again(world: World, fallback: str) -> None:
    if fallback == "gone":
        world.specialists.register(card("gone"))
        world.specialists.register(card("eve", fallback="gone"))
        world.specialists.remove("gone")
        begin(world, specialist="eve", on_input="deny")
        for _ in range(2):
            world.fail("t", "agent_error")
            world.tick(HOUR_MS)
    else:
        failing_twice(world, fallback, on_input="deny")
    assert records(world) == []
    world.tick(HOUR_MS)
    assert world.live("t").specialist == "eve"
