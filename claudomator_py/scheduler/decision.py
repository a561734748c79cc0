"""A decision as a value: what was chosen, among what, and why each other candidate was not."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.blocked import BlockCode, Blocked, blocked
from claudomator_py.domain.decision import Classification, PolicyCheck, StandIn, StoredFallback, Versions
from claudomator_py.domain.handoff import Given
from claudomator_py.domain.outcome import HandoffRequest
from claudomator_py.domain.personal import Impersonal
from claudomator_py.domain.rationale import UNKNOWN, RationaleCode, StoredRationale, rationale
from claudomator_py.domain.routing import Constraints, Risk
from claudomator_py.domain.triage import TriageReason


class DecisionKind(StrEnum):
    """What is decided."""

    PLACEMENT = "placement"
    """On which agent a run starts, and on which model: ``DecisionRecord``."""
    TIER = "tier"
    """How strong a model a task needs, where a classifier was asked: ``TierRecord``."""
    SPECIALIST = "specialist"
    """Who does it."""
    POLICY = "policy"
    """What rules allow, whoever does it."""
    HANDOFF = "handoff"
    """To whom a run hands its task on."""
    TRIAGE = "triage"
    """Who answers a message: ``TriageRecord``."""
    SHADOW = "shadow"
    """What another configuration would have decided, which nothing follows from: ``ShadowRecord``."""


class Candidate(BaseModel):
    """An agent as the decision saw it."""

    model_config = ConfigDict(frozen=True)

    agent: str
    active: int
    max_concurrent: int
    limited: bool
    limited_until: int | None = None
    """In epoch milliseconds; None: it is not limited, or until it is released."""
    eligible: bool
    rejected: Blocked | None = None
    """Why it was not chosen; None for the one chosen."""

    @model_validator(mode="before")
    @classmethod
    def _from_words(cls, values: Any) -> Any:
        """What 0.1 has stored: the reason in words."""
        if not isinstance(values, dict) or "rejected" in values or not values.get("rejected_because"):
            return values
        until = values.get("limited_until") if values.get("rejected_code") == "limited" else None
        return values | {"rejected": _in_words(values.get("agent"), values["rejected_because"], until)}


class OverriddenHint(BaseModel):
    """The agent that a task prefers and did not get, and why: what kept each agent that it means."""

    model_config = ConfigDict(frozen=True)

    agent: str | None
    """None: decisions from before there were values name it in the reason only."""
    because: tuple[Blocked, ...]

    @model_validator(mode="before")
    @classmethod
    def _from_words(cls, values: Any) -> Any:
        """What 0.1 has stored: the reason in words, with the names of the agents."""
        if not isinstance(values, dict) or "because" in values or "why" not in values:
            return values
        return values | {"because": (_in_words(None, values["why"], None),)}


def _in_words(agent: str | None, text: str, until: int | None) -> Blocked:
    return blocked(BlockCode.TEXT, agent=agent, text=text, until=until)


class SpecialistCandidate(BaseModel):
    """Somebody who could do it, with what the score is made of."""

    model_config = ConfigDict(frozen=True)

    specialist: str
    skill: str | None = None
    """The skill that fits best."""
    score: float
    parts: dict[str, float] = {}
    """What each signal adds to the score, by its name, such as ``semantic``; rounded to 1e-6, as the score is."""
    tie_break: float = 0.0
    """What counts on top of the score among those that are as good."""
    rejected: StoredRationale | None = None
    """Why not; None for the one chosen."""

    @property
    def barred(self) -> bool:
        """Whether it could not have been chosen, whatever its score."""
        bars = (RationaleCode.TOO_RISKY, RationaleCode.LACKS, RationaleCode.EXCLUDED, RationaleCode.AWAY)
        return self.rejected is not None and self.rejected.code in bars


class Record(BaseModel):
    """What decisions of every kind say. Immutable once stored."""

    model_config = ConfigDict(frozen=True)

    reason: StoredRationale
    """Why."""
    confidence: float | None = None
    """0 to 1; None: there is none to be had."""
    threshold: float | None = None
    """The least confidence with which it would have been decided so; None: any."""
    risk: Risk | None = None
    """How much harm a wrong decision could do; None: nobody has judged it."""
    intent: str | None = None
    """What the task wants, normalised."""
    topic: str | None = None
    """Its subject area, normalised."""
    policy_checks: tuple[PolicyCheck, ...] = ()
    """What each rule said, in the order in which they were asked."""
    specialist_candidates: tuple[SpecialistCandidate, ...] = ()
    """Who could have done it, the best first: of a great many the best of them, see
    ``routing.ranking.MAX_CANDIDATES``."""
    versions: Versions = Versions()
    """By what it was decided."""
    latency_ms: int | None = None
    """How long it took, in milliseconds; None: nothing worth telling."""
    cost_usd: float | None = None
    """What it cost, in US dollars; None: nothing that is known."""


class TierRecord(Record):
    """How strong a model a task needs: what came of asking a classifier."""

    tier: Tier | None
    """None: it gave no answer, and whichever agent starts the task uses its default."""
    agent: str
    """The tentative pick that it was asked for."""
    classification: Classification
    """Where the tier comes from."""


class Route(StrEnum):
    """Where a task goes. Values are stored and shown to programs: they are never renamed."""

    SPECIALIST = "specialist"
    """To somebody whose card fits it, or whom it names."""
    DEFAULT = "default"
    """To the default specialist, or to no specialist."""
    CLARIFY = "clarify"
    """To a person, who says who is meant."""
    HUMAN_REVIEW = "human_review"
    """To a person, who approves it first."""
    REJECT = "reject"
    """Nowhere: it fails."""


class SpecialistRecord(Record):
    """Who does a task."""

    route: Route
    specialist: str | None
    """None: no specialist, or nobody yet."""
    skill: str | None = None
    """The specialist's skill that fits best, or is asked for."""
    margin: float | None = None
    """Those within it of the best score were as good."""
    degraded: bool = False
    """Whether the encoder could not be asked, and words alone were compared."""
    unheeded: tuple[Impersonal, ...] = ()
    """What the text says of who is to do the task, or how, in its words; it was not compared."""
    required_capabilities: tuple[str, ...] = ()
    """What the specialist had to be able to do."""
    owner: str | None = None
    """Who answers for the specialist, as its card said; None: it did not say, or there is no specialist."""
    expected_output: str | None = None
    """What the specialist was to hand back, as its card said; a task that says so itself has its own."""
    max_handoffs: int | None = None
    """How often the task may be handed on in this generation; None: an earlier version did not store it."""
    escalation: tuple[str, ...] = ()
    """Where the task was to go if the specialist could not do it, in order: specialists, or labels of routes."""


class HandoffRecord(Record):
    """To whom a run hands its task on, or why it does not."""

    route: Route
    """``specialist``, or ``human_review`` where it is not handed on; of a card's ``fallback``, its label."""
    specialist: str | None
    """Who is to continue it; None: whoever had it keeps it, or with the route ``default`` whoever that is."""
    by: str | None
    """Who had it; None: no specialist."""
    run_id: str
    """The run that hands it on."""
    asked: HandoffRequest
    """What its agent asked for, and says it leaves."""
    hop: int
    """How often the task is handed on in this generation, this time included where it is."""
    max_handoffs: int
    """How often it may be."""
    fallback: bool = False
    """Whether the card of whoever had it names the other one; else the run does."""

    @property
    def names_nobody(self) -> bool:
        """Whether the run named somebody to whom it may not go: see ``RefusedHandoff.hiding``."""
        return not self.fallback and self.reason.code in UNKNOWN

    @property
    def accepted(self) -> bool:
        """Whether it is handed on."""
        return self.specialist is not None or self.route is Route.DEFAULT


class PolicyVerdict(StrEnum):
    """What rules say of a task. Values are stored: they are never renamed."""

    ALLOWED = "allowed"
    """It may run, within what they leave open."""
    DENIED = "denied"
    """It is refused."""
    HELD = "held"
    """A person has to approve it first."""
    APPROVED = "approved"
    """A person has."""


class PolicyRecord(Record):
    """What the policy allows a task, whoever does it."""

    verdict: PolicyVerdict
    route: Route | None = None
    """``human_review`` where a person has to approve the task first, ``reject`` where it is refused; None: it
    continues."""
    rules: tuple[str, ...] = ()
    """The rules that led to it: that refuse, demand approval, or allow whatever else."""
    approved: tuple[str, ...] = ()
    """The rules whose demand for approval a person has met, for this content."""
    approved_by: str | None = None
    """The principal who approved just now."""
    said: Impersonal | None = None
    """What they said."""
    constraints: Constraints = Constraints()
    """What the rules leave open."""


class DecisionRecord(Record):
    """Why a run starts where it does: a placement."""

    route: str = "default"
    """The label of the route."""
    specialist: str | None = None
    """Who does it; None: no specialist."""
    skill: str | None = None
    """The specialist's skill that is asked for."""
    agent: str
    """Where it starts."""
    tier: Tier
    """Model strength."""
    model: str | None
    """Its name; None: the agent's CLI decides."""
    effort: str | None = None
    """How hard the model thinks, where its agent can say so."""
    confidence: float = 1.0
    """A placement follows rules."""
    required_capabilities: tuple[str, ...] = ()
    """What a candidate has to be able to do."""
    fallback: StoredFallback | None = None
    """Why it was placed where it should not have been."""
    stands_in: StandIn | None = None
    """The model is one that the agent uses in place of another one."""
    classification: Classification
    """Where the tier comes from."""
    constraints: Constraints = Constraints()
    """What routing and policy had left open."""
    candidates: tuple[Candidate, ...]
    """All agents, as they were seen."""
    overridden: OverriddenHint | None = None
    """The agent that the task prefers, and why it is not that."""
    overridden_model: str | None = None
    """The model that the task pins, where the constraints do not allow it."""
    unfenced: str | None = None
    """Why its run is not kept within the default reach, in a clause; None: it is, or need not be."""
    given: Given | None = None
    """What its run was given to do it with, which is known only once it starts, and so is no part of what is decided
    again; None: it could not start, or an earlier version did not store it."""

    @model_validator(mode="before")
    @classmethod
    def _hint_from_words(cls, values: Any) -> Any:
        """What the first versions have stored of an overridden hint: one line."""
        if not isinstance(values, dict) or values.get("overridden") or not values.get("overridden_hint"):
            return values
        because = _in_words(None, values["overridden_hint"], None)
        return values | {"overridden": OverriddenHint(agent=None, because=(because,))}


class TriageRecord(Record):
    """Who answers a message. The message is named by the decision's ``input_ref``, and no text of it is here."""

    rule: TriageReason
    """Which rule decided."""
    agents: tuple[str, ...] = ()
    """Who answers."""
    skipped: dict[str, str] = {}
    """Who of them is not asked after all, and why, see ``domain.channel.SkipReason``."""
    hops: int = 0
    """How many messages of agents led to it."""


class Chosen(BaseModel):
    """What is chosen, as far as it is what was decided about."""

    model_config = ConfigDict(frozen=True)

    route: Route | None = None
    """Where the task goes."""
    specialist: str | None = None
    """Who does it."""
    skill: str | None = None
    """Which skill of the specialist it is for."""
    verdict: PolicyVerdict | None = None
    """What the policy says of the task."""
    agent: str | None = None
    """Where its run starts."""
    tier: Tier | None = None
    """How strong a model it gets."""
    model: str | None = None
    """Which model that is."""


class ShadowRecord(Record, Chosen):
    """What another configuration would have decided. Of a placement: all of ``Chosen`` is None where no run would have
    started in that tick."""

    about: DecisionKind
    """``placement``, or ``specialist`` for who does the task, the policy's verdict included."""
    beside: str
    """The id of the decision that was followed."""
    actual: Chosen
    """What was chosen in fact."""
    differs: bool
    """Whether that is something else."""
    rules: tuple[str, ...] = ()
    """The rules that led to the verdict, as in ``PolicyRecord``."""
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
"""What is stored of each kind."""

_UNREADABLE: Final = Record(reason=rationale(RationaleCode.TEXT, text="what was recorded of it cannot be read"))


def record_of(kind: str, data: object) -> Record:
    """Return what is stored of a decision, for whoever shows it; a ``Record`` that says so where it cannot be read."""
    try:
        return RECORDS[DecisionKind(kind)].model_validate(data)
    except (ValidationError, ValueError):
        return _UNREADABLE
