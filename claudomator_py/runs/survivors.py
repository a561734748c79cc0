"""Processes of a run whose shim is gone, found by the run's id in their environment."""

import time
from dataclasses import dataclass

from claudomator_py.core.crashpoint import crashpoint
from claudomator_py.runs.shim import procfs
from claudomator_py.runs.shim.stop import end_all


@dataclass(frozen=True, slots=True)
class Survivors:
    """How many were ended, and the pids of those that were still there at the end: no retry before there are none."""

    ended: int
    left: tuple[int, ...]


def find_survivors(run_id: str) -> list[int]:
    """Pids of the run's processes that are alive."""
    return [process.pid for process in _alive(run_id)]


def kill_survivors(run_id: str, *, grace_ms: int, give_up_ms: int = 30_000) -> Survivors:
    """End the run's processes: TERM, then KILL, until none is left. Blocks for as long as that takes.

    give_up_ms: how long to wait for what even KILL does not end. A process that emptied its environment is not found,
    unless one it descends from still lives.
    """
    deadline = time.monotonic() + (grace_ms + give_up_ms) / 1000
    stopped = end_all(lambda: _alive(run_id), grace_ms / 1000, _pause, deadline)
    crashpoint("survivors-ended")
    return Survivors(stopped.signalled, tuple(process.pid for process in stopped.left))


def _pause(seconds: float) -> None:
    crashpoint("survivors-signalled")
    time.sleep(seconds)


def _alive(run_id: str) -> list[procfs.Process]:
    found = [process for process in procfs.of_run(run_id, procfs.snapshot()) if process.alive]
    return found or procfs.newcomers(run_id)
