"""The JSON shapes of routing. Field order is the order of the JSON."""

from pydantic import ConfigDict, Field

from claudomator_py.domain.decision import PolicyCheck
from claudomator_py.domain.fields import Line
from claudomator_py.domain.rationale import ShownRationale
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.task import Instructions, Tags
from claudomator_py.domain.views.base import Instant, View


class PolicyCheckView(PolicyCheck, View):
    """What one rule said about the choice. effect: what else it demands."""


class RouteRequest(View):
    """A task that there is not yet: who would do it? Its text and its tags are what a task's may be."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    instructions: Instructions = Field(description="Instructions of the task.")
    name: Line | None = Field(None, description="Name of the task, which says in a few words what it is about.")
    tags: Tags = Field((), description="Tags of the task.")
    requires: Tags = Field((), description="Capabilities that the specialist must have.")


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
    """Who does a task, and why. specialist: null: no specialist, or, with the route `clarify`, nobody yet.

    confidence: the score of the one chosen, else of the best; threshold: the least with which somebody is chosen;
    margin: those within it of the best are as good. degraded: words alone were compared, as the encoder could not be
    asked. unheeded: what the text says of who is to do it, or how, which was not compared. candidates: the best first,
    of those who exist for whoever asks. sentences: all of it for people, with what would have changed the answer.
    rationale: `reason` as a value. intent: what the task wants, topic: its subject area, both normalised.
    required_capabilities: of whoever does it. policy_checks: what each rule said, in their order.
    """

    route: str
    specialist: str | None = None
    skill: str | None = None
    confidence: float | None = None
    threshold: float | None = None
    margin: float | None = None
    degraded: bool = False
    unheeded: tuple[str, ...] = ()
    risk: Risk | None = None
    reason: str
    rationale: ShownRationale = None
    candidates: tuple[RouteCandidateView, ...] = ()
    sentences: tuple[str, ...] = ()
    latency_ms: int | None = None
    intent: str | None = None
    topic: str | None = None
    required_capabilities: tuple[str, ...] = ()
    policy_checks: tuple[PolicyCheckView, ...] = ()


class RoutingFiguresView(View):
    """How decisions went. specialist, topic: of whom, and about what; null: of no specialist, or of all.

    confidence: mean score of those that were compared with others. overridden: share of all that an operator gave to
    somebody else. failed: share of those whose task has ended and was not overridden, which failed for a reason of the
    work. answer_chars: mean length of answers, in characters. performance: what is known of the specialist now. Each
    is null where there is nothing to tell by.
    """

    specialist: str | None = None
    topic: str | None = None
    decisions: int
    confidence: float | None = None
    overridden: float | None = None
    failed: float | None = None
    answer_chars: float | None = None
    performance: float | None = None


class RoutingGapView(View):
    """What specialists cover badly. specialist, topic: what the tasks are most like, which is not much; null: nothing
    that exists for whoever asks. decisions: how many were made with less than the threshold, or with several as good.
    confidence: the mean of them. tasks: names of the newest."""

    specialist: str | None = None
    topic: str | None = None
    decisions: int
    confidence: float
    tasks: tuple[str, ...] = ()


class RoutingSignalView(View):
    """What a signal has changed. decisions: how many it had a part in. decided: how many somebody else would have got
    without it. right, wrong: of these, how many turned out well, or were given to just that somebody. signal:
    `tie_break` is all that decides among those that are as good."""

    signal: str
    decisions: int
    decided: int
    right: int
    wrong: int


class CreatorFeesView(View):
    """What cards of a creator asked for their work. runs: for how many; usd: US dollars."""

    creator: str
    runs: int
    usd: float


class RoutingStatsView(View):
    """How routing does. days: of how many days. sampled: how many decisions, the newest, `gaps` and `signals` tell of.
    fees: by whom they are owed to, the most first."""

    days: int
    total: RoutingFiguresView
    specialists: tuple[RoutingFiguresView, ...] = ()
    topics: tuple[RoutingFiguresView, ...] = ()
    sampled: int = 0
    gaps: tuple[RoutingGapView, ...] = ()
    signals: tuple[RoutingSignalView, ...] = ()
    fees: tuple[CreatorFeesView, ...] = ()


class StandingView(View):
    """What is known of a specialist. topic: null: altogether. organisation: from whose tasks; null: from those of none.
    performance: 0 to 1, beginning at 0.5. positive, negative: outcomes that moved it up and down."""

    specialist: str
    topic: str | None = None
    organisation: str | None = None
    performance: float
    positive: int
    negative: int
    last_success_at: Instant | None = None
    updated_at: Instant


class CorrectionView(View):
    """Tasks that operators gave to somebody else. specialist: who was to do them; null: no specialist, or
    somebody who does not exist for whoever asks."""

    specialist: str | None = None
    wanted: str
    topic: str | None = None
    tasks: int
    last_at: Instant


class LearnedView(View):
    """What was learned. frozen_at: since when nothing more is; null: it is. waiting: outcomes that were not learned
    yet."""

    frozen_at: Instant | None = None
    waiting: int = 0
    standings: tuple[StandingView, ...] = ()
    corrections: tuple[CorrectionView, ...] = ()


class ExpectedView(View):
    """Who is right for a task. route: `default` where no specialist is, else null: it is not known that none would
    have to be asked. specialist: null with `default`."""

    route: str | None = None
    specialist: str | None = None


class LabelledTaskView(View):
    """A task of which it is known who is right for it, in the form that `claudomator eval` and `calibrate` take. by:
    the rule by which that is known, such as `overridden`."""

    id: str
    name: str
    instructions: str
    tags: tuple[str, ...] = ()
    expected: ExpectedView
    by: str


class LabelledTasksView(View):
    """The newest of them, one for each task."""

    items: tuple[LabelledTaskView, ...] = ()


class ForgetRequest(View):
    """What to forget."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    specialist: Line | None = Field(None, description="Only what was learned about this specialist. Default: all.")
