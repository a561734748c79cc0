"""Decisions as they are shown, and what can be asked about them. Field order is the order of the JSON.

A decision is what those of every kind have in common, and a part that its kind alone has.
"""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.blocked import Shown
from claudomator_py.domain.decision import Classification, ShownFallback, ShownStandIn, Versions
from claudomator_py.domain.lifecycle import StateName
from claudomator_py.domain.rationale import ShownRationale
from claudomator_py.domain.requests import DecisionFilter
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.shape import Instant, Page, View, all_items
from claudomator_py.domain.verdict import ConstraintsView, PolicyCheckView
from claudomator_py.resources.routing import RouteCandidateView
from claudomator_py.surface import READ, Calls, Cursor, Limit, PathText, QueryFields, operation


class CandidateView(View):
    """An agent as a decision saw it."""

    agent: str
    active: int
    """How many runs it had."""
    max_concurrent: int
    limited: bool = False
    limited_until: Instant | None = None
    eligible: bool
    rejected_because: str | None = None
    """Why it was not picked, in words; null for the one that was."""
    rejected: Shown = None
    """The same as a code with its parameters."""


class ClassificationView(Classification, View):
    """Where the tier comes from."""


class VersionsView(Versions, View):
    """By what it was decided; null: not involved. What is no version is a hash."""


class DecidedRunView(View):
    """What became of the run that a decision started."""

    state: str
    ended_as: str | None = None
    """Null while it lives."""
    reason: str | None = None
    input_tokens: int | None = None
    """Its own, as for the output and the cost."""
    output_tokens: int | None = None
    cost_usd: float | None = None


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


class PlacementView(View):
    """Why a run started where it did: the part of a decision of the kind ``placement``."""

    effort: str | None = None
    """How hard the model thinks, where its agent can say so."""
    fallback: str | None = None
    """Why it was placed where it should not have been, in words."""
    fallback_code: ShownFallback = None
    """The same as a code."""
    stands_in: ShownStandIn = None
    """The model is one that is used in place of another."""
    overridden_hint: str | None = None
    """The agent that the task prefers, and why it is not that."""
    overridden_model: str | None = None
    """The model that the task pins, where its constraints do not allow it."""
    unfenced: str | None = None
    """Why its run is not kept within the default reach, in a clause; null: it is, or need not be."""
    given: GivenView | None = None
    """What the run was given to do it with; null: it could not start, or an earlier version did not store it."""
    told: str | None = None
    """Where all of the run's handoff document is, as long as the run's directory is."""


class SelectionView(View):
    """How a specialist was selected: the part of a decision of the kind ``specialist``."""

    margin: float | None = None
    """Those within it of the best score were as good."""
    degraded: bool = False
    """Whether words alone were compared, as the encoder could not be asked."""
    unheeded: tuple[str, ...] = ()
    """What the text says of who is to do the task, or how, which was not compared."""
    owner: str | None = None
    """Who answers for the specialist, as its card says."""
    expected_output: str | None = None
    """What the specialist hands back, unless the task says so itself."""
    max_handoffs: int | None = None
    """How often the task may be handed on."""
    escalation: tuple[str, ...] = ()
    """Where the task was to go if the specialist could not do it, in order."""


class DecidedVerdictView(View):
    """What the policy said: the part of a decision of the kind ``policy``."""

    verdict: str
    """``allowed``, ``denied``, ``held`` or ``approved``."""
    rules: tuple[str, ...] = ()
    """Those that led to it."""
    approved: tuple[str, ...] = ()
    """Those whose demand for approval a person has met, for this content."""
    approved_by: str | None = None
    """Who approved just now."""
    said: str | None = None
    """What they said."""


class DecidedHandoffView(View):
    """A run that asked to hand its task on: the part of a decision of the kind ``handoff``."""

    accepted: bool
    """Whether it is handed on."""
    by: str | None = None
    """Who had it; null also where that is somebody who does not exist for whoever asks."""
    to: str | None = None
    """Whom the run asked for; null as for ``by``."""
    hop: int
    """How often the task is handed on in its generation, this time included where it is."""
    max_handoffs: int
    """How often it may be."""
    reason: str = ""
    """Why, in the words of the run's agent."""
    done: str = ""
    """What it says that it did."""
    left: str = ""
    """What it says that it leaves."""
    files: tuple[str, ...] = ()
    """Which files it says that it changed."""


class DecidedTriageView(View):
    """Who answers a message: the part of a decision of the kind ``triage``. Somebody who does not exist for whoever
    asks is left out."""

    rule: str
    """Which rule decided."""
    agents: tuple[str, ...] = ()
    """Who answers."""
    skipped: dict[str, str] = Field(default_factory=dict)
    """Who of them is not asked after all, and why."""
    hops: int = 0
    """How many messages of agents led to it."""


class ChosenView(View):
    """What was chosen, as far as it is what was decided about."""

    route: str | None = None
    specialist: str | None = None
    """Null also where it is somebody who does not exist for whoever asks."""
    skill: str | None = None
    """Null as for ``specialist``."""
    verdict: str | None = None
    """The policy's."""
    agent: str | None = None
    tier: str | None = None
    model: str | None = None


class DecidedShadowView(View):
    """What another configuration would have decided: the part of a decision of the kind ``shadow``."""

    about: str
    """``placement``, or ``specialist`` for who does the task and what the policy says of it."""
    beside: str
    """The id of the decision that was made."""
    actual: ChosenView
    """What that chose."""
    differs: bool
    """Whether this chose something else."""


class DecisionView(View):
    """A decision of any kind, which is never changed, and what became of it."""

    id: str
    kind: str
    """What was decided."""
    at: Instant
    input_ref: str | None = None
    """What was decided on, by reference."""
    task_id: str | None = None
    """Null: it is about no task, as triage is."""
    task_name: str | None = None
    """What that is called; null: it was removed."""
    task_state: StateName | None = None
    """Where it is now; null: it was removed."""
    channel_id: str | None = None
    """Of the message that it is about; null: it is about none, or in a channel that was removed."""
    channel_name: str | None = None
    """What that is called."""
    message_id: int | None = None
    """The message that it is about; null as for the channel."""
    generation: int | None = None
    """That of the task."""
    run_id: str | None = None
    """The run that it started, or that asked for it."""
    by: str | None = None
    """The principal who decided; null: the daemon."""
    supersedes: str | None = None
    """The decision that stood until then, which may have been removed for its age."""
    superseded_by: str | None = None
    """The one that stands in its place since."""
    overridden: bool = False
    """Whether an operator has given the task to another specialist."""
    snapshot: str | None = None
    """The address of what was observed."""
    route: str | None = None
    """Where the task went; of a placement, as it was decided before it."""
    specialist: str | None = None
    """Null also where it is somebody who does not exist for whoever asks."""
    skill: str | None = None
    """Null as for ``specialist``."""
    agent: str | None = None
    tier: Tier | None = None
    model: str | None = None
    intent: str | None = None
    """What the task wants, normalised."""
    topic: str | None = None
    """Its subject area, normalised; null as for ``specialist``."""
    risk: Risk | None = None
    confidence: float | None = None
    """From 0 to 1."""
    threshold: float | None = None
    """The least confidence with which it would have been decided so."""
    reason: str
    """Why, in words."""
    rationale: ShownRationale = None
    """The same as a value."""
    required_capabilities: tuple[str, ...] = ()
    """Of whoever does the task."""
    policy_checks: tuple[PolicyCheckView, ...] = ()
    """What each rule said, in their order."""
    versions: VersionsView = VersionsView()
    latency_ms: int | None = None
    """How long deciding took; null: nothing worth telling."""
    cost_usd: float | None = None
    """What deciding cost."""
    run: DecidedRunView | None = None
    """What became of the run that it started."""
    specialists: tuple[RouteCandidateView, ...] = ()
    """Who was compared, of those who exist for whoever asks, the best first."""
    agents: tuple[CandidateView, ...] = ()
    """Those that were compared, with the limits that were on each."""
    classification: ClassificationView | None = None
    """Where the tier comes from, of a tier or a placement."""
    constraints: ConstraintsView = ConstraintsView()
    """What is left open of agents, tiers and tools, by the policy or for a placement."""
    placement: PlacementView | None = None
    """The part of a placement; null: it is of another kind, as for the other parts."""
    selection: SelectionView | None = None
    verdict: DecidedVerdictView | None = None
    """The part of a decision of the policy; of a shadow, what it would have said."""
    handoff: DecidedHandoffView | None = None
    triage: DecidedTriageView | None = None
    shadow: DecidedShadowView | None = None


class DecisionCalls(Calls):
    """Every operation on decisions, as the client calls it."""

    @operation("GET /v1/decisions", "listDecisions", READ, "List decisions, newest first")
    def decisions(
        self,
        wanted: Annotated[DecisionFilter | None, QueryFields()] = None,
        *,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Page[DecisionView]:
        """Decisions of every kind; all conditions count together. Those that are made meanwhile move nothing in later
        parts."""

    def all_decisions(self, wanted: DecisionFilter | None = None) -> Iterator[DecisionView]:
        """Return all of them, newest first, fetched as they are read."""
        return all_items(lambda cursor, limit: self.decisions(wanted, cursor=cursor, limit=limit))

    @operation("GET /v1/decisions/{decision_id}", "getDecision", READ, "One decision", refuses=(404,))
    def decision(self, decision_id: Annotated[str, PathText("A decision's id.")]) -> DecisionView:
        """The decision, with what superseded it and what became of its run."""
