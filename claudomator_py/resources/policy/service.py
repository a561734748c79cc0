"""The policy: showing it, trying it, and what it leaves to people."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal

from sqlalchemy import Connection

from claudomator_py.dispatch.policing import IN_FORCE, try_rules
from claudomator_py.domain.budget import DayBudget, Spending
from claudomator_py.domain.errors import Invalid
from claudomator_py.domain.lifecycle import InputKind
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.requests import TaskFilter
from claudomator_py.domain.units import DAY_MS
from claudomator_py.domain.verdict import VerdictView
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.policy.facts import Facts
from claudomator_py.policy.rule import BUILT_IN, Rule
from claudomator_py.policy.verdict import Policy
from claudomator_py.ports import Clock
from claudomator_py.resources.concealment import SOMEBODY
from claudomator_py.resources.policy import (
    ApprovalsView,
    HeldTaskView,
    PolicyCalls,
    PolicyView,
    RuleView,
    SettledApprovalView,
)
from claudomator_py.resources.routing.service import verdict_view
from claudomator_py.resources.session import Service, find_task, reading
from claudomator_py.resources.specialists import SpecialistView
from claudomator_py.resources.specialists.service import view as view_of
from claudomator_py.scheduler.records import DecisionKind, PolicyRecord, PolicyVerdict
from claudomator_py.schema.taskfile import parse_task_file
from claudomator_py.store import decision_log, decision_rows, events, reads, remembered, specialist_rows
from claudomator_py.store.stored_json import readable
from claudomator_py.store.tables import Task
from claudomator_py.tasks.inputs import current_request, may_approve, request_of_older_version, specialists_for
from claudomator_py.values import dataclass, regex

_LITERAL = regex(r"""(["'])(.*?)\1""")
"""A string in a condition."""
SAMPLE = 5_000
"""The newest decisions that are counted."""
MAX_HELD = 200
"""The newest tasks that need input that are examined."""
_EVENTS = 20_000
"""The newest events that are examined."""
_MAX_SETTLED = 50
_OUTCOMES: Mapping[str, Literal["given", "refused", "expired"]] = {
    "approved": "given",
    "rejected": "refused",
    "state": "expired",
}
_WHY = {"approved": "why", "rejected": "reason"}
"""The key under which each kind of event has the person's words."""


def _condition(when: str | None, hidden: Collection[str]) -> str | None:
    """Return the condition without the names of these specialists. Any string in it may be such a name."""
    if when is None or not hidden:
        return when
    return _LITERAL.sub(lambda match: f"{match[1]}{SOMEBODY}{match[1]}" if match[2] in hidden else match[0], when)


def _without(rule: Rule, hidden: Collection[str]) -> Rule:
    """Return the rule with a placeholder for each of these specialists."""
    names = tuple(SOMEBODY if name in hidden else name for name in rule.exclude_specialists)
    return rule.model_copy(
        update={
            "specialist": SOMEBODY if rule.specialist in hidden else rule.specialist,
            "exclude_specialists": names,
        }
    )


def _effects(rule: Rule) -> str:
    """Return what it demands, as written in the configuration."""
    fields = rule.model_dump(mode="json", exclude_defaults=True, exclude={"name", "when"})
    return "; ".join(f"{name}: {_written(value)}" for name, value in fields.items())


def _written(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_written(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    return {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def _held(task: Task, by: Principal) -> HeldTaskView | None:
    asked = current_request(task) or request_of_older_version(task)
    if asked.kind is not InputKind.APPROVAL or asked.run_id is not None:
        return None
    return HeldTaskView.of(
        asked,
        task_id=task.id,
        task_name=task.name,
        version=task.version,
        text=asked.words,
        since=asked.since_ms,
        until=asked.until_ms,
        allowed=may_approve(asked, by),
    )


def _resolved(connection: Connection, by: Principal) -> tuple[SettledApprovalView, ...]:
    return tuple(
        SettledApprovalView.of(
            approval,
            outcome=_OUTCOMES[approval.kind],
            by=None if approval.kind == "state" else approval.by,
            why=approval.data.get(_WHY[approval.kind]) if approval.kind in _WHY else None,
            rules=tuple(approval.data.get("rules") or approval.asks.get("rules") or ()),
            at=approval.at_ms,
        )
        for approval in events.resolved_inputs(connection, by, sample=_EVENTS, limit=_MAX_SETTLED)
        if approval.kind != "state" or approval.asks.get("kind") == InputKind.APPROVAL.value
    )


_AS_FILE = "task.yaml"
"""The name under which a text is parsed: as YAML, which includes JSON. A task without a name is called after it."""


@dataclass(eq=False, repr=False)
class PolicyService(Service):
    """The service of the policy. Every method may raise ``domain.errors.ServiceError``."""

    in_force: Callable[[], Policy]
    """Returns the present rules."""
    clock: Clock
    reviews: Callable[[], bool]
    """Returns whether tasks are routed, and so the built-in rules apply."""
    limits: Callable[[], DayBudget]
    """Returns the daily budget."""
    registry: AgentRegistry

    @reading(PolicyCalls.policy)
    def view(self, connection: Connection, *, days: int = 30) -> PolicyView:
        """Return the rules in force, and how often each applied in the last days."""
        policy = self.in_force()
        applied, faults, last, verdicts = Counter[str](), Counter[str](), dict[str, int](), Counter[PolicyVerdict]()
        for decision in decision_log.newest_of_kind(
            connection, DecisionKind.POLICY, self.clock() - days * DAY_MS, SAMPLE, self._by
        ):
            record = readable(PolicyRecord, decision.data)
            if record is None:
                continue
            verdicts[record.verdict] += 1
            for check in record.policy_checks:
                if check.matched:
                    applied[check.rule] += 1
                    last.setdefault(check.rule, decision.at_ms)
                faults[check.rule] += check.matched is None
        known = remembered.find(connection, IN_FORCE)
        named: set[str | None] = set()
        for rule in policy.rules:
            named |= {
                rule.specialist,
                *rule.exclude_specialists,
                *(match[1] for match in _LITERAL.findall(rule.when or "")),
            }
        hidden = specialist_rows.hidden(connection, named, self._by)

        def rule_counts(name: str) -> dict[str, Any]:
            return {"applied": applied[name], "faults": faults[name], "last": last.get(name)}

        return PolicyView(
            hash=policy.hash,
            since=known.get("at_ms") if known.get("hash") == policy.hash else None,
            days=days,
            decisions=sum(verdicts.values()) - verdicts[PolicyVerdict.APPROVED],
            denied=verdicts[PolicyVerdict.DENIED],
            held=verdicts[PolicyVerdict.HELD],
            rules=tuple(
                RuleView.of(
                    rule,
                    when=_condition(rule.when, hidden),
                    says=_effects(_without(rule, hidden)),
                    **rule_counts(rule.name),
                )
                for rule in policy.rules
            ),
            built_in=tuple(
                RuleView.model_validate({"name": name, "effects": (effect,), **rule_counts(name)})
                for name, effect in BUILT_IN.items()
                if self.reviews()
            ),
        )

    def test(self, text: str) -> tuple[VerdictView, ...]:
        """Return what the rules in force say about the tasks in a task file with that text, as if the caller had put it
        in the inbox and nothing had been spent today; nothing is stored. Raises Invalid."""
        parsed = parse_task_file(text.encode(), _AS_FILE)
        if parsed.problems:
            raise Invalid.of(parsed.problems)
        rules, now_ms, limits, reviews = self.in_force(), self.clock(), self.limits(), self.reviews()
        visible = frozenset(self._read(lambda connection: specialist_rows.ids_seen(connection, self._by)))
        verdicts = (
            try_rules(
                rules,
                Facts(spec, self._by, "file", spec.specialist, spec.skill),
                limits,
                Spending(),
                now_ms,
                self.registry,
                reviews=reviews,
                share=len(parsed.items),
            )
            for spec in parsed.items
        )
        return tuple(verdict_view(verdict, visible) for verdict in verdicts)

    @reading()
    def approvals(self, connection: Connection) -> ApprovalsView:
        """Return pending and settled approvals."""
        asking = reads.page(connection, TaskFilter(state="NEEDS_INPUT"), None, MAX_HELD, self._by)
        waiting = [held for held in (_held(task, self._by) for task in asking) if held is not None]
        waiting.sort(key=lambda held: held.since)
        return ApprovalsView(waiting=tuple(waiting), settled=_resolved(connection, self._by))

    @reading()
    def candidates(self, connection: Connection, ref: str, limit: int) -> tuple[SpecialistView, ...]:
        """Return the specialists the caller may give the task to, by id, at most ``limit``; none if nothing is routed.
        They may work for the task's creator, and no rule that applies to the task excludes them, directly or by naming
        another."""
        if not self.reviews():
            return ()
        rules = self.in_force()
        task = find_task(connection, ref, self._by)
        open_, _ = specialists_for(connection, task, self._by)
        decision = decision_rows.latest(connection, task.id, DecisionKind.POLICY, task.generation)
        record = None if decision is None else readable(PolicyRecord, decision.data)
        checks = () if record is None else record.policy_checks
        applied = {check.rule for check in checks if check.matched}
        for rule in rules.rules:
            if rule.name in applied:
                open_ -= set(rule.exclude_specialists)
                open_ &= open_ if rule.specialist is None else {rule.specialist}
        return tuple(
            view_of(row, self._by) for row in specialist_rows.seen(connection, self._by, ids=sorted(open_)[:limit])
        )
