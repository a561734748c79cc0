"""What was learned about who does what: to be seen, forgotten and frozen."""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from claudomator_py.ports import Clock
from claudomator_py.resources.routing import stats
from claudomator_py.resources.routing.shape import ForgetRequest, LabelledTasksView, LearnedView, RoutingStatsView
from claudomator_py.resources.session import Service
from claudomator_py.store import specialist_rows, switch_rows
from claudomator_py.store.database import Database
from claudomator_py.store.events import record
from claudomator_py.tasks import learning
from claudomator_py.tasks.specialists import unknown

T = TypeVar("T")


class Learned(Service):
    """What can be asked about learning."""

    def __init__(self, database: Database, clock: Clock, default: Callable[[], str | None]) -> None:
        """default: the specialist for what is for no other, as configured now."""
        super().__init__(database)
        self._clock = clock
        self._default = default

    def stats(self, days: int = 30) -> RoutingStatsView:
        """Return how routing did in the last days."""
        return self._read(lambda connection: stats.stats(connection, self._by, days, self._clock()))

    def all(self) -> LearnedView:
        """Return what was learned so far."""
        return self._read(self._all)

    def labelled(self, limit: int = 1_000) -> LabelledTasksView:
        """Return tasks of which it is known who is right for them, the newest first."""
        return self._read(lambda connection: stats.labelled(connection, self._by, limit, self._default()))

    def forget(self, request: ForgetRequest) -> LearnedView:
        """Have it count no more, nor what is still to be learned of what has ended. Raises NotFound."""

        def transaction(connection: Connection) -> LearnedView:
            name = request.specialist
            if name is not None and specialist_rows.find(connection, name, self._by) is None:
                raise unknown(connection, name, self._by)
            learning.reset(connection, self._by.organisation, name, self._clock())
            data = {} if name is None else {"specialist": name}
            record(connection, self._clock(), "learning_reset", data=data)
            return self._all(connection)

        return self._write(transaction)

    def freeze(self) -> LearnedView:
        """Learn nothing more, nor later from what happens meanwhile. Harmless when repeated."""

        def transaction(connection: Connection) -> LearnedView:
            if switch_rows.turn_on(connection, learning.FROZEN, None, self._clock()):
                record(connection, self._clock(), "learning_frozen")
            return self._all(connection)

        return self._write(transaction)

    def unfreeze(self) -> LearnedView:
        """Learn again. Harmless when repeated."""

        def transaction(connection: Connection) -> LearnedView:
            if switch_rows.find(connection, learning.FROZEN) is not None:
                while learning.has_more(connection):
                    learning.learn(connection, 0.0, self._clock())  # what has ended ended while it was frozen
                switch_rows.turn_off(connection, learning.FROZEN)
                record(connection, self._clock(), "learning_unfrozen")
            return self._all(connection)

        return self._write(transaction)

    def _all(self, connection: Connection) -> LearnedView:
        return stats.learned(connection, self._by)
