"""Watching the live runs of a host from an event loop."""

import asyncio
from collections.abc import Callable

from claudomator_py.runs.host import LocalRunHost
from claudomator_py.runs.watcher import RunWatcher


class HostWatch:
    """Calls ``wake`` on the loop's thread when a watched run may have ended; set it before the first is watched."""

    def __init__(self, loop: asyncio.AbstractEventLoop, host: LocalRunHost) -> None:
        self._host = host
        self._watcher = RunWatcher(loop, lambda _: self.wake())
        self.wake: Callable[[], None] = lambda: None

    def watch(self, run_id: str, step: int) -> None:
        """Watch a live run, on the loop's thread; harmless when repeated."""
        pid = self._host.launched_pid(run_id, step)
        self._watcher.watch(f"{run_id}/{step}", self._host.path(run_id, step), pid)

    def close(self) -> None:
        """Watch nothing any more."""
        self._watcher.close()
