"""Offering files: how many at once follows from how long that took, and one that cannot be taken keeps no other."""

from collections.abc import Collection, Mapping, Sequence

import pytest

from claudomator_py.domain.errors import Problem
from claudomator_py.schema.taskfile import parse_task_file
from claudomator_py.sources.inbox.arrivals import MAX_BATCH, Offering
from claudomator_py.sources.inbox.ledger import FileReading, FileStamp, InboxReading
from claudomator_py.store import StoreUnavailable


class Slow:
    """An intake that takes so long. bad: a name that it cannot take; down: the store cannot be reached."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.takes_s = 0.0
        self.bad: str | None = None
        self.down = False

    def clock(self) -> float:
        return self.now_s

    was_planned = False

    def known_files(self) -> Mapping[str, FileStamp]:
        return {}

    def take(self, readings: Sequence[FileReading]) -> Sequence[Sequence[Problem]]:
        self.now_s += self.takes_s
        if self.down:
            raise StoreUnavailable("it is away", remedy="bring it back")
        if any(reading.path == self.bad for reading in readings):
            raise RuntimeError(self.bad)
        return [() for _ in readings]

    def gone(self, paths: Collection[str]) -> None: ...

    def archived(self, paths: Collection[str]) -> None: ...


def readings(number: int) -> list[FileReading]:
    parsed = parse_task_file(b"name: a\ninstructions: x\n", "a.yaml")
    return [InboxReading(f"/inbox/{name}.yaml", FileStamp(1, 2, 3), parsed) for name in range(number)]


def test_more_are_offered_while_it_is_fast_and_fewer_once_it_is_slow() -> None:
    intake = Slow()
    offering = Offering(intake, intake.clock)
    first = offering.batch_size
    for _ in range(10):
        offering.offer(readings(offering.batch_size))
    assert first < offering.batch_size == MAX_BATCH
    intake.takes_s = 0.5
    offering.offer(readings(MAX_BATCH))
    assert offering.batch_size == MAX_BATCH, "neither slow nor fast"
    intake.takes_s = 2.0
    offering.offer(readings(MAX_BATCH))
    assert offering.batch_size == MAX_BATCH // 2
    for _ in range(10):
        offering.offer(readings(offering.batch_size))
    assert 1 < offering.batch_size < first


def test_a_file_that_cannot_be_taken_keeps_no_other() -> None:
    intake = Slow()
    intake.bad = "/inbox/1.yaml"
    fine, wrong, last = Offering(intake, intake.clock).offer(readings(3))
    assert not fine
    assert not last
    assert [entry.message for entry in wrong] == ["it is valid, but could not be taken (RuntimeError)"]


@pytest.mark.parametrize("number", [1, 3])
def test_without_a_store_nothing_is_said_of_the_files(number: int) -> None:
    intake = Slow()
    intake.down = True
    with pytest.raises(StoreUnavailable):
        Offering(intake, intake.clock).offer(readings(number))
