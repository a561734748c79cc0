"""What wakes the shim: the end of a child, a nudge, a request to stop."""

from __future__ import annotations

import os
import select
import signal

NUDGE = signal.SIGUSR1


class SignalEvents:
    """Signals of this process, turned into wake-ups.

    The nudge says "look at the run directory now". TERM asks the shim to end the run, as a machine going down does.
    HUP and INT are for whoever has a terminal; the shim has none.
    """

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
