"""Learning from what became of decisions, now and then, beside the loop."""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler

from claudomator_py.log import get_logger
from claudomator_py.ports import Clock
from claudomator_py.schema.routing_settings import LearningSettings
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.events import last_id
from claudomator_py.tasks.learning import has_more, learn

log = get_logger("claudomator.learning")

FIRST_S: Final = 30.0
"""After the start, when a daemon has more urgent things to do."""
_JOB: Final = "learn"


class Learner:
    """Labels what has ended and learns from it, on a thread of its own. settings: those in force."""

    def __init__(self, database: Database, settings: Callable[[], LearningSettings], clock: Clock) -> None:
        self._database = database
        self._settings = settings
        self._clock = clock
        self._every_ms = settings().every
        self._since: int | None = None
        self._ringing = threading.Lock()
        # It would tell of every round.
        logging.getLogger("apscheduler").setLevel(logging.WARNING)
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            daemon=True,
            executors={"default": {"type": "threadpool", "max_workers": 1}},
            job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1},
        )

    def start(self) -> None:
        """Begin with what ended while there was no daemon, and go on every so often."""
        with suppress(StoreUnavailable):  # it is asked again then
            self._begin()
        first = datetime.now(UTC) + timedelta(seconds=min(FIRST_S, self._interval()["seconds"]))
        self._scheduler.add_job(self._ring, "interval", id=_JOB, next_run_time=first, **self._interval())
        self._scheduler.start()

    def close(self) -> None:
        """Learn no more; waits for the transaction at hand."""
        if not self._scheduler.running:
            return
        # APScheduler would wait with its jobs locked: for ever, where the round at hand sets its own times anew.
        self._scheduler.shutdown(wait=False)
        with self._ringing:
            pass

    def round(self) -> None:
        """Learn all that there is to learn. Raises StoreUnavailable."""
        since, rate = self._begin(), self._settings().rate
        while self._database.read(partial(has_more, since=since)):
            self._database.write(partial(learn, rate=rate, now_ms=self._clock(), since=since))

    def _begin(self) -> int:
        """The event behind which to begin where nothing was ever learned: what happened before was decided by
        something else."""
        if self._since is None:
            self._since = self._database.read(last_id)
        return self._since

    def _ring(self) -> None:
        with self._ringing:
            self._round_and_set()

    def _round_and_set(self) -> None:
        try:
            self.round()
        except StoreUnavailable as error:
            log.warning("not_learned", problem=str(error), note="tried again next time")
        except Exception:
            log.exception("not_learned")
        if self._settings().every != self._every_ms:
            self._every_ms = self._settings().every
            with suppress(JobLookupError):  # closed meanwhile
                self._scheduler.reschedule_job(_JOB, trigger="interval", **self._interval())

    def _interval(self) -> dict[str, float]:
        return {"seconds": timedelta(milliseconds=self._every_ms).total_seconds()}
