"""The limits of a run: whether one of them ends it now, and when to look again."""

from __future__ import annotations

import os
import select
import time

from claudomator_py.hosts.shim import procfs, record
from claudomator_py.hosts.shim.builtin import signal
from claudomator_py.hosts.shim.output import CappedOutput, disk_is_full
from claudomator_py.hosts.shim.spec import IDLE_SHARE, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

NUDGE = signal.SIGUSR1


class SignalEvents:
    """Signals of this process as wake-ups. The nudge means "look at the run directory now". TERM asks the shim to end
    the run, as at the machine's shutdown. HUP and INT concern terminals, which the shim does not have."""

    def __init__(self) -> None:
        self.interrupted = False
        self._read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _awake)
        signal.signal(NUDGE, _awake)
        signal.signal(signal.SIGTERM, self._interrupt)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._poll = select.poll()
        self._poll.register(self._read, select.POLLIN)

    def wake_at_end_of(self, pidfd: int) -> None:
        """Let the end of that process, too, end a wait: of one that is no child there is no signal."""
        self._poll.register(pidfd, select.POLLIN)

    def wait(self, seconds: float) -> None:
        """Wait for the next signal, at most that long."""
        if self._poll.poll(max(seconds, 0) * 1000):
            try:
                os.read(self._read, 4096)
            except BlockingIOError:
                pass

    def _interrupt(self, number: int, frame: object) -> None:
        self.interrupted = True


def _awake(number: int, frame: object) -> None:
    """Having a handler is what makes the signal write to the wake-up pipe."""


_PAUSE = 0.25
_STANDSTILL_S = 5.0
"""An overslept pause that is longer than this is no matter of load: the shim was stopped, and the run with it."""
_FLOOD_PAUSE = 0.01
_FLOOD_BYTES = 1 << 20
_WAITING_SHARE = 0.05
"""Share of a processor below which a run counts as waiting. A runtime that waits for background work is busier than an
idle one: Claude Code 2.1.330 used up to 3 %."""
_SAMPLES_PER_STALL = 8
_SHORTEST_SAMPLE = 0.05
_MAX_SAMPLE_LENGTH = 15.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Watch:
    """Watches a run from its start. A look is cheap: processes are walked only to rule out a stall. Time in which the
    run stood still does not count, as while Slurm suspends its job, or its machine is paused."""

    def __init__(
        self,
        directory: int,
        spec: Spec,
        outputs: list[CappedOutput],
        events: SignalEvents,
        agent: procfs.Process | None = None,
    ) -> None:
        """agent: an agent started by another shim, which is no descendant of this process; None if the run begins now.
        Raises OSError."""
        self._due: float | None = None
        self._stood_still = 0.0
        now = time.monotonic()
        begun = now if agent is None else now - procfs.age(agent)
        self._directory = directory
        self._outputs = outputs
        self._events = events
        self._deadline = None if spec.timeout is None else begun + spec.timeout
        self._stall = None if spec.stall is None else Stall(spec.stall, now, agent, own_share=spec.idle_share)
        self._wind_down = WindDownWatch(directory, outputs, agent)
        self._flooded = False

    def ending(self) -> str | None:
        """Return the limit that ends the run now, as named in ``exit.json``; None if it continues."""
        now = self._now()
        grown = sum(output.grew() for output in self._outputs)
        self._flooded = grown > _FLOOD_BYTES
        if record.exists(self._directory, record.CANCEL):
            return "cancel"
        if record.is_gone(self._directory):
            return "interrupt"
        if self._events.interrupted:
            return "cancel" if record.CANCEL in record.names(self._directory) else "interrupt"
        if self._deadline is not None and now >= self._deadline:
            return "timeout"
        if not all(output.within_cap() for output in self._outputs):
            return "output_limit"
        if disk_is_full(self._directory):
            return "disk_full"
        if self._stall is not None and self._stall.reached(now, wrote=grown > 0):
            return "stall"
        return "wind_down" if self._wind_down.reached(now, wrote=grown > 0) else None

    def pause(self) -> float:
        """Return the seconds until the next look; a signal interrupts the pause."""
        now = self._now()
        waits = [_FLOOD_PAUSE if self._flooded else _PAUSE]
        if self._deadline is not None:
            waits.append(self._deadline - now)
        if self._stall is not None:
            waits.append(self._stall.next_look - now)
        seconds = max(min(waits), 0.0)
        self._due = now + seconds
        return seconds

    def _now(self) -> float:
        """Return the monotonic time without the time in which the run stood still."""
        now = time.monotonic() - self._stood_still
        if self._due is not None and now - self._due > _STANDSTILL_S:
            self._stood_still += now - self._due
            now = self._due
        self._due = None
        return now


class Deadline:
    """Ends an auxiliary command at its deadline, or for the reason that another watch gives. Like ``Watch``."""

    def __init__(self, seconds: float, further: Callable[[], str | None] | None = None) -> None:
        self._until = time.monotonic() + seconds
        self._further = further

    def ending(self) -> str | None:
        reason = None if self._further is None else self._further()
        return reason or ("timeout" if time.monotonic() > self._until else None)

    def pause(self) -> float:
        return _PAUSE


class WindDownWatch:
    """Ends a run that has finished its work but does not exit, as the daemon requests in its directory.

    The shim cannot interpret a run's output; the daemon can, and states how much of it there was. Once the run has
    printed more than chatter, the request is void, because another turn may have begun. Keys of the request: stdout, in
    bytes; after_ms; idle, whether only time counts in which the run neither writes nor computes.
    """

    def __init__(self, directory: int, outputs: list[CappedOutput], agent: procfs.Process | None) -> None:
        """outputs: standard output first. agent: see ``Stall``."""
        self._directory = directory
        self._outputs = outputs
        self._agent = agent
        self._version: tuple[int, int] | None = None
        self._said = -1
        self._at = 0.0
        self._idle: Stall | None = None

    def reached(self, now: float, *, wrote: bool) -> bool:
        """Return whether the run has to end. now: on the monotonic clock. wrote: whether it wrote anything since the
        last call."""
        try:
            stat = os.stat(record.WIND_DOWN, dir_fd=self._directory, follow_symlinks=False)
        except OSError:
            return False
        if (stat.st_ino, stat.st_mtime_ns) != self._version:
            self._version = (stat.st_ino, stat.st_mtime_ns)
            self._load(now)
        if self._outputs[0].size != self._said:
            if self._said < 0 or self._outputs[0].may_have_event_since(self._said):
                return False
            self._said = self._outputs[0].size
        return now >= self._at if self._idle is None else self._idle.reached(now, wrote=wrote)

    def _load(self, now: float) -> None:
        self._said, self._idle = -1, None
        try:
            request = record.read(record.WIND_DOWN, self._directory)
        except (OSError, ValueError):
            return
        match request:
            case {"stdout": int(said), "after_ms": int(after_ms), "idle": bool(idle)}:
                self._said, self._at = said, now + after_ms / 1000
                self._idle = Stall(after_ms / 1000, now, self._agent, _WAITING_SHARE) if idle else None


class Stall:
    """Distinguishes a run that hangs from one that is silently busy.

    A run hangs if for the whole limit it wrote nothing and its processes used less than a share of one processor: the
    timers of an idle runtime are not work. A burst of work shorter than that share of a sample goes unnoticed.
    """

    def __init__(
        self,
        limit: float,
        now: float,
        agent: procfs.Process | None = None,
        share: float = IDLE_SHARE,
        *,
        own_share: float = 0.0,
    ) -> None:
        """limit: in seconds. now: on the monotonic clock. agent: an agent that is no descendant of this process.
        own_share: what the agent's own process may use while it waits, if more than share."""
        self._limit = limit
        self._share = share
        self._own_share = own_share
        self._agent = agent
        self._interval = min(max(limit / _SAMPLES_PER_STALL, _SHORTEST_SAMPLE), _MAX_SAMPLE_LENGTH)
        self._active = now
        self._sampled = now
        self._used = {0: _cpu_of_ended()}
        self.next_look = now + self._interval

    def reached(self, now: float, *, wrote: bool) -> bool:
        """Return whether the run hangs. wrote: whether it wrote anything since the last call."""
        if wrote or (now >= self.next_look and self._worked(now)):
            self._active = now
        if now >= self.next_look:
            self.next_look = now + self._interval
        if now < self._active + self._limit:
            self.next_look = min(self.next_look, self._active + self._limit)
            return False
        return True

    def _worked(self, now: float) -> bool:
        before, self._used = self._used, cpu_by_process(self._agent)
        elapsed, self._sampled = now - self._sampled, now
        spent = {key: max(used - before.get(key, 0), 0) for key, used in self._used.items()}
        most = elapsed * _TICKS
        if self._own_share > self._share:
            own = sum(spent.pop(pid, 0) for pid in own_processes(self._agent))
            if own >= max(1.0, most * self._own_share):
                return True
        return sum(spent.values()) >= max(1.0, most * self._share)


def own_processes(agent: procfs.Process | None) -> list[int]:
    """Return the pids of the agent's own process, and of what tools have left to this one. agent: see
    ``cpu_by_process``."""
    if agent is not None:
        return [agent.pid]
    return [process.pid for process in procfs.descendants_now([os.getpid()]) if process.ppid == os.getpid()]


def cpu_by_process(agent: procfs.Process | None = None) -> dict[int, int]:
    """Return the clock ticks used so far by each descendant, by pid; 0 stands for those reaped by this process. agent:
    an agent that is no descendant of this process; it counts with its own descendants."""
    used = {0: _cpu_of_ended()}
    roots = [os.getpid()]
    orphan = None if agent is None else procfs.read(agent.pid)
    if orphan is not None:
        roots.append(orphan.pid)
        used[orphan.pid] = orphan.cpu
    for process in procfs.descendants_now(roots):
        used[process.pid] = process.cpu
    return used


def _cpu_of_ended() -> int:
    """Return the clock ticks used by all processes reaped by this process, including those of earlier runs."""
    times = os.times()
    return round((times.children_user + times.children_system) * _TICKS)
