"""An event loop whose time passes at once: who waits for a moment only does not wait, and nothing depends on how fast
the machine is."""

import asyncio
import selectors
from asyncio import Future
from collections.abc import Callable, Coroutine
from typing import Any

_TURN_S = 1e-6
_NO_TIMER_S = 24 * 3600
"""How long a loop waits at most, though no timer were due before."""


class QuickLoop(asyncio.SelectorEventLoop):
    """Each of its turns takes a microsecond. Where nothing happens, it is the time of the next timer; while a thread
    works, only after waiting that long."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.working = 0
        super().__init__(_QuickSelector(self))

    def time(self) -> float:
        return self.now_s

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Future[Any]:  # type: ignore[override]
        """Count the threads that work."""
        future = super().run_in_executor(executor, func, *args)
        self.working += 1
        future.add_done_callback(self._worked)
        return future

    async def shutdown_default_executor(self, *timeout: Any) -> None:
        """Wait for threads that are at work. timeout: from Python 3.12 on."""
        self.working += 1
        await super().shutdown_default_executor(*timeout)

    def _worked(self, _: object) -> None:
        self.working -= 1


class _QuickSelector(selectors.DefaultSelector):
    def __init__(self, loop: QuickLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._loop.now_s += _TURN_S
        if timeout is None or not 0 < timeout < _NO_TIMER_S:
            return super().select(timeout)
        ready = super().select(timeout if self._loop.working else 0)
        if not ready:
            self._loop.now_s += timeout
        return ready


def run_quickly(work: Coroutine[Any, Any, None]) -> None:
    """Like ``asyncio.run``."""
    with asyncio.Runner(loop_factory=QuickLoop) as runner:
        runner.run(work)
