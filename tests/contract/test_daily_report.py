"""The report that a daemon makes by itself: when, once, and who is told of it."""

from datetime import datetime
from typing import Any

import pytest

from claudomator_py.domain.notice import EventContext, NoticeKind, NotifyTarget, notice_of
from claudomator_py.schema.settings import Settings
from claudomator_py.store.database import Database
from claudomator_py.store.events import EventQuery, newest
from claudomator_py.store.tables import Event
from claudomator_py.workers.daily_report import MADE, DailyReporter
from tests.contract.test_service_report import run
from tests.fakes.world import World


@pytest.fixture
def world(database: Database) -> World:
    return World(database, total=20)


class Daily:
    """The worker of a daemon that is configured so, at a time that a test sets."""

    def __init__(self, world: World, **settings: Any) -> None:
        self._world = world
        self.settings = Settings.model_validate({"report": settings})

    def at(self, text: str) -> bool:
        """Whether a worker that has just begun makes a report at that time, as UTC has it."""
        self._world.now_ms = round(datetime.fromisoformat(f"2026-{text}+00:00").timestamp() * 1_000)
        world = self._world
        return DailyReporter(world.database, world.write_report, lambda: self.settings, world.clock).run_once()


def made(world: World) -> list[Event]:
    events = world.database.read(lambda connection: newest(connection, 9, EventQuery(kinds=(MADE,))))
    return list(events)


def test_a_report_is_made_once_a_day_whatever_becomes_of_the_daemon(world: World) -> None:
    daily = Daily(world, at="07:00", timezone="Europe/Berlin")
    messages = [daily.at(f"11-28T{time}") for time in ("05:59", "06:00", "06:01", "08:59")]
    assert messages == [False, True, False, False]
    assert [daily.at(f"11-29T{time}") for time in ("05:00", "09:00", "09:01")] == [False, True, False]
    assert len(made(world)) == 2


def test_a_report_that_is_hours_late_is_left_out(world: World) -> None:
    daily = Daily(world, at="07:00", timezone="UTC")
    assert not daily.at("11-28T10:01")
    assert daily.at("11-28T10:00")


def test_a_clock_that_was_ahead_and_is_set_back_leaves_out_no_report_and_repeats_none(world: World) -> None:
    daily = Daily(world, at="07:00", timezone="UTC")
    assert daily.at("11-28T07:00")
    assert daily.at("12-28T07:30"), "a month ahead"
    assert [daily.at(f"11-{time}") for time in ("28T07:30", "29T07:00", "29T07:01")] == [False, True, False]


def test_without_a_time_there_is_no_report(world: World) -> None:
    assert not Daily(world).at("11-28T07:00")


@pytest.mark.parametrize(("day", "due"), [("03-29", "05:00"), ("10-25", "06:00")], ids=["set forward", "set back"])
def test_a_change_of_clocks_moves_no_report(world: World, day: str, due: str) -> None:
    """In Berlin they are set at 01:00 UTC of that day."""
    daily = Daily(world, at="07:00", timezone="Europe/Berlin")
    hour = int(due[:2])
    assert [daily.at(f"{day}T{time}") for time in (f"{hour - 1:02}:59", due)] == [False, True]


def test_the_daily_report_is_told_to_those_who_want_it_in_the_zone_of_its_time(world: World) -> None:
    run(world, "one", cost_usd=0.4)
    daily = Daily(world, at="07:00", timezone="Asia/Tokyo")
    assert daily.at("09-21T22:00")
    (event,) = made(world)
    notice = notice_of(EventContext(1, "then", event.kind, dict(event.data), None, None, None, None, None))
    assert notice is not None
    assert (notice.kind, notice.title) == (NoticeKind.REPORT, "1 done; $0.40")
    assert "From 2026-09-21 07:00 JST to 2026-09-22 07:00 JST: 1 run ended." in notice.text
    assert NoticeKind.REPORT in NotifyTarget(url="https://phone/").events
