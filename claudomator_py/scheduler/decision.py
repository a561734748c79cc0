"""A decision as a value: what was chosen, among what, and why each other candidate was not (D1)."""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.routing import Constraints, Risk


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
    """Who answers a message."""


class RejectionCode(StrEnum):
    """Why an agent did not get a task. Stored with decisions: values are never renamed."""

    NOT_SELECTABLE = "not_selectable"
    """It takes only tasks that name it."""
    NOT_MEANT = "not_meant"
    """The task insists on others, or on the agent that has its conversation."""
    PROBLEM = "problem"
    """It cannot run: not installed, for example."""
    BUDGET = "budget"
    """It has spent what it may."""
    PROBED = "probed"
    """Its limit should be over, and the first runs after it have not answered yet."""
    HELD = "held"
    """It is held until an operator releases it."""
    LIMITED = "limited"
    """It waits for a limit to reset."""
    FULL = "full"
    """All of its slots are in use."""
    LESS_PREFERRED = "less_preferred"
    """It could have taken the task, and another one was the better choice."""


class Candidate(BaseModel):
    """An agent as the decision saw it."""

    model_config = ConfigDict(frozen=True)

    agent: str
    active: int
    max_concurrent: int
    limited: bool
    limited_until: int | None = None
    """In epoch milliseconds; None: it is not limited, or until it is released."""
    limit: str | None = None
    """Which limit it waits for, and who says so; None: it waits for none."""
    eligible: bool
    rejected_code: RejectionCode | None = None
    """None for the one chosen, and in decisions from before there were codes."""
    rejected_because: str | None = None
    """The same in words; None for the one chosen."""


class OverriddenHint(BaseModel):
    """The agent that a task prefers and did not get, and why, in words."""

    model_config = ConfigDict(frozen=True)

    agent: str
    why: str


class Classification(BaseModel):
    """Where the tier comes from. cause: why it is no answer; reason: the classifier's own words or those of its fault.

    asked_about: the agent that was picked when it was asked, which need not be the one that started the task.
    said_agent: the agent that the answer spoke of, if that was another one; it changes nothing.
    clamped_from: the tier that it would be without the floor or ceiling that its constraints set.
    """

    model_config = ConfigDict(frozen=True)

    source: Literal["pinned", "kept", "cache", "classifier", "default"]
    cause: str | None = None
    reason: str | None = None
    asked_about: str | None = None
    said_agent: str | None = None
    clamped_from: Tier | None = None


class PolicyCheck(BaseModel):
    """What one rule said. effect: what it demands besides, such as ``require_approval``; detail: why, in words."""

    model_config = ConfigDict(frozen=True)

    rule: str
    allowed: bool
    effect: str | None = None
    detail: str | None = None


class SpecialistCandidate(BaseModel):
    """Somebody who could do it, with what the score is made of."""

    model_config = ConfigDict(frozen=True)

    specialist: str
    skill: str | None = None
    """The skill that fits best."""
    score: float
    parts: dict[str, float] = {}
    """What each signal adds to the score, by its name, such as ``semantic``; rounded to 1e-6, as the score is."""
    rejected_because: str | None = None
    """None for the one chosen."""


class Versions(BaseModel):
    """By what it was decided, so that decisions made by the same can be told apart from others; None: not involved."""

    model_config = ConfigDict(frozen=True)

    configuration: str | None = None
    """Hash of the settings."""
    classifier: str | None = None
    """Its model and the version of the question, as ``<model>/<version>``."""
    policy: str | None = None
    """Hash of the rules."""
    registry: str | None = None
    """Hash of the specialists' cards."""
    encoder: str | None = None
    """Its id and version."""
    calibration: str | None = None
    """Hash of the weights and thresholds that were fitted for the encoder."""


class Record(BaseModel):
    """What decisions of every kind say. Immutable once stored."""

    model_config = ConfigDict(frozen=True)

    reason: str
    """Why, in words."""
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
    """Who could have done it, the best first."""
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


class DecisionRecord(Record):
    """Why a run starts where it does: a placement."""

    route: str = "default"
    """The label of the route."""
    specialist: str | None = None
    """Who does it; None: nobody in particular."""
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
    fallback: str | None = None
    """Why it was placed where it should not have been, in words."""
    classification: Classification
    """Where the tier comes from."""
    constraints: Constraints = Constraints()
    """What routing and policy had left open."""
    candidates: tuple[Candidate, ...]
    """All agents, as they were seen."""
    overridden_hint: str | None = None
    """The agent that the task prefers, and why it is not that, in one line."""
    overridden: OverriddenHint | None = None
    """The same as values; None also in decisions from before there were any."""
    overridden_model: str | None = None
    """The model that the task pins, where the constraints do not allow it."""
