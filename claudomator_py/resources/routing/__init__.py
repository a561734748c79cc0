"""Routing as it is shown, and what can be asked about it. Field order is the order of the JSON."""

from typing import Annotated

from pydantic import Field

from claudomator_py.domain.fields import Line, Strict
from claudomator_py.domain.rationale import ShownRationale
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.shape import Instant, View
from claudomator_py.domain.task import Instructions, Tags
from claudomator_py.domain.verdict import PolicyCheckView, VerdictView
from claudomator_py.surface import (
    ADMIN,
    ADMIN_WHOLE,
    READ,
    Calls,
    Days,
    JsonBody,
    QueryNumber,
    operation,
)


class RouteRequest(Strict):
    """A task that there is not yet: who would do it? Its text and its tags are what a task's may be."""

    instructions: Instructions = Field(description="Instructions of the task.")
    name: Line | None = Field(None, description="Name of the task, which says in a few words what it is about.")
    tags: Tags = Field((), description="Tags of the task.")
    requires: Tags = Field((), description="Capabilities that the specialist must have.")


class RouteCandidateView(View):
    """Somebody who could do it."""

    specialist: str
    skill: str | None = None
    score: float
    parts: dict[str, float] = Field(default_factory=dict)
    """What each signal adds to the score, by its name."""
    tie_break: float = 0.0
    """What counts on top of the score among those that are as good."""
    rejected: str | None = None
    """Why not, in words; null for the one chosen."""
    rationale: ShownRationale = None
    """The same as a value."""
    needs: float | None = None
    """How much more score it would have taken to be chosen; null where more would not have helped."""


class RouteView(View):
    """Who does a task, and why."""

    route: str
    specialist: str | None = None
    """Null: no specialist, or, with the route `clarify`, nobody yet."""
    skill: str | None = None
    confidence: float | None = None
    """The score of the one chosen, else of the best."""
    threshold: float | None = None
    """The least with which somebody is chosen."""
    margin: float | None = None
    """Those within it of the best are as good."""
    degraded: bool = False
    """Whether words alone were compared, as the encoder could not be asked."""
    unheeded: tuple[str, ...] = ()
    """What the text says of who is to do it, or how, which was not compared."""
    risk: Risk | None = None
    reason: str
    rationale: ShownRationale = None
    """The reason as a value."""
    candidates: tuple[RouteCandidateView, ...] = ()
    """The best first, of those who exist for whoever asks."""
    sentences: tuple[str, ...] = ()
    """All of it for people, with what would have changed the answer."""
    latency_ms: int | None = None
    intent: str | None = None
    """What the task wants, normalised."""
    topic: str | None = None
    """Its subject area, normalised."""
    required_capabilities: tuple[str, ...] = ()
    """Of whoever does it."""
    policy_checks: tuple[PolicyCheckView, ...] = ()
    """What each rule said, in their order."""


class TriedRouteView(RouteView):
    """Who would do a task that there is not, and what the policy would say of it."""

    policy: VerdictView | None = None
    """Null: there are no rules, and none is built in."""


class RoutingFiguresView(View):
    """How decisions went. Each figure is null where there is nothing to tell by."""

    specialist: str | None = None
    """Of whom; null: of no specialist, or of all."""
    topic: str | None = None
    """About what; null: about all."""
    decisions: int
    confidence: float | None = None
    """Mean score of those that were compared with others."""
    overridden: float | None = None
    """Share of all that an operator gave to somebody else."""
    failed: float | None = None
    """Share of those whose task has ended and was not overridden, which failed for a reason of the work."""
    answer_chars: float | None = None
    """Mean length of answers, in characters."""
    performance: float | None = None
    """What is known of the specialist now."""


class RoutingGapView(View):
    """What specialists cover badly."""

    specialist: str | None = None
    """What the tasks are most like, which is not much; null: nothing that exists for whoever asks."""
    topic: str | None = None
    """Null as for ``specialist``."""
    decisions: int
    """How many were made with less than the threshold, or with several as good."""
    confidence: float
    """The mean of them."""
    tasks: tuple[str, ...] = ()
    """Names of the newest."""


class RoutingSignalView(View):
    """What a signal has changed."""

    signal: str
    """``tie_break`` is all that decides among those that are as good."""
    decisions: int
    """How many it had a part in."""
    decided: int
    """How many somebody else would have got without it."""
    right: int
    """How many of these turned out well."""
    wrong: int
    """How many of these were given to just that somebody."""


class CreatorFeesView(View):
    """What cards of a creator asked for their work."""

    creator: str
    runs: int
    """For how many."""
    usd: float
    """In US dollars."""


class RoutingStatsView(View):
    """How routing does."""

    days: int
    """Of how many days."""
    total: RoutingFiguresView
    specialists: tuple[RoutingFiguresView, ...] = ()
    topics: tuple[RoutingFiguresView, ...] = ()
    sampled: int = 0
    """How many decisions, the newest, ``gaps`` and ``signals`` tell of."""
    gaps: tuple[RoutingGapView, ...] = ()
    signals: tuple[RoutingSignalView, ...] = ()
    fees: tuple[CreatorFeesView, ...] = ()
    """By whom they are owed to, the most first."""


class StandingView(View):
    """What is known of a specialist."""

    specialist: str
    topic: str | None = None
    """Null: altogether."""
    organisation: str | None = None
    """From whose tasks; null: from those of none."""
    performance: float
    """From 0 to 1, beginning at 0.5."""
    positive: int
    """Outcomes that moved it up."""
    negative: int
    """Outcomes that moved it down."""
    last_success_at: Instant | None = None
    updated_at: Instant


class CorrectionView(View):
    """Tasks that operators gave to somebody else."""

    specialist: str | None = None
    """Who was to do them; null: no specialist, or somebody who does not exist for whoever asks."""
    wanted: str
    """Who was to do them then."""
    topic: str | None = None
    tasks: int
    last_at: Instant


class LearnedView(View):
    """What was learned."""

    frozen_at: Instant | None = None
    """Since when nothing more is; null: it is."""
    waiting: int = 0
    """Outcomes that were not learned yet."""
    standings: tuple[StandingView, ...] = ()
    corrections: tuple[CorrectionView, ...] = ()


class ExpectedView(View):
    """Who is right for a task."""

    route: str | None = None
    """``default`` where no specialist is; else null: it is not known that none would have to be asked."""
    specialist: str | None = None
    """Null with ``default``."""


class LabelledTaskView(View):
    """A task of which it is known who is right for it, in the form that `claudomator eval` and `calibrate` take."""

    id: str
    name: str
    instructions: str
    tags: tuple[str, ...] = ()
    expected: ExpectedView
    by: str
    """The rule by which that is known, such as ``overridden``."""


class LabelledTasksView(View):
    """The newest of them, one for each task."""

    items: tuple[LabelledTaskView, ...] = ()


class ForgetRequest(Strict):
    """What to forget."""

    specialist: Line | None = Field(None, description="Only what was learned about this specialist. Default: all.")


_ASKED = {
    "the_least": {"instructions": "The totals of the invoice page are wrong by a cent. Find out why, and fix it."},
    "as_a_task": {"name": "nightly-dump", "instructions": "Restore last night's dump.", "tags": ["database"]},
}
_FORGOTTEN = {"all_of_it": {}, "of_one": {"specialist": "database-administrator"}}


class RoutingCalls(Calls):
    """Every operation on routing, as the client calls it."""

    @operation("POST /v1/route", "route", READ, "Who would do a task", refuses=(409,))
    def route(self, asked: Annotated[RouteRequest, JsonBody(_ASKED)]) -> TriedRouteView:
        """The decision on a task of that content, if whoever asks made it now: every candidate with what its score is
        made of, what would have changed the answer, and what the policy would say. Nothing is made or stored. 409 where
        nothing is routed."""

    @operation("GET /v1/routing/stats", "getRoutingStats", READ, "Routing statistics")
    def routing_stats(self, *, days: Days = 30) -> RoutingStatsView:
        """Of the tasks that exist for whoever asks: decisions, their confidence, corrections and failures by specialist
        and by topic; what specialists cover badly; and what each signal of the score has changed."""

    @operation("GET /v1/routing/learned", "getLearned", READ, "What was learned")
    def learned(self) -> LearnedView:
        """From outcomes and corrections of the tasks that exist for whoever asks."""

    @operation("GET /v1/routing/labels", "listLabels", READ, "Labelled tasks")
    def labels(
        self, *, limit: Annotated[int, QueryNumber("Maximum number of tasks.", 1, 10_000)] = 1_000
    ) -> LabelledTasksView:
        """Those that operators gave to somebody else, and those that were completed where they were, the newest first:
        what `claudomator calibrate` fits thresholds on."""

    @operation("POST /v1/routing/reset", "resetLearned", ADMIN, "Forget what was learned", refuses=(404,))
    def reset_learned(self, asked: Annotated[ForgetRequest | None, JsonBody(_FORGOTTEN)] = None) -> LearnedView:
        """It counts no more, nor does what is still to be learned of tasks that have ended. Of an organisation's
        principal, only what was learned from its tasks."""

    @operation("POST /v1/routing/freeze", "freezeLearning", ADMIN_WHOLE, "Freeze learning")
    def freeze_learning(self) -> LearnedView:
        """What was learned still counts. What happens until `unfreeze` is never learned. Harmless when repeated."""

    @operation("POST /v1/routing/unfreeze", "unfreezeLearning", ADMIN_WHOLE, "Resume learning")
    def unfreeze_learning(self) -> LearnedView:
        """From what happens from now on. Harmless when repeated."""
