"""The policy's verdicts on tasks, before any model sees them, and on what people answer."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from claudomator_py.dispatch.spending import Budgets
from claudomator_py.domain.agent import AgentSpec, reads_task
from claudomator_py.domain.budget import DayBudget, Spending
from claudomator_py.domain.channel import FROM_OUTSIDE, Incoming, MessageRole
from claudomator_py.domain.decision import PolicyCheck, Versions
from claudomator_py.domain.errors import Forbidden
from claudomator_py.domain.principal import INBOX, OPERATOR, Principal, Role
from claudomator_py.domain.rationale import RationaleCode, rationale
from claudomator_py.domain.routing import HARM, Assessment, Constraints, Risk
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import MINUTE_MS
from claudomator_py.domain.verdict import VerdictView
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.policy.expression import Allowance
from claudomator_py.policy.facts import WEBHOOK, Facts, paths_in
from claudomator_py.policy.rule import MODEL_RISK
from claudomator_py.policy.verdict import Policy, Verdict, with_built_in
from claudomator_py.ports import Clock
from claudomator_py.risk import assess
from claudomator_py.routing.role import done_by
from claudomator_py.scheduler.records import DecisionKind, PolicyRecord, PolicyVerdict, Route
from claudomator_py.schema.zones import local_zone
from claudomator_py.store import access_rows, channel_rows, decision_rows, events, queue, remembered, task_rows
from claudomator_py.store.events import EventQuery
from claudomator_py.store.tables import Channel, Task
from claudomator_py.tasks.decisions import approved_rules
from claudomator_py.tasks.handing_on import accepted_handoffs
from claudomator_py.tasks.inputs import refuse_others
from claudomator_py.values import dataclass

VERDICT_TTL_MS = MINUTE_MS
"""Lifetime of a verdict that depends on the time or on spending."""
_MAX_CHANGES = 50
"""Changes of a task's content that are searched for the author of its current content."""
STOPS = {PolicyVerdict.HELD: Route.HUMAN_REVIEW, PolicyVerdict.DENIED: Route.REJECT}
"""The route of a task by the verdict that stops it."""
IN_FORCE = "policy"
"""Key of the remembered rules that queued tasks were judged by: their ``hash``, and ``at_ms``, since when, in epoch
milliseconds."""
_MAX_SHORT = 20_000
"""Characters; see ``is_long``."""


def is_long(spec: TaskSpec) -> bool:
    """Return whether the task contains so much text that judging and comparing it takes noticeable processor time."""
    lists = (spec.tags, spec.add_dirs, spec.permissions.allowed_tools)
    return max(len(spec.instructions), sum(len(entry) for entries in lists for entry in entries)) > _MAX_SHORT


@dataclass(frozen=True, slots=True)
class Judged:
    """A task with the policy's verdict on it."""

    facts: Facts
    verdict: Verdict
    assessment: Assessment = Assessment(Risk.LOW)
    """What its words say, if they are read as instructions."""
    approved: frozenset[str] = frozenset()
    """The rules whose approval a person has given."""
    raised_by: str | None = None
    """The model that assessed a higher risk than the words do."""
    unanswered_by: str | None = None
    """The model that was asked for the risk and gave no valid answer."""
    asks: bool = False
    """Whether the task itself requires approval before its first run, and has none."""

    @property
    def unread(self) -> bool:
        """Whether too few words of the text are known to assess its risk, and no model has assessed it."""
        return self.assessment.unread and self.raised_by is None

    @property
    def stopped(self) -> bool:
        """Whether the task must not continue now."""
        return self.outcome is not PolicyVerdict.ALLOWED

    @property
    def outcome(self) -> PolicyVerdict:
        """The verdict that applies now, approvals included."""
        if self.verdict.denied_by is not None:
            return PolicyVerdict.DENIED
        return PolicyVerdict.HELD if self.held else PolicyVerdict.ALLOWED

    @property
    def held(self) -> bool:
        """Whether an approval is missing."""
        demanded = self.verdict.demanded
        return demanded is not None and not self.approved.issuperset(demanded.rules)


class Policing:
    """Judges tasks, answers and messages by the policy.

    reviews: whether the built-in rules are in force, which refuse requests for harm and require approval of high risk.
    """

    def __init__(self, policy: Policy, budgets: Budgets, clock: Clock, *, reviews: bool) -> None:
        self.policy = policy
        self._clock = clock
        self._budgets = budgets
        self._reviews = reviews
        self._uses_spending = policy.mentions("spent")
        self._uses_actor = policy.mentions("actor") or policy.mentions("task.author")
        self.is_volatile = self._uses_spending or policy.mentions("now")
        """Whether verdicts depend on the time or on spending."""
        self._by_specialist = policy.mentions("task.specialist") or policy.mentions("task.skill")
        self.is_up_to_date = False
        """Whether no queued task was judged by other rules."""

    @property
    def has_rules(self) -> bool:
        """Whether any rule is configured."""
        return bool(self.policy.rules)

    def is_in_force(self, connection: Connection) -> bool:
        """Return whether these are the rules by which queued tasks are judged."""
        return bool(remembered.find(connection, IN_FORCE).get("hash") == self.policy.hash)

    def rejudge_queued(self, connection: Connection) -> int:
        """Have queued tasks judged by these rules, and return their number."""
        remembered.keep(connection, IN_FORCE, {"hash": self.policy.hash, "at_ms": self._clock()})
        return queue.route_again(connection)

    def judge(self, connection: Connection, task: Task, spec: TaskSpec, *, reads: bool) -> Judged:
        """Return the verdict on a queued task, including the words of the run that handed it on, if any.

        reads: whether an agent reads the text as instructions. If none does, the text is not judged.
        """
        spec = _with_handoff(connection, task, spec)
        assessment = assess(spec.instructions) if reads else Assessment(Risk.LOW)
        actor, role = self._actor(connection, task.creator, task.organisation), None
        author = _content_author(connection, task) if self._uses_actor and task.revision > 1 else None
        if author not in (None, task.creator):
            actor, role = self._author(connection, actor, author)
        if task.channel is not None and self._uses_actor:
            asked = channel_rows.question_behind(connection, task.channel, task.id)
            actor, role = self._author(connection, actor, None if asked is None else asked.author)
        facts = Facts(
            spec, actor, task.source, spec.specialist, spec.skill, assessment.risk, role=role, creator=task.creator
        )
        facts = self._local(connection, facts) if self.has_rules else facts
        judged = Judged(facts, Verdict(), assessment, asks=spec.approval and task.approved_ms is None)
        return _with_approval(connection, task, self._judged(judged))

    def judge_answer(self, connection: Connection, task: Task, text: str, by: Principal) -> PolicyRecord | None:
        """Judge a person's answer to a task's question, compared with the task without it.

        Return the approval that the answer gives, or None if it requires none. Raises Forbidden if a rule refuses it or
        requires somebody else's approval.
        """
        spec = task_rows.spec_of(connection, task.id, task.revision)
        before, after = (self._verdict(connection, task, each, by) for each in (spec, spec.extended(text)))
        if after.denied_by is not None and before.denied_by is None:
            raise Forbidden(f"The policy refuses the answer ({after.refusal.text}).", remedy="Reword the answer.")
        if after.demanded is None:
            return None
        known = approved_rules(connection, task) | set(() if before.demanded is None else before.demanded.rules)
        rules = tuple(rule for rule in after.demanded.rules if rule not in known)
        if not rules:
            return None
        refuse_others(after.demanded.by, by)
        return PolicyRecord(
            reason=rationale(RationaleCode.APPROVED, principal=by.id, rules=rules),
            risk=after.risk,
            verdict=PolicyVerdict.APPROVED,
            rules=rules,
            approved=tuple(sorted({*approved_rules(connection, task), *rules})),
            approved_by=by.id,
        )

    def _verdict(self, connection: Connection, task: Task, spec: TaskSpec, by: Principal) -> Verdict:
        """Return the verdict on the task with that spec, as if the principal had submitted it."""
        assessment = assess(spec.instructions)
        facts = Facts(spec, by, task.source, task.specialist, task.skill, assessment.risk, creator=task.creator)
        verdict = self.policy.judge(self._local(connection, facts), Allowance.urgent())
        return with_built_in(verdict, assessment, reviews=self._reviews)

    def judge_message(self, connection: Connection, channel: Channel, message: Incoming) -> tuple[PolicyCheck, ...]:
        """Return the checks by which the policy refuses a message, judged like a task with its text; empty if it does
        not refuse it. Approvals are required of the tasks that answer it, not of the message."""
        if not self.has_rules or not message.content.strip():
            return ()
        spec = TaskSpec(name=channel.name, instructions=message.content, tags=("channel",))
        actor, role = self._actor(connection, channel.creator, channel.organisation), None
        if message.role is MessageRole.USER and self._uses_actor:
            actor, role = self._author(connection, actor, message.author)
        facts = Facts(spec, actor, "channel", role=role, creator=channel.creator)
        verdict = self.policy.judge(self._local(connection, facts), Allowance.urgent())
        return verdict.checks if verdict.denied_by is not None else ()

    def judge_specialist(self, judged: Judged, specialist: str | None, skill: str | None) -> Judged:
        """Return the verdict now that the specialist and the skill are known."""
        if not self._by_specialist or (judged.facts.specialist, judged.facts.skill) == (specialist, skill):
            return judged
        return self._judged(replace(judged, facts=replace(judged.facts, specialist=specialist, skill=skill)))

    def judge_risk(self, connection: Connection, task: Task, judged: Judged, risk: Risk, by: str) -> Judged:
        """Return the verdict with the risk that a model assessed, if that is higher than by the words. by: the model's
        name."""
        more = HARM[risk] - HARM[judged.facts.risk]
        if more < 0 or (more == 0 and not judged.unread):
            return judged
        facts = replace(judged.facts, risk=risk)
        judged = self._judged(replace(judged, facts=facts, raised_by=by))
        return _with_approval(connection, task, judged)

    def judge_unanswered(self, judged: Judged, by: str) -> Judged:
        """Return the same verdict with a note that the model gave no valid answer. by: the model's name."""
        return replace(self._judged(replace(judged, unanswered_by=by)), approved=judged.approved)

    def is_stale(self, connection: Connection, task: Task) -> bool:
        """Return whether the latest verdict on a queued task has outlived ``VERDICT_TTL_MS``. A younger one holds, so
        that a task is not judged again and again instead of being started."""
        latest = decision_rows.latest(connection, task.id, DecisionKind.POLICY, task.generation)
        return latest is not None and self._clock() - latest.at_ms >= VERDICT_TTL_MS

    def has_changed(self, connection: Connection, task: Task, judged: Judged) -> bool:
        """Return whether the verdict, or the specialist that it requires, differs from the latest stored one."""
        latest = decision_rows.latest(connection, task.id, DecisionKind.POLICY, task.generation)
        verdict = judged.verdict
        before = Constraints() if latest is None else PolicyRecord.model_validate(latest.data).constraints
        other = verdict.specialist is not None and verdict.specialist != task.specialist
        return judged.stopped or verdict.constraints != before or other or task.specialist in verdict.excluded

    def _judged(self, judged: Judged) -> Judged:
        verdict, by_model, detail = self.policy.judge(judged.facts), "", None
        if judged.raised_by is not None:
            by_model = detail = f"{judged.raised_by} judges its risk {judged.facts.risk}"
        elif judged.unanswered_by is not None:
            detail = f"{judged.unanswered_by} has not assessed its risk, so only its words and rules count"
        if detail is not None:
            check = PolicyCheck(rule=MODEL_RISK, allowed=True, effect="risk", detail=detail)
            verdict = replace(verdict, checks=(check, *verdict.checks))
        verdict = with_built_in(verdict, judged.assessment, reviews=self._reviews, by_model=by_model, asks=judged.asks)
        return replace(judged, verdict=verdict)

    def _local(self, connection: Connection, facts: Facts) -> Facts:
        """Return the facts with what is known on this machine now. Spending is looked up only if a rule depends on
        it."""
        now_ms = self._clock()
        spent = self._budgets.spent(connection, now_ms).total if self._uses_spending else Spending()
        return local_facts(facts, self._budgets.total, spent, now_ms)

    def _actor(self, connection: Connection, creator: str, organisation: str | None) -> Principal:
        """Return the creator with their current role: READ if their token was revoked or deleted."""
        local = {principal.id: principal for principal in (OPERATOR, INBOX)}
        if creator in local or not self._uses_actor:
            role = local[creator].role if creator in local else Role.OPERATE
            return Principal(creator, role, organisation)
        token = access_rows.token_named(connection, creator)
        role = Role.READ if token is None or token.revoked_ms is not None else Role(token.role)
        return Principal(creator, role, organisation)

    def _author(self, connection: Connection, creator: Principal, author: str | None) -> tuple[Principal, str]:
        """Return the author of words in the creator's channel or task, and the lesser role of the two.

        The permission to write there does not grant the creator's role. author: None if no longer known.
        """
        if author is None or author.startswith(FROM_OUTSIDE):
            return Principal(author or creator.id, Role.READ, creator.organisation), WEBHOOK
        writer = self._actor(connection, author, creator.organisation)
        return writer, (writer.role if creator.role.permits(writer.role) else creator.role).value

    def record(self, judged: Judged, versions: Versions) -> PolicyRecord | None:
        """Return the record of the verdict, or None if there are no rules and nothing stops the task."""
        verdict = judged.verdict
        if not self.has_rules and not judged.stopped:
            return None
        reason = rationale(RationaleCode.PERMITTED, rule=verdict.allowed_by)
        rules: tuple[str, ...] = () if verdict.allowed_by is None else (verdict.allowed_by,)
        if judged.held and verdict.demanded is not None:
            rules = verdict.demanded.rules
            reason = rationale(RationaleCode.NEEDS_APPROVAL, rules=rules)
        if verdict.denied_by is not None:
            rules, reason = (verdict.denied_by,), verdict.refusal
        return PolicyRecord(
            reason=reason,
            risk=verdict.risk,
            policy_checks=verdict.checks,
            versions=versions.model_copy(update={"policy": self.policy.hash}),
            verdict=judged.outcome,
            route=STOPS.get(judged.outcome),
            rules=rules,
            approved=tuple(sorted(judged.approved)),
            constraints=verdict.constraints,
        )


def _content_author(connection: Connection, task: Task) -> str | None:
    """Return who wrote the task's current content, or None if nobody has changed it."""
    content = task_rows.revision_of(connection, task.id, task.revision)
    written = content.derived_from or content.revision
    changes = EventQuery(task_id=task.id, kinds=("content_changed",))
    for event in reversed(events.newest(connection, _MAX_CHANGES, changes)):
        if event.data.get("revision") == written:
            return event.by
    return None


def _with_handoff(connection: Connection, task: Task, spec: TaskSpec) -> TaskSpec:
    """Return the task with the words of its last handoff, which are judged like its own."""
    handoffs = accepted_handoffs(connection, task.id, task.generation) if task.seq else []
    if not handoffs:
        return spec
    asked = handoffs[-1].asked
    return spec.extended("\n\n".join(words for words in (asked.reason, asked.done, asked.left) if words))


def _with_approval(connection: Connection, task: Task, judged: Judged) -> Judged:
    """Return the verdict with the approvals that a person has given, if it requires any."""
    if not judged.held:
        return judged
    return replace(judged, approved=approved_rules(connection, task))


def try_rules(
    policy: Policy,
    facts: Facts,
    limits: DayBudget,
    spent: Spending,
    now_ms: int,
    registry: AgentRegistry,
    *,
    reviews: bool,
    share: int = 1,
) -> VerdictView:
    """Return the verdict on a task with those facts, and the agents that it leaves. Stores nothing and counts no
    approval. share: the number of tasks that share the cost limits of one."""
    facts, assessment = judged_by_words(facts, registry.agents)
    verdict = policy.judge(local_facts(facts, limits, spent, now_ms), Allowance.of_task(share))
    verdict = with_built_in(verdict, assessment, reviews=reviews, asks=facts.spec.approval)
    left = verdict.constraints
    lacking = registry.lacking(done_by(facts.spec, None, left), left)
    open_ = [agent.name for agent in registry.agents if left.admits(agent.name, agent.kind)]
    unfit = {name: lacking[name] for name in open_ if name in lacking}
    agents = tuple(name for name in open_ if name not in unfit)
    return verdict.shown(facts.spec.name).model_copy(update={"agents": agents, "unfit": unfit})


def judged_by_words(facts: Facts, agents: Iterable[AgentSpec]) -> tuple[Facts, Assessment]:
    """Return the facts with the risk by the task's words, and the assessment, which is empty if no agent reads the text
    as instructions, see ``Policing.judge``. agents: the configured agents."""
    read = facts.specialist is not None or reads_task(facts.spec.agent.type, agents)
    assessment = assess(facts.spec.instructions if read else "")
    return replace(facts, risk=assessment.risk), assessment


def local_facts(facts: Facts, limits: DayBudget, spent: Spending, now_ms: int) -> Facts:
    """Return the facts with what is known on this machine: resolved paths, the time, and spending."""
    spec = facts.spec
    working_dir = "" if spec.working_dir is None else os.path.realpath(Path(spec.working_dir).expanduser())
    return replace(
        facts,
        working_dir=working_dir,
        paths=paths_in(spec.instructions, working_dir, os.path.realpath),
        now_ms=now_ms,
        zone=ZoneInfo(limits.timezone or local_zone()),
        spent=spent,
        limits=limits,
    )
