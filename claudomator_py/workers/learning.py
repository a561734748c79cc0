"""Learns periodically from the outcomes of decisions, outside the loop."""

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
from claudomator_py.workers import Worker

FIRST_S: Final = 30.0
"""Delay after the start, when a daemon has more urgent work."""


class Learner(Worker):
    """Labels ended tasks and learns from them. settings: returns those in force."""

    def __init__(self, database: Database, settings: Callable[[], LearningSettings], clock: Clock) -> None:
        super().__init__("learning", clock)
        self._database = database
        self._settings = settings
        self._since: int | None = None

    def start(self) -> None:
        """Begin with what ended while no daemon ran, then continue periodically."""
        with suppress(StoreUnavailable):  # it is asked again then
            self._begin()
        super().start()

    def run_once(self) -> None:
        """Learn from everything new. Raises StoreUnavailable."""
        since, rate = self._begin(), self._settings().rate
        while not self._stopped.is_set() and self._database.read(partial(has_more, since=since)):
            self._database.write(partial(learn, rate=rate, now_ms=self._clock(), since=since))

    def pause_s(self) -> float:
        """Return the seconds until the next round."""
        return self._settings().every / SECOND_MS

    def _first_pause_s(self) -> float:
        return min(FIRST_S, self.pause_s())

    def _begin(self) -> int:
        """Id of the event after which learning begins if nothing was ever learned: earlier events stem from other
        deciders."""
        if self._since is None:
            self._since = self._database.read(last_id)
        return self._since
