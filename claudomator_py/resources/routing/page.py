"""The page /routing: which specialist would do a task, figures on routing, and operators' corrections."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi.responses import Response

from claudomator_py.api.operation import Allowed, UnlistedRoutes
from claudomator_py.api.page.formatting import Days, Field, TaskText, day_spans, days_text, read_fields
from claudomator_py.api.page.rendering import button, render
from claudomator_py.domain.errors import Conflict, Invalid, ServiceError
from claudomator_py.domain.units import counted
from claudomator_py.resources.routing import (
    CORRECTIONS,
    FEES,
    GAPS,
    SIGNALS,
    TOPICS,
    CorrectionView,
    LearnedView,
    RouteRequest,
    RoutingCalls,
    RoutingStatsView,
    StandingView,
    figures_table,
)
from claudomator_py.resources.routing.service import Routing
from claudomator_py.resources.session import Session
from claudomator_py.surface.table import Table
from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class RouteForm:
    """The form's hypothetical task. tags: separated by commas."""

    text: str = ""
    name: str = ""
    tags: str = ""

    def request(self) -> RouteRequest:
        """Return the request. Raises Invalid."""
        tags = [tag.strip() for tag in self.tags.split(",") if tag.strip()]
        given = {"instructions": self.text.strip(), "name": self.name.strip(), "tags": tags}
        return read_fields(RouteRequest, given)


_TABLES: Mapping[str, Table[Any]] = {
    "topics": TOPICS,
    "gaps": GAPS,
    "signals": SIGNALS,
    "fees": FEES,
    "corrections": CORRECTIONS,
}

routes = UnlistedRoutes("/routing")


@routes.get("", "getRoutingStats")
def show(granted: Allowed, days: Days = 30) -> Response:
    learned = granted[Routing]
    stats = learned.stats(days)
    spans = day_spans("/routing", days, "figures")
    values = {"spans": spans, "learned": learned.all(), **figures_of(stats)}
    return _page(granted, RouteForm(), values)


# POST, because a task's text may be long and private and must not appear in a URL.
@routes.post("", "route")
def who(granted: Allowed, text: TaskText = "", name: Field = "", tags: Field = "") -> Response:
    given = RouteForm(text, name, tags)
    try:
        return _page(granted, given, {"route": granted[Routing].route(given.request())})
    except (Conflict, Invalid) as refusal:
        return _page(granted, given, {}, refusal)


@routes.get("/forget", "resetLearned")
def ask_to_forget(granted: Allowed) -> Response:
    return render("forget.html", {"specialist": None}, granted)


button(routes, "/forget", RoutingCalls.reset_learned, Routing, "/routing#learning")
button(routes, "/freeze", RoutingCalls.freeze_learning, Routing, "/routing#learning")
button(routes, "/unfreeze", RoutingCalls.unfreeze_learning, Routing, "/routing#learning")


def _page(
    granted: Session, asked: RouteForm, values: Mapping[str, object], refusal: ServiceError | None = None
) -> Response:
    whole = {"asked": asked, "route": None, "stats": None, **values}
    return render("routing.html", whole, granted, refusal=refusal)


def figures_of(stats: RoutingStatsView) -> Mapping[str, object]:
    """Return the figures, and the columns of their tables."""
    return {
        "stats": stats,
        "summary": summary_of(stats),
        "tables": {**_TABLES, "figures": figures_table(stats.total)},
        "rows": [*stats.specialists, stats.total],
    }


def summary_of(stats: RoutingStatsView) -> str:
    """Return a sentence about all decisions of the last days."""
    total, days = stats.total, days_text(stats.days)
    parts = [f"{counted(total.decisions, 'decision')} in {days}"]
    if total.confidence is not None:
        parts.append(f"with a mean confidence of {total.confidence:.2f}")
    parts += [
        f"{share:.0%} {what}"
        for share, what in ((total.overridden, "overridden"), (total.failed, "failed"))
        if share is not None
    ]
    return f"{', '.join(parts)}." if total.decisions else f"Nothing was routed in {days}."


def standings_of(learned: LearnedView, specialist_id: str) -> Sequence[StandingView]:
    """Return what was learned about the specialist, its overall performance first."""
    own = [standing for standing in learned.standings if standing.specialist == specialist_id]
    return sorted(own, key=lambda standing: standing.topic or "")


def corrections_of(learned: LearnedView, specialist_id: str) -> Sequence[CorrectionView]:
    """Return operators' corrections from or to the specialist."""
    return [
        correction for correction in learned.corrections if specialist_id in (correction.specialist, correction.wanted)
    ]
