"""Learning from what became of decisions, now and then, beside the loop."""

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from claudomator_py.domain.units import SECOND_MS
from claudomator_py.log import get_logger
from claudomator_py.ports import Clock
from claudomator_py.schema.routing_settings import LearningSettings
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.events import last_id
from claudomator_py.tasks.learning import has_more, learn

log = get_logger("claudomator.learning")

FIRST_S: Final = 30.0
"""After the start, when a daemon has more urgent things to do."""


class Learner:
    """Labels what has ended and learns from it, on a thread of its own. settings: those in force."""

    def __init__(self, database: Database, settings: Callable[[], LearningSettings], clock: Clock) -> None:
        self._database = database
        self._settings = settings
        self._clock = clock
        self._since: int | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="learning", daemon=True)

    def start(self) -> None:
        """Begin with what ended while there was no daemon, and continue every so often."""
        with suppress(StoreUnavailable):  # it is asked again then
            self._begin()
        self._thread.start()

    def close(self) -> None:
        """Learn no more; waits for the transaction at hand."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def round(self) -> None:
        """Learn all that there is to learn. Raises StoreUnavailable."""
        since, rate = self._begin(), self._settings().rate
        while not self._stopped.is_set() and self._database.read(partial(has_more, since=since)):
            self._database.write(partial(learn, rate=rate, now_ms=self._clock(), since=since))

    def _begin(self) -> int:
        """The event behind which to begin where nothing was ever learned: what happened before was decided by
        something else."""
        if self._since is None:
            self._since = self._database.read(last_id)
        return self._since

    def _run(self) -> None:
        pause_s = min(FIRST_S, self._every_s())
        while not self._stopped.wait(pause_s):
            try:
                self.round()
            except StoreUnavailable as error:
                log.warning("not_learned", problem=str(error), note="tried again next time")
            except Exception:
                log.exception("not_learned")
            pause_s = self._every_s()

    def _every_s(self) -> float:
        return self._settings().every / SECOND_MS
