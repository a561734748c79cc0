"""The shapes and operations of decisions. Field order is the order of the JSON.
A decision has fields common to all kinds, and a part that only its own kind has.
"""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.blocked import Blocked
from claudomator_py.domain.blocked_words import predicate
from claudomator_py.domain.decision import Classification, Fallback, StandIn, Versions
from claudomator_py.domain.handoff import SlashUse
from claudomator_py.domain.lifecycle import KnownState
from claudomator_py.domain.rationale import Rationale
from claudomator_py.domain.requests import DecisionFilter
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.shape import Instant, Page, View, all_items
from claudomator_py.domain.units import short_id
from claudomator_py.domain.verdict import ConstraintsView, PolicyCheckView
from claudomator_py.domain.wording import Known, Sentence, said
from claudomator_py.resources.routing import RouteCandidateView
from claudomator_py.surface import READ, Calls, Cursor, InPath, Limit, QueryFields, operation


class CandidateView(View):
    """An agent, as a decision saw it."""

    agent: str
    active: int
    """How many runs it had."""
    max_concurrent: int
    limited: bool = False
    limited_until: Instant | None = None
    eligible: bool
    rejected_because: str | None = None
    """Why it was not picked, in words; null for the one that was."""
    rejected: Known[Blocked] = None
    """The same, as a code with its parameters."""


class ClassificationView(Classification, View):
    """Where the tier comes from."""


class VersionsView(Versions, View):
    """The versions, or hashes, of what was involved in deciding; null: not involved."""


class DecidedRunView(View):
    """What became of the run that a decision started."""

    state: str
    ended_as: str | None = None
    """Null while it is live."""
    reason: str | None = None
    input_tokens: int | None = None
    """Tokens and cost are its own, without those of earlier runs."""
    output_tokens: int | None = None
    cost_usd: float | None = None


class SlashView(View):
    """How a text that begins with a slash was given."""

    name: str
    """The first word, without its slash."""
    use: SlashUse
    """``command``: alone, to be expanded; otherwise as a text: ``unknown``: no file of the agent's defines it,
    ``fenced``: its file has a shell run, ``with_more``: the prompt says more."""
    file: str | None = None
    """The file that defines the command; null: there is none."""


class GivenView(View):
    """What a run was given, according to its handoff document."""

    mode: str
    """The permission mode of its agent."""
    tools: tuple[str, ...] | None = None
    """The only tools it has; null: all."""
    allowed_tools: tuple[str, ...] = ()
    """Tools it may use without asking."""
    forbidden_tools: tuple[str, ...] = ()
    """Tools it may not use."""
    not_enforced: tuple[str, ...] = ()
    """What the agent's CLI cannot enforce, in sentences."""
    runs: tuple[str, ...] = ()
    """Earlier runs it may read."""
    branch: str | None = None
    """The branch of the work tree."""
    files: tuple[str, ...] = ()
    """Files that earlier runs changed."""
    expected_output: str | None = None
    """What it is to return."""
    slash: SlashView | None = None
    """Null: the text does not begin with a slash, or no model reads it."""


class PlacementView(View):
    """Why a run started where it did: the part of a ``placement`` decision."""

    effort: str | None = None
    """How hard the model thinks, for agents with such a setting."""
    fallback: str | None = None
    """Why it runs on an agent it was not meant for, in words."""
    fallback_code: Known[Fallback] = None
    """The same, as a code."""
    stands_in: Known[StandIn] = None
    """Set if the model is used in place of another."""
    overridden_hint: str | None = None
    """The agent the task prefers, and why it did not get it."""
    overridden_model: str | None = None
    """The model the task pins, if its constraints do not allow it."""
    unfenced: str | None = None
    """Why the run is not kept within the default reach, as a clause; null: it is, or need not be."""
    given: GivenView | None = None
    """What the run was given; null: it could not start, or an earlier version did not store it."""
    told: str | None = None
    """The path of the run's complete handoff document, available as long as the run's directory."""


class SelectionView(View):
    """How a specialist was selected: the part of a ``specialist`` decision."""

    margin: float | None = None
    """Scores within it of the best count as equally good."""
    degraded: bool = False
    """Whether only words were compared, as the encoder was not available."""
    unheeded: tuple[str, ...] = ()
    """What the text says about who is to do the task or how, which was not compared."""
    owner: str | None = None
    """Who is responsible for the specialist, according to its card."""
    expected_output: str | None = None
    """What the specialist returns, unless the task itself says so."""
    max_handoffs: int | None = None
    """How often the task may be handed on."""
    escalation: tuple[str, ...] = ()
    """Where the task was to go if the specialist could not do it, in this order."""


class DecidedVerdictView(View):
    """What the policy said: the part of a ``policy`` decision."""

    verdict: str
    """``allowed``, ``denied``, ``held`` or ``approved``."""
    rules: tuple[str, ...] = ()
    """The rules that led to it."""
    approved: tuple[str, ...] = ()
    """The rules whose demand for approval a person has met, for this content."""
    approved_by: str | None = None
    """Who gave the approval that led to this decision."""
    said: str | None = None
    """The comment on the approval."""


class DecidedHandoffView(View):
    """A run's request to hand its task on: the part of a ``handoff`` decision."""

    accepted: bool
    """Whether the task is handed on."""
    by: str | None = None
    """The specialist that had it; null also if it does not exist for the caller."""
    to: str | None = None
    """The specialist the run asked for; null as for ``by``."""
    hop: int
    """How often the task has been handed on in its generation, including this time if it is."""
    max_handoffs: int
    """How often it may be handed on."""
    reason: str = ""
    """Why, in the words of the agent."""
    done: str = ""
    """What the agent says it did."""
    left: str = ""
    """What the agent says is left to do."""
    files: tuple[str, ...] = ()
    """The files the agent says it changed."""


class DecidedTriageView(View):
    """Who answers a message: the part of a ``triage`` decision. Those that do not exist for the caller are left
    out."""

    rule: str
    """The rule that decided."""
    agents: tuple[str, ...] = ()
    """Who answers."""
    skipped: dict[str, str] = Field(default_factory=dict)
    """Which of them are not asked after all, and why."""
    hops: int = 0
    """The number of agents' messages that led to it."""


class ChosenView(View):
    """What was chosen, as far as it was decided."""

    route: str | None = None
    specialist: str | None = None
    """Null also if it does not exist for the caller."""
    skill: str | None = None
    """Null as for ``specialist``."""
    verdict: str | None = None
    """The policy's."""
    agent: str | None = None
    tier: str | None = None
    model: str | None = None


class DecidedShadowView(View):
    """What another configuration would have decided: the part of a ``shadow`` decision."""

    about: str
    """``placement``; or ``specialist`` for who does the task, and what the policy says of it."""
    beside: str
    """The id of the decision that took effect."""
    actual: ChosenView
    """What that one chose."""
    differs: bool
    """Whether this one chose something else."""


class DecisionView(View):
    """A decision of any kind, which never changes, and what came of it."""

    id: str
    kind: str
    """What kind of thing was decided."""
    at: Instant
    input_ref: str | None = None
    """A reference to what it was decided on."""
    task_id: str | None = None
    """Null if it is not about a task, such as triage."""
    task_name: str | None = None
    """Null if the task was removed."""
    task_state: KnownState = None
    """The task's state now; null if the task was removed."""
    channel_id: str | None = None
    """The channel of the message it is about; null if it is about none, or the channel was deleted."""
    channel_name: str | None = None
    """The channel's name."""
    message_id: int | None = None
    """The message it is about; null as for the channel."""
    generation: int | None = None
    """The generation of the task."""
    run_id: str | None = None
    """The run it started, or that asked for it."""
    by: str | None = None
    """The principal that decided; null: the daemon."""
    supersedes: str | None = None
    """The decision it replaced, which may have been removed for its age."""
    superseded_by: str | None = None
    """The decision that replaced it."""
    overridden: bool = False
    """Whether an operator has since given the task to another specialist."""
    snapshot: str | None = None
    """The hash of what was observed."""
    route: str | None = None
    """Where the task went; for a placement, as decided before it."""
    specialist: str | None = None
    """Null also if it does not exist for the caller."""
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
    """The least confidence at which it would have been decided this way."""
    reason: str
    """Why, in words."""
    rationale: Known[Rationale] = None
    """The same, as a code with its parameters."""
    required_capabilities: tuple[str, ...] = ()
    """Capabilities that the task needs."""
    policy_checks: tuple[PolicyCheckView, ...] = ()
    """What each rule said, in the order of the rules."""
    versions: VersionsView = VersionsView()
    latency_ms: int | None = None
    """How long deciding took; null: not worth telling."""
    cost_usd: float | None = None
    """What deciding cost."""
    run: DecidedRunView | None = None
    """What came of the run it started."""
    specialists: tuple[RouteCandidateView, ...] = ()
    """Those compared that exist for the caller, best first."""
    agents: tuple[CandidateView, ...] = ()
    """Those compared, with their limits."""
    classification: ClassificationView | None = None
    """Where the tier comes from; for a tier or a placement."""
    constraints: ConstraintsView = ConstraintsView()
    """Which agents, tiers and tools the policy leaves, or were left for a placement."""
    placement: PlacementView | None = None
    """The part of a placement; null for other kinds. Likewise the parts below."""
    selection: SelectionView | None = None
    verdict: DecidedVerdictView | None = None
    """The part of a policy decision; of a shadow, what the policy would have said."""
    handoff: DecidedHandoffView | None = None
    triage: DecidedTriageView | None = None
    shadow: DecidedShadowView | None = None

    @property
    def subject(self) -> str:
        """Return what it is about, in a few words."""
        if self.channel_name is not None:
            return f"message {self.message_id} in {self.channel_name}"
        if self.task_name is None and self.task_id is not None:
            return f"task {short_id(self.task_id)}"
        return self.task_name or "a message in a deleted channel"

    def verdict_on(self, candidate: CandidateView) -> Sentence:
        """Return why it picked the agent, or why not."""
        if candidate.agent == self.agent:
            return said(f"picked: {self.reason}")
        if candidate.rejected is not None:
            return predicate(candidate.rejected)
        return said(candidate.rejected_because or ("eligible" if candidate.eligible else "not eligible"))


class DecisionCalls(Calls):
    """The operations on decisions, as the client calls them."""

    @operation("GET /v1/decisions", "listDecisions", READ, "List decisions, newest first")
    def decisions(
        self,
        wanted: Annotated[DecisionFilter | None, QueryFields()] = None,
        *,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Page[DecisionView]:
        """Decisions of every kind that meet all of the conditions. Decisions made meanwhile do not shift later
        pages."""

    def all_decisions(self, wanted: DecisionFilter | None = None) -> Iterator[DecisionView]:
        """Return all decisions, newest first, fetched as they are read."""
        return all_items(lambda cursor, limit: self.decisions(wanted, cursor=cursor, limit=limit))

    @operation("GET /v1/decisions/{decision_id}", "getDecision", READ, "One decision")
    def decision(self, decision_id: Annotated[str, InPath("A decision's id.")]) -> DecisionView:
        """The decision, with what replaced it and what came of its run."""
