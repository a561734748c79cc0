"""The shapes and operations of the policy and of approvals. Field order is the order of the JSON."""

from typing import Literal

from claudomator_py.domain.decision import PolicyCheck
from claudomator_py.domain.shape import Instant, View
from claudomator_py.domain.verdict import applies
from claudomator_py.surface import OPERATE, Calls, Days, operation
from claudomator_py.surface.table import Column, Table


class RuleView(View):
    """A rule."""

    name: str
    when: str | None = None
    """Its condition; null: it applies to every task."""
    effects: tuple[str, ...] = ()
    """What it demands, by the names of its keys."""
    says: str = ""
    """What it demands, as written."""
    applied: int = 0
    """How many of the decisions counted it applied to."""
    faults: int = 0
    """How many of them its condition could not be evaluated for."""
    last: Instant | None = None
    """When it last applied."""


class PolicyView(View):
    """The rules in force, in their order."""

    hash: str | None = None
    """The hash of the rules, as in decisions; null: there are none."""
    since: Instant | None = None
    """Since when these rules judge tasks; null: they have judged none yet."""
    days: int
    decisions: int = 0
    """How many decisions of the last days were counted."""
    denied: int = 0
    held: int = 0
    rules: tuple[RuleView, ...] = ()
    built_in: tuple[RuleView, ...] = ()
    """Rules that apply without being configured."""


class HeldTaskView(View):
    """A task that waits for an approval."""

    task_id: str
    task_name: str
    version: int
    text: str
    rules: tuple[str, ...] = ()
    """The rules of the policy that demand it; empty: the task itself does."""
    approvers: tuple[tuple[str, ...], ...] = ()
    """As ``by`` in ``ApprovalView``."""
    since: Instant
    until: Instant | None = None
    """The deadline; null: none."""
    allowed: bool
    """Whether the caller may give it."""


class SettledApprovalView(View):
    """An approval that was given or refused, or that nobody gave in time."""

    task_id: str
    task_name: str
    outcome: Literal["given", "refused", "expired"]
    by: str | None = None
    """The principal; null: nobody."""
    why: str | None = None
    """What the principal said."""
    rules: tuple[str, ...] = ()
    at: Instant


class ApprovalsView(View):
    """Tasks waiting for an approval, longest first, and settled ones, newest first."""

    waiting: tuple[HeldTaskView, ...] = ()
    settled: tuple[SettledApprovalView, ...] = ()


CHECKS = Table[PolicyCheck](
    Column("RULE", lambda check: check.rule),
    Column("APPLIES", applies),
    Column("EFFECT", lambda check: check.effect, flexible=True),
    Column("SAYS", lambda check: check.detail, flexible=True),
)
"""What each rule said about a task."""


class PolicyCalls(Calls):
    """The operation on the policy, as the client calls it."""

    @operation("GET /v1/policy", "getPolicy", OPERATE, "The rules in force")
    def policy(self, *, days: Days = 30) -> PolicyView:
        """In their order, with how often each applied to tasks that exist for the caller."""
