"""Agents: looking at them, and what an operator does to their holds."""

from collections.abc import Callable
from functools import partial

from sqlalchemy import Connection

from claudomator_py.dispatch.spending import Budgets
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.errors import NotFound
from claudomator_py.domain.principal import RequestKey
from claudomator_py.domain.requests import HoldRequest, ReleaseRequest
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.ports import Clock
from claudomator_py.resources.agents import AgentCalls, AgentView
from claudomator_py.resources.agents.ask import agent_views
from claudomator_py.resources.session import Service
from claudomator_py.store.database import Database
from claudomator_py.surface.operation import answers
from claudomator_py.tasks.holds import hold_agent, release_agent
from claudomator_py.tasks.idempotency import IdempotentRequests


class Agents(Service):
    """What can be asked about agents. name: an agent's; of one that there is not, it raises NotFound."""

    def __init__(
        self,
        database: Database,
        registry: AgentRegistry,
        budgets: Budgets,
        clock: Clock,
        repeats: IdempotentRequests,
    ) -> None:
        super().__init__(database, repeats)
        self._registry = registry
        self._budgets = budgets
        self._clock = clock

    @answers(AgentCalls.agents)
    def all(self) -> list[AgentView]:
        """Return the configured agents, in the order of the configuration."""
        return self._read(self._views)

    @answers(AgentCalls.hold)
    def hold(self, name: str, request: HoldRequest, *, key: RequestKey | None = None) -> AgentView:
        """Start nothing on the agent, as an operator."""
        return self._change(name, partial(hold_agent, request=request), key)

    @answers(AgentCalls.release)
    def release(self, name: str, request: ReleaseRequest | None = None, *, key: RequestKey | None = None) -> AgentView:
        """End all holds of the agent, or those on a family of its models, as an operator."""
        return self._change(name, partial(release_agent, request=request or ReleaseRequest()), key)

    def _change(self, name: str, change: Callable[..., None], key: RequestKey | None) -> AgentView:
        found = self._named(name)

        def transaction(connection: Connection) -> AgentView:
            change(connection, found, now_ms=self._clock())
            return next(view for view in self._views(connection) if view.name == name)

        return self._once(key, AgentView, lambda: transaction)

    def _views(self, connection: Connection) -> list[AgentView]:
        now_ms = self._clock()
        seen = self._budgets.seen(connection, now_ms, self._by)
        return agent_views(connection, self._registry, self._budgets, now_ms, self._by, seen)

    def _named(self, name: str) -> AgentSpec:
        found = self._registry.find(name)
        if found is None:
            names = [known.name for known in self._registry.agents]
            raise NotFound.among("agent", name, names, none="no agent is configured")
        return found
