"""Recorded decisions of every kind: listed for whoever they exist, with what became of them."""

from datetime import UTC, datetime
from typing import get_args

import pytest

from claudomator_py.domain.card import Visibility
from claudomator_py.domain.errors import BadCursor, Invalid, NotFound
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.requests import DecisionFilter, DecisionKindName, RestartRequest, RouteName
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.units import SECOND_MS
from claudomator_py.resources.decisions import DecisionView
from claudomator_py.resources.decisions.service import Decisions
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.scheduler.records import DecisionKind, Route
from claudomator_py.store.database import Database
from tests.fakes.cards import card
from tests.fakes.decisions import placement_of, selection_of
from tests.fakes.steps import spec
from tests.fakes.world import World

ANN = Principal("ann", Role.OPERATE, "acme")
BOB = Principal("bob", Role.OPERATE, "other")


@pytest.fixture
def world(database: Database) -> World:
    world = World(database, total=50, per_workdir=50)
    world.specialists.register(card("plumber"))
    world.specialists.register(card("florist"))
    return world


def submit(world: World, name: str, specialist: str, by: Principal = OPERATOR) -> str:
    world.access.as_(by)[Tasks].submit(spec(name, specialist=specialist))
    world.router.route()
    return world.task(name).id


def listed(world: World, by: Principal = OPERATOR, **wanted: object) -> list[DecisionView]:
    page = world.access.as_(by)[Decisions].page(DecisionFilter.model_validate(wanted), None, 200)
    return list(page.items)


def test_every_kind_and_route_can_be_asked_for() -> None:
    assert set(get_args(DecisionKindName)) == {kind.value for kind in DecisionKind}
    assert set(get_args(RouteName)) == {route.value for route in Route}


@pytest.mark.both_databases
def test_conditions_count_together(world: World) -> None:
    sink, bunch = submit(world, "sink", "plumber"), submit(world, "bunch", "florist")
    world.tick(SECOND_MS)
    world.end("sink")
    world.tick()

    (chosen,) = listed(world, kind="specialist", task=sink)
    (placed,) = listed(world, kind="placement", task=sink)

    assert (chosen.route, chosen.specialist, chosen.task_state) == ("specialist", "plumber", "COMPLETED")
    assert chosen.input_ref is not None
    assert chosen.input_ref.startswith(f"task:{sink}/")
    assert placed.run is not None
    assert placed.run.ended_as == "succeeded"
    assert placed.snapshot is not None
    assert placed.agent is not None
    assert {entry.task_id for entry in listed(world, specialist="florist")} == {bunch}
    assert listed(world, agent=placed.agent, task=sink) == [placed]
    assert chosen.rationale is not None
    code = chosen.rationale.code.value
    same = listed(world, kind="specialist", route="specialist", reason=code)
    assert {entry.task_id for entry in same} == {sink, bunch}
    assert listed(world, route="reject") == []
    assert listed(world, risk=Risk.HIGH) == []
    assert listed(world, overridden=True) == []
    assert chosen in listed(world, overridden=False)
    at = datetime.fromisoformat(placed.at).astimezone(UTC)
    assert placed in listed(world, since=at)
    assert placed not in listed(world, until=at)


def test_a_task_is_meant_by_what_people_call_it(world: World) -> None:
    sink = submit(world, "sink", "plumber")
    gone = f"{0:036}"

    assert listed(world, task="sink") == listed(world, task=sink[:8]) == listed(world, task=sink) != []
    assert listed(world, task=gone) == []
    with pytest.raises(Invalid) as refused:
        listed(world, task="sinc")
    assert [(problem.field, problem.remedy) for problem in refused.value.problems] == [("task", "Did you mean `sink`?")]


@pytest.mark.both_databases
def test_a_list_is_read_in_parts(world: World) -> None:
    for number in range(5):
        submit(world, f"t{number}", "plumber")
    decisions, wanted = world.access.as_(OPERATOR)[Decisions], DecisionFilter(kind="specialist")
    results: list[DecisionView] = []
    cursor = None
    while True:
        part = decisions.page(wanted, cursor, 2)
        results += part.items
        cursor = part.next_cursor
        if cursor is None:
            break

    assert results == listed(world, kind="specialist")
    assert len({entry.id for entry in results}) == 5
    given = decisions.page(wanted, None, 2).next_cursor
    with pytest.raises(BadCursor):
        decisions.page(DecisionFilter(), given, 2)


def test_one_that_was_superseded_names_the_one_that_stands(world: World) -> None:
    sink = submit(world, "sink", "plumber")
    world.access.as_(OPERATOR)[Tasks].restart("sink", RestartRequest(specialist="florist"))
    world.router.route()

    # Both were made in the same millisecond, so the list may have either first.
    decisions = listed(world, kind="specialist", task=sink)
    before, now = sorted(decisions, key=lambda decision: decision.supersedes is not None)

    assert (now.specialist, before.specialist) == ("florist", "plumber")
    assert (now.supersedes, before.superseded_by, now.superseded_by) == (before.id, now.id, None)
    assert world.access.as_(OPERATOR)[Decisions].get(before.id) == before


def test_those_of_others_do_not_exist(world: World) -> None:
    submit(world, "sink", "plumber")
    bunch = submit(world, "bunch", "florist", ANN)

    assert {entry.task_id for entry in listed(world, ANN)} == {bunch}
    assert listed(world, BOB) == []
    of_ann = listed(world, ANN)[0].id
    with pytest.raises(NotFound):
        world.access.as_(BOB)[Decisions].get(of_ann)
    with pytest.raises(NotFound):
        world.access.as_(Principal("run", Role.RUN, run_id="any"))[Decisions].get(of_ann)


def test_a_specialist_who_does_not_exist_for_whoever_asks_is_not_named(world: World) -> None:
    bunch = submit(world, "bunch", "florist", ANN)
    submit(world, "more", "plumber", ANN)
    world.specialists.change(card("florist", visibility=Visibility.PRIVATE))

    assert [entry.specialist for entry in listed(world, kind="specialist", task=bunch)] == ["florist"]
    (seen,) = listed(world, ANN, kind="specialist", task=bunch)
    assert (seen.specialist, seen.skill, seen.topic, seen.confidence) == (None, None, None, None)
    assert listed(world, ANN, specialist="florist") == []
    assert len(listed(world, ANN, specialist="plumber")) == 1


def test_a_decision_keeps_what_the_card_planned_when_it_was_made(world: World) -> None:
    world.specialists.change(card("plumber", owner="ann", expected_output="a dry floor", fallback="florist"))
    sink = submit(world, "sink", "plumber")
    world.specialists.change(card("plumber", owner="bob"))

    (chosen,) = listed(world, kind="specialist", task=sink)

    plan = selection_of(chosen)
    assert (plan.owner, plan.escalation) == ("ann", ("florist", "human_review"))
    assert (plan.expected_output, plan.max_handoffs) == ("a dry floor", 2)


@pytest.mark.both_databases
def test_what_a_run_was_given_is_known_as_long_as_the_decision(world: World) -> None:
    """Its directory, with all of its handoff document, goes long before."""
    permissions = {"mode": "acceptEdits", "allowed_tools": ["Bash(make test)"], "disallowed_tools": ["WebFetch"]}
    world.submit("dig", permissions=permissions, expected_output="a hole")
    world.tick()
    run_id = world.live("dig").id
    world.succeed("dig")
    world.tick()
    world.host.remove(run_id)

    (placed,) = listed(world, kind="placement", task=world.row("dig").id)
    given = placement_of(world.access.as_(OPERATOR)[Decisions].get(placed.id)).given

    assert given is not None
    assert (given.mode, given.tools, given.expected_output) == ("acceptEdits", None, "a hole")
    assert (given.allowed_tools, given.forbidden_tools) == (("Bash(make test)",), ("WebFetch",))
