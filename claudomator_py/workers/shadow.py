"""A second configuration that decides about the same tasks beside the one in force, and acts on nothing."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sqlalchemy import Connection

from claudomator_py.dispatch.alternative import FOLLOWED, Alternative, OtherConfiguration
from claudomator_py.domain.units import SECOND_MS
from claudomator_py.log import get_logger
from claudomator_py.ports import Clock
from claudomator_py.scheduler.decision import ShadowRecord
from claudomator_py.store import decision_log, remembered
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.tables import Decision
from claudomator_py.tasks.decisions import record_shadow
from claudomator_py.workers.worker import Worker

log = get_logger("claudomator.shadow")

MARK = "shadow"
"""Under which is remembered how far it has come: ``configuration``, by its hash, since when it is followed,
``since_ms``, and ``at_ms`` of the last decision that was looked at; both in epoch milliseconds."""
BATCH_SIZE = 500
_LATE_MS = 10 * SECOND_MS
"""How much later than it was made a decision may be committed."""
_PAUSE_S = 1.0
"""Between two looks."""
_Found = tuple[Decision, ShadowRecord]


class Shadow(Worker):
    """Decides again, under another configuration, what is decided from the time on at which that is put in force.

    It looks at decisions once they are stored, on a thread of its own: no task waits for it, and a daemon that was
    killed in between misses none. configuration: the one in use at present; None: there is none.
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
        """Return None: there is nothing to look at before something is committed."""
        return None

    def run_once(self) -> int:
        """Decide again what was decided since the last look; how many shadows that gave. Raises StoreUnavailable."""
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
            found = [one for row in fresh for one in self._shadows(alternative, row)]
            mark = {**mark, "at_ms": max(mark["at_ms"], after[0])}
            # No tick has anything to do because of it.
            number += self._database.write(partial(_record, found=found, mark=mark, clock=self._clock), planned=True)
            self._done |= {row.id: row.at_ms for row in fresh}
        self._done = {row: at_ms for row, at_ms in self._done.items() if at_ms >= mark["at_ms"] - _LATE_MS}
        return number

    def _shadows(self, alternative: Alternative, row: Decision) -> list[_Found]:
        """Of one decision; what fails for it keeps no other from being looked at. Raises StoreUnavailable."""
        try:
            found = [alternative.placed(row), alternative.routed(row)]
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("shadow_failed", decision=row.id)
            return []
        return [(row, one) for one in found if one is not None]


def _following(connection: Connection, after: decision_log.Position) -> Sequence[Decision]:
    return decision_log.following(connection, FOLLOWED, after, BATCH_SIZE)


def _record(connection: Connection, found: Sequence[_Found], mark: Mapping[str, object], clock: Clock) -> int:
    """How many of these were not there yet."""
    number = sum(record_shadow(connection, row, record, clock()) for row, record in found)
    remembered.keep(connection, MARK, mark)
    return number
