"""Schedules of a real daemon: what is due is made once, whatever becomes of the daemon, and runs."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from claudomator_py.client import ServiceProblem
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS
from claudomator_py.resources.schedules import ScheduleView
from tests.e2e.daemon import Daemon
from tests.e2e.site import Site
from tests.patience import wait_until

HOURLY = "instructions: 'do: true'\nschedule: '0 * * * *'\noverlap: queue\ncatch_up: {}\n"
POINTS = ("schedule-due", "schedule-met")
"""The crash points on the way of a schedule's task; ``test_crash_points`` leaves them to this module."""


def schedule(daemon: Daemon, name: str) -> ScheduleView | None:
    return next((schedule for schedule in daemon.client.schedules() if schedule.name == name), None)


def added(site: Site, policy: str) -> Daemon:
    """A daemon that has taken a file with an hourly schedule."""
    daemon = site.start().ready()
    site.drop("hourly.yaml", HOURLY.format(policy))
    wait_until(lambda: schedule(daemon, "hourly"), "the schedule")
    return daemon


def set_back(site: Site, duration_ms: int) -> None:
    """Have so much of the schedule's time pass while no daemon runs."""
    with closing(sqlite3.connect(site.state / "claudomator.db")) as connection, connection:
        changed = connection.execute("UPDATE schedule SET last_ms = last_ms - ?", (duration_ms,))
        assert changed.rowcount == 1


def made(daemon: Daemon) -> list[str]:
    return sorted(task.name for task in daemon.client.all_tasks())


def test_what_was_missed_is_made_at_the_start_and_runs(site: Site) -> None:
    daemon = added(site, "all")
    daemon.stop()
    set_back(site, 3 * HOUR_MS)
    daemon = site.start().ready()
    wait_until(lambda: len(made(daemon)) >= 3, "the tasks of three hours")
    tasks = site.drain(daemon)
    assert {task.state for task in tasks.values()} == {"COMPLETED"}
    # One more if the hour has just turned.
    assert len(tasks) in (3, 4)
    assert all(task.name.startswith("hourly.2") for task in tasks.values())


@pytest.mark.slow
def test_what_is_due_is_made_while_the_daemon_runs(site: Site) -> None:
    daemon = site.start().ready()
    site.drop("minutely.yaml", "instructions: 'do: true'\nschedule: '* * * * *'\n")
    wait_until(lambda: schedule(daemon, "minutely"), "the schedule")
    task = wait_until(lambda: next(iter(daemon.client.all_tasks()), None), "the minute to turn")
    why = daemon.client.why(task.id).sentences
    assert any("made by the schedule minutely" in sentence for sentence in why), why


@pytest.mark.parametrize("point", POINTS)
def test_a_daemon_killed_on_the_way_makes_each_task_once(site: Site, point: str) -> None:
    added(site, "all").stop()
    set_back(site, 3 * HOUR_MS)
    assert site.start(crash_at=point).wait() == -9, "the crash point was not passed"
    daemon = site.start().ready()
    wait_until(lambda: len(made(daemon)) >= 3, "the tasks of three hours")
    tasks = site.drain(daemon)
    names = [task.name for task in tasks.values()]
    assert len(names) == len(set(names))
    assert len(names) in (3, 4)
    assert all(task.state == "COMPLETED" and task.runs == 1 for task in tasks.values())


def test_the_schedule_of_a_file_that_was_deleted_meanwhile_makes_nothing(site: Site) -> None:
    added(site, "all").stop()
    set_back(site, 3 * HOUR_MS)
    (site.inbox / "hourly.yaml").unlink()
    daemon = site.start().ready()
    wait_until(lambda: schedule(daemon, "hourly") is None, "the end of the schedule")
    assert made(daemon) == []


def test_a_schedule_is_paused_run_by_hand_and_outlives_the_daemon(site: Site) -> None:
    daemon = added(site, "skip")
    daemon.client.pause_schedule("hourly")
    daemon.stop()
    set_back(site, 30 * MINUTE_MS)
    daemon = site.start().ready()
    view = daemon.client.schedule("hourly")
    assert (view.next_at, view.paused_since is not None) == (None, True)
    task = daemon.client.run_schedule("hourly")
    site.drain(daemon)
    assert daemon.client.task(task.id).state == "COMPLETED"
    with pytest.raises(ServiceProblem, match="follows the file"):
        daemon.client.delete_schedule("hourly")
    assert Path(str(daemon.client.schedule("hourly").file_path)).name == "hourly.yaml"
