"""Who would do a task, and what was learned about who does what: to be seen, forgotten and frozen."""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from claudomator_py.dispatch.deciding import Decided
from claudomator_py.domain.errors import Conflict
from claudomator_py.domain.principal import Principal
from claudomator_py.ports import Clock
from claudomator_py.resources.routing import (
    ForgetRequest,
    LabelledTasksView,
    LearnedView,
    RouteRequest,
    RoutingCalls,
    RoutingStatsView,
    TriedRouteView,
    stats,
)
from claudomator_py.resources.routing.ask import tried_view
from claudomator_py.resources.session import Service
from claudomator_py.routing.profile import Request
from claudomator_py.store import hold_rows, specialist_rows
from claudomator_py.store.database import Database, or_unavailable
from claudomator_py.store.events import record
from claudomator_py.surface.operation import answers
from claudomator_py.tasks import learning
from claudomator_py.tasks.specialists import unknown

T = TypeVar("T")

Router = Callable[[Request, Principal, tuple[str, ...]], Decided | None]
"""What would become of a task of that content, if that principal made it; None: nothing is routed. Raises
StoreUnavailable."""


class Routing(Service):
    """What can be asked about who does what."""

    def __init__(
        self, database: Database, clock: Clock, default: Callable[[], str | None], router: Router = lambda *_: None
    ) -> None:
        """default: the specialist for what is for no other, as configured now."""
        super().__init__(database)
        self._clock = clock
        self._default = default
        self._router = router

    @answers(RoutingCalls.route)
    def route(self, request: RouteRequest) -> TriedRouteView:
        """Return who would do such a task, if whoever asks made it now, and what the policy would say. Raises Conflict
        where nothing is routed."""
        with or_unavailable():
            decided = self._router(
                Request(request.instructions, request.name or "", request.tags), self._by, request.requires
            )
        if decided is None or decided.record is None:
            remedy = "Set another `routing.preset` than `none`."
            raise Conflict("Nothing is routed: the configuration says so.", remedy=remedy)
        seen = self._read(lambda connection: frozenset(specialist_rows.ids_seen(connection, self._by)))
        name = request.name or "Such a task"
        verdict = decided.judged.verdict.shown(name)
        return tried_view(name, decided.record, verdict, seen)

    @answers(RoutingCalls.routing_stats)
    def stats(self, days: int = 30) -> RoutingStatsView:
        """Return how routing did in the last days."""
        return self._read(lambda connection: stats.stats(connection, self._by, days, self._clock()))

    @answers(RoutingCalls.learned)
    def all(self) -> LearnedView:
        """Return what was learned so far."""
        return self._read(self._all)

    @answers(RoutingCalls.labels)
    def labelled(self, limit: int = 1_000) -> LabelledTasksView:
        """Return tasks of which it is known who is right for them, the newest first."""
        return self._read(lambda connection: stats.labelled(connection, self._by, limit, self._default()))

    @answers(RoutingCalls.reset_learned)
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

    @answers(RoutingCalls.freeze_learning)
    def freeze(self) -> LearnedView:
        """Learn nothing more, nor later from what happens meanwhile. Harmless when repeated."""

        def transaction(connection: Connection) -> LearnedView:
            if hold_rows.turn_on(connection, learning.FROZEN, None, self._clock()):
                record(connection, self._clock(), "learning_frozen")
            return self._all(connection)

        return self._write(transaction)

    @answers(RoutingCalls.unfreeze_learning)
    def unfreeze(self) -> LearnedView:
        """Learn again. Harmless when repeated."""

        def transaction(connection: Connection) -> LearnedView:
            if hold_rows.find_switch(connection, learning.FROZEN) is not None:
                while learning.has_more(connection):
                    learning.learn(connection, 0.0, self._clock())  # what has ended ended while it was frozen
                hold_rows.turn_off(connection, learning.FROZEN)
                record(connection, self._clock(), "learning_unfrozen")
            return self._all(connection)

        return self._write(transaction)

    def _all(self, connection: Connection) -> LearnedView:
        return stats.learned(connection, self._by)
