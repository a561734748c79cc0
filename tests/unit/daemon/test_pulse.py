"""What readiness and the service manager hear of a loop that hangs, and of requests that it does not get to."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import pytest

from claudomator_py.daemon.health import LATE_S, Pulse
from claudomator_py.daemon.loop import Daemon
from claudomator_py.daemon.systemd import Notifier, Supervision
from claudomator_py.dispatch.reconciler import LiveStep, OverdueRequest, TickReport
from claudomator_py.faults import Activity, Item
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.migrate import migrate
from tests.fakes.service_manager import ServiceManager
from tests.patience import PATIENCE_S

IDLE = TickReport(0, (), None)
READING = Item(Activity.COLLECT, "run", "fix-login (run 12ab34cd)")


class Clock:
    """Seconds that a test lets pass."""

    def __init__(self) -> None:
        self.s = 1_000.0

    def monotonic(self) -> float:
        return self.s

    def epoch_ms(self) -> int:
        return int(self.s * 1000)


def pulse_of(clock: Clock, doing: Item | None = None) -> Pulse:
    return Pulse(lambda: doing, clock.epoch_ms, clock.monotonic)


def test_a_tick_that_hangs_is_late_after_a_minute_and_says_what_it_works_on() -> None:
    clock = Clock()
    pulse = pulse_of(clock, READING)
    clock.s += LATE_S
    assert pulse.steady
    clock.s += 1
    check = pulse.check()
    assert (check.ok, check.blocking) == (False, True)
    assert check.detail == "no tick has completed for 1m1s; it is reading the run of fix-login (run 12ab34cd)"
    pulse.came_round(None)
    assert pulse.check().ok


def test_a_request_that_ticks_do_not_get_to_is_late_after_a_minute() -> None:
    clock = Clock()
    pulse = pulse_of(clock)
    asked = OverdueRequest("endless", clock.epoch_ms())
    for passed_s, steady in ((LATE_S, True), (1, False)):
        clock.s += passed_s
        pulse.came_round(asked)
        assert pulse.steady is steady
    assert "that endless is to be stopped was asked for at 1970-01-01T00:16:40" in pulse.check().detail
    pulse.came_round(None)
    assert pulse.steady


def test_the_service_manager_hears_no_sign_of_life_while_a_request_is_late(tmp_path: Path) -> None:
    clock = Clock()
    pulse = pulse_of(clock)
    with ServiceManager(tmp_path / "notify") as manager, Database.open("sqlite", state_dir=tmp_path) as database:
        migrate(database)
        notifier = Notifier(manager.address, watchdog_s=1.0)
        supervision = Supervision(notifier, database, clock.epoch_ms, pulse)
        asked = OverdueRequest("endless", clock.epoch_ms())
        for signs in (1, 0):
            pulse.came_round(asked)
            asyncio.run(supervision.ticked())
            assert sum("WATCHDOG" in message for message in manager.pending()) == signs
            clock.s += LATE_S + 1


class Ticking:
    """In the place of the reconciler: each tick is the next of these, and after the last the daemon stops."""

    def __init__(self, *ticks: Callable[[], TickReport], sweeps: tuple[Exception, ...] = ()) -> None:
        self.ticks = list(ticks)
        self.sweeps = list(sweeps)
        self.daemon: Daemon | None = None

    def sweep(self) -> list[str]:
        if self.sweeps:
            raise self.sweeps.pop(0)
        return []

    def tick(self, *, starting: bool = True) -> TickReport:
        assert self.daemon is not None
        if len(self.ticks) == 1:
            self.daemon.stop()
        else:
            self.daemon.wake()
        return self.ticks.pop(0)()


class Watch:
    """Notices nothing, and for a while cannot even be asked to."""

    def __init__(self, *errors: OSError) -> None:
        self.errors = list(errors)
        self.watched: list[str] = []

    def watch(self, live: Iterable[tuple[str, int]]) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.watched += [run_id for run_id, _ in live]


async def nothing() -> None:
    pass


def daemon_of(
    ticking: Ticking, watch: Watch | None = None, ticked: Callable[[], Awaitable[None]] = nothing
) -> tuple[Daemon, Pulse]:
    clock = Clock()
    pulse = pulse_of(clock)
    daemon = Daemon(
        ticking,  # type: ignore[arg-type]  # of a reconciler a loop uses no more than it has
        (watch or Watch()).watch,
        clock.epoch_ms,
        lambda: True,
        pulse=pulse,
        ticked=ticked,
    )
    ticking.daemon = daemon
    return daemon, pulse


def fails(error: Exception) -> Callable[[], TickReport]:
    def tick() -> TickReport:
        raise error

    return tick


def test_nothing_beside_the_ticks_ends_the_loop(caplog: pytest.LogCaptureFixture) -> None:
    """A run that cannot be watched, a service manager that cannot be told, a reload that raises."""
    done: list[str] = []

    async def broken() -> None:
        done.append("ticked")
        raise RuntimeError("no such socket")

    async def reload() -> None:
        done.append("reload")
        raise KeyError("agents")

    live = TickReport(0, (LiveStep("one", 0),), None)
    watch = Watch(OSError(24, "Too many open files"))
    daemon, _ = daemon_of(Ticking(lambda: live, lambda: live, lambda: IDLE), watch, broken)
    daemon.between_ticks(reload)
    asyncio.run(daemon.run())
    assert done == ["reload", "ticked", "ticked", "ticked"]
    assert watch.watched == ["one"]
    assert [record.message.partition(" ")[0] for record in caplog.records if "watched" in record.message] == [
        "runs_not_watched"
    ]


def test_the_same_trouble_of_ticks_is_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claudomator_py.daemon.loop.RETRY_S", 0.0)
    bug = ZeroDivisionError("division by zero")
    daemon, _ = daemon_of(Ticking(fails(bug), fails(bug), fails(OSError(5, "Input/output error")), lambda: IDLE))
    asyncio.run(daemon.run())
    failed = [record for record in caplog.records if "tick_not_completed" in record.message]
    assert len(failed) == 2
    assert daemon.ticks.failed == 3


def test_a_store_that_is_not_available_at_the_start_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("claudomator_py.daemon.loop.RETRY_S", 0.0)
    locked = StoreUnavailable("the database is locked by another process", "end it")
    ticking = Ticking(lambda: IDLE, sweeps=(locked, locked))
    daemon, _ = daemon_of(ticking)
    asyncio.run(daemon.run())
    assert (ticking.sweeps, ticking.ticks) == ([], [])


def test_a_tick_that_blocks_keeps_nobody_from_asking_how_the_daemon_is() -> None:
    begun, release = threading.Event(), threading.Event()

    def blocked() -> TickReport:
        begun.set()
        release.wait(PATIENCE_S)
        return IDLE

    daemon, pulse = daemon_of(Ticking(blocked, lambda: IDLE))

    async def scenario() -> None:
        running = asyncio.create_task(asyncio.to_thread(asyncio.run, daemon.run()))
        await asyncio.to_thread(begun.wait, 30)
        clock = Clock()
        clock.s += LATE_S + 1
        pulse._monotonic = clock.monotonic
        (check,) = daemon.health()
        release.set()
        await running
        assert not check.ok

    asyncio.run(scenario())
