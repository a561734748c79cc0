"""A second configuration decides about the same tasks: it is recorded beside what was decided, and nothing follows."""

from functools import partial
from typing import Any

import pytest
from sqlalchemy import select

from claudomator_py.app.configured import agents_of, rules_of
from claudomator_py.dispatch import alternative
from claudomator_py.dispatch.alternative import OtherConfiguration
from claudomator_py.dispatch.card_vectors import SpecialistDirectory
from claudomator_py.dispatch.deciding import Decider
from claudomator_py.dispatch.policing import Policing
from claudomator_py.domain.card import Visibility
from claudomator_py.domain.decision import Versions
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.requests import DecisionFilter
from claudomator_py.domain.units import MINUTE_MS
from claudomator_py.embed import Hashed
from claudomator_py.lab.replay import Window, shadowed
from claudomator_py.policy.verdict import Policy
from claudomator_py.resources.decisions import DecisionView
from claudomator_py.resources.decisions.service import Decisions
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.routing.calibration import calibration_for
from claudomator_py.routing.ranking import RoutingRules
from claudomator_py.scheduler.records import ShadowRecord
from claudomator_py.schema.configfile import parse_settings
from claudomator_py.schema.routing_settings import Preset
from claudomator_py.schema.settings import Settings
from claudomator_py.store.database import Database
from claudomator_py.store.tables import DECISION
from claudomator_py.workers.shadow import Shadow
from tests.fakes.cards import card
from tests.fakes.steps import spec
from tests.fakes.world import World

ANN, BOB = Principal("ann", Role.OPERATE, "acme"), Principal("bob", Role.OPERATE, "other")
PIPES = "Mend the pipes under the sink, and its taps."


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def configuration(world: World, **keys: Any) -> OtherConfiguration:
    settings = parse_settings(keys)
    assert isinstance(settings, Settings), settings
    encoder, versions = Hashed(), Versions(configuration=rules_of(settings).settings_hash)
    calibration = calibration_for(Preset.CALIBRATED, encoder.id)
    rules = RoutingRules(calibration, settings.routing.default_specialist, versions=versions)
    directory = SpecialistDirectory(world.database, encoder, calibration, world.clock)
    policing = Policing(Policy(settings.policy), world.budgets, world.clock, reviews=True)
    given = directory if settings.routing.enabled else None
    decider = Decider(world.database, world.registry, given, given, rules, rules, world.clock, policing)
    return OtherConfiguration(rules_of(settings), agents_of(settings), decider)


def follow(world: World, **keys: Any) -> Shadow:
    """A shadow that is in force from now on."""
    made = configuration(world, **keys)
    shadow = Shadow(world.database, lambda: made, world.clock)
    assert shadow.run_once() == 0
    return shadow


def tick(world: World, after_ms: int = 0) -> None:
    """Route what is queued, and start what there is room for."""
    world.now_ms += after_ms
    world.router.route()
    world.tick()


def recorded(world: World, by: Principal = OPERATOR, **wanted: Any) -> list[DecisionView]:
    """The oldest first."""
    asked = DecisionFilter(kind="shadow", **wanted)
    return list(reversed(world.access.as_(by)[Decisions].page(asked, limit=100).items))


def said(world: World, decision: DecisionView, by: Principal = OPERATOR) -> tuple[str, ...]:
    return world.access.as_(by)[Decisions].explained(decision.id).sentences


@pytest.mark.both_databases
def test_a_placement_is_decided_by_the_other_agents_too(world: World) -> None:
    shadow = follow(world, agents={"z": {"kind": "claude", "default_tier": "fast"}})
    world.submit("a")
    tick(world)

    assert shadow.run_once() == 1

    of = {decision.shadow.about: decision for decision in recorded(world) if decision.shadow is not None}
    placed = of["placement"]
    assert placed.shadow is not None
    beside = placed.shadow.beside
    made = world.decisions.get(beside)
    assert (made.kind, placed.agent, placed.tier) == ("placement", "z", "fast")
    assert (placed.shadow.actual.agent, placed.shadow.differs) == (made.agent, True)
    assert [agent.agent for agent in placed.agents] == ["z"]
    assert said(world, placed) == (
        "Under the other configuration: agent z, tier fast, model haiku. Least active.",
        f"Actually decided: agent {made.agent}, tier {made.tier}, model {made.model}.",
        "This decision has no effect.",
    )


def test_one_without_agents_of_its_own_decides_among_those_that_there_are(world: World) -> None:
    shadow = follow(world)
    world.submit("a", agent={"tier": "fast"})
    tick(world)
    shadow.run_once()

    placed = [
        entry.shadow for entry in recorded(world) if entry.shadow is not None and entry.shadow.about == "placement"
    ]
    assert [entry.differs for entry in placed] == [False]


def test_who_would_wait_is_on_no_agent(world: World) -> None:
    shadow = follow(world, concurrency={"total": 1})
    world.submit("a", working_dir=None)
    world.submit("b", working_dir=None)
    tick(world)
    shadow.run_once()

    placed = [entry for entry in recorded(world) if entry.shadow is not None and entry.shadow.about == "placement"]
    assert [(entry.agent, entry.shadow is not None and entry.shadow.differs) for entry in placed].count(
        (None, True)
    ) == 1
    (waits,) = [entry for entry in placed if entry.agent is None]
    assert waits.rationale is not None
    assert waits.rationale.code == "would_wait"
    assert said(world, waits)[0].startswith("Under the other configuration: it would have waited.")


@pytest.mark.both_databases
def test_another_policy_refuses_and_holds_what_was_allowed_and_nothing_is_stopped(world: World) -> None:
    rules = [
        {"name": "no-deploys", "when": "'deploy' in task.tags", "deny": "not at night"},
        {"name": "ask", "when": "'ask' in task.tags", "approve": {"by": ["ann"]}},
    ]
    shadow = follow(world, policy=rules)
    world.submit("refused", tags=["deploy"])
    world.submit("held", tags=["ask"])
    world.submit("free")
    tick(world)
    shadow.run_once()

    results = {
        decision.task_name: decision
        for decision in recorded(world)
        if decision.shadow is not None and decision.shadow.about == "specialist"
    }
    verdicts = {
        name: decision.verdict and (decision.verdict.verdict, decision.verdict.rules)
        for name, decision in results.items()
    }
    assert verdicts["refused"] == ("denied", ("no-deploys",))
    assert verdicts["held"] == ("held", ("ask",))
    assert {name: decision.shadow and decision.shadow.differs for name, decision in results.items()} == {
        "refused": True,
        "held": True,
        "free": False,
    }
    assert [check.matched for check in results["refused"].policy_checks] == [True]
    assert said(world, results["refused"])[0] == (
        "Under the other configuration: the policy refuses it. Rule no-deploys of the policy refuses it: not at night."
    )
    assert len(world.running()) == 3, "nothing follows"


def test_another_specialist_is_named_with_those_who_were_compared(world: World) -> None:
    world.specialists.register(card("plumber", description="Mends pipes, sinks and taps.", skills=[]))
    shadow = follow(world, policy=[{"name": "r", "when": "'x' in task.tags", "exclude_specialists": ["plumber"]}])
    world.submit("drip", instructions=PIPES, tags=["x"])
    tick(world)
    assert world.service.get("drip").specialist == "plumber"
    shadow.run_once()

    (decision,) = [
        entry for entry in recorded(world) if entry.shadow is not None and entry.shadow.about == "specialist"
    ]
    assert decision.shadow is not None
    assert decision.shadow.differs
    assert (decision.specialist, decision.shadow.actual.specialist) == (None, "plumber")
    assert recorded(world, specialist="plumber") == []


@pytest.mark.both_databases
def test_each_decision_is_followed_once_also_by_a_daemon_that_was_killed_in_between(world: World) -> None:
    rules = [{"name": "no", "when": "'x' in task.tags", "deny": "no"}]
    shadow = follow(world, policy=rules)
    world.submit("a")
    tick(world)
    before = shadow.run_once()
    assert before > 0
    assert shadow.run_once() == 0
    world.submit("b", tags=["x"])
    tick(world, MINUTE_MS)

    # Killed here; the next one has the same configuration.
    made = configuration(world, policy=rules)
    after = Shadow(world.database, lambda: made, world.clock)
    assert after.run_once() == before
    assert after.run_once() == 0
    assert len(recorded(world)) == 2 * before


def test_a_decision_that_is_committed_late_is_followed(world: World) -> None:
    shadow = follow(world)
    world.submit("a")
    tick(world)
    late = world.database.read(
        lambda c: c.execute(select(DECISION.c.id).where(DECISION.c.kind == "placement"))
    ).scalar()
    kind = partial(DECISION.update().where(DECISION.c.id == late).values)
    world.database.write(lambda c: c.execute(kind(kind="tier")))
    world.submit("b")
    tick(world, 1_000)
    shadow.run_once()
    world.database.write(lambda c: c.execute(kind(kind="placement")))

    assert shadow.run_once() > 0
    assert late in {entry.shadow.beside for entry in recorded(world) if entry.shadow is not None}


def test_what_was_decided_before_it_was_put_in_force_is_left_alone(world: World) -> None:
    world.submit("a")
    tick(world)
    world.now_ms += 1_000
    shadow = follow(world)

    assert shadow.run_once() == 0
    assert recorded(world) == []


def test_another_one_follows_from_its_own_time_on(world: World) -> None:
    first = configuration(world)
    second = configuration(world, concurrency={"total": 7})
    in_force = [first]
    shadow = Shadow(world.database, lambda: in_force[0], world.clock)
    shadow.run_once()
    world.submit("a")
    tick(world)
    number = shadow.run_once()
    in_force[0] = second
    world.now_ms += 1_000
    assert shadow.run_once() == 0
    world.submit("b")
    tick(world)
    assert shadow.run_once() == number

    versions = [entry.versions.configuration for entry in recorded(world)]
    assert set(versions) == {first.hash, second.hash}
    assert versions.count(second.hash) == number


def test_it_is_in_no_list_and_no_explanation_of_what_was_decided(world: World) -> None:
    shadow = follow(world)
    world.submit("a")
    tick(world)
    shadow.run_once()
    task_id = world.service.get("a").id

    everything = world.decisions.page(limit=100).items
    assert everything
    assert {entry.kind for entry in everything}.isdisjoint({"shadow"})
    of_task = world.decisions.page(DecisionFilter(task=task_id), limit=100).items
    assert {entry.kind for entry in of_task}.isdisjoint({"shadow"})
    explained = world.service.why("a").model_dump_json()
    assert not any(decision.id in explained for decision in recorded(world))


def test_a_specialist_who_does_not_exist_for_whoever_asks_is_not_named(world: World) -> None:
    world.specialists.register(card("plumber", description="Mends pipes, sinks and taps.", skills=[]))
    shadow = follow(world)
    world.access.as_(ANN)[Tasks].submit(spec("drip", instructions=PIPES))
    tick(world)
    shadow.run_once()
    assert "plumber" in {entry.specialist for entry in recorded(world, ANN)}
    world.specialists.change(card("plumber", visibility=Visibility.PRIVATE))

    decisions = recorded(world, ANN)
    assert len(decisions) == 2
    for decision in decisions:
        assert "plumber" not in decision.model_dump_json()
        assert "plumber" not in " ".join(said(world, decision, ANN))
    assert recorded(world, BOB) == []


def test_one_that_fails_keeps_no_other_from_being_followed(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shadow = follow(world)
    world.submit("a")
    world.submit("b")
    tick(world)
    broken: list[str] = []

    def sometimes(**fields: Any) -> Any:
        if not broken:
            broken.append(fields["beside"])
            raise RuntimeError("odd")
        return ShadowRecord(**fields)

    monkeypatch.setattr(alternative, "ShadowRecord", sometimes)
    assert shadow.run_once() > 0
    assert "shadow_failed" in caplog.text
    assert shadow.run_once() == 0


def test_what_would_differ_is_summed_up(world: World) -> None:
    shadow = follow(
        world,
        agents={"z": {"kind": "claude", "default_tier": "fast"}},
        policy=[{"name": "no-deploys", "when": "'deploy' in task.tags", "deny": "not at night"}],
    )
    for name, tags in (("a", ["deploy"]), ("b", []), ("c", [])):
        world.submit(name, tags=tags)
    tick(world)
    shadow.run_once()

    result = shadowed(world.database, Window())

    assert (result.placements.number, result.placements.total, result.waits) == (3, 3, 1)
    assert sum(agent.number for agent in result.agents if agent.after == "z") == 2
    assert [(verdict.before, verdict.after, verdict.number) for verdict in result.verdicts] == [
        ("allowed", "denied", 1)
    ]
    assert (result.policy.number, result.policy.total) == (1, 3)
    assert shadowed(world.database, Window(until_ms=world.now_ms)).placements.total == 0
