"""Tasks with very long texts: no other task waits while they are judged."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from claudomator_py.dispatch.routing import SpecialistRouter
from claudomator_py.store.database import Database
from tests.fakes.world import World, spec
from tests.unit.dispatch.asked_model import Later

LOG = "".join(f"10:00:{number % 60:02} worker-{number % 7}: request {number} handled\n" for number in range(1_000))
HARMLESS = f"Find out why these requests are slow.\n\n{LOG}"
DANGEROUS = f"{LOG}\n\nDrop the customers schema on the production cluster."


class Reading:
    """A world in which very long texts are judged when the test says so."""

    def __init__(self, database: Database) -> None:
        self.world, self.later = World(database), Later()
        world = self.world
        self.router = SpecialistRouter(
            database, world.registry, world.router.decider, world.clock, world.faults, Later(), reader=self.later
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


def test_whoever_closes_it_judges_no_further_text(database: Database) -> None:
    world, reader = World(database), ThreadPoolExecutor(1)
    router = SpecialistRouter(
        database, world.registry, world.router.decider, world.clock, world.faults, Later(), reader=reader
    )
    go_on = threading.Event()
    reader.submit(go_on.wait)
    waiting = reader.submit(go_on.wait)

    router.close()

    assert waiting.cancelled()
    go_on.set()
