"""The policy with how often each of its rules applied, and to whom it leaves a task."""

import re
from collections import Counter
from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection

from claudomator_py.dispatch.policing import IN_FORCE
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.units import DAY_MS
from claudomator_py.domain.views.policy import PolicyView, RuleView
from claudomator_py.domain.views.specialists import SpecialistView
from claudomator_py.policy.rule import BUILT_IN, Rule
from claudomator_py.policy.verdict import Policy
from claudomator_py.queries.concealment import SOMEBODY
from claudomator_py.queries.specialists import view as view_of
from claudomator_py.scheduler.decision import DecisionKind, PolicyRecord, PolicyVerdict
from claudomator_py.store import decision_log, decision_rows, remembered, specialist_rows
from claudomator_py.store.tables import Task
from claudomator_py.tasks.inputs import specialists_for

_LITERAL = re.compile(r"""(["'])(.*?)\1""")
"""A text in a condition."""
SAMPLE = 5_000
"""Decisions that are looked at: the newest."""


def view(connection: Connection, policy: Policy, by: Principal, days: int, now_ms: int, *, reviews: bool) -> PolicyView:
    """The rules, with what they said in the last days of the tasks that exist for that principal. reviews: whether
    those that are built in hold."""
    applied, faults, last, said = Counter[str](), Counter[str](), dict[str, int](), Counter[PolicyVerdict]()
    for decision in decision_log.newest_of_kind(connection, DecisionKind.POLICY, now_ms - days * DAY_MS, SAMPLE, by):
        record = PolicyRecord.model_validate(decision.data)
        said[record.verdict] += 1
        for check in record.policy_checks:
            if check.matched:
                applied[check.rule] += 1
                last.setdefault(check.rule, decision.at_ms)
            faults[check.rule] += check.matched is None
    known = remembered.find(connection, IN_FORCE)
    named: set[str | None] = set()
    for rule in policy.rules:
        named |= {rule.specialist, *rule.exclude_specialists, *(one[1] for one in _LITERAL.findall(rule.when or ""))}
    hidden = specialist_rows.hidden(connection, named, by)

    def told(name: str) -> dict[str, Any]:
        return {"applied": applied[name], "faults": faults[name], "last": last.get(name)}

    return PolicyView(
        hash=policy.hash,
        since=known.get("at_ms") if known.get("hash") == policy.hash else None,
        days=days,
        decisions=sum(said.values()) - said[PolicyVerdict.APPROVED],
        denied=said[PolicyVerdict.DENIED],
        held=said[PolicyVerdict.HELD],
        rules=tuple(
            RuleView.of(rule, when=_condition(rule.when, hidden), says=_says(_without(rule, hidden)), **told(rule.name))
            for rule in policy.rules
        ),
        built_in=tuple(
            RuleView.model_validate({"name": name, "effects": (effect,), **told(name)})
            for name, effect in BUILT_IN.items()
            if reviews
        ),
    )


def candidates(
    connection: Connection, task: Task, policy: Policy, by: Principal, limit: int
) -> tuple[SpecialistView, ...]:
    """The specialists to whom that principal may give the task, by id: they may be given work of whoever made it, and
    no rule that applies to it excludes them or gives it to somebody else."""
    open_, _ = specialists_for(connection, task, by)
    said = decision_rows.latest(connection, task.id, DecisionKind.POLICY, task.generation)
    checks = () if said is None else PolicyRecord.model_validate(said.data).policy_checks
    applied = {check.rule for check in checks if check.matched}
    for rule in policy.rules:
        if rule.name in applied:
            open_ -= set(rule.exclude_specialists)
            open_ &= open_ if rule.specialist is None else {rule.specialist}
    return tuple(view_of(one, by) for one in specialist_rows.seen(connection, by, ids=sorted(open_)[:limit]))


def _condition(when: str | None, hidden: Collection[str]) -> str | None:
    """The condition, without the names of these specialists. Any text in it may be one."""
    if when is None or not hidden:
        return when
    return _LITERAL.sub(lambda one: f"{one[1]}{SOMEBODY}{one[1]}" if one[2] in hidden else one[0], when)


def _without(rule: Rule, hidden: Collection[str]) -> Rule:
    """The rule, with somebody else for each of these specialists."""
    names = tuple(SOMEBODY if one in hidden else one for one in rule.exclude_specialists)
    return rule.model_copy(
        update={
            "specialist": SOMEBODY if rule.specialist in hidden else rule.specialist,
            "exclude_specialists": names,
        }
    )


def _says(rule: Rule) -> str:
    """What it demands, as it is written in the configuration."""
    said = rule.model_dump(mode="json", exclude_defaults=True, exclude={"name", "when"})
    return "; ".join(f"{name}: {_written(value)}" for name, value in said.items())


def _written(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_written(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    return {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value)
