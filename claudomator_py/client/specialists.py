"""Specialists, the policy, and what was learned, as typed calls."""

from collections.abc import Iterator

from claudomator_py.client.transport import (
    Transport,
    body_of,
    change_headers,
    part_of,
    path_segment,
)
from claudomator_py.domain.card import Card
from claudomator_py.domain.views.base import Page, all_items
from claudomator_py.domain.views.policy import TriedRouteView
from claudomator_py.domain.views.routing import (
    ForgetRequest,
    LabelledTasksView,
    LearnedView,
    RouteRequest,
    RoutingStatsView,
)
from claudomator_py.domain.views.specialists import SearchView, SpecialistView


class SpecialistCalls(Transport):
    """See ``client.http.Client``."""

    def specialists(self, *, cursor: str | None = None, limit: int = 50) -> Page[SpecialistView]:
        """One part of the specialists, by id."""
        query = part_of(cursor, limit)
        return self._view(Page[SpecialistView], "GET", "/v1/specialists", params=query)

    def all_specialists(self) -> Iterator[SpecialistView]:
        """All specialists, by id, fetched as they are read."""
        return all_items(lambda cursor, limit: self.specialists(cursor=cursor, limit=limit))

    def specialist(self, specialist_id: str) -> SpecialistView:
        """One specialist with its card."""
        return self._view(SpecialistView, "GET", f"/v1/specialists/{path_segment(specialist_id)}")

    def search_specialists(self, query: str, *, limit: int = 10) -> SearchView:
        """The specialists that match, the best first."""
        params = {"query": query, "limit": limit}
        return self._view(SearchView, "GET", "/v1/specialists/search", params=params)

    def register_specialist(self, card: Card, *, idempotency_key: str | None = None) -> SpecialistView:
        """Add it, or update one's own of that id. Harmless when repeated."""
        headers = change_headers(idempotency_key)
        return self._view(SpecialistView, "POST", "/v1/specialists", json=card.document, headers=headers)

    def change_specialist(self, card: Card, *, if_version: int | None = None) -> SpecialistView:
        """Replace the card of the specialist that has its id."""
        headers = change_headers(None, if_version)
        path = f"/v1/specialists/{path_segment(card.id)}"
        return self._view(SpecialistView, "PUT", path, json=card.document, headers=headers)

    def remove_specialist(self, specialist_id: str, *, if_version: int | None = None) -> None:
        """Remove it with its grants."""
        self._request(
            "DELETE", f"/v1/specialists/{path_segment(specialist_id)}", headers=change_headers(None, if_version)
        )

    def grant_specialist(self, specialist_id: str, grantee: str) -> SpecialistView:
        """Let a shared one exist for a principal, or for all of an organisation: ``org:NAME``."""
        path = f"/v1/specialists/{path_segment(specialist_id)}/grants"
        return self._view(SpecialistView, "POST", path, json={"grantee": grantee})

    def revoke_specialist(self, specialist_id: str, grantee: str) -> SpecialistView:
        """Take a grant back."""
        path = f"/v1/specialists/{path_segment(specialist_id)}/grants/{path_segment(grantee)}"
        return self._view(SpecialistView, "DELETE", path)

    def admit_specialist(self, specialist_id: str) -> SpecialistView:
        """Admit its card, as it is, to the work of others."""
        return self._view(SpecialistView, "PUT", f"/v1/specialists/{path_segment(specialist_id)}/admission")

    def dismiss_specialist(self, specialist_id: str) -> SpecialistView:
        """Take its admission back."""
        return self._view(SpecialistView, "DELETE", f"/v1/specialists/{path_segment(specialist_id)}/admission")

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
