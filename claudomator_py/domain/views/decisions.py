"""The JSON shapes of recorded decisions. Field order is the order of the JSON."""

import re
from typing import Annotated, Literal

from pydantic import AwareDatetime, BeforeValidator, Field

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.blocked import Shown
from claudomator_py.domain.decision import Classification, Versions
from claudomator_py.domain.lifecycle import StateName
from claudomator_py.domain.rationale import RationaleCode, ShownRationale
from claudomator_py.domain.routing import Constraints, Risk
from claudomator_py.domain.stand_in import ShownFallback, ShownStandIn
from claudomator_py.domain.views.base import Instant, View
from claudomator_py.domain.views.routing import PolicyCheckView, RouteCandidateView

KindName = Literal["placement", "tier", "specialist", "policy", "handoff", "triage", "shadow"]
"""What was decided, see ``scheduler.decision.DecisionKind``."""
RouteName = Literal["specialist", "default", "clarify", "human_review", "reject"]
"""Where a task went, see ``scheduler.decision.Route``."""
_RFC_3339 = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})", re.ASCII)


def _instant(value: object) -> object:
    if isinstance(value, str) and not _RFC_3339.fullmatch(value):
        raise ValueError("is not a time of RFC 3339 such as 2026-11-23T09:00:00Z")
    return value


_Time = Annotated[AwareDatetime, BeforeValidator(_instant)]


class DecisionFilter(View):
    """Which decisions to list, all conditions together; None: any."""

    kind: KindName | None = Field(None, description="Only decisions of this kind.")
    task: str | None = Field(
        None, max_length=128, description="Only those about this task: its id, the beginning of it, or its name."
    )
    specialist: str | None = Field(None, max_length=128, description="Only those for this specialist.")
    agent: str | None = Field(None, max_length=128, description="Only those whose run was on this agent.")
    route: RouteName | None = Field(None, description="Only those with this route, such as `human_review`.")
    reason: RationaleCode | None = Field(None, description="Only those with this reason code.")
    risk: Risk | None = Field(None, description="Only those about tasks of this risk.")
    overridden: bool | None = Field(None, description="Only those that an operator has overridden, or has not.")
    since: _Time | None = Field(None, description="Only those from this time on.")
    until: _Time | None = Field(None, description="Only those from before this time.")


class CandidateView(View):
    """An agent as a decision saw it. rejected: why it was not picked, as a code with its parameters; rejected_because:
    the same in words; None for the one that was.
    """

    agent: str
    active: int
    max_concurrent: int
    limited: bool = False
    limited_until: Instant | None = None
    eligible: bool
    rejected_because: str | None = None
    rejected: Shown = None


class ClassificationView(Classification, View):
    """Where the tier came from. cause: why it is no answer; reason: the classifier's own words, or its fault.

    asked_about: the agent that was picked when it was asked. said_agent: the one that the answer spoke of, if that was
    another; it changes nothing. clamped_from: the tier that it would be without its constraints' floor or ceiling.
    """


class VersionsView(Versions, View):
    """By what it was decided; None: not involved. configuration, policy, registry and calibration are hashes."""


class ConstraintsView(Constraints, View):
    """What routing and policy had left open; None: any."""


class DecisionView(View):
    """Why a run was started where it was: a decision is never changed, and a later one supersedes it.

    route, risk, intent, topic, required_capabilities, policy_checks: as they were decided before, with who does it.
    kind: what was decided. generation: that of the task. supersedes: the id of the decision that stood until then,
    which may have been removed for its age. overridden_model: the model that the task pins, where its constraints do
    not allow it. confidence: 0 to 1; threshold: the least with which it would have been decided so. latency_ms,
    cost_usd: what deciding took; None: nothing worth telling. unfenced: why its run is not kept within the default
    reach, in a clause; None: it is, or need not be. reason: why, in words; rationale and stands_in: the same
    as values. fallback: why it was decided for what should not have been, in words; fallback_code: the same as a code.
    """

    id: str = ""
    kind: str = "placement"
    generation: int = 1
    supersedes: str | None = None
    route: str
    specialist: str | None = None
    agent: str
    tier: Tier | None = None
    model: str | None = None
    confidence: float | None = None
    reason: str
    rationale: ShownRationale = None
    stands_in: ShownStandIn = None
    risk: str | None = None
    required_capabilities: tuple[str, ...] = ()
    policy_checks: tuple[PolicyCheckView, ...] = ()
    fallback: str | None = None
    fallback_code: ShownFallback = None
    classification: ClassificationView
    candidates: tuple[CandidateView, ...] = ()
    overridden_hint: str | None = None
    overridden_model: str | None = None
    skill: str | None = None
    intent: str | None = None
    topic: str | None = None
    threshold: float | None = None
    constraints: ConstraintsView = ConstraintsView()
    unfenced: str | None = None
    versions: VersionsView = VersionsView()
    latency_ms: int | None = None
    cost_usd: float | None = None
    run_id: str
    at: Instant


class DecidedRunView(View):
    """What became of the run that a decision started. ended_as: null while it lives. Tokens and cost are its own."""

    state: str
    ended_as: str | None = None
    reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


class DecidedVerdictView(View):
    """What the policy said. verdict: `allowed`, `denied`, `held` or `approved`. rules: those that led to it. approved:
    those whose demand for approval a person has met, for this content; approved_by: who just now; said: what they
    said."""

    verdict: str
    rules: tuple[str, ...] = ()
    approved: tuple[str, ...] = ()
    approved_by: str | None = None
    said: str | None = None


class DecidedHandoffView(View):
    """A run that asked to hand its task on. accepted: whether it is. by: who had it; to: whom the run asked for; each
    null also where it is somebody who does not exist for whoever asks. hop: how often the task is handed on in its
    generation, this time included where it is; max_handoffs: how often it may be. reason, done, left, files: what the
    run's agent said."""

    accepted: bool
    by: str | None = None
    to: str | None = None
    hop: int
    max_handoffs: int
    reason: str = ""
    done: str = ""
    left: str = ""
    files: tuple[str, ...] = ()


class GivenView(View):
    """What a run was given, as its handoff document had it."""

    mode: str
    """How freely its agent may act."""
    tools: tuple[str, ...] | None = None
    """The only ones that it has; null: all."""
    allowed_tools: tuple[str, ...] = ()
    """Those that it may use without asking."""
    forbidden_tools: tuple[str, ...] = ()
    """Those that it may not use."""
    not_enforced: tuple[str, ...] = ()
    """What the agent's CLI cannot enforce, in sentences."""
    runs: tuple[str, ...] = ()
    """Earlier runs that it may look at."""
    branch: str | None = None
    """The branch of the work tree."""
    files: tuple[str, ...] = ()
    """Files that earlier runs changed."""
    expected_output: str | None = None
    """What it hands back."""


class DecidedTriageView(View):
    """Who answers a message. rule: which rule decided. agents: who answers; skipped: who of them is not asked after
    all, and why; both of those who exist for whoever asks. hops: how many messages of agents led to it."""

    rule: str
    agents: tuple[str, ...] = ()
    skipped: dict[str, str] = Field(default_factory=dict)
    hops: int = 0


class ChosenView(View):
    """What was chosen, as far as it is what was decided about. verdict: the policy's. specialist, skill: null also
    where it is somebody who does not exist for whoever asks."""

    route: str | None = None
    specialist: str | None = None
    skill: str | None = None
    verdict: str | None = None
    agent: str | None = None
    tier: str | None = None
    model: str | None = None


class DecidedShadowView(View):
    """What another configuration would have decided. about: `placement`, or `specialist` for
    who does the task and what the policy says of it. beside: the id of the decision that was made; actual: what it
    chose; differs: whether that is something else."""

    about: str
    beside: str
    actual: ChosenView
    differs: bool


class RecordedDecisionView(View):
    """A decision of any kind, which is never changed, and what became of it.

    input_ref: what was decided on, by reference. task_id: null: about no task, as triage is; task_name, task_state:
    what that is called, and where it is now; null: it was removed. channel_id, channel_name, message_id: of the message
    that it is about; null: it is about none, or in a channel that was removed. by: the principal who decided; null: the
    daemon. supersedes: the decision that stood until then, which may have been removed for its age; superseded_by: the
    one that stands in its place since. overridden: an operator has given the task to another specialist. snapshot: the
    address of what was observed. specialist, skill, topic: null also where it is somebody who does not exist for
    whoever asks. confidence: 0 to 1; threshold: the least with which it would have been decided so. reason: why, in
    words; rationale: the same as a value. latency_ms, cost_usd: what deciding took. margin: those within it of the best
    score were as good. degraded: words alone were compared. unheeded: what the text says of who is to do the task, or
    how, which was not compared. specialists: who was compared, of those who exist for whoever asks, the best first;
    agents: those that were compared, with the limits that were on each. classification: where the tier comes from;
    constraints: what is left open of agents, tiers and tools. fallback: why it was placed where it should not have
    been; stands_in: the model is one that is used in place of another; overridden_hint: the agent that the task
    prefers, and why it is not that; overridden_model: the model that it pins and may not have. unfenced: why
    its run is not kept within the default reach; null: it is, or need not be. owner: who answers for
    the specialist, as its card says; expected_output: what it hands back, unless the task says so itself; max_handoffs:
    how often the task may be handed on; escalation: where the task was to go if the specialist could not do it, in
    order. verdict, handoff, triage, shadow: what decisions of these kinds say beyond that; null: it is of another.
    given: of a placement, what the run was given to do it with; null: it could not start, or an earlier version did not
    store it. told: where all of the run's handoff document is, as long as the run's directory is.
    """

    id: str
    kind: str
    at: Instant
    input_ref: str | None = None
    task_id: str | None = None
    task_name: str | None = None
    task_state: StateName | None = None
    channel_id: str | None = None
    channel_name: str | None = None
    message_id: int | None = None
    generation: int | None = None
    run_id: str | None = None
    by: str | None = None
    supersedes: str | None = None
    superseded_by: str | None = None
    overridden: bool = False
    snapshot: str | None = None
    route: str | None = None
    specialist: str | None = None
    skill: str | None = None
    agent: str | None = None
    tier: str | None = None
    model: str | None = None
    intent: str | None = None
    topic: str | None = None
    risk: Risk | None = None
    confidence: float | None = None
    threshold: float | None = None
    reason: str
    rationale: ShownRationale = None
    required_capabilities: tuple[str, ...] = ()
    policy_checks: tuple[PolicyCheckView, ...] = ()
    versions: VersionsView = VersionsView()
    latency_ms: int | None = None
    cost_usd: float | None = None
    run: DecidedRunView | None = None
    effort: str | None = None
    margin: float | None = None
    degraded: bool = False
    unheeded: tuple[str, ...] = ()
    specialists: tuple[RouteCandidateView, ...] = ()
    agents: tuple[CandidateView, ...] = ()
    classification: ClassificationView | None = None
    constraints: ConstraintsView = ConstraintsView()
    fallback: str | None = None
    fallback_code: ShownFallback = None
    stands_in: ShownStandIn = None
    overridden_hint: str | None = None
    overridden_model: str | None = None
    unfenced: str | None = None
    owner: str | None = None
    expected_output: str | None = None
    max_handoffs: int | None = None
    escalation: tuple[str, ...] = ()
    verdict: DecidedVerdictView | None = None
    handoff: DecidedHandoffView | None = None
    triage: DecidedTriageView | None = None
    shadow: DecidedShadowView | None = None
    given: GivenView | None = None
    told: str | None = None


class ExplainedDecisionView(View):
    """A decision for people.

    sentences: what was chosen, why, and what would have changed it. said: what people and agents wrote beside it, by
    what it is. supersedes_kept: whether the decision that stood until then is still there.
    """

    decision: RecordedDecisionView
    sentences: tuple[str, ...]
    said: tuple[tuple[str, str], ...] = ()
    supersedes_kept: bool = False
