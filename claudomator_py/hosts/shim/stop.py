"""Ending every process of a run: TERM, a grace period, then KILL until none is left."""

from __future__ import annotations

import os
import time

from claudomator_py.hosts.shim import procfs
from claudomator_py.hosts.shim.builtin import signal
from claudomator_py.hosts.shim.crash import crash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_FIRST_PAUSE_S = 0.005
_MAX_PAUSE_S = 0.25
_ROUNDS_BEFORE_GROUPS = 1


class Stopped:
    """The result of ending a run's processes: the number signalled, and those left at the deadline."""

    __slots__ = ("left", "signalled")

    def __init__(self, signalled: int, left: list[procfs.Process]) -> None:
        self.signalled = signalled
        self.left = left


def end_all(
    find: Callable[[], list[procfs.Process]],
    grace: float,
    pause: Callable[[float], None],
    deadline: float | None = None,
    none_left: Callable[[], bool] = lambda: True,
) -> Stopped:
    """End the processes that ``find`` returns, repeatedly, until it returns none and ``none_left`` confirms that.

    grace: seconds between TERM and KILL. pause: waits for at most that many seconds. deadline: when to give up on
    processes that survive KILL, on the monotonic clock; None for never. none_left: confirms that ``find``, which is not
    atomic, has missed nothing, and ends the processes that it sees.
    """
    seen: set[tuple[int, int]] = set()
    left = _terminate(find, grace, pause, seen)
    rounds = 0
    length = _FIRST_PAUSE_S
    while (left or not none_left()) and (deadline is None or time.monotonic() < deadline):
        for process in left:
            seen.add(process.identity)
            procfs.send(process.pid, process.start, signal.SIGKILL)
        if rounds >= _ROUNDS_BEFORE_GROUPS:
            _kill_groups(left)
        crash("kill-sent")
        if left:
            pause(length)
            length = min(length * 2, _MAX_PAUSE_S)
        rounds += 1
        left = find()
    return Stopped(len(seen), left)


def _terminate(
    find: Callable[[], list[procfs.Process]],
    grace: float,
    pause: Callable[[float], None],
    seen: set[tuple[int, int]],
) -> list[procfs.Process]:
    end = time.monotonic() + grace
    length = _FIRST_PAUSE_S
    while left := find():
        for process in left:
            if process.identity not in seen:
                seen.add(process.identity)
                procfs.send(process.pid, process.start, signal.SIGTERM)
                # A stopped process receives TERM only once it continues.
                procfs.send(process.pid, process.start, signal.SIGCONT)
        crash("term-sent")
        remaining = end - time.monotonic()
        if remaining <= 0:
            break
        pause(min(length, remaining))
        length = min(length * 2, _MAX_PAUSE_S)
    return left


def kill_children() -> None:
    """Kill this process's own children and their groups at once, faster than they can fork. The pid of a child that was
    not reaped cannot be reused."""
    own = os.getpgrp()
    for pid in procfs.children():
        try:
            group = os.getpgid(pid)
            if group not in (own, 0, 1):
                os.killpg(group, signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)
        except OSError:
            continue


def _kill_groups(processes: list[procfs.Process]) -> None:
    """Kill whole process groups: processes that fork faster than /proc can be read can be ended only all at once. Every
    descendant of the agent is in a group created in the agent's session or below it, never in an unrelated one."""
    own = os.getpgrp()
    for pgid in {process.pgid for process in processes} - {own, 0, 1}:
        try:
            os.killpg(pgid, signal.SIGKILL)
        except OSError:
            continue
