"""What is written of a decision on who does a task, whom a person is offered, and which agents become reachable."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from sqlalchemy import select

from claudomator_py.dispatch.routing import BATCH_SIZE, SpecialistRouter
from claudomator_py.domain.agent import Tier
from claudomator_py.domain.inputs import InputRequest
from claudomator_py.domain.learning import LabelRule
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.routing import Constraints
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS
from claudomator_py.faults import Activity, item_of
from claudomator_py.policy.rule import Rule
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.scheduler.records import DecisionKind, SpecialistRecord
from claudomator_py.store import decision_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import LABEL
from tests.fakes.cards import card
from tests.fakes.steps import spec
from tests.fakes.world import World
from tests.unit.dispatch.test_choosing import Routed

ANN = Principal("ann", Role.OPERATE, "acme")
LIVE = "Drop the customers schema on the production cluster."


def asked(world: World, name: str) -> InputRequest:
    """What a person is asked about the task."""
    return InputRequest.model_validate(world.row(name).asks)


def decided(world: World, name: str) -> SpecialistRecord:
    """What was written down last on who does the task."""
    task_id = world.row(name).id
    decision = world.database.read(
        partial(decision_rows.latest, task_id=task_id, kind=DecisionKind.SPECIALIST, generation=1)
    )
    assert decision is not None
    return SpecialistRecord.model_validate(decision.data)


# --- a person is asked ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("within_ms", "until"), [(None, None), (HOUR_MS, HOUR_MS)])
def test_who_is_asked_has_the_time_that_is_configured_unless_a_rule_says_another(
    database: Database, within_ms: int | None, until: int | None
) -> None:
    world = World(database, answer_within_ms=within_ms)
    world.policy_rules = (
        Rule.model_validate({"name": "soon", "when": '"prod" in task.tags', "approve": {"within": "2h"}}),
    )
    world.restarted_daemon()
    world.specialists.register(card("plumber"))
    world.submit("unclear", instructions="Mend it.")
    world.submit("live", instructions=LIVE)
    world.submit("prod", tags=["prod"])

    world.router.route()

    at = None if until is None else world.now_ms + until
    assert {name: asked(world, name).until_ms for name in ("unclear", "live", "prod")} == {
        "unclear": at,
        "live": at,
        "prod": world.now_ms + 2 * HOUR_MS,
    }


def test_a_person_is_offered_the_three_most_alike_who_may_do_it(world: World) -> None:
    for name in ("a", "b", "c", "d", "e"):
        ceiling = "low" if name == "a" else "high"
        world.specialists.register(card(name, description="Mends it.", skills=[], risk_ceiling=ceiling))
    world.policy_rules = (Rule.model_validate({"name": "careful", "risk": "medium"}),)
    world.restarted_daemon()
    world.submit("unclear", instructions="Mend it.")

    world.router.route()

    assert asked(world, "unclear").candidates == ("b", "c", "d")


# --- what is written down -------------------------------------------------------------------------------------------


def test_a_decision_says_who_answers_for_the_task_what_comes_of_it_and_where_it_goes_next(world: World) -> None:
    world.specialists.register(card("roofer"))
    world.specialists.register(
        card("plumber", owner="Mara", expected_output="A dry floor.", fallback="human_review", escalation="roofer")
    )
    world.submit("sink", specialist="plumber")
    world.submit("tea", instructions="Zwölf Boxkämpfer jagen Viktor.")

    world.router.route()

    named, nobody = decided(world, "sink"), decided(world, "tea")
    assert (named.owner, named.expected_output, named.max_handoffs) == ("Mara", "A dry floor.", 2)
    assert named.escalation == ("human_review", "roofer")
    assert (nobody.owner, nobody.expected_output, nobody.max_handoffs, nobody.escalation) == (None, None, 2, ())


def test_a_task_has_its_skill_and_the_tier_and_agents_of_whoever_does_it(world: World) -> None:
    world.specialists.register(card("plumber", default_tier="fast", allowed_agents=["codex"]))
    world.submit("sink", specialist="plumber", skill="plumber-work")

    world.router.route()

    constraints = Constraints.parse(world.row("sink").constraints)
    assert (constraints.default_tier, constraints.agents) == (Tier.FAST, ("codex",))
    assert world.row("sink").skill == "plumber-work"


def test_whoever_is_named_instead_corrects_the_decision_that_stood(world: World) -> None:
    for name in ("plumber", "roofer"):
        world.specialists.register(card(name))
    asked = {"instructions": "do some plumber"}
    world.take("sink.yaml", spec("sink", **asked))
    world.router.route()
    wrong = world.row("sink")
    assert wrong.specialist == "plumber"

    world.take("sink.yaml", spec("sink", **asked, specialist="roofer"), mtime_ns=2)
    world.router.route()

    assert world.row("sink").specialist == "roofer"
    labels = world.database.read(lambda connection: connection.execute(select(LABEL)).all())
    assert [(label.task_id, label.rule, label.wanted) for label in labels] == [
        (wrong.id, LabelRule.OVERRIDDEN, "roofer")
    ]


def test_what_has_changed_while_it_was_decided_on_stays_as_it_is(database: Database) -> None:
    routed = Routed(database)
    routed.submit("leak")
    routed.router.route()
    routed.world.faults.note(item_of(Activity.ROUTE, routed.world.row("leak")), ValueError("no such field"))
    routed.world.service.cancel("leak")

    routed.pool.work()

    task = routed.world.row("leak")
    assert (task.state, task.specialist) == ("CANCELLED", None)
    assert len(routed.world.faults.all()) == 1, "it is not over, as nothing was done"
    assert routed.world.database.read(lambda connection: decision_rows.of_task(connection, task.id)) == []


def test_the_time_that_a_decision_took_includes_that_of_the_question(database: Database) -> None:
    routed = Routed(database)
    world, ask = routed.world, routed.model.ask
    vectors = routed.encoder.encode

    def later(after_ms: int, work: Any, *given: Any) -> Any:
        world.now_ms += after_ms
        return work(*given)

    routed.encoder.encode = partial(later, 30, vectors)  # type: ignore[method-assign]
    routed.model.ask = partial(later, 700, ask)  # type: ignore[method-assign]
    routed.submit("leak")
    routed.route()

    assert decided(world, "leak").latency_ms == 2 * 30 + 700, "the cards are encoded, the task, and a model is asked"


@pytest.mark.parametrize(
    ("condition", "rejudges"), [("now.hour < 8", True), ("spent.day.runs > 9", True), ('task.name == "t"', False)]
)
def test_a_task_is_judged_again_before_it_starts_only_where_time_or_spending_matters(
    world: World, condition: str, rejudges: bool
) -> None:
    world.policy_rules = (Rule.model_validate({"name": "it", "when": condition, "risk": "low"}),)
    world.restarted_daemon()
    assert world.router.rejudges is rejudges


def test_a_task_of_which_rules_say_something_else_by_now_is_routed_again(database: Database) -> None:
    world = World(database, total=1)
    spent = {"name": "spent", "when": "spent.day.runs >= 1", "tier": {"ceiling": "fast"}}
    world.policy_rules = (Rule.model_validate(spent),)
    world.restarted_daemon()
    world.submit("first", priority="high")
    world.submit("second")
    world.router.route()
    world.tick()
    assert world.running().keys() == {"first"}
    before = world.row("second")

    assert not world.router.reroute_stale(before), "it was judged just now"
    assert world.row("second") == before

    world.now_ms += MINUTE_MS
    assert world.router.reroute_stale(before)
    world.router.route()
    assert '"fast"' in str(world.row("second").constraints)


# --- what nobody in particular does --------------------------------------------------------------------------------


def test_without_rules_and_specialists_a_task_waits_for_no_route(database: Database) -> None:
    world = World(database, routing=True)
    world.submit("t")
    before = world.row("t")

    world.router.route()

    # It is written with whatever comes next, as a change that voids nothing which was planned.
    world.submit("next")
    after = world.row("t")
    assert (before.constraints, after.constraints) == (None, Constraints().text)
    assert after.version == before.version


@pytest.mark.parametrize(("number", "woken"), [(2, 0), (BATCH_SIZE, 1)])
def test_what_a_tick_passes_wakes_another_one_only_where_more_may_be_left(
    database: Database, number: int, woken: int
) -> None:
    world = World(database, routing=True)
    world.take("/in/t.yaml", *(spec(f"t{name}") for name in range(number)))
    wakes: list[int] = []
    world.database.on_commit(lambda: wakes.append(world.now_ms), planned=False)
    with world.database.together():
        world.router.route()
    assert len(wakes) == woken


# --- what takes its time --------------------------------------------------------------------------------------------


def test_an_encoder_that_takes_its_time_is_asked_beside_the_tick(database: Database) -> None:
    routed = Routed(database, says_at_once=False)
    routed.world.submit("named", specialist="twin-a")

    routed.router.route()
    assert routed.specialist("named") is None

    routed.pool.work()
    assert routed.specialist("named") == "twin-a"


# --- agents that remote specialists are -----------------------------------------------------------------------------


def test_over_http_only_the_operators_own_cards_are_reached_as_a_secret_may_be_sent_there(world: World) -> None:
    of = {by.id: world.access.as_(by)[Specialists] for by in (OPERATOR, ANN)}
    of["operator"].register(card("painter", url="https://painter.example"))
    of["ann"].register(card("forger", url="https://forger.example"))
    of["ann"].register(card("shepherd", url="ws-agent://shepherd"))
    of["ann"].register(card("plumber"))

    world.router.route()

    results = [
        name for name in ("http:painter", "http:forger", "hub:shepherd") if world.registry.find(name) is not None
    ]
    assert results == ["http:painter", "hub:shepherd"]

    of["operator"].remove("painter")
    world.router.route()
    assert world.registry.find("http:painter") is None


# --- the end of it --------------------------------------------------------------------------------------------------


def test_whoever_closes_it_waits_for_no_answer_and_nothing_else_is_asked(database: Database) -> None:
    routed = Routed(database)
    asked, answer = threading.Event(), threading.Event()
    pool = ThreadPoolExecutor(1)
    router = SpecialistRouter(
        database, routed.world.registry, routed.router.decider, routed.world.clock, routed.world.faults, pool
    )

    def work() -> None:
        asked.set()
        answer.wait()

    closed: list[bool] = []
    routed.encoder.close = partial(closed.append, True)  # type: ignore[method-assign]
    first, second = pool.submit(work), pool.submit(work)
    asked.wait()
    router.close()

    assert second.cancelled()
    assert closed == [True], "nor is the encoder"
    answer.set()
    first.result()
