"""Learning from what became of decisions, now and then, beside the loop."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from claudomator_py.domain.units import SECOND_MS
from claudomator_py.ports import Clock
from claudomator_py.schema.routing_settings import LearningSettings
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.events import last_id
from claudomator_py.tasks.learning import has_more, learn
from claudomator_py.workers.worker import Worker

FIRST_S: Final = 30.0
"""After the start, when a daemon has more urgent things to do."""


class Learner(Worker):
    """Labels what has ended and learns from it. settings: those in force."""

    def __init__(self, database: Database, settings: Callable[[], LearningSettings], clock: Clock) -> None:
        super().__init__("learning", clock)
        self._database = database
        self._settings = settings
        self._since: int | None = None

    def start(self) -> None:
        """Begin with what ended while there was no daemon, and continue every so often."""
        with suppress(StoreUnavailable):  # it is asked again then
            self._begin()
        super().start()

    def run_once(self) -> None:
        """Learn all that there is to learn. Raises StoreUnavailable."""
        since, rate = self._begin(), self._settings().rate
        while not self._stopped.is_set() and self._database.read(partial(has_more, since=since)):
            self._database.write(partial(learn, rate=rate, now_ms=self._clock(), since=since))

    def pause_s(self) -> float:
        """Return the seconds until it looks again."""
        return self._settings().every / SECOND_MS

    def _first_pause_s(self) -> float:
        return min(FIRST_S, self.pause_s())

    def _begin(self) -> int:
        """The event behind which to begin where nothing was ever learned: what happened before was decided by
        something else."""
        if self._since is None:
            self._since = self._database.read(last_id)
        return self._since
