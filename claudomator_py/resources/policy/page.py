"""/policy: the rules in force, what they would say about a task, pending approvals, and settled ones."""

from collections.abc import Sequence

from fastapi.responses import Response

from claudomator_py.api.operation import Allowed, UnlistedRoutes
from claudomator_py.api.page.formatting import Days, TaskText, day_spans, days_text
from claudomator_py.api.page.rendering import render
from claudomator_py.domain.errors import Invalid
from claudomator_py.domain.units import counted
from claudomator_py.domain.verdict import VerdictView
from claudomator_py.resources.policy import PolicyView
from claudomator_py.resources.policy.service import PolicyService
from claudomator_py.resources.session import Session

routes = UnlistedRoutes("/policy")


@routes.get("", "getPolicy")
def show(granted: Allowed, days: Days = 30) -> Response:
    return _page(granted, days)


# A task's text may be long and private, so it is not put in the address.
@routes.post("", "getPolicy")
def check(granted: Allowed, text: TaskText = "") -> Response:
    try:
        return _page(granted, text=text, verdicts=granted[PolicyService].test(text))
    except Invalid as refusal:
        return _page(granted, text=text, refusal=refusal)


def _page(
    granted: Session,
    days: int = 30,
    *,
    text: str = "",
    verdicts: Sequence[VerdictView] = (),
    refusal: Invalid | None = None,
) -> Response:
    policy = granted[PolicyService].view(days=days)
    values = {
        "policy": policy,
        "approvals": granted[PolicyService].approvals(),
        "spans": day_spans("/policy", days, "rules"),
        "summary": _summary(policy),
        "text": text,
        "verdicts": verdicts,
    }
    return render("policy.html", values, granted, refusal=refusal)


def _summary(policy: PolicyView) -> str:
    days = days_text(policy.days)
    decided = counted(policy.decisions, "decision")
    summary = f"{decided} in {days}: {counted(policy.denied, 'task')} denied, {policy.held:,} held for approval."
    return summary if policy.decisions else f"No task was judged in {days}."
