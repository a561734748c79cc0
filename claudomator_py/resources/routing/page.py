"""The page /routing: which specialist would do a task, figures on routing, and operators' corrections."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Form
from fastapi.responses import RedirectResponse, Response

from claudomator_py.api.guard.roles import Asking
from claudomator_py.api.operation import guarded
from claudomator_py.api.page.formatting import DAYS, Days, read_fields
from claudomator_py.api.page.rendering import render
from claudomator_py.api.problem import status_of
from claudomator_py.domain.errors import Conflict, Invalid
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.task import MAX_INSTRUCTIONS_LENGTH
from claudomator_py.domain.units import counted
from claudomator_py.resources.routing import (
    CorrectionView,
    CreatorFeesView,
    ForgetRequest,
    LearnedView,
    RouteCandidateView,
    RouteRequest,
    RouteView,
    RoutingFiguresView,
    RoutingGapView,
    RoutingSignalView,
    RoutingStatsView,
    StandingView,
)
from claudomator_py.resources.routing.service import Routing
from claudomator_py.resources.session import Access
from claudomator_py.resources.specialists.page_model import url_of
from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class RouteCandidate:
    """A candidate of a decision."""

    specialist: str
    url: str
    skill: str | None
    score: str
    share: str
    """The score, as a number from 0 to 1."""
    parts: tuple[tuple[str, str], ...]
    """Contribution of each signal to the score, by name; the tie break comes last."""
    needs: str | None
    """The additional score that it would have needed; None if more would not have helped."""
    verdict: str
    picked: bool


@dataclass(frozen=True, slots=True)
class RouteShown:
    """The route of a task."""

    sentences: tuple[str, ...]
    candidates: tuple[RouteCandidate, ...]
    threshold: str | None


def route_of(route: RouteView) -> RouteShown:
    """Return the route for display."""
    return RouteShown(
        sentences=route.sentences,
        candidates=tuple(candidate_of(candidate) for candidate in route.candidates),
        threshold=None if route.threshold is None else f"{route.threshold:.3f}",
    )


def candidate_of(candidate: RouteCandidateView) -> RouteCandidate:
    """Return the candidate for display."""
    parts = [(name.replace("_", " "), f"{value:.3f}") for name, value in candidate.parts.items()]
    if candidate.tie_break:
        parts.append(("tie break", f"+ {candidate.tie_break:.3f}"))
    return RouteCandidate(
        specialist=candidate.specialist,
        url=url_of(candidate.specialist),
        skill=candidate.skill,
        score=f"{candidate.score:.3f}",
        share=f"{min(1.0, max(0.0, candidate.score)):.3f}",
        parts=tuple(parts),
        needs=None if candidate.needs is None else f"{candidate.needs:.3f}",
        verdict="chosen" if candidate.rejected is None else candidate.rejected,
        picked=candidate.rejected is None,
    )


Text = Annotated[str, Form(max_length=MAX_INSTRUCTIONS_LENGTH)]
Field = Annotated[str, Form(max_length=2_000)]
NOBODY = "no specialist"


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


def router(access: Access) -> APIRouter:
    """Return the routes."""
    routes = guarded("/routing")

    @routes.get("")
    def show(by: Asking, days: Days = 30) -> Response:
        learned = access.as_(by)[Routing]
        known = learned.all()
        values = {
            "figures": figures_of(learned.stats(days)),
            "corrections": corrections_of(known.corrections),
            "frozen": known.frozen_at,
            "waiting": known.waiting,
        }
        return _page(by, RouteForm(), values)

    # POST, because a task's text may be long and private and must not appear in a URL.
    @routes.post("")
    def who(by: Asking, text: Text = "", name: Field = "", tags: Field = "") -> Response:
        given = RouteForm(text, name, tags)
        try:
            return _page(by, given, {"route": route_of(access.as_(by)[Routing].route(given.request()))})
        except (Conflict, Invalid) as refusal:
            return _page(by, given, {"refusal": refusal}, status_of(refusal))

    @routes.get("/forget")
    def ask_to_forget(by: Asking) -> Response:
        return render("forget.html", {"page": None}, by=by)

    @routes.post("/forget")
    def forget(by: Asking) -> Response:
        access.as_(by)[Routing].forget(ForgetRequest())
        return _back()

    @routes.post("/freeze")
    def freeze(by: Asking) -> Response:
        access.as_(by)[Routing].freeze()
        return _back()

    @routes.post("/unfreeze")
    def unfreeze(by: Asking) -> Response:
        access.as_(by)[Routing].unfreeze()
        return _back()

    return routes


def _back() -> Response:
    return RedirectResponse("/routing#learning", 303)


def _page(by: Principal, asked: RouteForm, values: Mapping[str, object], status: int = 200) -> Response:
    whole = {"asked": asked, "route": None, "refusal": None, "figures": None, **values}
    return render("routing.html", whole, status, by=by)


@dataclass(frozen=True, slots=True)
class Who:
    """A specialist, or none. url: its page."""

    name: str
    url: str | None


@dataclass(frozen=True, slots=True)
class FiguresRow:
    """Figures on decisions. Texts are empty if there is no data."""

    who: Who | None
    """None for a row on a topic, or on all decisions."""
    topic: str
    decisions: str
    confidence: str
    overridden: str
    failed: str
    answer: str
    performance: str


@dataclass(frozen=True, slots=True)
class Gap:
    """A gap that no specialist covers well."""

    who: Who
    topic: str
    decisions: str
    confidence: str
    tasks: str


@dataclass(frozen=True, slots=True)
class Signal:
    """The effect of a signal of the score."""

    name: str
    decisions: str
    decided: str
    right: str
    wrong: str


@dataclass(frozen=True, slots=True)
class RoutingFigures:
    """Figures on routing."""

    spans: tuple[tuple[str, str, bool], ...]
    """Periods to choose from: label, URL, and whether it is the current one."""
    summary: str
    """A sentence."""
    total: FiguresRow
    specialists: tuple[FiguresRow, ...]
    topics: tuple[FiguresRow, ...]
    gaps: tuple[Gap, ...]
    signals: tuple[Signal, ...]
    fees: tuple[CreatorFeesView, ...]
    """Fees of the creators of cards."""
    sampled: str
    """Number of decisions behind the gaps and signals, in words."""


@dataclass(frozen=True, slots=True)
class StandingEntry:
    """A specialist's performance on a topic, or overall."""

    topic: str
    performance: str
    positive: int
    negative: int
    last_success: str | None
    """An instant."""


@dataclass(frozen=True, slots=True)
class Correction:
    """Tasks that operators gave to another specialist."""

    given_by: Who
    wanted: Who
    topic: str
    tasks: int
    last: str
    """An instant."""


def figures_of(stats: RoutingStatsView) -> RoutingFigures:
    """Return the figures for display."""
    total = stats.total
    parts = [f"{_decisions(total.decisions)} in {_days(stats.days)}"]
    if total.confidence is not None:
        parts.append(f"with a mean confidence of {total.confidence:.2f}")
    parts += [
        f"{_per_cent(share)} {what}"
        for share, what in ((total.overridden, "overridden"), (total.failed, "failed"))
        if share is not None
    ]
    return RoutingFigures(
        spans=tuple((_days(days), f"/routing?days={days}#figures", days == stats.days) for days in DAYS),
        summary=f"{', '.join(parts)}." if total.decisions else f"Nothing was routed in {_days(stats.days)}.",
        total=_row(total, None),
        specialists=tuple(_row(specialist, _who(specialist.specialist)) for specialist in stats.specialists),
        topics=tuple(_row(topic, None) for topic in stats.topics),
        gaps=tuple(_gap(gap) for gap in stats.gaps),
        signals=tuple(_signal(signal) for signal in stats.signals),
        fees=stats.fees,
        sampled=_decisions(stats.sampled),
    )


def standings_of(learned: LearnedView, specialist_id: str) -> tuple[StandingEntry, ...]:
    """Return what was learned about the specialist, its overall performance first."""
    own = [standing for standing in learned.standings if standing.specialist == specialist_id]
    return tuple(_standing(standing) for standing in sorted(own, key=lambda standing: standing.topic or ""))


def corrections_of(corrections: Sequence[CorrectionView], specialist_id: str | None = None) -> tuple[Correction, ...]:
    """Return operators' corrections. specialist_id: only those from or to this specialist."""
    return tuple(
        Correction(
            _who(correction.specialist),
            _who(correction.wanted),
            correction.topic or "",
            correction.tasks,
            correction.last_at,
        )
        for correction in corrections
        if specialist_id in (None, correction.specialist, correction.wanted)
    )


def _row(figures: RoutingFiguresView, who: Who | None) -> FiguresRow:
    return FiguresRow(
        who=who,
        topic=figures.topic or "",
        decisions=f"{figures.decisions:,}",
        confidence=_share(figures.confidence),
        overridden=_per_cent(figures.overridden),
        failed=_per_cent(figures.failed),
        answer="" if figures.answer_chars is None else f"{figures.answer_chars:,.0f}",
        performance=_share(figures.performance),
    )


def _gap(gap: RoutingGapView) -> Gap:
    return Gap(
        who=_who(gap.specialist),
        topic=gap.topic or "",
        decisions=f"{gap.decisions:,}",
        confidence=_share(gap.confidence),
        tasks=", ".join(gap.tasks),
    )


def _signal(signal: RoutingSignalView) -> Signal:
    counts = (f"{count:,}" for count in (signal.decisions, signal.decided, signal.right, signal.wrong))
    return Signal(signal.signal.replace("_", " "), *counts)


def _standing(standing: StandingView) -> StandingEntry:
    topic = standing.topic or "all"
    return StandingEntry(
        topic, _share(standing.performance), standing.positive, standing.negative, standing.last_success_at
    )


def _who(specialist_id: str | None) -> Who:
    return Who(NOBODY, None) if specialist_id is None else Who(specialist_id, url_of(specialist_id))


def _decisions(number: int) -> str:
    return counted(number, "decision")


def _days(days: int) -> str:
    return "a day" if days == 1 else f"{days} days"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _per_cent(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"
