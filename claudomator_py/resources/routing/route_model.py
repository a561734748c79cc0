"""What the pages show of a decision on who does a task."""

from claudomator_py.resources.routing.shape import RouteCandidateView, RouteView
from claudomator_py.resources.specialists.page_model import url_of
from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class RouteCandidate:
    """A specialist as the decision saw it."""

    specialist: str
    url: str
    skill: str | None
    score: str
    share: str
    """The score, as a number from 0 to 1."""
    parts: tuple[tuple[str, str], ...]
    """What each signal adds to the score, by its name; last, what counts on top among those that are as good."""
    needs: str | None
    """How much more score it would have taken; None: more would not have helped."""
    verdict: str
    picked: bool


@dataclass(frozen=True, slots=True)
class RouteShown:
    """Who does a task, and why."""

    sentences: tuple[str, ...]
    candidates: tuple[RouteCandidate, ...]
    threshold: str | None


def route_of(route: RouteView) -> RouteShown:
    """Return the decision for people."""
    return RouteShown(
        sentences=route.sentences,
        candidates=tuple(candidate_of(one) for one in route.candidates),
        threshold=None if route.threshold is None else f"{route.threshold:.3f}",
    )


def candidate_of(one: RouteCandidateView) -> RouteCandidate:
    """Return a specialist who was compared."""
    parts = [(name.replace("_", " "), f"{value:.3f}") for name, value in one.parts.items()]
    if one.tie_break:
        parts.append(("tie break", f"+ {one.tie_break:.3f}"))
    return RouteCandidate(
        specialist=one.specialist,
        url=url_of(one.specialist),
        skill=one.skill,
        score=f"{one.score:.3f}",
        share=f"{min(1.0, max(0.0, one.score)):.3f}",
        parts=tuple(parts),
        needs=None if one.needs is None else f"{one.needs:.3f}",
        verdict="chosen" if one.rejected is None else one.rejected,
        picked=one.rejected is None,
    )
