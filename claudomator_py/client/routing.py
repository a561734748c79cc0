"""Routing, and what was learned of it, as typed calls."""

from claudomator_py.client.transport import (
    Transport,
    body_of,
)
from claudomator_py.domain.views.policy import TriedRouteView
from claudomator_py.domain.views.routing import (
    ForgetRequest,
    LabelledTasksView,
    LearnedView,
    RouteRequest,
    RoutingStatsView,
)


class RoutingCalls(Transport):
    """See ``client.http.Client``."""

    def route(self, asked: RouteRequest) -> TriedRouteView:
        """Who would do such a task, and why, and what the policy would say of it."""
        return self._view(TriedRouteView, "POST", "/v1/route", json=body_of(asked))

    def routing_stats(self, *, days: int = 30) -> RoutingStatsView:
        """How routing did in the last days, 1 to 365."""
        return self._view(RoutingStatsView, "GET", "/v1/routing/stats", params={"days": days})

    def learned(self) -> LearnedView:
        """What was learned from outcomes and corrections."""
        return self._view(LearnedView, "GET", "/v1/routing/learned")

    def labels(self, *, limit: int = 1_000) -> LabelledTasksView:
        """Tasks of which it is known who is right for them, the newest first."""
        return self._view(LabelledTasksView, "GET", "/v1/routing/labels", params={"limit": limit})

    def reset_learned(self, asked: ForgetRequest | None = None) -> LearnedView:
        """Forget it."""
        document = body_of(asked or ForgetRequest())
        return self._view(LearnedView, "POST", "/v1/routing/reset", json=document)

    def freeze_learning(self) -> LearnedView:
        """Learn nothing more."""
        return self._view(LearnedView, "POST", "/v1/routing/freeze")

    def unfreeze_learning(self) -> LearnedView:
        """Learn again."""
        return self._view(LearnedView, "POST", "/v1/routing/unfreeze")
