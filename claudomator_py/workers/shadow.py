"""A second configuration that decides about the same tasks alongside the one in force, without acting."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sqlalchemy import Connection

from claudomator_py.dispatch.alternative import FOLLOWED, Alternative, OtherConfiguration
from claudomator_py.domain.units import SECOND_MS
from claudomator_py.log import get_logger
from claudomator_py.ports import Clock
from claudomator_py.scheduler.records import ShadowRecord
from claudomator_py.store import decision_log, remembered
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.tables import Decision
from claudomator_py.tasks.decisions import record_shadow
from claudomator_py.workers import Worker

log = get_logger("claudomator.shadow")

MARK = "shadow"
"""Name of the stored progress: ``configuration``, its hash; ``since_ms``, when it was first followed; ``at_ms`` of
the last decision examined. Both times in epoch milliseconds."""
BATCH_SIZE = 500
_LATE_MS = 10 * SECOND_MS
"""Maximum delay between making a decision and committing it."""
_PAUSE_S = 1.0
"""Pause between two rounds."""
_Found = tuple[Decision, ShadowRecord]


class Shadow(Worker):
    """Repeats, under another configuration, the decisions made since that configuration was put in force.

    It reads stored decisions on its own thread: no task waits for it, and a daemon killed in between misses none.
    configuration: returns the current shadow; None: there is none.
    """

    wakes_on_commit = True

    def __init__(
        self, database: Database, configuration: Callable[[], OtherConfiguration | None], clock: Clock
    ) -> None:
        super().__init__("shadow", clock, settle_s=_PAUSE_S)
        self._database = database
        self._configuration = configuration
        self._done: dict[str, int] = {}
        self._alternative: Alternative | None = None

    def wake(self) -> None:
        """Have a round begin soon, if there is a configuration. Takes no time."""
        if not self._woken.is_set() and self._configuration() is not None:
            super().wake()

    def pause_s(self) -> float | None:
        """Return None: there is nothing to examine until something is committed."""
        return None

    def run_once(self) -> int:
        """Decide again what was decided since the last round; return the number of new shadows. Raises
        StoreUnavailable."""
        configuration = self._configuration()
        if configuration is None:
            return 0
        mark = self._database.read(lambda connection: remembered.find(connection, MARK))
        if mark.get("configuration") != configuration.hash:
            now_ms = self._clock()
            mark = {"configuration": configuration.hash, "since_ms": now_ms, "at_ms": now_ms}
            self._database.write(partial(remembered.keep, name=MARK, data=mark), planned=True)
            self._done.clear()
        if self._alternative is None or self._alternative.configuration is not configuration:
            self._alternative = Alternative(self._database, configuration)
        alternative = self._alternative
        after, number = (max(mark["since_ms"], mark["at_ms"] - _LATE_MS), ""), 0
        while not self._stopped.is_set() and (rows := self._database.read(partial(_following, after=after))):
            after = rows[-1].at_ms, rows[-1].id
            fresh = [row for row in rows if row.id not in self._done]
            if not fresh:
                continue
            shadows = [shadow for row in fresh for shadow in self._shadows(alternative, row)]
            mark = {**mark, "at_ms": max(mark["at_ms"], after[0])}
            # ``planned``: this write gives no tick anything to do.
            number += self._database.write(
                partial(_record, records=shadows, mark=mark, clock=self._clock), planned=True
            )
            self._done |= {row.id: row.at_ms for row in fresh}
        self._done = {row: at_ms for row, at_ms in self._done.items() if at_ms >= mark["at_ms"] - _LATE_MS}
        return number

    def _shadows(self, alternative: Alternative, row: Decision) -> list[_Found]:
        """The shadows of one decision; a failure is logged and does not block other decisions. Raises
        StoreUnavailable."""
        try:
            records = [alternative.placed(row), alternative.routed(row)]
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("shadow_failed", decision=row.id)
            return []
        return [(row, record) for record in records if record is not None]


def _following(connection: Connection, after: decision_log.Position) -> Sequence[Decision]:
    return decision_log.following(connection, FOLLOWED, after, BATCH_SIZE)


def _record(connection: Connection, records: Sequence[_Found], mark: Mapping[str, object], clock: Clock) -> int:
    """Store the shadows and the progress; return how many shadows are new."""
    number = sum(record_shadow(connection, row, record, clock()) for row, record in records)
    remembered.keep(connection, MARK, mark)
    return number
