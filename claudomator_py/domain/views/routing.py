"""The JSON shapes of routing. Field order is the order of the JSON."""

from typing import Annotated

from pydantic import ConfigDict, Field

from claudomator_py.domain.fields import Line
from claudomator_py.domain.rationale import ShownRationale
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.views.base import View

LONGEST_TEXT = 1_000_000
"""Characters of a task's instructions."""


class RouteRequest(View):
    """A task that there is not yet: who would do it?"""

    model_config = ConfigDict(frozen=True, extra="forbid")

    instructions: str = Field(min_length=1, max_length=LONGEST_TEXT, description="What the task would say.")
    name: Line | None = Field(None, description="Name of the task, which says in a few words what it is about.")
    tags: Annotated[tuple[Line, ...], Field(max_length=50)] = Field((), description="Tags of the task.")


class RouteCandidateView(View):
    """Somebody who could do it. parts: what each signal adds to the score, by its name. tie_break: what counts on top
    of it among those that are as good. rejected: why not, in words, null for the one chosen; rationale: the same as a
    value. needs: how much more score it would have taken to be chosen; null where more score would not have helped."""

    specialist: str
    skill: str | None = None
    score: float
    parts: dict[str, float] = Field(default_factory=dict)
    tie_break: float = 0.0
    rejected: str | None = None
    rationale: ShownRationale = None
    needs: float | None = None


class RouteView(View):
    """Who does a task, and why. specialist: null: nobody in particular, or, with the route `clarify`, nobody yet.

    confidence: the score of the one chosen, else of the best; threshold: the least with which somebody is chosen;
    margin: those within it of the best are as good. degraded: words alone were compared, as the encoder could not be
    asked. candidates: the best first, of those who exist for whoever asks. sentences: all of it for people, with what
    would have changed the answer. rationale: `reason` as a value.
    """

    route: str
    specialist: str | None = None
    skill: str | None = None
    confidence: float | None = None
    threshold: float | None = None
    margin: float | None = None
    degraded: bool = False
    risk: Risk | None = None
    reason: str
    rationale: ShownRationale = None
    candidates: tuple[RouteCandidateView, ...] = ()
    sentences: tuple[str, ...] = ()
    latency_ms: int | None = None
