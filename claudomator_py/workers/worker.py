"""What is done in the background: a thread of its own for each, which does a round when it is woken, and now and then.

No task waits for a worker, and a round that fails is tried again. What a round has done stands in rows, so a crash in
the midst of one loses nothing but time.
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
"""After a round that has failed."""
STOP_S: Final = 5.0
"""How long ``close`` waits for the round at hand; one that is stuck ends with the process."""


class Worker(ABC):
    """Something that is done in rounds, on a thread of its own. ``wake`` and ``close`` are safe from any thread."""

    wakes_on_commit: ClassVar[bool] = False
    """Whether whatever is committed wakes it."""

    def __init__(self, name: str, clock: Clock, *, settle_s: float = 0.0) -> None:
        """settle_s: how long after it is woken a round begins, in seconds, as what wakes it comes in bursts."""
        self.name = name
        self.trouble: Trouble | None = None
        """Why its last round failed; None: it did not."""
        self._clock = clock
        self._settle_s = settle_s
        self._woken = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    @abstractmethod
    def run_once(self) -> object:
        """Do all that there is to do, or as much of it as there is until it is stopped. Raises StoreUnavailable."""

    def pause_s(self) -> float | None:
        """Return after how many seconds the next round begins if nothing wakes it; None: never."""
        return IDLE_S

    def start(self) -> None:
        """Begin, with what is due since before."""
        self._thread.start()

    def wake(self) -> None:
        """Have a round begin soon. Takes no time."""
        if not self._woken.is_set():
            self._woken.set()

    def stop(self) -> None:
        """Have no further round begin, and the one at hand end early."""
        self._stopped.set()
        self._woken.set()

    def close(self) -> None:
        """End; waits for the step at hand."""
        self.stop()
        if self._thread.ident is not None:
            self._thread.join(STOP_S)

    def check(self) -> CheckView | None:
        """Return that its last round failed; None: it did not."""
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
