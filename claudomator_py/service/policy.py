"""The policy: to be seen by whoever may operate."""

from collections.abc import Callable
from copy import copy

from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.domain.views.policy import ApprovalsView, PolicyView
from claudomator_py.policy.verdict import Policy
from claudomator_py.ports import Clock
from claudomator_py.queries import approvals, policy
from claudomator_py.queries.reading import read
from claudomator_py.store.database import Database


class PolicyDesk:
    """What can be asked about the policy. in_force: the rules at present; reviews: whether those that are built in
    hold. Every method may raise ``domain.errors.ServiceError``."""

    def __init__(
        self, database: Database, in_force: Callable[[], Policy], clock: Clock, reviews: Callable[[], bool]
    ) -> None:
        self._database = database
        self._in_force = in_force
        self._clock = clock
        self._reviews = reviews
        self._by = OPERATOR

    def as_(self, by: Principal) -> "PolicyDesk":
        """The same, for who asks."""
        bound = copy(self)
        bound._by = by
        return bound

    def view(self, days: int = 30) -> PolicyView:
        """The rules in force, and how often each applied in the last days."""
        rules, now_ms, reviews = self._in_force(), self._clock(), self._reviews()
        return read(
            self._database,
            lambda connection: policy.view(connection, rules, self._by, days, now_ms, reviews=reviews),
        )

    def approvals(self) -> ApprovalsView:
        """What waits for an approval, and what became of others."""
        return read(self._database, lambda connection: approvals.view(connection, self._by))
