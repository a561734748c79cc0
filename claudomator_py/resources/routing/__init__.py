"""The shapes and operations of routing. Field order is the order of the JSON."""

from typing import Annotated

from pydantic import Field

from claudomator_py.domain.fields import Line, Strict
from claudomator_py.domain.rationale import Rationale
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.shape import Instant, View
from claudomator_py.domain.task import Instructions, Tags
from claudomator_py.domain.verdict import PolicyCheckView, VerdictView
from claudomator_py.domain.wording import Known
from claudomator_py.surface import ADMIN, ADMIN_WHOLE, READ, Calls, Days, InQuery, JsonBody, operation
from claudomator_py.surface.table import Column, Link, Table, ago, figure


class RouteRequest(Strict):
    """A task that is not created: who would do it?"""

    instructions: Instructions = Field(description="The task's instructions.")
    name: Line | None = Field(None, description="The task's name, which says in a few words what it is about.")
    tags: Tags = Field((), description="The task's tags.")
    requires: Tags = Field((), description="Capabilities that the specialist must have.")


class RouteCandidateView(View):
    """A specialist that was considered."""

    specialist: str
    skill: str | None = None
    score: float
    parts: dict[str, float] = Field(default_factory=dict)
    """What each signal adds to the score, by name."""
    tie_break: float = 0.0
    """What is added to the score among those that are equally good."""
    rejected: str | None = None
    """Why it was not chosen, in words; null for the one that was."""
    rationale: Known[Rationale] = None
    """The same, as a code with its parameters."""
    needs: float | None = None
    """How much more score it needed to be chosen; null where more would not have helped."""


class RouteView(View):
    """Who does a task, and why."""

    route: str
    specialist: str | None = None
    """Null: no specialist, or, for the route `clarify`, not decided yet."""
    skill: str | None = None
    confidence: float | None = None
    """The score of the one chosen, or else of the best."""
    threshold: float | None = None
    """The least score with which a specialist is chosen."""
    margin: float | None = None
    """Scores within it of the best count as equally good."""
    degraded: bool = False
    """Whether only words were compared, as the encoder was not available."""
    unheeded: tuple[str, ...] = ()
    """What the text says about who is to do it or how, which was not compared."""
    risk: Risk | None = None
    reason: str
    rationale: Known[Rationale] = None
    """The reason, as a code with its parameters."""
    candidates: tuple[RouteCandidateView, ...] = ()
    """Those that exist for the caller, best first."""
    sentences: tuple[str, ...] = ()
    """The decision in words, with what would have changed it."""
    latency_ms: int | None = None
    intent: str | None = None
    """What the task wants, normalised."""
    topic: str | None = None
    """Its subject area, normalised."""
    required_capabilities: tuple[str, ...] = ()
    """Capabilities that the task needs."""
    policy_checks: tuple[PolicyCheckView, ...] = ()
    """What each rule said, in the order of the rules."""


class TriedRouteView(RouteView):
    """Who would do a task that is not created, and what the policy would say about it."""

    policy: VerdictView | None = None
    """Null: there are no rules, not even built-in ones."""


class RoutingFiguresView(View):
    """How decisions went. A figure is null if there is no data for it."""

    specialist: str | None = None
    """The specialist; null: none, or all of them."""
    topic: str | None = None
    """The subject area; null: all."""
    decisions: int
    confidence: float | None = None
    """The mean score of decisions that compared specialists."""
    overridden: float | None = None
    """The share of decisions that an operator overrode with another specialist."""
    failed: float | None = None
    """The share that failed because of the work itself, among ended tasks that were not overridden."""
    answer_chars: float | None = None
    """The mean length of answers, in characters."""
    performance: float | None = None
    """The specialist's performance now."""


class RoutingGapView(View):
    """Tasks that no specialist covers well."""

    specialist: str | None = None
    """The closest specialist, which is not close; null: none that exists for the caller."""
    topic: str | None = None
    """Null as for ``specialist``."""
    decisions: int
    """How many were decided below the threshold, or between equally good ones."""
    confidence: float
    """Their mean."""
    tasks: tuple[str, ...] = ()
    """The names of the newest."""


class RoutingSignalView(View):
    """What difference a signal made."""

    signal: str
    """``tie_break`` is everything that decides among equally good ones."""
    decisions: int
    """How many decisions it had a part in."""
    decided: int
    """How many would have gone to another specialist without it."""
    right: int
    """How many of these went well."""
    wrong: int
    """How many of these were then given to just that other specialist."""


class CreatorFeesView(View):
    """What a creator's cards charged for their work."""

    creator: str
    runs: int
    """How many runs they charged for."""
    usd: float
    """The total, in US dollars."""


class RoutingStatsView(View):
    """How well routing works."""

    days: int
    """The number of days counted."""
    total: RoutingFiguresView
    specialists: tuple[RoutingFiguresView, ...] = ()
    topics: tuple[RoutingFiguresView, ...] = ()
    sampled: int = 0
    """How many decisions, the newest, ``gaps`` and ``signals`` are based on."""
    gaps: tuple[RoutingGapView, ...] = ()
    signals: tuple[RoutingSignalView, ...] = ()
    fees: tuple[CreatorFeesView, ...] = ()
    """By creator, the largest first."""


class StandingView(View):
    """What was learned about a specialist."""

    specialist: str
    topic: str | None = None
    """Null: all topics."""
    organisation: str | None = None
    """The organisation whose tasks it was learned from; null: tasks of none."""
    performance: float
    """From 0 to 1, starting at 0.5."""
    positive: int
    """Outcomes that raised it."""
    negative: int
    """Outcomes that lowered it."""
    last_success_at: Instant | None = None
    updated_at: Instant


class CorrectionView(View):
    """Tasks that operators gave to another specialist."""

    specialist: str | None = None
    """The specialist chosen first; null: none, or one that does not exist for the caller."""
    wanted: str
    """The specialist they were given to."""
    topic: str | None = None
    tasks: int
    last_at: Instant


class LearnedView(View):
    """What was learned."""

    frozen_at: Instant | None = None
    """Since when nothing is learned; null: learning is on."""
    waiting: int = 0
    """Outcomes that are still to be learned."""
    standings: tuple[StandingView, ...] = ()
    corrections: tuple[CorrectionView, ...] = ()


class ExpectedView(View):
    """The right specialist for a task."""

    route: str | None = None
    """``default`` if no specialist is right; null otherwise, as a person may have to be asked."""
    specialist: str | None = None
    """Null with ``default``."""


class LabelledTaskView(View):
    """A task with the right specialist for it, in the form that `claudomator eval` and `calibrate` take."""

    id: str
    name: str
    instructions: str
    tags: tuple[str, ...] = ()
    expected: ExpectedView
    by: str
    """How that is known, such as ``overridden``."""


class LabelledTasksView(View):
    """The newest labelled tasks, each task once."""

    items: tuple[LabelledTaskView, ...] = ()


class ForgetRequest(Strict):
    """What to forget."""

    specialist: Line | None = Field(None, description="Only what was learned about this specialist. Default: all.")


def _who(specialist: str | None) -> Link:
    return Link("no specialist") if specialist is None else Link(specialist, f"/specialists/{specialist}")


_FIGURES: tuple[Column[RoutingFiguresView], ...] = (
    Column("DECISIONS", lambda figures: figures.decisions, right=True),
    Column("CONFIDENCE", lambda figures: figure(figures.confidence, ".2f"), right=True),
    Column("OVERRIDDEN", lambda figures: figure(figures.overridden, ".0%"), right=True),
    Column("FAILED", lambda figures: figure(figures.failed, ".0%"), right=True),
    Column(
        "ANSWER",
        lambda figures: None if figures.answer_chars is None else f"{figures.answer_chars:,.0f} chars",
        right=True,
    ),
)
TOPICS = Table[RoutingFiguresView](Column("TOPIC", lambda figures: figures.topic, flexible=True), *_FIGURES)
GAPS = Table[RoutingGapView](
    Column("DECISIONS", lambda gap: gap.decisions, right=True),
    Column("CONFIDENCE", lambda gap: figure(gap.confidence, ".2f"), right=True),
    Column("CLOSEST", lambda gap: _who(gap.specialist), flexible=True),
    Column("TOPIC", lambda gap: gap.topic, flexible=True),
    Column("EXAMPLES", lambda gap: ", ".join(gap.tasks), flexible=True),
)
FEES = Table[CreatorFeesView](
    Column("CREATOR", lambda fees: fees.creator, flexible=True),
    Column("RUNS", lambda fees: fees.runs, right=True),
    Column("USD", lambda fees: f"{fees.usd:.2f}", right=True),
)
SIGNALS = Table[RoutingSignalView](
    Column("SIGNAL", lambda figures: figures.signal.replace("_", " ")),
    Column("DECISIONS", lambda figures: figures.decisions, right=True),
    Column("DECIDED", lambda figures: figures.decided, right=True),
    Column("RIGHT", lambda figures: figures.right, right=True),
    Column("WRONG", lambda figures: figures.wrong, right=True),
)
CORRECTIONS = Table[CorrectionView](
    Column("FROM", lambda correction: _who(correction.specialist), flexible=True),
    Column("TO", lambda correction: _who(correction.wanted), flexible=True),
    Column("TOPIC", lambda correction: correction.topic, flexible=True),
    Column("TASKS", lambda correction: correction.tasks, right=True),
    Column("LAST", lambda correction: ago(correction.last_at)),
)


def figures_table(total: RoutingFiguresView) -> Table[RoutingFiguresView]:
    """Return the columns of the figures by specialist, of which one row is the total."""
    return Table(
        Column("SPECIALIST", lambda row: "all" if row is total else _who(row.specialist), flexible=True),
        *_FIGURES,
        Column("PERFORMANCE", lambda row: figure(row.performance, ".2f"), right=True),
    )


_ASKED = {
    "the_least": {"instructions": "The totals of the invoice page are wrong by a cent. Find out why, and fix it."},
    "as_a_task": {"name": "nightly-dump", "instructions": "Restore last night's dump.", "tags": ["database"]},
}
_FORGOTTEN = {"all_of_it": {}, "of_one": {"specialist": "database-administrator"}}


class RoutingCalls(Calls):
    """The operations on routing, as the client calls them."""

    @operation("POST /v1/route", "route", READ, "Who would do a task", refuses=(409,))
    def route(self, asked: Annotated[RouteRequest, JsonBody(_ASKED)]) -> TriedRouteView:
        """The decision for such a task if the caller created it now: every candidate with the parts of its score, what
        would have changed the answer, and what the policy would say. Nothing is created or stored. 409 if tasks are not
        routed."""

    @operation("GET /v1/routing/stats", "getRoutingStats", READ, "Routing statistics")
    def routing_stats(self, *, days: Days = 30) -> RoutingStatsView:
        """Of tasks that exist for the caller: decisions, confidence, corrections and failures by specialist and topic;
        what no specialist covers well; and what difference each signal of the score made."""

    @operation("GET /v1/routing/learned", "getLearned", READ, "What was learned")
    def learned(self) -> LearnedView:
        """From outcomes and corrections of tasks that exist for the caller."""

    @operation("GET /v1/routing/labels", "listLabels", READ, "Labelled tasks")
    def labels(
        self, *, limit: Annotated[int, InQuery("Maximum number of tasks.", 1, 10_000)] = 1_000
    ) -> LabelledTasksView:
        """Tasks that operators gave to another specialist, and tasks that were completed where they were routed, newest
        first. `claudomator calibrate` fits thresholds to them."""

    @operation("POST /v1/routing/reset", "resetLearned", ADMIN, "Forget what was learned", refuses=(404,))
    def reset_learned(self, asked: Annotated[ForgetRequest | None, JsonBody(_FORGOTTEN)] = None) -> LearnedView:
        """It no longer counts, and neither do outcomes of ended tasks that were still to be learned. A principal of an
        organisation resets only what was learned from that organisation's tasks."""

    @operation("POST /v1/routing/freeze", "freezeLearning", ADMIN_WHOLE, "Freeze learning")
    def freeze_learning(self) -> LearnedView:
        """What was learned still counts. What happens until `unfreeze` is never learned. Repeating it changes
        nothing."""

    @operation("POST /v1/routing/unfreeze", "unfreezeLearning", ADMIN_WHOLE, "Resume learning")
    def unfreeze_learning(self) -> LearnedView:
        """From what happens from now on. Repeating it changes nothing."""
