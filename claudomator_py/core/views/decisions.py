"""Why a task is where it is, and why its runs were started where they were."""

from typing import Literal

from claudomator_py.core.agent import Tier
from claudomator_py.core.view import Instant, View
from claudomator_py.core.views.events import EventView
from claudomator_py.core.views.tasks import TaskView


class CandidateView(View):
    """An agent as a decision saw it. rejected_because: None for one that could have been picked."""

    agent: str
    active: int
    max_concurrent: int
    limited: bool = False
    limited_until: Instant | None = None
    eligible: bool
    rejected_because: str | None = None


class ClassificationView(View):
    """Where the tier came from. cause: why it is no answer; reason: the classifier's own words, or its fault.

    asked_about: the agent that was picked when it was asked. said_agent: the one that the answer spoke of, if that was
    another; it changes nothing.
    """

    source: Literal["pinned", "kept", "cache", "classifier", "default"]
    cause: str | None = None
    reason: str | None = None
    asked_about: str | None = None
    said_agent: str | None = None


class PolicyCheckView(View):
    """What one rule said about the choice."""

    rule: str
    allowed: bool
    detail: str | None = None


class DecisionView(View):
    """Why a run was started where it was."""

    route: str
    specialist: str | None = None
    agent: str
    tier: Tier | None = None
    model: str | None = None
    confidence: float | None = None
    reason: str
    risk: str | None = None
    required_capabilities: tuple[str, ...] = ()
    policy_checks: tuple[PolicyCheckView, ...] = ()
    fallback: str | None = None
    classification: ClassificationView
    candidates: tuple[CandidateView, ...] = ()
    overridden_hint: str | None = None
    run_id: str
    at: Instant


class WhyView(View):
    """Why a task is where it is: sentences for people, newest decision first, and the events in order."""

    task: TaskView
    sentences: tuple[str, ...]
    decisions: tuple[DecisionView, ...] = ()
    events: tuple[EventView, ...] = ()
