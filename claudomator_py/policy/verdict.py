"""From the rules and a task to what they allow: the rules are evaluated in order, and their demands add up."""

from collections.abc import Sequence
from dataclasses import replace

from claudomator_py.domain.agent import TIERS, Tier
from claudomator_py.domain.decision import PolicyCheck
from claudomator_py.domain.rationale import Rationale, RationaleCode, rationale
from claudomator_py.domain.routing import HARM, Assessment, Constraints, Risk, RuleCap, nearest
from claudomator_py.domain.verdict import ApprovalView, VerdictView
from claudomator_py.policy.condition import Condition
from claudomator_py.policy.expression import Allowance, Context, Unevaluated, context_of
from claudomator_py.policy.facts import MAX_PATHS, MAX_TEXT, Facts
from claudomator_py.policy.rule import BEFORE_FIRST_RUN, NOT_READ, Rule, TierBounds, policy_hash
from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class Demanded:
    """A required approval."""

    rules: tuple[str, ...]
    """The rules that require it."""
    by: tuple[tuple[str, ...], ...] = ()
    """For each rule that names approvers: roles or names, one of which the approver must have or be."""
    within_ms: int | None = None
    """Time limit for the approval; None if there is none."""

    def joined(self, other: "Demanded") -> "Demanded":
        """Return the approval that satisfies both."""
        times = [time for time in (self.within_ms, other.within_ms) if time is not None]
        return Demanded((*self.rules, *other.rules), (*self.by, *other.by), min(times, default=None))


@dataclass(frozen=True, slots=True)
class Verdict:
    """The rules' verdict on a task."""

    risk: Risk = Risk.LOW
    checks: tuple[PolicyCheck, ...] = ()
    """Result of each rule that was evaluated, in order."""
    allowed_by: str | None = None
    """The rule that allows it regardless of others."""
    denied_by: str | None = None
    """The rule that refuses it."""
    denial: str | None = None
    """The message of that rule."""
    demanded: Demanded | None = None
    """The approval that it needs first; None if it needs none."""
    specialist: str | None = None
    """The specialist that does it; None if the rules do not say."""
    excluded: frozenset[str] = frozenset()
    """Specialists that may not do it."""
    requires: tuple[str, ...] = ()
    """Capabilities that the specialist must have."""
    constraints: Constraints = Constraints()
    """What is allowed of agents, tiers and tools."""

    @property
    def given_by(self) -> str:
        """The rule that assigns it to a specialist; empty if none does."""
        giving = (check.rule for check in self.checks if check.effect and "specialist" in check.effect.split(", "))
        return next(giving, "")

    @property
    def refusal(self) -> Rationale:
        """Why it is refused."""
        return rationale(RationaleCode.REFUSED, rule=self.denied_by, text=self.denial)

    def shown(self, name: str) -> VerdictView:
        """Show the verdict on the task of that name, assuming that nobody has approved anything."""
        outcome, rules = "allowed", tuple(rule for rule in (self.allowed_by,) if rule is not None)
        reason = rationale(RationaleCode.PERMITTED, rule=self.allowed_by)
        if self.demanded is not None:
            outcome, rules = "held", self.demanded.rules
            reason = rationale(RationaleCode.NEEDS_APPROVAL, rules=rules)
        if self.denied_by is not None:
            outcome, rules, reason = "denied", (self.denied_by,), self.refusal
        return VerdictView.of(
            self,
            name=name,
            verdict=outcome,
            reason=reason.text,
            rules=rules,
            approval=None if self.demanded is None else ApprovalView.of(self.demanded),
            excluded_specialists=tuple(sorted(self.excluded)),
        )


class Policy:
    """An operator's rules. Raises BadCondition for a rule with an invalid condition."""

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self.rules = tuple(rules)
        self.hash = policy_hash(rules) if rules else None
        """Hash of the rules; None if there are none."""
        self._conditions = {rule.name: Condition(rule.when) for rule in rules if rule.when is not None}

    def mentions(self, name: str) -> bool:
        """Return whether any rule uses that value, such as ``spent``."""
        return any(condition.mentions(name) for condition in self._conditions.values())

    @property
    def may_take_long(self) -> bool:
        """True if evaluating the rules may take long because a condition is evaluated in a separate process."""
        return not all(condition.is_small for condition in self._conditions.values())

    def judge(self, facts: Facts, allowance: Allowance | None = None) -> Verdict:
        """Return the rules' verdict on the task. The same facts always give the same verdict, as long as the cost
        limits are not exceeded. allowance: for expensive conditions, see ``may_take_long``; None for that of a task.

        A rule whose condition cannot be evaluated requires approval, unless its only effect is to allow the task: a
        fault in a rule must not let anything happen unsupervised.
        """
        verdict, context = Verdict(risk=facts.risk), context_of(facts.values, allowance) if self._conditions else None
        for rule in self.rules:
            condition = self._conditions.get(rule.name)
            try:
                applies = condition is None or (context is not None and _applies(condition, facts, context))
            except Unevaluated as fault:
                verdict = _undecided(verdict, rule, str(fault))
                continue
            if not applies:
                verdict = _checked(verdict, PolicyCheck(rule=rule.name, allowed=True, matched=False))
                continue
            verdict = _applied(verdict, rule)
            if verdict.allowed_by is not None or verdict.denied_by is not None:
                break
            if rule.risk is not None and context is not None:
                context = context_of(replace(facts, risk=verdict.risk).values, context.allowance)
        return verdict


def _applies(condition: Condition, facts: Facts, context: Context) -> bool:
    """Return whether the rule applies. Raises Unevaluated."""
    if len(facts.spec.instructions) > MAX_TEXT and condition.mentions("task.text"):
        raise Unevaluated(f"its text has more than {MAX_TEXT:,} characters")
    if len(facts.paths) > MAX_PATHS and condition.mentions("task.paths"):
        raise Unevaluated(f"its text names more than {MAX_PATHS} paths")
    return condition.applies(context)


def with_built_in(
    verdict: Verdict, assessment: Assessment, *, reviews: bool, by_model: str = "", asks: bool = False
) -> Verdict:
    """Return the verdict with the built-in rules applied. Those of risk hold unless a written rule allows the task: a
    request for harm is refused, and a high risk requires approval.

    assessment: of the text. If the text cannot be assessed by its words, that is recorded, but stops the task only if
    a rule does. reviews: True if these rules are in force. by_model: what a model says about the risk, if it assessed
    it. asks: True if the task itself demands approval.
    """
    verdict = _by_risk(verdict, assessment, by_model, reviews=reviews)
    if asks and verdict.denied_by is None:
        return _demanding(verdict, Demanded((BEFORE_FIRST_RUN,)), "the task itself demands it")
    return verdict


def _by_risk(verdict: Verdict, assessment: Assessment, by_model: str, *, reviews: bool) -> Verdict:
    words = by_model or assessment.words
    if assessment.unread and not by_model and verdict.risk is Risk.MEDIUM:
        detail = f"{words}, so its risk is taken to be medium"
        verdict = _checked(verdict, PolicyCheck(rule=NOT_READ, allowed=True, effect="risk", detail=detail))
    if not reviews or verdict.allowed_by is not None or verdict.denied_by is not None:
        return verdict
    if assessment.harmful:
        message = "its text asks for what would do harm" + (f": {words}" if words else "")
        verdict = _checked(verdict, PolicyCheck(rule="harmful", allowed=False, effect="deny", detail=message))
        return replace(verdict, denied_by="harmful", denial=message)
    if verdict.risk is Risk.HIGH:
        return _demanding(verdict, Demanded(("high-risk",)), words or None)
    return verdict


def _checked(verdict: Verdict, check: PolicyCheck) -> Verdict:
    return replace(verdict, checks=(*verdict.checks, check))


def _demanding(verdict: Verdict, demanded: Demanded, why: str | None, *, matched: bool | None = True) -> Verdict:
    check = PolicyCheck(rule=demanded.rules[0], allowed=False, matched=matched, effect="approve", detail=why)
    all_ = demanded if verdict.demanded is None else verdict.demanded.joined(demanded)
    return replace(_checked(verdict, check), demanded=all_)


def _undecided(verdict: Verdict, rule: Rule, fault: str) -> Verdict:
    detail = f"its condition could not be evaluated: {fault}"
    if rule.effects == ("allow",):
        check = PolicyCheck(rule=rule.name, allowed=True, matched=None, detail=detail)
        return _checked(verdict, check)
    by = () if rule.approve is None or not rule.approve.by else (rule.approve.by,)
    return _demanding(verdict, Demanded((rule.name,), by), detail, matched=None)


def _applied(verdict: Verdict, rule: Rule) -> Verdict:
    """The verdict with the rule's demands added."""
    effects = ", ".join(rule.effects)
    if rule.deny is not None:
        check = PolicyCheck(rule=rule.name, allowed=False, effect=effects, detail=rule.deny)
        return replace(_checked(verdict, check), denied_by=rule.name, denial=rule.deny)
    contradiction = _contradiction(verdict, rule)
    if contradiction is not None:
        check = PolicyCheck(rule=rule.name, allowed=False, effect=effects, detail=contradiction)
        return replace(_checked(verdict, check), denied_by=rule.name, denial=contradiction)
    approving = rule.approve is not None
    verdict = _checked(verdict, PolicyCheck(rule=rule.name, allowed=not approving, effect=effects))
    demanded = verdict.demanded
    if rule.approve is not None:
        by = (rule.approve.by,) if rule.approve.by else ()
        own = Demanded((rule.name,), by, rule.approve.within)
        demanded = own if demanded is None else demanded.joined(own)
    risk = verdict.risk if rule.risk is None else max(verdict.risk, rule.risk, key=HARM.__getitem__)
    return replace(
        verdict,
        risk=risk,
        demanded=demanded,
        allowed_by=rule.name if rule.allow else None,
        specialist=rule.specialist or verdict.specialist,
        excluded=verdict.excluded | set(rule.exclude_specialists),
        requires=tuple(dict.fromkeys((*verdict.requires, *rule.requires))),
        constraints=_narrowed(verdict.constraints, rule),
    )


def _contradiction(verdict: Verdict, rule: Rule) -> str | None:
    """Why applying this rule as well would leave nothing; None if something is left. The text names no specialist, as
    it is stored and shown to everybody who sees the task."""
    specialist = rule.specialist or verdict.specialist
    if verdict.specialist is not None and rule.specialist not in (None, verdict.specialist):
        return "an earlier rule gives it to another specialist than this one"
    if specialist is not None and specialist in verdict.excluded | set(rule.exclude_specialists):
        return "one rule gives it to a specialist whom another one excludes"
    if rule.tier is not None:
        floor, ceiling = _bounds(verdict.constraints, rule)
        if floor is not None and ceiling is not None and TIERS.index(floor) > TIERS.index(ceiling):
            return f"an earlier rule and this one leave no tier: floor {floor}, ceiling {ceiling}"
    left = _narrowed(verdict.constraints, rule)
    for what, lists, excluded in (
        ("agent", left.one_of, left.excluded_agents),
        ("host", left.hosts, left.excluded_hosts),
    ):
        # Of two lists, only the configured agents tell whether they have one in common, as an agent may also be listed
        # by its kind.
        if (none := next((listed for listed in lists if set(listed) <= set(excluded)), None)) is not None:
            return f"an earlier rule and this one leave no {what}: only {' or '.join(none)}, which is excluded"
    return None


def _bounds(constraints: Constraints, rule: Rule) -> tuple[Tier | None, Tier | None]:
    """The strongest floor and the weakest ceiling of both."""
    own = rule.tier or TierBounds()
    floors = [floor for floor in (constraints.tier_floor, own.floor) if floor is not None]
    ceilings = [ceiling for ceiling in (constraints.tier_ceiling, own.ceiling) if ceiling is not None]
    return max(floors, key=TIERS.index, default=None), min(ceilings, key=TIERS.index, default=None)


def _narrowed(constraints: Constraints, rule: Rule) -> Constraints:
    """The constraints that satisfy both."""
    floor, ceiling = _bounds(constraints, rule)
    tools = constraints.tools
    if rule.tools is not None:
        tools = rule.tools.limits if tools is None else tools.within(rule.tools.limits)
    reach = nearest(constraints.reach, rule.reach)
    cap = () if rule.concurrency is None else (RuleCap(rule=rule.name, most=rule.concurrency),)
    return constraints.model_copy(
        update={
            "tier_floor": floor,
            "tier_ceiling": ceiling,
            "one_of": (*constraints.one_of, rule.agents) if rule.agents else constraints.one_of,
            "excluded_agents": tuple(dict.fromkeys((*constraints.excluded_agents, *rule.exclude_agents))),
            "hosts": (*constraints.hosts, rule.hosts) if rule.hosts else constraints.hosts,
            "excluded_hosts": tuple(dict.fromkeys((*constraints.excluded_hosts, *rule.exclude_hosts))),
            "tools": tools,
            "isolated": constraints.isolated or rule.isolation is not None,
            "reach": reach,
            "reach_rule": constraints.reach_rule if reach is constraints.reach else rule.name,
            "caps": (*constraints.caps, *cap),
        }
    )
