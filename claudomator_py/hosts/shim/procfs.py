"""Processes in /proc: identity, ancestry, the run that they belong to, and signals that never hit another process."""

from __future__ import annotations

import os
import time

from claudomator_py.hosts.shim.builtin import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

RUN_VARIABLE = "CLAUDOMATOR_RUN"

_MAX_READ_LENGTH = 4096
_START = 19
_NEWCOMERS = 8
_MAX_NEWCOMER_LOOKS = 100
_MAX_EXEC_LOOKS = 100
_EXEC_PAUSE_S = 0.001
_FEW_PIDS = 1000
_PIDS_A_SECOND = 1_000_000
"""More than any machine allocates: creating a process or thread takes microseconds, under global locks."""
_LISTS_CHILDREN = os.path.exists("/proc/thread-self/children")
"""Whether this kernel has CONFIG_PROC_CHILDREN."""


class Process:
    """A process at the time it was read. start: in clock ticks since boot; identifies the process together with boot id
    and pid. cpu: clock ticks used by it and by its reaped children."""

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
        """Whether it is not a zombie."""
        return self.state not in b"ZXx"

    @property
    def cpu(self) -> int:
        """Clock ticks."""
        return sum(map(int, self._times))

    @property
    def identity(self) -> tuple[int, int]:
        """Pid and start time."""
        return self.pid, self.start


_boot_id: str | None = None


def boot_id() -> str:
    """Return the id of the machine's current boot."""
    global _boot_id
    if _boot_id is None:
        _boot_id = _content("/proc/sys/kernel/random/boot_id").decode().strip()
    return _boot_id


def read(pid: int) -> Process | None:
    """Return the process with that pid; None if there is none."""
    fields = _stat(pid)
    if fields is None:
        return None
    return Process(pid, int(fields[1]), int(fields[2]), fields[0], int(fields[_START]), fields[11:15])


def _stat(pid: int) -> list[bytes] | None:
    """Return the fields of the process from the one after its name to its start time."""
    try:
        stat = _content(f"/proc/{pid}/stat")
    except OSError:
        return None
    # The name is in parentheses, and may itself contain spaces and parentheses.
    return stat[stat.rindex(b")") + 2 :].split(None, _START + 1)


def snapshot() -> dict[int, Process]:
    """Return all processes by pid."""
    processes = map(read, _pids())
    return {process.pid: process for process in processes if process is not None}


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def descendants(roots: Iterable[int], processes: dict[int, Process]) -> list[Process]:
    """Return all descendants of the roots, without the roots themselves."""
    children: dict[int, list[Process]] = {}
    for process in processes.values():
        children.setdefault(process.ppid, []).append(process)
    result: dict[int, Process] = {}
    pending = list(roots)
    while pending:
        for child in children.get(pending.pop(), ()):
            if child.pid not in result:
                result[child.pid] = child
                pending.append(child.pid)
    return list(result.values())


def descendants_now(roots: Iterable[int]) -> list[Process]:
    """Return the same as ``descendants`` from the kernel's lists of children: the cost grows with the number of
    descendants, not with that of all processes.

    The lists are read one after another, and processes that fork meanwhile may be missed: use it for measuring, not for
    ending processes.
    """
    if not _LISTS_CHILDREN:
        return descendants(roots, snapshot())
    processes: dict[int, Process] = {}
    pending = list(roots)
    while pending:
        for pid in _children_of(pending.pop()):
            process = read(pid)
            if process is not None and pid not in processes:
                processes[pid] = process
                pending.append(pid)
    return list(processes.values())


def _children_of(pid: int) -> list[int]:
    """Return the pids of a process's children, including zombies, from the kernel's lists for each of its threads."""
    pids: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb", buffering=0) as file:
                pids += [int(word) for word in file.read().split()]
    except OSError:
        pass  # The process has ended.
    return pids


def of_run(run_id: str, processes: dict[int, Process]) -> list[Process]:
    """Return the processes with the run's id in their initial environment, and all their descendants."""
    entry = _entry(run_id)
    carriers = {process.pid: process for process in processes.values() if entry in _environ(process.pid)}
    for process in descendants(list(carriers), processes):
        carriers[process.pid] = process
    carriers.pop(os.getpid(), None)
    return list(carriers.values())


class Beginning:
    """The time at which a run began: none of its processes is older."""

    __slots__ = ("_last", "_moment", "_start")

    def __init__(self, start: int, *, now: bool = False) -> None:
        """start: lower bound, in clock ticks since boot. now: whether the run begins now, rather than later."""
        self._start = start
        self._moment = time.monotonic()
        self._last = last_pid() if now else 0

    def younger(self) -> Iterable[int]:
        """Return the pids allocated since then, whether or not their processes have ended.

        The kernel allocates pids in ascending order and then starts again with the lowest. The pids are therefore
        between the last one at that time and the last one now, unless the kernel has wrapped around, which takes time.
        For longer runs, the start times of all processes are examined, which is many times as much work.
        """
        if self._last:
            last = last_pid()
            if self._last <= last <= self._last + _FEW_PIDS and time.monotonic() - self._moment < _shortest_turn():
                return range(self._last + 1, last + 1)
        return [pid for pid in _pids() if (fields := _stat(pid)) is not None and int(fields[_START]) >= self._start]


def last_pid() -> int:
    """Return the pid allocated last, to a process or thread; 0 if unknown. In containers that mount something over the
    kernel's file, its content refers to other pids or is outdated, and is not used."""
    try:
        if os.stat("/proc/loadavg").st_dev != os.stat("/proc").st_dev:
            return 0
        return int(_content("/proc/loadavg").split()[-1])
    except (OSError, ValueError, IndexError):
        return 0


def _shortest_turn() -> float:
    """Return the minimum number of seconds in which the kernel can wrap around to the same pid."""
    try:
        return int(_content("/proc/sys/kernel/pid_max")) / _PIDS_A_SECOND
    except (OSError, ValueError):
        return 0


def _content(path: str) -> bytes:
    """Return the content of a short kernel file. Raises OSError."""
    # Not open(), which makes three more system calls; this is called for each look at a run.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, _MAX_READ_LENGTH)
    finally:
        os.close(fd)


def is_carried(run_id: str, since: Beginning) -> bool:
    """Return whether a process that began with the run or later has the run's id in its initial environment."""
    entry = _entry(run_id)
    return any(_exists(pid) and entry in _environ(pid) for pid in since.younger())


def _exists(pid: int) -> bool:
    """Return whether a process or thread has that pid; cheaper than reading /proc."""
    try:
        os.getpgid(pid)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _entry(run_id: str) -> bytes:
    return f"{RUN_VARIABLE}={run_id}".encode()


def _environ(pid: int) -> list[bytes]:
    """Return the environment that the process's program began with; nothing if it cannot be read."""
    is_settled = False
    try:
        for _ in range(_MAX_EXEC_LOOKS):
            with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
                environ = file.read()
            if environ or is_settled:
                return environ.split(b"\0")
            if _is_in_exec(pid):
                time.sleep(_EXEC_PAUSE_S)
            else:
                is_settled = True  # perhaps only since the look
    except OSError:
        pass
    return []


def _is_in_exec(pid: int) -> bool:
    """Return whether the process is about to begin another program: the kernel then shows neither its environment nor
    its arguments. A zombie and a thread of the kernel have no program. Raises OSError."""
    os.readlink(f"/proc/{pid}/exe")
    return not _content(f"/proc/{pid}/cmdline")


def children() -> list[int]:
    """Return the pids of this process's children, including zombies, from one short read if the kernel lists them."""
    pid = os.getpid()
    if _LISTS_CHILDREN:
        return _children_of(pid)
    return [process.pid for process in snapshot().values() if process.ppid == pid]


def newcomers(run_id: str) -> list[Process]:
    """Return the run's processes among the newest of the machine. A process that repeatedly forks and exits is gone
    when a walk through /proc reaches it; its latest incarnation is always among the pids allocated last."""
    entry = _entry(run_id)
    for _ in range(_MAX_NEWCOMER_LOOKS):
        last = last_pid()
        newcomers = [read(pid) for pid in range(last, max(last - _NEWCOMERS, 0), -1) if entry in _environ(pid)]
        alive = [process for process in newcomers if process is not None and process.alive]
        if alive:
            return alive
    return []


def is_same(pid: int, start: int) -> bool:
    """Return whether the process with that pid and start time is alive. The caller compares the boot id."""
    process = read(pid)
    return process is not None and process.start == start and process.alive


def age(process: Process) -> float:
    """Return the seconds since the process began, on the boot-time clock, which is never set. Raises OSError."""
    with open("/proc/uptime", encoding="ascii") as file:
        uptime = float(file.read().split()[0])
    return max(uptime - process.start / os.sysconf("SC_CLK_TCK"), 0.0)


def open_pidfd(pid: int, start: int) -> int | None:
    """Return a pidfd of exactly that process; None if it is gone. The start time is compared after opening, so that a
    reused pid is detected."""
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
    """Send a signal to exactly that process. Return False if it is gone."""
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
