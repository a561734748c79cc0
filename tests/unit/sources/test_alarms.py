"""The alarms that ring when schedules fire, and the names of zones."""

import threading
from datetime import UTC
from typing import cast
from unittest.mock import Mock

import pytest
from freezegun import freeze_time

from claudomator_py.domain.schedule import Recurrence
from claudomator_py.schema.zones import known_zone, local_zone
from claudomator_py.sources.alarms import Alarms
from claudomator_py.sources.schedules import CronWorker, ScheduleRunner
from claudomator_py.store.database import StoreUnavailable
from tests.patience import PATIENCE_S


def test_zones_are_known_by_name() -> None:
    assert known_zone("Europe/Berlin")
    assert known_zone(local_zone())
    for unknown in ("Europe/Atlantis", "", "../etc/passwd", "/etc/passwd", "Europe"):
        assert not known_zone(unknown)


def test_alarms_ring_at_the_start_when_it_is_time_and_when_asked() -> None:
    rung = threading.Semaphore(0)
    with freeze_time("2026-11-22T01:59:58Z", tick=True):
        alarms = Alarms(rung.release)
        try:
            alarms.start()
            assert rung.acquire(timeout=PATIENCE_S), "at the start"
            alarms.set({"nightly": Recurrence("* * * * *", UTC)})
            # On a machine so busy that two o'clock has passed by now, a minute later.
            assert rung.acquire(timeout=PATIENCE_S), "when it was time"
            alarms.soon()
            assert rung.acquire(timeout=PATIENCE_S), "when asked"
        finally:
            alarms.close()
        alarms.soon()
        assert not rung.acquire(timeout=0)


def test_alarms_ring_again_after_the_clock_was_set_back_by_years(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("claudomator_py.sources.alarms._SAFETY_S", 0.05)
    rung = threading.Semaphore(0)
    alarms = Alarms(rung.release)
    try:
        with freeze_time("2099-01-01T00:00:00Z", tick=True):
            alarms.start()
            assert rung.acquire(timeout=PATIENCE_S)
        while rung.acquire(timeout=0.01):
            pass
        assert all(rung.acquire(timeout=PATIENCE_S) for _ in range(3))
    finally:
        alarms.close()


def test_closing_waits_for_a_ring_that_sets_the_times() -> None:
    begun, go = threading.Event(), threading.Event()
    done: list[bool] = []

    def ring() -> None:
        begun.set()
        assert go.wait(timeout=PATIENCE_S)
        alarms.set({})
        done.append(True)

    alarms = Alarms(ring)
    alarms.start()
    assert begun.wait(timeout=PATIENCE_S)
    closing = threading.Thread(target=alarms.close, daemon=True)
    closing.start()
    closing.join(timeout=0.5)  # it cannot have ended, and by then it waits
    go.set()
    closing.join(timeout=PATIENCE_S)
    assert (closing.is_alive(), done) == (False, [True])


def _cron_worker(has_any: Mock) -> tuple[CronWorker, threading.Event]:
    met = threading.Event()
    runner = Mock(spec=ScheduleRunner, has_any=has_any, run_due=met.set)
    runner.recurrences.return_value = {}
    return CronWorker(cast("ScheduleRunner", runner), lambda: True), met


def test_where_there_is_no_schedule_nothing_rings_until_there_is_one() -> None:
    cron_worker, met = _cron_worker(Mock(return_value=False))
    before = threading.active_count()
    try:
        cron_worker.start()
        assert threading.active_count() == before
        cron_worker.wake()
        assert met.wait(PATIENCE_S)
    finally:
        cron_worker.close()
    met.clear()
    cron_worker.wake()
    assert not met.wait(0.1)


def test_where_nobody_knows_whether_there_is_one_it_rings() -> None:
    cron_worker, met = _cron_worker(Mock(side_effect=StoreUnavailable("it is locked", "wait")))
    try:
        cron_worker.start()
        assert met.wait(PATIENCE_S)
    finally:
        cron_worker.close()
