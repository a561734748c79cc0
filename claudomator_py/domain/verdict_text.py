"""What the policy says of a task, in words: the same on the command line and on the page."""

from claudomator_py.domain.constraint_text import constraint_sentences
from claudomator_py.domain.text import sentence
from claudomator_py.domain.units import format_duration
from claudomator_py.domain.views.policy import VerdictView
from claudomator_py.domain.views.tasks import PolicyCheckView


def verdict_sentence(verdict: VerdictView) -> str:
    """The verdict, the risk and the reason."""
    return sentence(f"{verdict.name} is {verdict.verdict}, with {verdict.risk} risk: {verdict.reason}")


def applies(check: PolicyCheckView) -> str:
    """Whether the rule applies, in a word."""
    return {True: "yes", False: "no", None: "fault"}[check.matched]


def consequences(verdict: VerdictView) -> list[str]:
    """What follows for the task, in sentences."""
    found = []
    if verdict.approval is not None:
        who = " and ".join(" or ".join(listed) for listed in verdict.approval.by) or "anyone with the role operate"
        within = verdict.approval.within_ms
        found.append(f"Approval by {who}" + (f" within {format_duration(within)}." if within is not None else "."))
    if verdict.specialist is not None:
        found.append(f"Goes to {verdict.specialist}.")
    if verdict.requires:
        found.append(f"Only for specialists with {', '.join(verdict.requires)}.")
    if verdict.excluded_specialists:
        found.append(f"Not for {', '.join(verdict.excluded_specialists)}.")
    return found + constraint_sentences(verdict.constraints)
