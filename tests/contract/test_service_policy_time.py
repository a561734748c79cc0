"""When rules are asked: as of when a task starts, again once they are others; and how long an approval is awaited."""

from functools import partial

import pytest

from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS
from claudomator_py.domain.wording import clock_text
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.scheduler.records import PolicyVerdict
from claudomator_py.store.database import Database
from tests.contract.policed import Make, follow, policed_world, records, rule
from tests.fakes.cards import card
from tests.fakes.world import START_MS, World

NOON_MS = START_MS - START_MS % (24 * HOUR_MS) + 12 * HOUR_MS


@pytest.fixture
def policed(database: Database) -> Make:
    """A world with these rules."""
    return partial(policed_world, database)


@pytest.mark.both_databases
def test_nobody_approves_in_time(policed: Make) -> None:
    world = policed(rule(approve={"within": "2h"}))
    world.submit("dig")
    world.submit("after", depends_on=["dig"])
    world.tick()
    assert world.tick(HOUR_MS).wake_ms == world.now_ms + HOUR_MS
    assert world.state("dig") == "NEEDS_INPUT approval"
    service = world.access.as_(OPERATOR)[Tasks]
    asking, due = service.get("dig"), clock_text(world.now_ms + HOUR_MS, world.now_ms)
    assert asking.asks is not None
    assert asking.waiting_until == asking.asks.until is not None
    assert f"If nobody does by {due} (in 1h), it fails: expired." in service.why("dig").sentences
    world.tick(HOUR_MS)
    assert world.state("dig") == "FAILED expired"
    assert service.get("dig").reason_text == f"Nobody approved it by {due}; it {asking.asks.text}."
    assert world.state("after") == "FAILED dependency_failed"


@pytest.mark.both_databases
def test_where_no_rule_says_by_when_the_configuration_does(database: Database) -> None:
    world = World(database, routes=True, routing=True, policed=True, answer_within_ms=2 * HOUR_MS)
    follow(world, rule(when='"own" in task.tags', approve={"within": "30m"}))
    world.access.as_(OPERATOR)[Specialists].register(card("plumber"))
    world.submit("vague", instructions="Do it.")
    world.submit("risky", instructions="Drop the customers schema on the production cluster.")
    world.submit("own", tags=["own"])
    world.submit("after", depends_on=["vague"])
    world.tick()
    assert [world.state(name) for name in ("vague", "risky")] == ["NEEDS_INPUT clarification", "NEEDS_INPUT approval"]
    world.tick(30 * MINUTE_MS)
    assert world.state("own") == "FAILED expired"
    assert world.tick(90 * MINUTE_MS - 1).wake_ms == world.now_ms + 1
    assert world.state("risky") == "NEEDS_INPUT approval"
    world.tick(1)
    assert [world.state(name) for name in ("vague", "risky")] == ["FAILED expired", "FAILED expired"]
    assert world.state("after") == "FAILED dependency_failed"


@pytest.mark.both_databases
def test_what_is_queued_is_judged_again_by_other_rules(policed: Make) -> None:
    world = policed(total=0)
    world.submit("live", tags=["prod"])
    world.tick()
    assert world.state("live").startswith("QUEUED")
    follow(world, rule("no-prod", when='"prod" in task.tags', deny="no"))
    world.tick()
    assert world.state("live") == "FAILED rejected"


@pytest.mark.both_databases
def test_a_task_that_has_waited_is_judged_as_of_when_it_would_start(policed: Make) -> None:
    world = policed(rule("two-a-day", when="spent.day.runs >= 1", deny="one is enough"), total=1)
    world.submit("first", priority="high")
    world.submit("second")
    world.tick()
    assert world.running().keys() == {"first"}
    assert [record.verdict for record in records(world, "second")] == [PolicyVerdict.ALLOWED]
    world.end("first")
    world.tick(HOUR_MS)

    assert world.running() == {}
    world.tick()
    assert world.state("second") == "FAILED rejected"
    assert [record.verdict for record in records(world, "second")] == [PolicyVerdict.ALLOWED, PolicyVerdict.DENIED]


def test_what_time_takes_away_or_gives_is_what_a_task_starts_with(policed: Make) -> None:
    night = rule("night", when="now.hour < 8 || now.hour >= 20", exclude_agents=["claude"])
    world = policed(night, total=1)
    world.now_ms = NOON_MS
    world.submit("first", priority="high")
    world.submit("second")
    world.tick()
    assert world.task("first").agent == "claude"
    world.end("first")

    world.tick(10 * HOUR_MS)
    world.tick()

    assert world.task("second").agent == "codex"


def test_one_that_was_judged_just_now_starts_whatever_the_time_says_next(policed: Make) -> None:
    flaky = rule("odd", when="now.minute % 2 == 1", approve={"by": ["admin"]})
    world = policed(flaky, total=1)
    world.now_ms = NOON_MS
    world.submit("first", priority="high")
    world.submit("second")
    world.tick()
    world.end("first")
    world.tick(59_999)

    assert world.running().keys() == {"second"}


def test_one_about_which_rules_cannot_be_asked_does_not_start(policed: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    world = policed(rule("night", when="now.hour < 8", deny="later"), total=1)
    world.now_ms = NOON_MS
    world.submit("first", priority="high")
    world.submit("second")
    world.tick()
    world.end("first")

    def broken(*_: object, **__: object) -> bool:
        raise RuntimeError("odd")

    monkeypatch.setattr(type(world.router.decider), "is_outdated", broken)
    world.tick(HOUR_MS)

    assert world.running() == {}
    assert any("odd" in fault.text for fault in world.faults.all())
