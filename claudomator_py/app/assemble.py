"""Assembles the daemon from its parts, in one place for ``serve`` and for the tests.

What differs between the two is passed in as ``Surroundings``: the host of the runs, the clock, the notification
dispatcher. The order follows the layers: the engine that ticks, the services that answer requests, the background
workers.
"""

import threading
from typing import TYPE_CHECKING

from claudomator_py.app.engine import Engine, Surroundings, make_engine, make_sources
from claudomator_py.faults import Faults
from claudomator_py.imports import bulk_import
from claudomator_py.values import dataclass
from claudomator_py.workers import Worker
from claudomator_py.workers.answers import AnswerDispatcher
from claudomator_py.workers.cleanup import Cleaner
from claudomator_py.workers.daily_report import DailyReporter
from claudomator_py.workers.daily_report import Write as WriteReport
from claudomator_py.workers.learning import Learner
from claudomator_py.workers.retention import Retainer
from claudomator_py.workers.shadow import Shadow

if TYPE_CHECKING:
    from claudomator_py.app.desk import Desk


@dataclass(frozen=True, slots=True)
class Background:
    """Periodic work, each worker on its own thread."""

    answers: AnswerDispatcher
    shadow: Shadow
    cleaner: Cleaner
    retention_faults: Faults
    workers: tuple[Worker, ...]
    """All workers."""


class Components:
    """The daemon without its loop and its web server."""

    def __init__(self, around: Surroundings) -> None:
        """Put the daemon together without starting any of it. Raises StoreUnavailable."""
        self.surroundings = around
        self.engine = make_engine(around)
        self.arrivals = make_sources(around)
        self.background = _background(around, self.engine, lambda *wanted: self.desk().daily_report(*wanted))
        self._lock = threading.Lock()
        self._desk: Desk | None = None

    def desk(self) -> "Desk":
        """Return the services that answer requests, which are imported and made for the first caller. From any thread.

        Raises StoreUnavailable.
        """
        with self._lock:
            if self._desk is None:
                with bulk_import():
                    from claudomator_py.app.desk import make_desk

                self._desk = make_desk(self.surroundings, self.engine, self.arrivals, self.background.cleaner)
            return self._desk


def _background(around: Surroundings, engine: Engine, write_report: WriteReport) -> Background:
    database, clock, current = around.database, around.clock, around.current
    answers = AnswerDispatcher(database, lambda: current().workdirs, clock, around.message_checks)
    shadow = Shadow(database, lambda: current().shadow, clock)
    retention_faults = Faults(clock, around.secrets.redact_piece)
    cleaner = Cleaner(database, around.host, engine.worktrees, clock)
    retainer = Retainer(
        database,
        lambda: current().settings.retention,
        lambda: current().settings.notify,
        cleaner,
        around.host,
        around.trees,
        clock,
        retention_faults,
    )
    learner = Learner(database, lambda: current().settings.learning, clock)
    reporter = DailyReporter(database, write_report, lambda: current().settings, clock)
    return Background(answers, shadow, cleaner, retention_faults, (retainer, learner, answers, shadow, reporter))
