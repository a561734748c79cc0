"""Processes as /proc shows them: identity, ancestry, the run they belong to, and signals that cannot hit a stranger."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from functools import cache

RUN_VARIABLE = "CLAUDOMATOR_RUN"

_LONGEST_STAT = 4096
_START = 19
_NEWCOMERS = 8
_NEWCOMER_LOOKS = 100
_LISTS_CHILDREN = os.path.exists("/proc/thread-self/children")
"""Whether this kernel has CONFIG_PROC_CHILDREN."""


class Process:
    """One process, as it was when read.

    start: clock ticks since boot; with the boot id and pid it identifies the process. cpu: ticks used by it and by
    those of its children that it has waited for.
    """

    __slots__ = ("_times", "pgid", "pid", "ppid", "start", "state")

    def __init__(self, pid: int, ppid: int, pgid: int, state: bytes, start: int, times: list[bytes]) -> None:
        self.pid = pid
        self.ppid = ppid
        self.pgid = pgid
        self.state = state
        self.start = start
        self._times = times

    @property
    def alive(self) -> bool:
        """Whether it can still do anything: a zombie cannot."""
        return self.state not in b"ZXx"

    @property
    def cpu(self) -> int:
        """Clock ticks."""
        return sum(map(int, self._times))

    @property
    def identity(self) -> tuple[int, int]:
        """Pid and start time."""
        return self.pid, self.start


@cache
def boot_id() -> str:
    """The identity of this boot of the machine, which no process outlives."""
    with open("/proc/sys/kernel/random/boot_id", "rb", buffering=0) as file:
        return file.read().decode().strip()


def read(pid: int) -> Process | None:
    """The process of that pid; None if there is none."""
    fields = _stat(pid)
    if fields is None:
        return None
    return Process(pid, int(fields[1]), int(fields[2]), fields[0], int(fields[_START]), fields[11:15])


def _stat(pid: int) -> list[bytes] | None:
    """The fields of the process after its name, up to its start."""
    try:
        # Not by open(): that asks three more things of the kernel, and this is done for each look at a run.
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        stat = os.read(fd, _LONGEST_STAT)
    except OSError:
        return None
    finally:
        os.close(fd)
    # The command's name stands in parentheses and may itself contain spaces and parentheses.
    return stat[stat.rindex(b")") + 2 :].split(None, _START + 1)


def snapshot() -> dict[int, Process]:
    """All processes by pid."""
    found = map(read, _pids())
    return {process.pid: process for process in found if process is not None}


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def descendants(roots: Iterable[int], processes: dict[int, Process]) -> list[Process]:
    """Children, grandchildren and so on of the roots, the roots themselves excluded."""
    children: dict[int, list[Process]] = {}
    for process in processes.values():
        children.setdefault(process.ppid, []).append(process)
    found: dict[int, Process] = {}
    pending = list(roots)
    while pending:
        for child in children.get(pending.pop(), ()):
            if child.pid not in found:
                found[child.pid] = child
                pending.append(child.pid)
    return list(found.values())


def below(roots: Iterable[int]) -> list[Process]:
    """As ``descendants``, by the kernel's lists of children: its cost grows with what is below, not with the machine.

    The lists are read one after the other, and what forks meanwhile may be missed: for measuring, not for ending.
    """
    if not _LISTS_CHILDREN:
        return descendants(roots, snapshot())
    found: dict[int, Process] = {}
    pending = list(roots)
    while pending:
        for pid in _listed(pending.pop()):
            process = read(pid)
            if process is not None and pid not in found:
                found[pid] = process
                pending.append(pid)
    return list(found.values())


def _listed(pid: int) -> list[int]:
    """Pids of the children of a process, zombies included, as the kernel lists them for each of its threads."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb", buffering=0) as file:
                found += [int(word) for word in file.read().split()]
    except OSError:
        pass  # It has ended.
    return found


def of_run(run_id: str, processes: dict[int, Process]) -> list[Process]:
    """The processes that carry the run's id in the environment they were started with, and all below them."""
    entry = _entry(run_id)
    carriers = {process.pid: process for process in processes.values() if entry in _environ(process.pid)}
    for process in descendants(list(carriers), processes):
        carriers[process.pid] = process
    carriers.pop(os.getpid(), None)
    return list(carriers.values())


def is_carried(run_id: str, since: int) -> bool:
    """Whether a process carries the run's id in the environment that it was started with.

    since: when the run began, in clock ticks since boot. No process of it is older; to look at those as well would take
    several times as long.
    """
    entry = _entry(run_id)
    for pid in _pids():
        fields = _stat(pid)
        if fields is not None and int(fields[_START]) >= since and entry in _environ(pid):
            return True
    return False


def _entry(run_id: str) -> bytes:
    return f"{RUN_VARIABLE}={run_id}".encode()


def _environ(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def children() -> list[int]:
    """Pids of this process's own children, zombies included, from one short read where the kernel lists them."""
    pid = os.getpid()
    if _LISTS_CHILDREN:
        return _listed(pid)
    return [process.pid for process in snapshot().values() if process.ppid == pid]


def newcomers(run_id: str) -> list[Process]:
    """The run's processes among the newest of the machine.

    A process that forks and leaves, over and over, is gone by the time that a walk through /proc comes to it; its
    newest incarnation is always among the last pids given.
    """
    entry = _entry(run_id)
    for _ in range(_NEWCOMER_LOOKS):
        try:
            with open("/proc/loadavg", encoding="ascii") as file:
                last = int(file.read().split()[-1])
        except (OSError, ValueError):
            return []
        found = [read(pid) for pid in range(last, max(last - _NEWCOMERS, 0), -1) if entry in _environ(pid)]
        alive = [process for process in found if process is not None and process.alive]
        if alive:
            return alive
    return []


def is_same(pid: int, start: int) -> bool:
    """Whether the process of that pid and start time is alive. The boot id is for the caller to compare."""
    process = read(pid)
    return process is not None and process.start == start and process.alive


def age(process: Process) -> float:
    """Seconds since the process began, by the clock that no one sets. Raises OSError."""
    with open("/proc/uptime", encoding="ascii") as file:
        uptime = float(file.read().split()[0])
    return max(uptime - process.start / os.sysconf("SC_CLK_TCK"), 0.0)


def open_pidfd(pid: int, start: int) -> int | None:
    """A pidfd of exactly that process; None if it is gone. The start time is compared after opening, so that a pid
    in use again is never taken for it."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return None
    process = read(pid)
    if process is not None and process.start == start:
        return fd
    os.close(fd)
    return None


def send(pid: int, start: int, number: int) -> bool:
    """Send a signal to exactly that process. False if it is gone."""
    fd = open_pidfd(pid, start)
    if fd is None:
        return False
    try:
        signal.pidfd_send_signal(fd, number)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
