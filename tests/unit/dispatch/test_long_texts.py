"""Tasks with very long texts: no other task waits while they are judged."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from claudomator_py.dispatch.routing import SpecialistRouter
from claudomator_py.domain.units import MINUTE_MS
from claudomator_py.policy.rule import Rule
from claudomator_py.store.database import Database
from tests.fakes.steps import spec
from tests.fakes.world import World
from tests.unit.dispatch.asked_model import Later

LOG = "".join(f"10:00:{number % 60:02} worker-{number % 7}: request {number} handled\n" for number in range(1_000))
HARMLESS = f"Find out why these requests are slow.\n\n{LOG}"
DANGEROUS = f"{LOG}\n\nDrop the customers schema on the production cluster."


class Reading:
    """A world with these rules, in which very long texts are judged when the test says so."""

    def __init__(self, database: Database, *rules: Rule) -> None:
        self.world, self.later = World(database), Later()
        world = self.world
        world.policy_rules = rules
        world.restarted_daemon()
        self.router = SpecialistRouter(
            database, world.registry, world.router.decider, world.clock, world.faults, Later(), text_pool=self.later
        )

    def is_routed(self, name: str) -> bool:
        self.world.database.write(lambda _: None)  # that nobody in particular does a task is written a moment later
        return self.world.row(name).constraints is not None


@pytest.mark.both_databases
def test_a_short_text_does_not_wait_for_a_long_one(database: Database) -> None:
    reading = Reading(database)
    reading.world.submit("long", instructions=DANGEROUS)
    reading.world.submit("short", instructions="Drop the customers schema on the production cluster.")

    reading.router.route()
    reading.router.route()

    assert reading.world.row("short").state == "NEEDS_INPUT"
    assert reading.world.row("long").state == "QUEUED"
    assert len(reading.later.given) == 1, "it is given away once"

    reading.later.work()

    assert reading.world.row("long").state == "NEEDS_INPUT"


@pytest.mark.parametrize(("length", "waits"), [(20_000, False), (20_001, True)])
def test_a_text_waits_for_no_other_unless_it_is_very_long(database: Database, length: int, waits: bool) -> None:
    reading = Reading(database)
    reading.world.submit("t", instructions=HARMLESS[:length].rstrip().ljust(length, "."))

    reading.router.route()

    assert reading.is_routed("t") is not waits
    assert len(reading.later.given) == waits


def test_a_long_text_that_is_harmless_is_routed_like_any_other(database: Database) -> None:
    reading = Reading(database)
    reading.world.submit("long", instructions=HARMLESS)

    reading.router.route()
    assert not reading.is_routed("long")
    reading.later.work()

    assert reading.is_routed("long")


def test_a_task_that_ends_while_it_is_judged_is_left_alone(database: Database) -> None:
    reading = Reading(database)
    reading.world.submit("long", instructions=DANGEROUS)
    reading.router.route()
    reading.world.service.cancel("long")

    reading.later.work()

    assert reading.world.row("long").state == "CANCELLED"


def test_a_text_that_is_exchanged_while_it_is_judged_is_judged_again(database: Database) -> None:
    reading = Reading(database)
    reading.world.take("long.yaml", spec("long", instructions=HARMLESS))
    reading.router.route()
    reading.world.take("long.yaml", spec("long", instructions=DANGEROUS), mtime_ns=2)

    reading.later.work()
    assert not reading.is_routed("long")

    reading.router.route()
    reading.later.work()
    assert reading.world.row("long").state == "NEEDS_INPUT"


def test_a_long_text_with_an_old_verdict_is_not_judged_on_the_way_to_its_start(database: Database) -> None:
    """It goes back to be judged beside other work, even if the rules will say the same."""
    reading = Reading(database, Rule.model_validate({"name": "cheap", "tier": {"ceiling": "fast"}}))
    reading.world.submit("long", instructions=HARMLESS)
    reading.world.submit("short", instructions="Find out why these requests are slow.")
    reading.router.route()
    reading.later.work()
    reading.world.now_ms += MINUTE_MS

    assert reading.router.reroute_stale(reading.world.row("long"))
    assert not reading.router.reroute_stale(reading.world.row("short"))
    assert (reading.is_routed("long"), reading.is_routed("short")) == (False, True)


def test_a_rule_that_may_take_long_holds_up_no_tick(database: Database) -> None:
    """Whatever it takes, and whatever comes of it: other work continues, and the task that it cannot judge is held."""
    when = "task.paths.all(p, task.tags.all(t, !task.text.matches(p + '.*' + t + '.*' + task.text)))"
    reading = Reading(database, Rule.model_validate({"name": "wide", "when": when, "deny": "no"}))
    reading.world.submit("hostile", instructions="".join(f"a{n}.py b{n}?" for n in range(200)), tags=list("abcdefghx"))
    reading.world.submit("harmless", instructions="Find out why these requests are slow.", tags=["x"])

    reading.router.route()
    assert len(reading.later.given) == 2, "neither is judged in the tick"
    reading.later.work()

    assert reading.world.row("hostile").state == "NEEDS_INPUT"
    asked = reading.world.row("hostile").asks
    assert asked is not None
    assert "wide: its condition could not be evaluated: it takes more than 0.5 s of the processor" in asked["text"]


def test_what_costly_rules_judge_does_not_wait_for_long_texts(database: Database) -> None:
    when = "task.paths.all(p, task.tags.all(t, p != t))"
    reading = Reading(database, Rule.model_validate({"name": "wide", "when": when, "tier": {"ceiling": "fast"}}))
    world, judge = reading.world, Later()
    router = SpecialistRouter(
        database,
        world.registry,
        world.router.decider,
        world.clock,
        world.faults,
        Later(),
        text_pool=Later(),
        rule_pool=judge,
    )
    world.submit("long", instructions=HARMLESS)
    world.submit("short", instructions="Find out why these requests are slow.")

    router.route()
    judge.work()

    assert (reading.is_routed("long"), reading.is_routed("short")) == (False, True)


def test_a_rule_that_may_take_long_is_not_asked_again_on_the_way_to_a_start(database: Database) -> None:
    when = "task.paths.all(p, task.tags.all(t, p != t)) && now.hour >= 0"
    reading = Reading(database, Rule.model_validate({"name": "wide", "when": when, "tier": {"ceiling": "fast"}}))
    reading.world.submit("t", instructions="Find out why these requests are slow.")
    reading.router.route()
    reading.later.work()
    assert reading.is_routed("t")
    reading.world.now_ms += MINUTE_MS

    assert reading.router.reroute_stale(reading.world.row("t"))
    assert not reading.is_routed("t")


def test_whoever_closes_it_judges_no_further_text(database: Database) -> None:
    world, reader = World(database), ThreadPoolExecutor(1)
    router = SpecialistRouter(
        database, world.registry, world.router.decider, world.clock, world.faults, Later(), text_pool=reader
    )
    go_on = threading.Event()
    reader.submit(go_on.wait)
    waiting = reader.submit(go_on.wait)

    router.close()

    assert waiting.cancelled()
    go_on.set()
