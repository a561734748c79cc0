"""When the daemon learns: beside everything else, and whatever becomes of the database meanwhile."""

from collections.abc import Callable
from threading import Event, Thread

import pytest

from claudomator_py import workers
from claudomator_py.domain.units import SECOND_MS
from claudomator_py.schema.routing_settings import LearningSettings
from claudomator_py.store import learning_rows
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.tasks.learning import has_more
from claudomator_py.workers import learning
from claudomator_py.workers.learning import Learner
from tests.fakes.world import World
from tests.patience import PATIENCE_S


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def learner(world: World, every_ms: int = 10 * SECOND_MS) -> Learner:
    return Learner(world.database, lambda: LearningSettings.model_construct(every=every_ms, rate=0.1), world.clock)


@pytest.mark.both_databases
def test_what_happened_before_it_first_began_is_not_looked_at(world: World) -> None:
    world.submit("before")
    entry = learner(world)
    entry.run_once()
    assert world.database.read(learning_rows.progress) is None, "there was nothing to learn, so nothing is written"

    world.submit("after")
    entry.run_once()

    progress = world.database.read(learning_rows.progress)
    assert progress is not None
    assert not world.database.read(has_more)


def test_it_learns_by_itself_and_goes_on_after_trouble(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "FIRST_S", 0.01)
    monkeypatch.setattr(workers, "RETRY_S", 0.02)
    rounds, enough, entry = [0], Event(), learner(world, every_ms=20)
    learn: Callable[[], None] = entry.run_once

    def round_() -> None:
        rounds[0] += 1
        if rounds[0] == 1:
            raise StoreUnavailable("it is locked", "wait")
        if rounds[0] == 2:
            raise RuntimeError("a fault of ours")
        learn()
        enough.set()

    monkeypatch.setattr(entry, "run_once", round_)
    entry.start()
    try:
        assert enough.wait(PATIENCE_S)
    finally:
        entry.close()
    assert rounds[0] >= 3


def test_it_closes_before_it_began(world: World) -> None:
    learner(world).close()


def test_closing_waits_for_a_round_that_is_to_be_less_often_from_then_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning, "FIRST_S", 0.01)
    every, begun, go, done = [20], Event(), Event(), Event()

    def settings() -> LearningSettings:
        return LearningSettings.model_construct(every=every[0], rate=0.1)

    learner = Learner(world.database, settings, world.clock)

    def round_() -> None:
        begun.set()
        assert go.wait(PATIENCE_S)
        every[0] = 10 * SECOND_MS
        done.set()

    monkeypatch.setattr(learner, "run_once", round_)
    learner.start()
    assert begun.wait(PATIENCE_S)
    closing = Thread(target=learner.close, daemon=True)
    closing.start()
    closing.join(timeout=0.5)  # it cannot have ended, and by then it waits
    go.set()
    closing.join(timeout=PATIENCE_S)
    assert (closing.is_alive(), done.is_set()) == (False, True)
