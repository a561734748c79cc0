"""/policy: the rules in force, what they would say about a task, pending approvals, and settled ones."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Form
from fastapi.responses import Response

from claudomator_py.api.guard.roles import Asking
from claudomator_py.api.operation import guarded
from claudomator_py.api.page.formatting import DAYS, Days
from claudomator_py.api.page.rendering import render
from claudomator_py.api.problem import status_of
from claudomator_py.domain.errors import Invalid
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.task import MAX_INSTRUCTIONS_LENGTH
from claudomator_py.domain.text import one_line
from claudomator_py.domain.units import counted
from claudomator_py.domain.verdict import PolicyCheckView, VerdictView, consequences, verdict_sentence
from claudomator_py.resources.policy import ApprovalsView, HeldTaskView, PolicyView, RuleView, SettledApprovalView
from claudomator_py.resources.policy.service import PolicyService
from claudomator_py.resources.session import Access
from claudomator_py.values import dataclass

Text = Annotated[str, Form(max_length=MAX_INSTRUCTIONS_LENGTH)]
_TONES = {"given": "good", "refused": "bad", "expired": "off"}


def router(access: Access) -> APIRouter:
    """Return the routes."""
    routes = guarded("/policy")

    @routes.get("")
    def show(by: Asking, days: Days = 30) -> Response:
        return _page(access.as_(by)[PolicyService], by, days)

    # A task's text may be long and private, so it is not put in the address.
    @routes.post("")
    def test(by: Asking, text: Text = "") -> Response:
        service = access.as_(by)[PolicyService]
        try:
            return _page(service, by, text=text, verdicts=service.test(text))
        except Invalid as refusal:
            return _page(service, by, text=text, refusal=refusal)

    return routes


def _page(
    service: PolicyService,
    by: Principal,
    days: int = 30,
    *,
    text: str = "",
    verdicts: Sequence[VerdictView] = (),
    refusal: Invalid | None = None,
) -> Response:
    values = {
        "page": page_of(service.view(days=days), service.approvals()),
        "text": text,
        "verdicts": tuple(map(verdict_of, verdicts)),
        "refusal": refusal,
    }
    return render("policy.html", values, status_of(refusal), by=by)


@dataclass(frozen=True, slots=True)
class RuleShown:
    """A rule."""

    name: str
    built_in: bool
    when: str
    says: str
    """What it demands."""
    applied: str
    faults: str
    last: str | None
    """An instant."""


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """A task that waits for an approval."""

    name: str
    url: str
    line: str
    """What it asks for."""
    who: str
    """Who may approve it, as a sentence without a full stop."""
    since: str
    """An instant."""
    until: str | None
    """An instant."""
    allowed: bool


@dataclass(frozen=True, slots=True)
class Settled:
    """An approval that was given or refused, or that nobody gave in time."""

    name: str
    url: str
    tone: str
    outcome: str
    by: str
    why: str | None
    rules: str
    at: str
    """An instant."""


@dataclass(frozen=True, slots=True)
class VerdictShown:
    """What the rules say about a task that is only tried."""

    name: str
    sentences: tuple[str, ...]
    """The verdict and its consequences."""
    checks: tuple[PolicyCheckView, ...]
    """What each rule says."""


@dataclass(frozen=True, slots=True)
class PolicyPage:
    """The policy and the approvals."""

    spans: tuple[tuple[str, str, bool], ...]
    """The spans to choose from: words, address, and whether it is the one shown."""
    summary: str
    hash: str | None
    since: str | None
    """An instant."""
    rules: tuple[RuleShown, ...]
    """Built-in ones last, as they are asked last."""
    waiting: tuple[PendingApproval, ...]
    settled: tuple[Settled, ...]


def page_of(policy: PolicyView, approvals: ApprovalsView) -> PolicyPage:
    """Return the page."""
    days = _days(policy.days)
    decided = counted(policy.decisions, "decision")
    summary = f"{decided} in {days}: {counted(policy.denied, 'task')} denied, {policy.held:,} held for approval."
    return PolicyPage(
        spans=tuple((_days(span), f"/policy?days={span}", span == policy.days) for span in DAYS),
        summary=summary if policy.decisions else f"No task was judged in {days}.",
        hash=policy.hash,
        since=policy.since,
        rules=(
            *(_rule(rule, built_in=False) for rule in policy.rules),
            *(_rule(rule, built_in=True) for rule in policy.built_in),
        ),
        waiting=tuple(map(_waiting, approvals.waiting)),
        settled=tuple(map(_settled, approvals.settled)),
    )


def verdict_of(verdict: VerdictView) -> VerdictShown:
    """Return the verdict in the words of the command line."""
    return VerdictShown(
        name=verdict.name,
        sentences=(verdict_sentence(verdict), *consequences(verdict)),
        checks=verdict.checks,
    )


def _rule(rule: RuleView, *, built_in: bool) -> RuleShown:
    return RuleShown(
        name=rule.name,
        built_in=built_in,
        when="judged by the text of the task" if built_in else one_line(rule.when or "always"),
        says=one_line(rule.says) or ", ".join(rule.effects),
        applied=f"{rule.applied:,}",
        faults=f"{rule.faults:,}" if rule.faults else "",
        last=rule.last,
    )


def _waiting(task: HeldTaskView) -> PendingApproval:
    who = " and ".join(" or ".join(listed) for listed in task.approvers)
    return PendingApproval(
        name=task.task_name,
        url=f"/tasks/{task.task_id}",
        line=one_line(task.text),
        who=f"can be approved by {who}" if who else "can be approved by anyone with the role operate",
        since=task.since,
        until=task.until,
        allowed=task.allowed,
    )


def _settled(approval: SettledApprovalView) -> Settled:
    return Settled(
        name=approval.task_name,
        url=f"/tasks/{approval.task_id}",
        tone=_TONES[approval.outcome],
        outcome=approval.outcome,
        by="nobody" if approval.outcome == "expired" else approval.by or "operator",
        why=approval.why,
        rules=", ".join(approval.rules),
        at=approval.at,
    )


def _days(days: int) -> str:
    return "a day" if days == 1 else f"{days} days"
