"""Noticing the ends of runs on clusters: no notification crosses machines, so their directories are polled."""

import asyncio
import os
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Final

from claudomator_py.hosts.local.fate import held_lock
from claudomator_py.hosts.shim import record

_PAUSE_S: Final = 0.15
_PAUSE_YOUNG_S: Final = 0.08
_YOUNG_S: Final = 5.0
"""For this long after new runs have come they are polled more often: short ones may be over, and block their slots."""
_PAUSE_ENDING_S: Final = 0.01
"""Pause while a supervisor that has recorded the end of its run still holds the lock, for some milliseconds."""
_LIST_EVERY_S: Final = 1.0
"""Pause between two listings of a directory, which make network file systems ask their server."""
_PAUSE_PER_RUN_S: Final = 0.002
"""Minimum pause per live run, which limits polling to a few hundredths of the loop's time."""


class EndPoll:
    """Polls the directories of live runs. Call on the loop's thread."""

    def __init__(self, place: Callable[[str, int], str], news: Callable[[], None]) -> None:
        """place: returns the directory of a run and step. news: called once when one of them has ended."""
        self._place = place
        self._news = news
        self._live: dict[tuple[str, int], bool] = {}
        """Live runs and steps, and whether the end of each was reported."""
        self._young_until = 0.0
        self._list_at = 0.0
        self._next: asyncio.TimerHandle | None = None

    def watch(self, live: Collection[tuple[str, int]]) -> None:
        """Poll exactly these runs and steps."""
        before = self._live
        self._live = {step: before.get(step, False) for step in live}
        if self._live.keys() - before.keys():
            self._young_until = time.monotonic() + _YOUNG_S
        if self._live and self._next is None:
            self._next = asyncio.get_running_loop().call_later(self._pause_s, self._look)

    def close(self) -> None:
        """Stop polling."""
        if self._next is not None:
            self._next.cancel()

    @property
    def _pause_s(self) -> float:
        least = _PAUSE_YOUNG_S if time.monotonic() < self._young_until else _PAUSE_S
        return max(least, _PAUSE_PER_RUN_S * len(self._live))

    def _look(self) -> None:
        pause_s = self._pause_s
        if is_listed := time.monotonic() >= self._list_at:
            self._list_at = time.monotonic() + _LIST_EVERY_S
        for (run_id, step), is_reported in self._live.items():
            path = "" if is_reported else self._place(run_id, step)
            # Revoked runs need no look: only this process revokes them.
            if not path or not _has_ended(path, is_listed=is_listed):
                continue
            if _is_released(path):
                self._live[run_id, step] = True
                self._news()
            else:
                pause_s = _PAUSE_ENDING_S
        self._next = asyncio.get_running_loop().call_later(pause_s, self._look) if self._live else None


def _has_ended(path: str, *, is_listed: bool) -> bool:
    """Return whether the end of the run is recorded. is_listed: whether to list the directory first."""
    if is_listed:
        with suppress(OSError):
            return record.EXIT in os.listdir(path)
    return os.path.exists(f"{path}/{record.EXIT}")


def _is_released(path: str) -> bool:
    """Return whether nobody holds the run's lock."""
    with suppress(OSError), held_lock(path) as is_free:
        return is_free
    return True
