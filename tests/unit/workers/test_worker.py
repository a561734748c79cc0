"""What is done in the background: when its rounds are, and what becomes of one that fails."""

from collections.abc import Callable, Iterator
from threading import Event, Semaphore

import pytest

from claudomator_py import workers
from claudomator_py.domain.health import Trouble
from claudomator_py.store.database import StoreUnavailable
from claudomator_py.workers import Worker
from tests.patience import PATIENCE_S

NOW_MS = 1_790_000_000_000


class Counting(Worker):
    """Notes each round. next_s: as ``pause_s`` returns it."""

    def __init__(self, next_s: float | None = None, settle_s: float = 0.0) -> None:
        super().__init__("counting", lambda: NOW_MS, settle_s=settle_s)
        self.next_s = next_s
        self.rounds = 0
        self.done = Semaphore(0)
        self.work: Callable[[], None] = lambda: None

    def run_once(self) -> None:
        self.rounds += 1
        try:
            self.work()
        finally:
            self.done.release()

    def pause_s(self) -> float | None:
        return self.next_s

    def awaited(self) -> None:
        assert self.done.acquire(timeout=PATIENCE_S)


@pytest.fixture
def counting() -> Iterator[Counting]:
    made = Counting()
    yield made
    made.close()


def test_it_begins_at_once_and_again_whenever_it_is_woken(counting: Counting) -> None:
    counting.start()
    counting.awaited()
    counting.wake()
    counting.awaited()
    assert counting.rounds == 2


def test_it_begins_again_after_its_pause_if_nothing_wakes_it(counting: Counting) -> None:
    counting.next_s = 0.001
    counting.start()
    for _ in range(3):
        counting.awaited()


def test_what_wakes_it_in_a_burst_is_one_round() -> None:
    settling = Counting(settle_s=0.05)
    try:
        for _ in range(100):
            settling.wake()
        settling.start()
        settling.awaited()
        assert not settling.done.acquire(timeout=0.2)
        assert settling.rounds == 1
    finally:
        settling.close()


def test_what_wakes_it_in_the_midst_of_a_round_has_another_follow(counting: Counting) -> None:
    begun, go = Event(), Event()

    def waits() -> None:
        begun.set()
        assert go.wait(PATIENCE_S)

    counting.work = waits
    counting.start()
    assert begun.wait(PATIENCE_S)
    counting.wake()
    go.set()
    counting.awaited()
    counting.awaited()
    assert counting.rounds == 2


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (StoreUnavailable("the disk is full", "make room"), "the disk is full; make room"),
        (RuntimeError("a secret of somebody's"), "its work failed (RuntimeError)"),
    ],
)
def test_a_round_that_fails_is_told_of_and_tried_again(
    counting: Counting, monkeypatch: pytest.MonkeyPatch, error: Exception, problem: str
) -> None:
    monkeypatch.setattr(workers, "RETRY_S", 0.001)
    second, again = Event(), Event()

    def fails() -> None:
        if counting.rounds == 2:
            second.set()
            assert again.wait(PATIENCE_S)
        if counting.rounds < 3:
            raise error

    counting.work = fails
    counting.start()
    counting.awaited()
    assert second.wait(PATIENCE_S)
    assert counting.trouble == Trouble(problem, NOW_MS)
    check = counting.check()
    assert check is not None
    assert (check.name, check.ok, check.blocking) == ("counting", False, False)
    assert problem in check.detail
    again.set()
    counting.awaited()
    counting.awaited()
    counting.close()
    assert counting.rounds == 3
    assert counting.check() is None


def test_it_closes_before_it_began_and_twice(counting: Counting) -> None:
    counting.close()
    counting.close()
    assert counting.rounds == 0


def test_a_round_that_is_stuck_ends_with_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "STOP_S", 0.01)
    stuck, go, begun = Counting(), Event(), Event()

    def waits() -> None:
        begun.set()
        go.wait(PATIENCE_S)

    stuck.work = waits
    stuck.start()
    assert begun.wait(PATIENCE_S)
    stuck.close()
    assert stuck.rounds == 1
    go.set()
