"""Handing a task on: what becomes of a request or of a second failure, what is kept of it, and what a person is asked.

What follows for the task itself is in the contract of the service.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from claudomator_py.domain.lifecycle import InputKind
from claudomator_py.domain.outcome import HandoffRequest, Outcome, OutcomeStatus, Reason
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.rationale import RationaleCode, rationale
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.run import Exchange, ResumedConversation
from claudomator_py.domain.units import HOUR_MS
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.routing.handing_on import fall_back
from claudomator_py.scheduler.records import HandoffRecord, Route
from claudomator_py.store import events, run_rows, task_rows
from claudomator_py.store.tables import RUN, Run
from claudomator_py.tasks.handing_on import (
    HANDED_ON,
    accepted_handoffs,
    apply_handoff_verdict,
    decided,
    evaluate_request,
    fallback_handoff,
    handoff_at_end,
    reassign_columns,
    request_after_fallback,
    rerouting_columns,
    store_decision,
)
from tests.databases import open_migrated
from tests.fakes.cards import card
from tests.fakes.steps import spec
from tests.fakes.world import World

ANN = Principal("ann", Role.OPERATE, "acme")
FAILED = Outcome(status=OutcomeStatus.FAILED, reason=Reason.AGENT_ERROR, detail="The joint broke.")
T = TypeVar("T")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """With eve, who has a fallback, and ben, who is it."""
    with open_migrated(tmp_path) as database:
        world = World(database)
        world.specialists.register(card("ben"))
        world.specialists.register(card("eve", fallback="ben"))
        yield world


def begin(world: World, by: Principal = OPERATOR, **fields: Any) -> Run:
    """The first run of a task for eve."""
    world.access.as_(by)[Tasks].submit(spec("t", **{"specialist": "eve", **fields}))
    world.router.route()
    world.tick()
    return world.live("t")


def failing_again(world: World) -> tuple[Run, Run]:
    """The first run, at which eve has failed, and the second, which still lives."""
    first = begin(world)
    world.fail("t", "agent_error")
    world.tick(HOUR_MS)
    return first, world.live("t")


def change(world: World, run: Run, **values: Any) -> Run:
    """The run, with these columns."""
    world.database.write(lambda connection: connection.execute(RUN.update().where(RUN.c.id == run.id).values(**values)))
    result = world.database.read(partial(run_rows.find, run_id=run.id))
    assert result is not None
    return result


def read(world: World, what: Callable[..., T], *given: Any, **named: Any) -> T:
    """What it says of the task and these."""
    task = world.row("t")
    return world.database.read(lambda connection: what(connection, task, *given, **named))


def fallen(world: World, run: Run, outcome: Outcome = FAILED, on_input: str = "wait") -> HandoffRecord | None:
    return read(world, fallback_handoff, run, outcome, spec("t", on_input=on_input), 2)


def kept(world: World, run_id: str, to: str | None, hop: int) -> HandoffRecord:
    """A hand-over of that run, which is written down; to nobody: it was refused."""
    record = HandoffRecord(
        reason=rationale(RationaleCode.HANDED_ON, by="eve", specialist=to),
        route=Route.HUMAN_REVIEW if to is None else Route.SPECIALIST,
        specialist=to,
        by="eve",
        run_id=run_id,
        asked=HandoffRequest(to=to or "nobody"),
        hop=hop,
        max_handoffs=2,
    )
    task = world.row("t")
    world.database.write(lambda connection: store_decision(connection, task, record, world.now_ms))
    return record


# --- what is kept ---------------------------------------------------------------------------------------------------


def test_the_hops_of_a_generation_are_those_that_were_accepted_in_order(world: World) -> None:
    begin(world)
    second, first = kept(world, "b", "cid", 2), kept(world, "a", "ben", 1)
    kept(world, "c", None, 2)
    task_id = world.row("t").id
    assert world.database.read(lambda connection: accepted_handoffs(connection, task_id, 1)) == [first, second]
    assert world.database.read(lambda connection: accepted_handoffs(connection, task_id, 2)) == []


def test_what_was_decided_on_a_run_stays_decided(world: World) -> None:
    run = begin(world)
    assert world.database.read(lambda connection: decided(connection, run.id)) is None
    first = kept(world, run.id, "ben", 1)
    kept(world, run.id, "cid", 1)
    assert world.database.read(lambda connection: decided(connection, run.id)) == first


def test_that_it_is_handed_on_is_an_event_and_the_task_is_routed_again(world: World) -> None:
    run = begin(world)
    record, task = kept(world, run.id, "ben", 1), world.row("t")
    changes = world.database.write(
        partial(reassign_columns, task=task, spec=spec("t"), record=record, now_ms=world.now_ms)
    )
    world.database.write(lambda connection: task_rows.change(connection, task, world.now_ms, **changes))
    last = world.database.read(partial(events.of_task, task_id=task.id))[-1]
    assert (last.kind, last.run_id, last.data) == (HANDED_ON, run.id, {"from": "eve", "to": "ben", "hop": 1})
    after = world.row("t")
    assert (after.specialist, after.skill, after.constraints, after.tier, after.asked_tier) == (None,) * 5


HEARD = Exchange(kind=InputKind.QUESTION, asked="Red or blue?", answer="Blue.")


@pytest.mark.parametrize(
    ("of", "left"),
    [(None, False), ({}, False), ({"heard": (HEARD,)}, True), ({"follows": "another"}, True)],
)
def test_of_a_conversation_that_is_left_only_what_a_person_said_or_what_it_continues_is_kept(
    world: World, of: dict[str, Any] | None, left: bool
) -> None:
    begin(world)
    task = world.row("t")
    if of is not None:
        ref = ResumedConversation(run_id="run", agent="claude", kind="claude", tier=None, revision=1, **of)
        task.resume = ref.model_dump(mode="json")
    resume = rerouting_columns(task, spec("t"))["resume"]
    assert (resume is not None) is left
    if left:
        assert resume["given_up"] is True


# --- what becomes of a request --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("maker", "by", "accepted"),
    [
        (OPERATOR, None, True),
        (ANN, None, False),
        (OPERATOR, ANN, False),
        (OPERATOR, OPERATOR, True),
        (OPERATOR, Principal("run:x", Role.RUN, "acme", "x"), True),
    ],
)
def test_a_task_goes_to_nobody_who_is_hidden_from_its_maker_or_from_whoever_hands_it_on_for_the_run(
    world: World, maker: Principal, by: Principal | None, accepted: bool
) -> None:
    world.specialists.register(card("secret", visibility="private"))
    run = begin(world, maker)
    record = read(world, evaluate_request, run, HandoffRequest(to="secret"), 2, by=by)
    assert record.accepted is accepted
    if not accepted:
        assert record.reason == rationale(RationaleCode.NO_SPECIALIST, specialist="secret")


@pytest.mark.parametrize(("risk", "accepted"), [(None, True), ("low", True), ("high", False)])
def test_a_task_goes_to_nobody_who_takes_on_less_than_its_risk(world: World, risk: str | None, accepted: bool) -> None:
    world.specialists.register(card("novice", risk_ceiling="low"))
    run = change(world, begin(world), risk=risk)
    record = read(world, evaluate_request, run, HandoffRequest(to="novice"), 2)
    assert (record.accepted, record.risk) == (accepted, None if risk is None else Risk(risk))


def test_what_was_announced_counts_before_what_the_run_asks_for_last(world: World) -> None:
    run = begin(world)
    assert read(world, handoff_at_end, run, FAILED, 2) is None
    asking = FAILED.model_copy(update={"handoff": HandoffRequest(to="nobody")})
    asked = read(world, handoff_at_end, run, asking, 2)
    assert asked is not None
    assert (asked.accepted, asked.asked.to) == (False, "nobody")
    announced = kept(world, run.id, "ben", 1)
    assert [read(world, handoff_at_end, run, outcome, 2) for outcome in (asking, FAILED)] == [announced] * 2


@pytest.mark.parametrize(
    ("to", "on_input", "status", "reason"),
    [
        ("ben", "wait", OutcomeStatus.FAILED, Reason.AGENT_ERROR),
        (None, "wait", OutcomeStatus.NEEDS_INPUT, None),
        (None, "deny", OutcomeStatus.FAILED, Reason.HANDOFF_REFUSED),
    ],
)
def test_where_it_is_not_handed_on_a_person_is_asked_or_it_fails(
    world: World, to: str | None, on_input: str, status: OutcomeStatus, reason: Reason | None
) -> None:
    run = begin(world)
    record = kept(world, run.id, to, 1)
    outcome = apply_handoff_verdict(FAILED, record, spec("t", on_input=on_input))
    assert (outcome.status, outcome.reason, outcome.handoff) == (status, reason, record.asked)
    refused = outcome.refused_handoff
    assert (None if refused is None else (refused.to, refused.why)) == (
        None if to is not None else ("nobody", record.reason)
    )


# --- who fails twice ------------------------------------------------------------------------------------------------


def test_who_fails_for_the_second_time_is_followed_by_the_fallback(world: World) -> None:
    _, second = failing_again(world)
    record = fallen(world, second)
    assert record is not None
    assert (record.specialist, record.run_id, record.hop) == ("ben", second.id, 1)
    assert record.reason == rationale(RationaleCode.FAILED_TWICE, by="eve", specialist="ben")
    assert world.database.read(lambda connection: decided(connection, second.id)) is None, "nothing is written yet"


def test_who_fails_for_the_first_time_keeps_it(world: World) -> None:
    run = begin(world)
    assert fallen(world, run) is None
    assert fallen(world, change(world, run, reason="agent_error")) is None, "its own end counts once"


@pytest.mark.parametrize(
    "earlier", [{"specialist": "ann"}, {"specialist": None}, {"reason": "stalled"}, {"generation": 2}]
)
def test_an_earlier_failure_counts_only_where_the_same_one_did_the_same_task_badly(
    world: World, earlier: dict[str, Any]
) -> None:
    first, second = failing_again(world)
    change(world, first, **earlier)
    assert fallen(world, second) is None


@pytest.mark.parametrize(
    "end",
    [
        {"status": OutcomeStatus.FAILED, "reason": Reason.STALLED},
        {"status": OutcomeStatus.CANCELLED, "reason": Reason.AGENT_ERROR},
    ],
)
def test_an_end_that_does_not_speak_against_whoever_did_it_leaves_the_task_to_them(
    world: World, end: dict[str, Any]
) -> None:
    _, second = failing_again(world)
    assert fallen(world, second, Outcome(**end)) is None


def test_what_nobody_in_particular_does_has_no_fallback(world: World) -> None:
    first, second = failing_again(world)
    change(world, first, specialist=None)
    assert fallen(world, change(world, second, specialist=None)) is None


@pytest.mark.parametrize("fallback", [None, "gone"])
def test_without_a_fallback_the_specialist_keeps_it(world: World, fallback: str | None) -> None:
    _, second = failing_again(world)
    if fallback is None:
        world.specialists.register(card("eve"))
    else:
        world.specialists.remove("eve")
    assert fallen(world, second) is None


@pytest.mark.parametrize(
    ("fallback", "risk", "route"),
    [
        ("default", None, Route.DEFAULT),
        ("default", "medium", Route.HUMAN_REVIEW),
        ("human_review", "low", Route.HUMAN_REVIEW),
        ("clarify", "low", Route.CLARIFY),
    ],
)
def test_a_card_may_name_a_way_on_instead_of_a_specialist(
    world: World, fallback: str, risk: str | None, route: Route
) -> None:
    _, second = failing_again(world)
    world.specialists.register(card("eve", fallback=fallback))
    second = change(world, second, risk=risk)
    record = fallen(world, second)
    assert record is not None
    assert (record.route, record.specialist, record.asked.to) == (route, None, fallback)
    assert (fallen(world, second, on_input="deny") is None) is (route is not Route.DEFAULT), "it asks nobody"


def test_a_person_decides_where_the_fallback_may_not_have_it_unless_it_asks_nobody(world: World) -> None:
    _, second = failing_again(world)
    world.specialists.remove("ben")
    record = fallen(world, second)
    assert record is not None
    assert (record.accepted, record.reason.code) == (False, RationaleCode.NO_SPECIALIST)
    assert fallen(world, second, on_input="deny") is None


# --- what a person is asked then ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "hops", "risk", "why"),
    [
        (Route.HUMAN_REVIEW, 0, Risk.LOW, "Its card has a person decide"),
        (Route.DEFAULT, 0, Risk.MEDIUM, "Nobody takes it over by default, as its risk is medium"),
        (Route.DEFAULT, 2, Risk.LOW, "Nobody takes it over by default, as it was handed on 2 times"),
        (Route.DEFAULT, 2, None, "Nobody takes it over by default, as it was handed on 2 times"),
    ],
)
def test_a_person_is_told_why_they_decide(world: World, label: Route, hops: int, risk: Risk | None, why: str) -> None:
    run = begin(world)
    before = [kept(world, f"run-{number}", "ben", number) for number in range(hops)]
    record = fall_back(label, run.id, "eve", before, risk=risk, max_handoffs=2)
    asked = request_after_fallback(record, FAILED, run, world.now_ms)
    assert asked.text == f"failed twice. The joint broke. {why}. If you approve, claude continues with it"
    assert (asked.kind, asked.run_id, asked.agent) == (InputKind.APPROVAL, run.id, "claude")
    assert (asked.handoff, asked.refused_handoff) == ("human_review", None)


def test_a_person_is_asked_who_does_it_instead(world: World) -> None:
    run = begin(world)
    record = fall_back(Route.CLARIFY, run.id, "eve", (), risk=None, max_handoffs=2)
    asked = request_after_fallback(record, FAILED.model_copy(update={"detail": None}), run, world.now_ms)
    assert asked.kind is InputKind.CLARIFICATION
    assert asked.text == (
        "It failed twice. Its agent did not say why. Which specialist should do it, or what should be done differently?"
    )


def test_a_person_is_told_which_fallback_may_not_have_it(world: World) -> None:
    run = begin(world)
    record = kept(world, run.id, None, 1)
    asked = request_after_fallback(record, FAILED, run, world.now_ms)
    assert (asked.kind, asked.text) == (InputKind.APPROVAL, "failed twice. The joint broke.")
    assert asked.refused_handoff is not None
    assert (asked.refused_handoff.to, asked.refused_handoff.why) == ("nobody", record.reason)
