"""Decides who does a task for which somebody or something has named a specialist, and which of these takes precedence;
pure."""

from claudomator_py.domain.rationale import RationaleCode, rationale
from claudomator_py.routing.ranking import Needs, RoutingRules, to
from claudomator_py.scheduler.records import HandoffRecord, Route, SpecialistRecord
from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class Assignments:
    """The specialist to which a task was assigned, by source; None if by none of that kind. The first one that is set
    counts."""

    by_rule: str | None = None
    rule: str = ""
    """The policy rule that assigns it."""
    by_hand: str | None = None
    """The answer of a person who was asked which specialist is meant, or approved the task for one."""
    handed: HandoffRecord | None = None
    """The latest handoff in this generation."""
    named: str | None = None
    """Named in the task file."""
    addressed: str | None = None
    """Addressed in the text, with ``@``."""
    before: str | None = None
    """The specialist of the task that this one continues."""

    @property
    def specialist(self) -> str | None:
        """Who was named before anybody worked on it, by whatever source counts first."""
        named = (self.by_rule, self.by_hand, self.named, self.addressed, self.before)
        return next((value for value in named if value is not None), None)


def explicit_choice(
    claims: Assignments, seen: frozenset[str], needs: Needs, rules: RoutingRules, skill: str | None
) -> SpecialistRecord | None:
    """Return who does the task; a person is asked if that specialist is gone or excluded. None if none was named. seen:
    the specialists visible to the task's creator. skill: the one that the task asks for."""
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
    """The specialist that continues a task that was handed off, unless it has since gone. For the default route this is
    the default specialist; none if there is none or it is the one that failed."""
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
    """The decision to ask a person. code: the reason, which names the specialist."""
    why = rationale(code, specialist=specialist)
    return SpecialistRecord(reason=why, route=Route.CLARIFY, specialist=None, versions=rules.versions)
