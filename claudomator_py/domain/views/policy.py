"""The policy as it is shown: its rules with how often each applied, and what they say of a task."""

from collections.abc import Mapping
from typing import Literal

from claudomator_py.domain.routing import Risk
from claudomator_py.domain.views.base import Instant, View
from claudomator_py.domain.views.decisions import ConstraintsView
from claudomator_py.domain.views.routing import PolicyCheckView, RouteView


class ApprovalView(View):
    """An approval that is demanded. by: for each rule that says who, roles or names, one of which the person who
    approves has or is; within_ms: in milliseconds, how long it may take."""

    rules: tuple[str, ...]
    by: tuple[tuple[str, ...], ...] = ()
    within_ms: int | None = None


class VerdictView(View):
    """What the policy says of a task.

    verdict: ``allowed``, ``held`` until it is approved, or ``denied``. rules: those that led to it. specialist: who
    does it, if a rule says so; requires: capabilities that whoever does it must have. agents: those that may take it;
    null: nobody has looked. unfit: those that the rules leave and that cannot enforce what is asked for, and why.
    """

    name: str
    verdict: str
    reason: str
    risk: Risk
    rules: tuple[str, ...] = ()
    checks: tuple[PolicyCheckView, ...] = ()
    approval: ApprovalView | None = None
    specialist: str | None = None
    excluded_specialists: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    constraints: ConstraintsView = ConstraintsView()
    agents: tuple[str, ...] | None = None
    unfit: Mapping[str, str] = {}


class TriedRouteView(RouteView):
    """Who would do a task that there is not, and what the policy would say of it. policy: null: there are no rules, and
    none is built in."""

    policy: VerdictView | None = None


class RuleView(View):
    """A rule. effects: what it demands, by the names of its keys. applied: how many of the decisions that were looked
    at it applied to; faults: of how many its condition could not be evaluated; last: when it last applied."""

    name: str
    when: str | None = None
    effects: tuple[str, ...] = ()
    says: str = ""
    applied: int = 0
    faults: int = 0
    last: Instant | None = None


class PolicyView(View):
    """The rules in force, in their order. hash: of them, as decisions name it; null: there are none. since: since when
    tasks are judged by them; null: no task was yet. decisions: how many of the last days' were looked at. built_in:
    rules that hold without being written."""

    hash: str | None = None
    since: Instant | None = None
    days: int
    decisions: int = 0
    denied: int = 0
    held: int = 0
    rules: tuple[RuleView, ...] = ()
    built_in: tuple[RuleView, ...] = ()


class HeldTaskView(View):
    """A task that waits for an approval. rules: of the policy that demand it; none: the task itself does. approvers: as
    in ``ApprovalView``. until: by when; null: any time. allowed: whether whoever asks may give it."""

    task_id: str
    task_name: str
    version: int
    text: str
    rules: tuple[str, ...] = ()
    approvers: tuple[tuple[str, ...], ...] = ()
    since: Instant
    until: Instant | None = None
    allowed: bool


class SettledApprovalView(View):
    """An approval that was given or refused, or that nobody gave in time. by: the principal; null: nobody. why: what it
    said."""

    task_id: str
    task_name: str
    outcome: Literal["given", "refused", "expired"]
    by: str | None = None
    why: str | None = None
    rules: tuple[str, ...] = ()
    at: Instant


class ApprovalsView(View):
    """What waits for an approval, longest first, and what no longer does, newest first."""

    waiting: tuple[HeldTaskView, ...] = ()
    settled: tuple[SettledApprovalView, ...] = ()
