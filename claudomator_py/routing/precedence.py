"""Who does a task where somebody or something has said so, and whose word counts first; pure."""

from claudomator_py.domain.rationale import RationaleCode, rationale
from claudomator_py.routing.ranking import Needs, RoutingRules, to
from claudomator_py.scheduler.decision import HandoffRecord, Route, SpecialistRecord
from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class Assignments:
    """To which specialist a task was given, by whom; None: by nobody of that kind. The first of them counts."""

    by_rule: str | None = None
    rule: str = ""
    """The rule of the policy that gives it to them."""
    by_hand: str | None = None
    """What a person said who was asked which specialist is meant, or approved the task for one."""
    handed: HandoffRecord | None = None
    """How it was handed on last in this generation."""
    named: str | None = None
    """By its file."""
    addressed: str | None = None
    """By its text, with ``@``."""
    before: str | None = None
    """Who had the task that it continues."""


def explicit_choice(
    claims: Assignments, seen: frozenset[str], needs: Needs, rules: RoutingRules, skill: str | None
) -> SpecialistRecord | None:
    """Return who does it; a person is asked where they are gone, or excluded. None: nobody has said who.

    seen: the specialists that exist for whoever made it. skill: that it asks for.
    """
    record = _given(claims, seen, needs, rules, skill)
    if record is None or record.specialist not in needs.excluded:
        return record
    return _asking(RationaleCode.EXCLUDED, record.specialist, rules)


def _given(
    claims: Assignments, seen: frozenset[str], needs: Needs, rules: RoutingRules, skill: str | None
) -> SpecialistRecord | None:
    versions = rules.versions
    if claims.by_rule is not None:
        if claims.by_rule not in seen:
            return _asking(RationaleCode.GONE, claims.by_rule, rules)
        why = rationale(RationaleCode.GIVEN_BY_RULE, rule=claims.rule, specialist=claims.by_rule)
        return SpecialistRecord(
            reason=why, route=Route.SPECIALIST, specialist=claims.by_rule, skill=None, versions=versions
        )
    if claims.by_hand is not None and claims.by_hand.strip() in seen:
        return to(RationaleCode.BY_HAND, claims.by_hand.strip(), versions, skill)
    if claims.handed is not None:
        return _handed_on(claims.handed, seen, needs, rules)
    if claims.named is not None:
        if claims.named not in seen:
            return _asking(RationaleCode.NAMED_GONE, claims.named, rules)
        return to(RationaleCode.NAMED, claims.named, versions, skill)
    if claims.addressed is not None:
        return to(RationaleCode.MENTIONED, claims.addressed, versions, skill)
    if claims.before in seen:
        return to(RationaleCode.CONTINUED, claims.before, versions, skill)
    return None


def _handed_on(handed: HandoffRecord, seen: frozenset[str], needs: Needs, rules: RoutingRules) -> SpecialistRecord:
    """Who continues with a task that was handed on, unless they have gone meanwhile.

    By default the default specialist does; nobody in particular where there is none, or it is the one that failed.
    """
    route, who = Route.SPECIALIST, handed.specialist
    if who is None:
        default, open_ = rules.default, seen - needs.excluded
        route, who = Route.DEFAULT, default if default != handed.by and default in open_ else None
    elif who not in seen:
        return _asking(RationaleCode.GONE, who, rules)
    return SpecialistRecord(
        reason=handed.reason, risk=handed.risk, route=route, specialist=who, versions=rules.versions
    )


def _asking(code: RationaleCode, specialist: str | None, rules: RoutingRules) -> SpecialistRecord:
    """A person is asked. code: why; it names the specialist."""
    why = rationale(code, specialist=specialist)
    return SpecialistRecord(reason=why, route=Route.CLARIFY, specialist=None, versions=rules.versions)
