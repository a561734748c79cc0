"""A routing decision as a value: what was chosen, among what, and why each other candidate was not (D1)."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from claudomator_py.domain.agent import Tier


class Candidate(BaseModel):
    """An agent as the decision saw it. rejected_because: None for the one chosen."""

    model_config = ConfigDict(frozen=True)

    agent: str
    active: int
    max_concurrent: int
    limited: bool
    limited_until: int | None = None
    eligible: bool
    rejected_because: str | None = None


class Classification(BaseModel):
    """Where the tier comes from. cause: why it is no answer; reason: the classifier's own words or those of its fault.

    asked_about: the agent that was picked when it was asked, which need not be the one that started the task.
    said_agent: the agent that the answer spoke of, if that was another one; it changes nothing.
    """

    model_config = ConfigDict(frozen=True)

    source: Literal["pinned", "kept", "cache", "classifier", "default"]
    cause: str | None = None
    reason: str | None = None
    asked_about: str | None = None
    said_agent: str | None = None


class DecisionRecord(BaseModel):
    """Why a run starts where it does. Immutable once stored."""

    model_config = ConfigDict(frozen=True)

    route: str = "default"
    specialist: str | None = None
    agent: str
    tier: Tier
    model: str | None
    effort: str | None = None
    confidence: float = 1.0
    reason: str
    risk: str | None = None
    required_capabilities: tuple[str, ...] = ()
    policy_checks: tuple[str, ...] = ()
    fallback: str | None = None
    classification: Classification
    candidates: tuple[Candidate, ...]
    overridden_hint: str | None = None
