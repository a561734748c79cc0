"""The policy's verdict on a task as shown: its shape, and its words on the command line and on the page."""

from collections.abc import Mapping, Sequence

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.decision import PolicyCheck
from claudomator_py.domain.errors import ended
from claudomator_py.domain.routing import Constraints, Risk, ToolLimits
from claudomator_py.domain.shape import View
from claudomator_py.domain.units import format_duration


class PolicyCheckView(PolicyCheck, View):
    """The result of one rule."""


class ConstraintsView(Constraints, View):
    """What routing and policy still allowed; null means anything."""


class ApprovalView(View):
    """A required approval."""

    rules: tuple[str, ...]
    by: tuple[tuple[str, ...], ...] = ()
    """For each rule that names approvers: roles or names, one of which the approver must have or be."""
    within_ms: int | None = None
    """Time limit for the approval, in milliseconds."""


class VerdictView(View):
    """The policy's verdict on a task."""

    name: str
    verdict: str
    """``allowed``, ``held`` until it is approved, or ``denied``."""
    reason: str
    risk: Risk
    rules: tuple[str, ...] = ()
    """The rules behind the verdict."""
    checks: tuple[PolicyCheckView, ...] = ()
    approval: ApprovalView | None = None
    specialist: str | None = None
    """The specialist that does it, if a rule says so."""
    excluded_specialists: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    """Capabilities that the specialist must have."""
    constraints: ConstraintsView = ConstraintsView()
    agents: tuple[str, ...] | None = None
    """Agents that may take it; null if this was not determined."""
    unfit: Mapping[str, str] = {}
    """Agents allowed by the rules that cannot enforce what the task asks for, with the reason."""

    @property
    def sentence(self) -> str:
        """Return the verdict, the risk and the reason."""
        return ended(f"{self.name} is {self.verdict}, with {self.risk} risk: {self.reason}")

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return the verdict, and what follows for the task."""
        return (self.sentence, *consequences(self))


def applies(check: PolicyCheck) -> str:
    """Return in one word whether the rule applies."""
    return {True: "yes", False: "no", None: "fault"}[check.matched]


def approvers_text(by: Sequence[Sequence[str]]) -> str:
    """Return who has to approve, by each rule that says so; empty if none does."""
    return " and ".join(" or ".join(listed) for listed in by)


def consequences(verdict: VerdictView) -> list[str]:
    """Return what follows for the task, as sentences."""
    reasons = []
    if verdict.approval is not None:
        who = approvers_text(verdict.approval.by) or "anyone with the role operate"
        within = verdict.approval.within_ms
        reasons.append(f"Approval by {who}" + (f" within {format_duration(within)}." if within is not None else "."))
    if verdict.specialist is not None:
        reasons.append(f"Goes to {verdict.specialist}.")
    if verdict.requires:
        reasons.append(f"Only for specialists with {', '.join(verdict.requires)}.")
    if verdict.excluded_specialists:
        reasons.append(f"Not for {', '.join(verdict.excluded_specialists)}.")
    reasons += constraint_sentences(verdict.constraints)
    reasons += [f"Not on {agent}: {sentence}." for agent, sentence in verdict.unfit.items()]
    return [*reasons, "No agent is left: it would wait."] if verdict.agents == () else reasons


def constraint_sentences(left: Constraints) -> list[str]:
    """Return the task's restrictions, each as a sentence; empty if there are none."""
    sentences = [f"Only on {' or '.join(listed)}." for listed in left.one_of]
    if left.excluded_agents:
        sentences.append(f"Not on {', '.join(left.excluded_agents)}.")
    sentences += [f"Only on host {' or '.join(listed)}." for listed in left.hosts]
    if left.excluded_hosts:
        sentences.append(f"Not on host {', '.join(left.excluded_hosts)}.")
    if left.tier_floor is not None or left.tier_ceiling is not None:
        sentences.append(f"Tier from {left.tier_floor or Tier.FAST} to {left.tier_ceiling or Tier.POWERFUL}.")
    if left.tools is not None:
        sentences.append(f"Tools: {_tools(left.tools)}.")
    if (origin := left.reach_of(None)) is not None:
        sentences.append(origin.sentence)
    if left.isolated:
        sentences.append("In a work tree of its own.")
    sentences += [f"At most {cap.most} at a time by rule {cap.rule}." for cap in left.caps]
    return sentences


def _tools(limits: ToolLimits) -> str:
    parts = [] if limits.mode is None else [f"mode {limits.mode} at most"]
    if limits.allowed_tools is not None:
        parts.append(f"only {', '.join(limits.allowed_tools) or 'none'} without asking")
    if limits.disallowed_tools:
        parts.append(f"not {', '.join(limits.disallowed_tools)}")
    return "; ".join(parts)
