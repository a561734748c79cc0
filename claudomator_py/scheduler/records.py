"""Records of decisions: what was chosen, from which candidates, and why each other candidate was not."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, Final

from pydantic import BaseModel, ValidationError, model_validator

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.blocked import BlockCode, Blocked, blocked
from claudomator_py.domain.channel import TriageReason
from claudomator_py.domain.decision import Classification, PolicyCheck, StandIn, StoredFallback, Versions
from claudomator_py.domain.handoff import Given
from claudomator_py.domain.outcome import HandoffRequest
from claudomator_py.domain.personal import Impersonal
from claudomator_py.domain.rationale import UNKNOWN, RationaleCode, StoredRationale, rationale
from claudomator_py.domain.routing import Constraints, Risk
from claudomator_py.values import dataclass


class DecisionKind(StrEnum):
    """The kind of decision."""

    PLACEMENT = "placement"
    """Which agent and model a run starts on: ``DecisionRecord``."""
    TIER = "tier"
    """How strong a model a task needs, where a classifier was asked: ``TierRecord``."""
    SPECIALIST = "specialist"
    """Which specialist does the task: ``SpecialistRecord``."""
    POLICY = "policy"
    """What the rules allow, whoever does the task: ``PolicyRecord``."""
    HANDOFF = "handoff"
    """To whom a run hands its task: ``HandoffRecord``."""
    TRIAGE = "triage"
    """Who answers a message: ``TriageRecord``."""
    SHADOW = "shadow"
    """What another configuration would have decided; has no effect: ``ShadowRecord``."""


class Candidate(BaseModel, frozen=True):
    """An agent as the decision saw it."""

    agent: str
    active: int
    max_concurrent: int
    limited: bool
    limited_until: int | None = None
    """Epoch milliseconds; None if it is not limited, or is held until an operator releases it."""
    eligible: bool
    rejected: Blocked | None = None
    """Why it was not chosen; None for the chosen one."""

    @model_validator(mode="before")
    @classmethod
    def _from_words(cls, values: Any) -> Any:
        """Convert what 0.1 stored: the reason in words."""
        if not isinstance(values, dict) or "rejected" in values or not values.get("rejected_because"):
            return values
        until = values.get("limited_until") if values.get("rejected_code") == "limited" else None
        return values | {"rejected": _in_words(values.get("agent"), values["rejected_because"], until)}


class OverriddenHint(BaseModel, frozen=True):
    """The agent that a task prefers but did not get, and what ruled out each agent that the hint refers to."""

    agent: str | None
    """None for old decisions, which name the agent only in the reason's text."""
    because: tuple[Blocked, ...]

    @model_validator(mode="before")
    @classmethod
    def _from_words(cls, values: Any) -> Any:
        """Convert what 0.1 stored: the reason in words, including the agents' names."""
        if not isinstance(values, dict) or "because" in values or "why" not in values:
            return values
        return values | {"because": (_in_words(None, values["why"], None),)}


def _in_words(agent: str | None, text: str, until: int | None) -> Blocked:
    return blocked(BlockCode.TEXT, agent=agent, text=text, until=until)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialistCandidate:
    """A specialist that could do the task, with the parts of its score. Not a model, as a decision has ten of them."""

    specialist: str
    skill: str | None = None
    """The skill that fits best."""
    score: float
    parts: dict[str, float] = field(default_factory=dict)
    """What each signal contributes to the score, by name, such as ``semantic``; rounded to 1e-6, like the score."""
    tie_break: float = 0.0
    """Added to the score to order candidates that are otherwise equally good."""
    rejected: StoredRationale | None = None
    """Why it was not chosen; None for the chosen one."""

    @property
    def barred(self) -> bool:
        """True if it could not have been chosen whatever its score."""
        bars = (RationaleCode.TOO_RISKY, RationaleCode.LACKS, RationaleCode.EXCLUDED, RationaleCode.AWAY)
        return self.rejected is not None and self.rejected.code in bars


class Record(BaseModel, frozen=True):
    """Fields common to decisions of every kind. Immutable once stored."""

    reason: StoredRationale
    """The reason for the decision."""
    confidence: float | None = None
    """From 0 to 1; None if there is no confidence."""
    threshold: float | None = None
    """Minimum confidence for this decision; None if there is none."""
    risk: Risk | None = None
    """How much harm a wrong decision could do; None if it was not assessed."""
    intent: str | None = None
    """What the task wants, normalised."""
    topic: str | None = None
    """The task's subject area, normalised."""
    policy_checks: tuple[PolicyCheck, ...] = ()
    """Result of each rule, in the order of evaluation."""
    specialist_candidates: tuple[SpecialistCandidate, ...] = ()
    """Specialists that could have done the task, best first; limited to the best ``routing.ranking.MAX_CANDIDATES``."""
    versions: Versions = Versions()
    """Versions that the decision was based on."""
    latency_ms: int | None = None
    """Duration in milliseconds; None if negligible."""
    cost_usd: float | None = None
    """Cost in US dollars; None if unknown or nothing."""


class TierRecord(Record):
    """How strong a model a task needs: the result of asking a classifier."""

    tier: Tier | None
    """None if the classifier gave no answer; the agent that starts the task then uses its default."""
    agent: str
    """The tentatively picked agent for which the classifier was asked."""
    classification: Classification
    """Where the tier comes from."""


class Route(StrEnum):
    """Where a task goes. Values are stored and part of the API: never rename them."""

    SPECIALIST = "specialist"
    """To a specialist whose card fits, or that the task names."""
    DEFAULT = "default"
    """To the default specialist, or to no specialist."""
    CLARIFY = "clarify"
    """To a person, who decides which specialist is meant."""
    HUMAN_REVIEW = "human_review"
    """To a person, who must approve the task first."""
    REJECT = "reject"
    """Nowhere: the task fails."""


class SpecialistRecord(Record):
    """Which specialist does a task."""

    route: Route
    specialist: str | None
    """None if no specialist does it, or none has been decided yet."""
    skill: str | None = None
    """The specialist's skill that fits best or was asked for."""
    margin: float | None = None
    """Candidates within this distance of the best score counted as equally good."""
    degraded: bool = False
    """True if the encoder was unavailable and only words were compared."""
    unheeded: tuple[Impersonal, ...] = ()
    """Passages in which the text says who should do the task, or how; they were excluded from the comparison."""
    required_capabilities: tuple[str, ...] = ()
    """Capabilities that the specialist had to have."""
    owner: str | None = None
    """Who is responsible for the specialist, per its card; None if the card does not say or there is no specialist."""
    expected_output: str | None = None
    """What the specialist must deliver, per its card; a task that specifies this itself uses its own."""
    max_handoffs: int | None = None
    """Maximum number of handoffs in this generation; None if stored by an earlier version."""
    escalation: tuple[str, ...] = ()
    """Where the task goes if the specialist cannot do it, in order: specialists, or labels of routes."""


class HandoffRecord(Record):
    """To whom a run hands its task, or why it does not."""

    route: Route
    """``specialist``, or ``human_review`` if it is not handed off; for a card's ``fallback``, the label there."""
    specialist: str | None
    """Who continues the task; None if it stays where it was or, with the route ``default``, goes to the default."""
    by: str | None
    """The specialist that had the task; None if there was none."""
    run_id: str
    """The run that hands it off."""
    asked: HandoffRequest
    """What the run's agent requested, and what it says it leaves behind."""
    hop: int
    """Number of handoffs of the task in this generation, including this one if it was accepted."""
    max_handoffs: int
    """Maximum number of handoffs."""
    fallback: bool = False
    """True if the target comes from the previous specialist's card, not from the run."""

    @property
    def names_nobody(self) -> bool:
        """True if the run named a specialist that the task may not go to; see ``RefusedHandoff.hiding``."""
        return not self.fallback and self.reason.code in UNKNOWN

    @property
    def accepted(self) -> bool:
        """True if the task is handed off."""
        return self.specialist is not None or self.route is Route.DEFAULT


class PolicyVerdict(StrEnum):
    """What the rules say about a task. Values are stored: never rename them."""

    ALLOWED = "allowed"
    """The task may run, within its constraints."""
    DENIED = "denied"
    """The task is refused."""
    HELD = "held"
    """A person must approve the task first."""
    APPROVED = "approved"
    """A person has approved the task."""


class PolicyRecord(Record):
    """What the policy allows a task, whoever does it."""

    verdict: PolicyVerdict
    route: Route | None = None
    """``human_review`` if a person must approve the task first, ``reject`` if it is refused; None if it continues."""
    rules: tuple[str, ...] = ()
    """The rules behind the verdict: those that deny, require approval, or allow regardless of others."""
    approved: tuple[str, ...] = ()
    """The rules whose required approval a person has given, for this content."""
    approved_by: str | None = None
    """The principal who has just approved."""
    said: Impersonal | None = None
    """The approver's comment."""
    constraints: Constraints = Constraints()
    """What the rules still allow."""


class DecisionRecord(Record):
    """Where a run starts, and why: a placement."""

    route: str = "default"
    """Label of the route."""
    specialist: str | None = None
    """The specialist that does the task; None if there is none."""
    skill: str | None = None
    """The specialist's skill that was asked for."""
    agent: str
    """The agent on which the run starts."""
    tier: Tier
    """Model strength."""
    model: str | None
    """Name of the model; None if the agent's CLI decides."""
    effort: str | None = None
    """How hard the model thinks, for agents that can set this."""
    confidence: float = 1.0
    """Always 1: a placement follows rules."""
    required_capabilities: tuple[str, ...] = ()
    """Capabilities that a candidate had to have."""
    fallback: StoredFallback | None = None
    """Why it was placed on an agent that should not normally have been used."""
    stands_in: StandIn | None = None
    """Set if the agent uses this model in place of another."""
    classification: Classification
    """Where the tier comes from."""
    constraints: Constraints = Constraints()
    """What routing and policy still allowed."""
    candidates: tuple[Candidate, ...]
    """All agents, as observed."""
    overridden: OverriddenHint | None = None
    """The agent that the task prefers, and why it was not chosen."""
    overridden_model: str | None = None
    """The model that the task pins, if the constraints do not allow it."""
    unfenced: str | None = None
    """Why the run is not confined to the default reach, as a clause; None if it is, or need not be."""
    given: Given | None = None
    """What the run was given to work with. Known only once the run starts, so it is not part of a replayed decision;
    None if the run could not start or the decision was stored by an earlier version."""

    @model_validator(mode="before")
    @classmethod
    def _hint_from_words(cls, values: Any) -> Any:
        """Convert what the first versions stored for an overridden hint: one line of text."""
        if not isinstance(values, dict) or values.get("overridden") or not values.get("overridden_hint"):
            return values
        because = _in_words(None, values["overridden_hint"], None)
        return values | {"overridden": OverriddenHint(agent=None, because=(because,))}


class TriageRecord(Record):
    """Who answers a message. The message is identified by the decision's ``input_ref``; no text of it is stored
    here."""

    rule: TriageReason
    """The rule that decided."""
    agents: tuple[str, ...] = ()
    """The agents that answer."""
    skipped: dict[str, str] = {}
    """Those of them that are not asked after all, and why; see ``domain.channel.SkipReason``."""
    hops: int = 0
    """Number of agents' messages that led to this one."""


class Chosen(BaseModel, frozen=True):
    """What was chosen; only the fields that were decided about are set."""

    route: Route | None = None
    """Where the task goes."""
    specialist: str | None = None
    """The specialist that does the task."""
    skill: str | None = None
    """The specialist's skill that the task is for."""
    verdict: PolicyVerdict | None = None
    """The policy's verdict on the task."""
    agent: str | None = None
    """The agent on which the run starts."""
    tier: Tier | None = None
    """Strength of the model."""
    model: str | None = None
    """Name of the model."""


class ShadowRecord(Record, Chosen):
    """What another configuration would have decided. For a placement, every field of ``Chosen`` is None if no run would
    have started in that tick."""

    about: DecisionKind
    """``placement``, or ``specialist`` for which specialist does the task, including the policy's verdict."""
    beside: str
    """Id of the decision that took effect."""
    actual: Chosen
    """What was actually chosen."""
    differs: bool
    """True if the two choices differ."""
    rules: tuple[str, ...] = ()
    """The rules behind the verdict, as in ``PolicyRecord``."""
    candidates: tuple[Candidate, ...] = ()
    """All agents, as they would have been seen."""


RECORDS: Final[Mapping[DecisionKind, type[Record]]] = {
    DecisionKind.PLACEMENT: DecisionRecord,
    DecisionKind.TIER: TierRecord,
    DecisionKind.SPECIALIST: SpecialistRecord,
    DecisionKind.POLICY: PolicyRecord,
    DecisionKind.HANDOFF: HandoffRecord,
    DecisionKind.TRIAGE: TriageRecord,
    DecisionKind.SHADOW: ShadowRecord,
}
"""The record type stored for each kind."""

UNREADABLE: Final = Record(reason=rationale(RationaleCode.TEXT, text="what was recorded of it cannot be read"))
"""Stands for a record that cannot be read."""


def record_of(kind: str, data: object) -> Record:
    """Return the stored record of a decision, for display; a ``Record`` that says so if it cannot be read."""
    try:
        return RECORDS[DecisionKind(kind)].model_validate(data)
    except (ValidationError, ValueError):
        return UNREADABLE
