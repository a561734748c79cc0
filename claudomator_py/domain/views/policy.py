"""What the policy says of a task, as it is shown."""

from collections.abc import Mapping

from claudomator_py.domain.decision import PolicyCheck
from claudomator_py.domain.routing import Constraints, Risk
from claudomator_py.domain.views.base import View


class PolicyCheckView(PolicyCheck, View):
    """What one rule said about the choice."""


class ConstraintsView(Constraints, View):
    """What routing and policy had left open; null: any."""


class ApprovalView(View):
    """An approval that is demanded."""

    rules: tuple[str, ...]
    by: tuple[tuple[str, ...], ...] = ()
    """For each rule that says who: roles or names, one of which the person who approves has or is."""
    within_ms: int | None = None
    """In milliseconds, how long it may take."""


class VerdictView(View):
    """What the policy says of a task."""

    name: str
    verdict: str
    """``allowed``, ``held`` until it is approved, or ``denied``."""
    reason: str
    risk: Risk
    rules: tuple[str, ...] = ()
    """Those that led to it."""
    checks: tuple[PolicyCheckView, ...] = ()
    approval: ApprovalView | None = None
    specialist: str | None = None
    """Who does it, if a rule says so."""
    excluded_specialists: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    """Capabilities that whoever does it must have."""
    constraints: ConstraintsView = ConstraintsView()
    agents: tuple[str, ...] | None = None
    """Those that may take it; null: nobody has looked."""
    unfit: Mapping[str, str] = {}
    """Agents that the rules leave and that cannot enforce what is asked for, and why."""
