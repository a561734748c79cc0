"""Watching the live runs of a host from an event loop."""

import asyncio
from collections.abc import Callable, Iterable

from claudomator_py.runs.host import LocalRunHost
from claudomator_py.runs.watcher import RunWatcher


class HostWatch:
    """Calls ``wake`` on the loop's thread when a watched run may have ended; set it before the first is watched.

    It says so once for each shim: what is made of the end may take a while, and is not hurried by being told again.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, host: LocalRunHost) -> None:
        self._host = host
        self._watcher = RunWatcher(loop, self._end)
        self._watched: dict[str, int] = {}
        self._ended: dict[str, int] = {}
        self.wake: Callable[[], None] = lambda: None

    def watch(self, live: Iterable[tuple[str, int]]) -> None:
        """Watch these runs and steps, which are all that are live, on the loop's thread; harmless when repeated."""
        steps = {f"{run_id}/{step}": (run_id, step) for run_id, step in live}
        self._ended = {name: shims for name, shims in self._ended.items() if name in steps}
        for name, (run_id, step) in steps.items():
            taken_over = self._host.taken_over(run_id)
            if self._ended.get(name) != taken_over:
                self._watched.setdefault(name, taken_over)
                self._watcher.watch(name, self._host.path(run_id, step), self._host.launched_pid(run_id, step))

    def close(self) -> None:
        """Watch nothing any more."""
        self._watcher.close()

    def _end(self, name: str) -> None:
        self._ended[name] = self._watched.pop(name)
        self.wake()
