"""The main loop: a tick after each event, a periodic tick in case an event was missed, and an orderly stop."""

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace

from claudomator_py.daemon.health import Pulse
from claudomator_py.dispatch.reconciler import Reconciler, TickReport
from claudomator_py.domain.errors import CannotServe
from claudomator_py.domain.health import CheckView
from claudomator_py.domain.units import Histogram
from claudomator_py.faults import error_text
from claudomator_py.log import get_logger
from claudomator_py.ports import Clock
from claudomator_py.store.database import StoreUnavailable
from claudomator_py.values import dataclass

log = get_logger("claudomator.daemon")

SAFETY_S = 5.0
RETRY_S = 1.0
MAX_RETRY_S = 15.0
"""Seconds to wait after a failed tick: the first pause, and the maximum reached by doubling after consecutive
failures."""

TICK_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class StateLost(CannotServe):
    """The state folder was removed or replaced while the daemon ran, so its writes are lost."""


@dataclass(frozen=True, slots=True)
class Ticks:
    """Counters of this process's ticks. durations: seconds per completed tick; completed_ms: time of the last one.

    overdue_ms: time of the oldest cancel or restart request that the last tick left untouched.
    """

    durations: Histogram
    completed_ms: int | None = None
    failed: int = 0
    overdue_ms: int | None = None


Watch = Callable[[Iterable[tuple[str, int]]], None]
"""Watches these runs and steps; see ``RunHost.watch``."""


async def _ignore() -> None:
    pass


class Daemon:
    """Drives the reconciler. Its ticks block the asyncio loop that ``run`` is awaited on, so that is a loop of its own,
    on its own thread. All other methods may be called from any thread.

    in_place: whether the state folder is still the one that this daemon locked. ticked: awaited on the loop after each
    completed tick, and only then. pulse: records each completed tick. longest_s: maximum seconds between two ticks.
    """

    def __init__(
        self,
        reconciler: Reconciler,
        watch: Watch,
        clock: Clock,
        in_place: Callable[[], bool],
        *,
        pulse: Pulse,
        ticked: Callable[[], Awaitable[None]] = _ignore,
        longest_s: float = SAFETY_S,
    ) -> None:
        self._reconciler = reconciler
        self._in_place = in_place
        self._pulse = pulse
        self._watch = watch
        self._clock = clock
        self._woken: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread_id = 0
        self._ticked = ticked
        self._longest_s = min(SAFETY_S, longest_s)
        self._between: deque[Callable[[], Awaitable[None]]] = deque()
        self._stopping = False
        self._live_to_await: int | None = None
        self._trouble: str | None = None
        self._failed_in_a_row = 0
        self._unwatched = False
        self.ticks = Ticks(Histogram.empty(TICK_BOUNDS_S))

    async def run(self) -> None:
        """Tick until ``stop``. Raises StateLost."""
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._thread_id = threading.get_ident()
        while not self._stopping and not self._sweep():
            await self._rest(self._retry_pause())
        while not self._stopping or self._live_to_await:
            self._woken.clear()
            if not self._in_place():
                raise StateLost
            while self._between:
                await self._guarded(self._between.popleft()(), "work_between_ticks_failed")
            report = await self._tick()
            if self._stopping and not self._live_to_await:
                break
            pause = self._retry_pause() if report is None else self._pause(report)
            await self._rest(pause)

    def wake(self) -> None:
        """Tick soon: something happened."""
        loop, woken = self._loop, self._woken
        if loop is None or woken is None or woken.is_set():
            return
        if threading.get_ident() == self._thread_id:
            woken.set()
            return
        with contextlib.suppress(RuntimeError):  # the loop has been closed
            loop.call_soon_threadsafe(woken.set)

    def between_ticks(self, work: Callable[[], Awaitable[None]]) -> None:
        """Have the loop run this work soon, while no tick is in progress."""
        self._between.append(work)
        self.wake()

    def stop(self, *, drain: bool = False) -> None:
        """End after the current tick; nothing more is started.

        Runs are left to their shims; with ``drain`` they are awaited, including any check still to come.
        """
        self._stopping = True
        self._live_to_await = 1 if drain else None
        self.wake()

    def health(self) -> list[CheckView]:
        """Return whether the last tick completed, recently, and was allowed to start runs."""
        if self._stopping:
            detail = "the daemon is stopping: nothing is started any more"
            return [CheckView(name="scheduler", ok=False, detail=detail, remedy="start it again once it has ended")]
        if self._trouble is not None:
            remedy = "see the daemon's log; it tries again by itself"
            return [CheckView(name="scheduler", ok=False, detail=self._trouble, remedy=remedy)]
        return [self._pulse.check()]

    def _sweep(self) -> bool:
        """Run the initial sweep; nothing is started before it has succeeded once."""
        try:
            self._reconciler.sweep()
        except Exception as error:
            self._failed(error)
            return False
        self._trouble = None
        return True

    async def _tick(self) -> TickReport | None:
        """Run one tick. Returns None if it failed, and remembers the trouble; the next tick carries on from there."""
        begin_s = time.monotonic()
        try:
            starting = not self._stopping
            report = self._reconciler.tick(starting=starting)
        except Exception as error:
            self._failed(error)
            self.ticks = replace(self.ticks, failed=self.ticks.failed + 1)
            return None
        self._trouble = None
        self._failed_in_a_row = 0
        durations = self.ticks.durations.plus(time.monotonic() - begin_s)
        overdue_ms = None if report.overdue is None else report.overdue.since_ms
        self.ticks = replace(self.ticks, durations=durations, completed_ms=self._clock(), overdue_ms=overdue_ms)
        self._pulse.came_round(report.overdue)
        self._follow(report)
        if not starting and self._live_to_await is not None:
            self._live_to_await = len(report.live)
        await self._guarded(self._ticked(), "service_manager_not_told")
        return report

    def _failed(self, error: Exception) -> None:
        """Remember the trouble, and log it unless the previous failure was the same."""
        known = isinstance(error, StoreUnavailable | OSError)
        trouble = str(error) if known else f"a tick failed unexpectedly: {error_text(error)}"
        if self._trouble != trouble:
            log.error("tick_not_completed", problem=trouble, exc_info=None if known else error)
        self._trouble = trouble

    async def _guarded(self, work: Awaitable[None], event: str) -> None:
        """Await the work and log any exception: work outside the ticks must not end the loop."""
        try:
            await work
        except Exception:
            log.exception(event)

    async def _rest(self, pause_s: float) -> None:
        """Wait until woken, at most that long."""
        if self._loop is None or self._woken is None or self._woken.is_set():
            return
        # A timer is cheaper than creating a task for each wait.
        timer = self._loop.call_later(pause_s, self._woken.set)
        try:
            await self._woken.wait()
        finally:
            timer.cancel()

    def _retry_pause(self) -> float:
        """Seconds until the retry after another failed tick; counts the failure."""
        pause: float = min(RETRY_S * 2**self._failed_in_a_row, MAX_RETRY_S)
        self._failed_in_a_row = min(self._failed_in_a_row + 1, 8)
        return pause

    def _follow(self, report: TickReport) -> None:
        try:
            self._watch((step.run_id, step.step) for step in report.live)
        except OSError as error:
            # For example, no free descriptor: the periodic tick finds ended runs, and watching is retried.
            if not self._unwatched:
                log.warning("runs_not_watched", problem=str(error))
            self._unwatched = True
        else:
            self._unwatched = False

    def _pause(self, report: TickReport) -> float:
        """Seconds until the next tick is due; capped, so that a change of the wall clock cannot delay it."""
        if report.wake_ms is None:
            return self._longest_s
        return min(self._longest_s, max(0.0, (report.wake_ms - self._clock()) / 1000))
