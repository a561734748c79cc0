"""Base of background workers: each has a thread, which does a round when woken and at intervals.

No task waits for a worker, and a failed round is retried. The result of a round is stored in rows, so a crash during a
round costs only time.
"""

import threading
from abc import ABC, abstractmethod
from typing import ClassVar, Final

from claudomator_py.domain.health import CheckView, Trouble
from claudomator_py.domain.units import format_instant
from claudomator_py.log import get_logger
from claudomator_py.ports import Clock
from claudomator_py.store.database import StoreUnavailable

log = get_logger("claudomator.workers")

IDLE_S: Final = 60.0
RETRY_S: Final = 5.0
"""Pause after a failed round."""
STOP_S: Final = 5.0
"""How long ``close`` waits for the current round; a stuck one ends with the process."""


class Worker(ABC):
    """Work done in rounds on its own thread. ``wake`` and ``close`` are safe from any thread."""

    wakes_on_commit: ClassVar[bool] = False
    """Whether every commit wakes the worker."""

    def __init__(self, name: str, clock: Clock, *, settle_s: float = 0.0) -> None:
        """settle_s: seconds between a wake-up and the start of the round, as wake-ups come in bursts."""
        self.name = name
        self.trouble: Trouble | None = None
        """Why the last round failed; None: it did not."""
        self._clock = clock
        self._settle_s = settle_s
        self._woken = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    @abstractmethod
    def run_once(self) -> object:
        """Do everything that is due, or as much as possible until stopped. Raises StoreUnavailable."""

    def pause_s(self) -> float | None:
        """Return the seconds until the next round if nothing wakes the worker; None: wait until woken."""
        return IDLE_S

    def start(self) -> None:
        """Begin, with everything already due."""
        self._thread.start()

    def wake(self) -> None:
        """Have a round begin soon. Takes no time."""
        if not self._woken.is_set():
            self._woken.set()

    def stop(self) -> None:
        """Have no further round begin, and the current one end early."""
        self._stopped.set()
        self._woken.set()

    def close(self) -> None:
        """End, after waiting at most ``STOP_S`` for the current round."""
        self.stop()
        if self._thread.ident is not None:
            self._thread.join(STOP_S)

    def check(self) -> CheckView | None:
        """Return a failed check if the last round failed; None: it did not."""
        if self.trouble is None:
            return None
        detail = f"{self.trouble.problem}; since {format_instant(self.trouble.since_ms)}"
        return CheckView(
            name=self.name, ok=False, detail=detail, remedy="see the log; it is tried again", blocking=False
        )

    def _first_pause_s(self) -> float | None:
        """Seconds until the first round."""
        return 0.0

    def _work(self) -> None:
        pause_s = self._first_pause_s()
        while True:
            if self._woken.wait(pause_s):
                self._stopped.wait(self._settle_s)
            if self._stopped.is_set():
                return
            self._woken.clear()
            try:
                self.run_once()
                pause_s = self.pause_s()
                self.trouble = None
            except StoreUnavailable as error:
                pause_s = self._failed(str(error))
                log.warning("worker_waits_for_the_store", worker=self.name, problem=str(error))
            except Exception as error:
                pause_s = self._failed(f"its work failed ({type(error).__name__})")
                log.exception("worker_failed", worker=self.name)

    def _failed(self, problem: str) -> float:
        self.trouble = Trouble.after(self.trouble, problem, self._clock())
        return RETRY_S
