"""What the policy says of each task, before any model sees it and again on what was answered."""

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from claudomator_py.dispatch.spending import Budgets
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.budget import DayBudget, Spending
from claudomator_py.domain.card import Card
from claudomator_py.domain.decision import PolicyCheck, Versions
from claudomator_py.domain.errors import Forbidden
from claudomator_py.domain.inputs import InputRequest
from claudomator_py.domain.lifecycle import Failing, InputKind
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.principal import INBOX, OPERATOR, Principal, Role
from claudomator_py.domain.rationale import RationaleCode, rationale
from claudomator_py.domain.routing import HARM, Constraints, Risk
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.triage import FROM_OUTSIDE, Incoming, MessageRole
from claudomator_py.domain.units import MINUTE_MS
from claudomator_py.domain.verdict import VerdictView
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.workdirs import local_zone
from claudomator_py.policy.expression import Allowance
from claudomator_py.policy.facts import WEBHOOK, Facts, paths_in
from claudomator_py.policy.rule import MODEL_RISK
from claudomator_py.policy.verdict import Demanded, Policy, Verdict, with_built_in
from claudomator_py.ports import Clock
from claudomator_py.risk.assessment import Assessment, assess
from claudomator_py.routing.role import done_by
from claudomator_py.scheduler.decision import DecisionKind, PolicyRecord, PolicyVerdict, Route
from claudomator_py.schema.agent_settings import reads_task
from claudomator_py.store import access_rows, channel_rows, decision_rows, events, queue, remembered, task_rows
from claudomator_py.store.events import EventQuery
from claudomator_py.store.tables import Channel, Task
from claudomator_py.tasks.decisions import approved_rules, record_policy
from claudomator_py.tasks.handing_on import hops
from claudomator_py.tasks.inputs import refuse_others, specialist_meant
from claudomator_py.tasks.readiness import ask, ready_dependents
from claudomator_py.values import dataclass

GOOD_FOR_MS = MINUTE_MS
"""How long a verdict holds that depends on the time or on what was spent."""
_MAX_CHANGES = 50
"""Of the content of one task: as many are looked through for who made the one that it has."""
_STOPS = {PolicyVerdict.HELD: Route.HUMAN_REVIEW, PolicyVerdict.DENIED: Route.REJECT}
IN_FORCE = "policy"
"""Under which name the ``hash`` of the rules is remembered by which queued tasks were judged, and since when:
``at_ms``, in epoch milliseconds."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What was said of one task."""

    facts: Facts
    verdict: Verdict
    harmful: bool = False
    """Whether its text asks for harm."""
    unread: bool = False
    """Whether hardly a word of its text is known, and no rule or model says more of its risk than that."""
    words: str = ""
    """Those of harm in it."""
    approved: frozenset[str] = frozenset()
    """The rules whose demand for approval a person has met."""
    raised_by: str | None = None
    """The model that judges it to be riskier than its words show."""
    unanswered_by: str | None = None
    """The model that was asked how risky it is, and gave no answer that counts."""

    @property
    def stopped(self) -> bool:
        """Whether it does not continue now."""
        return self.says is not PolicyVerdict.ALLOWED

    @property
    def says(self) -> PolicyVerdict:
        """What follows from it now."""
        if self.verdict.denied_by is not None:
            return PolicyVerdict.DENIED
        return PolicyVerdict.HELD if self.held else PolicyVerdict.ALLOWED

    @property
    def held(self) -> bool:
        """Whether a person has to approve it first."""
        demanded = self.verdict.demanded
        return demanded is not None and not self.approved.issuperset(demanded.rules)


class Policing:
    """Asks the rules about tasks.

    budgets: what was spent, and what may be. reviews: whether what could do much harm is reviewed, and what asks for
    harm refused, without a rule that says so.
    """

    def __init__(self, policy: Policy, budgets: Budgets, clock: Clock, *, reviews: bool) -> None:
        self.policy = policy
        self._clock = clock
        self._budgets = budgets
        self._reviews = reviews
        self._spends, self._acts = policy.mentions("spent"), policy.mentions("actor") or policy.mentions("task.author")
        self.moves = self._spends or policy.mentions("now")
        """Whether what rules say depends on the time or on what was spent."""
        self._by_specialist = policy.mentions("task.specialist") or policy.mentions("task.skill")
        self.is_followed = False
        """Whether it is known that nothing waits that was judged by other rules, see ``follow``."""

    @property
    def has_rules(self) -> bool:
        """Whether there is a rule that somebody has written."""
        return bool(self.policy.rules)

    def follow(self, connection: Connection) -> Callable[[Connection], int] | None:
        """Return what lets queued tasks be judged again that were by other rules; None: there is no need."""
        if self.is_followed:
            return None
        self.is_followed = self.is_in_force(connection)
        return None if self.is_followed else self._again

    def is_in_force(self, connection: Connection) -> bool:
        """Return whether queued tasks are judged by these rules, and not by others yet or by now."""
        return bool(remembered.find(connection, IN_FORCE).get("hash") == self.policy.hash)

    def _again(self, connection: Connection) -> int:
        remembered.keep(connection, IN_FORCE, {"hash": self.policy.hash, "at_ms": self._clock()})
        return queue.route_again(connection)

    def judge(self, connection: Connection, task: Task, spec: TaskSpec, *, reads: bool) -> Judged:
        """Return what the rules say of a queued task, as it came, with what a run says that has handed it on. reads:
        whether somebody reads its text as an order; the text of a task for an agent that does what it is configured to
        do is not judged."""
        now_ms = self._clock()
        spec = _with_handed_on(connection, task, spec)
        judgement = assess(spec.instructions) if reads else None
        spent = self._spent(connection, now_ms)
        risk = Risk.LOW if judgement is None else judgement.risk
        actor, role = self._actor(connection, task.creator, task.organisation), None
        if self._acts and task.revision > 1 and (wrote := _wrote(connection, task)) not in (None, task.creator):
            actor, role = self._author(connection, actor, wrote)
        if task.channel is not None and self._acts:
            asked = channel_rows.question_behind(connection, task.channel, task.id)
            actor, role = self._author(connection, actor, None if asked is None else asked.author)
        facts = Facts(spec, actor, task.source, spec.specialist, spec.skill, risk, role=role, creator=task.creator)
        facts = local_facts(facts, self._budgets.total, spent, now_ms) if self.has_rules else facts
        judged = Judged(facts, Verdict())
        if judgement is not None:
            judged = replace(judged, harmful=judgement.harmful, unread=judgement.unread, words=judgement.words)
        return _with_approval(connection, task, self._judged(judged))

    def of_answer(self, connection: Connection, task: Task, text: str, by: Principal) -> PolicyRecord | None:
        """Judge what a person says to a task that asks something, beside what was judged before.

        Return the approval that lies in it; None: it needs none. Raises Forbidden where a rule refuses it, or demands
        approval by somebody else.
        """
        spec = task_rows.spec_of(connection, task.id, task.revision)
        before, after = (self._of_words(connection, task, said, by) for said in (spec, _extended(spec, text)))
        if after.denied_by is not None and before.denied_by is None:
            raise Forbidden(f"The policy refuses the answer ({after.refusal.text}).", remedy="Word it differently.")
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

    def _of_words(self, connection: Connection, task: Task, spec: TaskSpec, by: Principal) -> Verdict:
        """What the rules say of a task of those words, if that principal made it."""
        judgement, now_ms = assess(spec.instructions), self._clock()
        risk, creator = judgement.risk, task.creator
        facts = Facts(spec, by, task.source, task.specialist, task.skill, risk, creator=creator)
        facts = local_facts(facts, self._budgets.total, self._spent(connection, now_ms), now_ms)
        verdict = self.policy.judge(facts, Allowance.urgent())
        return with_built_in(
            verdict, harmful=judgement.harmful, unread=judgement.unread, reviews=self._reviews, words=judgement.words
        )

    def of_message(self, connection: Connection, channel: Channel, message: Incoming) -> tuple[PolicyCheck, ...]:
        """Return what the rules say of a message, as of a task with its text: nobody answers one that is refused. What
        needs approval does as a task, once somebody is to answer."""
        if not self.has_rules or not message.content.strip():
            return ()
        spec, now_ms = TaskSpec(name=channel.name, instructions=message.content, tags=("channel",)), self._clock()
        spent = self._spent(connection, now_ms)
        actor, role = self._actor(connection, channel.creator, channel.organisation), None
        if message.role is MessageRole.USER and self._acts:
            actor, role = self._author(connection, actor, message.author)
        facts = Facts(spec, actor, "channel", role=role, creator=channel.creator)
        facts = local_facts(facts, self._budgets.total, spent, now_ms)
        verdict = self.policy.judge(facts, Allowance.urgent())
        return verdict.checks if verdict.denied_by is not None else ()

    def again(self, judged: Judged, specialist: str | None, skill: str | None) -> Judged:
        """Return what the rules say now that somebody is to do it, whoever has said who."""
        if not self._by_specialist or (judged.facts.specialist, judged.facts.skill) == (specialist, skill):
            return judged
        return self._judged(replace(judged, facts=replace(judged.facts, specialist=specialist, skill=skill)))

    def raised(self, connection: Connection, task: Task, judged: Judged, risk: Risk, by: str) -> Judged:
        """Return what the rules say of it with the risk that the model of that name sees, if that is more than words
        show."""
        more = HARM[risk] - HARM[judged.facts.risk]
        if more < 0 or (more == 0 and not judged.unread):
            return judged
        facts = replace(judged.facts, risk=risk)
        judged = self._judged(replace(judged, facts=facts, unread=False, raised_by=by))
        return _with_approval(connection, task, judged)

    def unanswered(self, judged: Judged, by: str) -> Judged:
        """Return what the rules say of it where the model of that name has said nothing that counts: the same, and
        that."""
        return replace(self._judged(replace(judged, unanswered_by=by)), approved=judged.approved)

    def may_have_changed(self, connection: Connection, task: Task) -> bool:
        """Return whether the verdict on a queued task is old. One that is new holds, whatever rules say: no task is
        judged for ever instead of started."""
        latest = decision_rows.latest(connection, task.id, DecisionKind.POLICY, task.generation)
        return latest is not None and self._clock() - latest.at_ms >= GOOD_FOR_MS

    def says_otherwise(self, connection: Connection, task: Task, judged: Judged) -> bool:
        """Return whether that is another verdict than the last one on the task, or about another specialist."""
        latest = decision_rows.latest(connection, task.id, DecisionKind.POLICY, task.generation)
        verdict = judged.verdict
        before = Constraints() if latest is None else PolicyRecord.model_validate(latest.data).constraints
        other = verdict.specialist is not None and verdict.specialist != task.specialist
        return judged.stopped or verdict.constraints != before or other or task.specialist in verdict.excluded

    def _judged(self, judged: Judged) -> Judged:
        verdict, words = self.policy.judge(judged.facts), judged.words
        if judged.raised_by is not None:
            words = f"{judged.raised_by} judges its risk {judged.facts.risk}"
            check = PolicyCheck(rule=MODEL_RISK, allowed=True, effect="risk", detail=words)
            verdict = replace(verdict, checks=(check, *verdict.checks))
        elif judged.unanswered_by is not None:
            told = f"{judged.unanswered_by} has not said how risky it is, so only its words and rules count"
            check = PolicyCheck(rule=MODEL_RISK, allowed=True, effect="risk", detail=told)
            verdict = replace(verdict, checks=(check, *verdict.checks))
        verdict = with_built_in(
            verdict, harmful=judged.harmful, unread=judged.unread, reviews=self._reviews, words=words
        )
        return replace(judged, verdict=verdict)

    def _spent(self, connection: Connection, now_ms: int) -> Spending:
        """What was spent today, if a rule depends on it."""
        return self._budgets.spent(connection, now_ms).total if self._spends else Spending()

    def _actor(self, connection: Connection, creator: str, organisation: str | None) -> Principal:
        """Who made it, with the role that they have; without one any more they are as good as strangers."""
        known = {one.id: one for one in (OPERATOR, INBOX)}
        if creator in known or not self._acts:
            role = known[creator].role if creator in known else Role.OPERATE
            return Principal(creator, role, organisation)
        token = access_rows.token_named(connection, creator)
        role = Role.READ if token is None or token.revoked_ms is not None else Role(token.role)
        return Principal(creator, role, organisation)

    def _author(self, connection: Connection, creator: Principal, author: str | None) -> tuple[Principal, str]:
        """Who wrote in the channel or the task of that creator, and the role that counts: the lesser of theirs.

        Whoever may write there does not for that reason have the role of whoever made it. author: None: it is not known
        any more.
        """
        if author is None or author.startswith(FROM_OUTSIDE):
            return Principal(author or creator.id, Role.READ, creator.organisation), WEBHOOK
        wrote = self._actor(connection, author, creator.organisation)
        return wrote, (wrote.role if creator.role.permits(wrote.role) else creator.role).value

    def record(self, judged: Judged, versions: Versions) -> PolicyRecord | None:
        """Return what is written down of it; None: no rule has anything to do with it."""
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
            verdict=judged.says,
            route=_STOPS.get(judged.says),
            rules=rules,
            approved=tuple(sorted(judged.approved)),
            constraints=verdict.constraints,
        )


def _wrote(connection: Connection, task: Task) -> str | None:
    """Return by whom the content is that the task has now; None: nobody asked for it to be another than it was."""
    content = task_rows.revision_of(connection, task.id, task.revision)
    given = content.derived_from or content.revision
    changes = EventQuery(task_id=task.id, kinds=("content_changed",))
    for event in reversed(events.newest(connection, _MAX_CHANGES, changes)):
        if event.data.get("revision") == given:
            return event.by
    return None


def _with_handed_on(connection: Connection, task: Task, spec: TaskSpec) -> TaskSpec:
    """The task with what the run says that has handed it on last: those words are judged like its own."""
    handed = hops(connection, task.id, task.generation)[-1:] if task.seq else ()
    for hop in handed:
        spec = _extended(
            spec, "\n\n".join(words for words in (hop.asked.reason, hop.asked.done, hop.asked.left) if words)
        )
    return spec


def _extended(spec: TaskSpec, words: str) -> TaskSpec:
    """The task with those words at its end."""
    return spec.model_copy(update={"instructions": f"{spec.instructions.rstrip()}\n\n{words}"}) if words else spec


def _with_approval(connection: Connection, task: Task, judged: Judged) -> Judged:
    """With the rules whose demand a person has met, if there is such a demand."""
    if not judged.held:
        return judged
    approved, demanded = approved_rules(connection, task), judged.verdict.demanded
    asks_itself = judged.facts.spec.approval and task.approved_ms is not None
    if asks_itself and not approved and demanded is not None and not demanded.by:
        # Whoever approved it before its first run, as the task itself demands, saw this content: one stop is enough.
        approved = frozenset(demanded.rules)
    return replace(judged, approved=approved)


def _ceiling(verdict: Verdict, named: Card | None) -> str:
    """What is said of a specialist who takes on less risk."""
    if named is None or HARM[verdict.risk] <= HARM[named.risk_ceiling]:
        return ""
    return f"; {named.id} takes tasks up to {named.risk_ceiling} risk, and this one has {verdict.risk} risk"


def _told(verdict: Verdict, demanded: Demanded) -> str:
    """The rules that demand approval, with what they say of it."""
    said = {check.rule: check.detail for check in verdict.checks if check.detail}
    return "; ".join(f"{rule}: {said[rule]}" if rule in said else rule for rule in demanded.rules)


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
    """Return what the rules would say of a task that came as the facts say, and which agents they leave. Nothing is
    stored, and no approval counts. share: how many tasks have to do with what conditions of one may cost."""
    facts, judgement = judged_by_words(facts, registry.agents)
    verdict = policy.judge(local_facts(facts, limits, spent, now_ms), Allowance.of_task(share))
    verdict = with_built_in(
        verdict, harmful=judgement.harmful, unread=judgement.unread, reviews=reviews, words=judgement.words
    )
    left = verdict.constraints
    lacking = registry.lacking(done_by(facts.spec, None, left), left)
    open_ = [agent.name for agent in registry.agents if left.admits(agent.name, agent.kind)]
    unfit = {name: lacking[name] for name in open_ if name in lacking}
    agents = tuple(name for name in open_ if name not in unfit)
    return verdict.shown(facts.spec.name).model_copy(update={"agents": agents, "unfit": unfit})


def judged_by_words(facts: Facts, agents: Iterable[AgentSpec]) -> tuple[Facts, Assessment]:
    """Return what the text of a task shows, and the facts with its risk; of one that nobody reads as an order, see
    ``Policing.judge``, nothing. agents: those that are configured."""
    read = facts.specialist is not None or reads_task(facts.spec.agent.type, agents)
    judgement = assess(facts.spec.instructions if read else "")
    return replace(facts, risk=judgement.risk), judgement


def local_facts(facts: Facts, limits: DayBudget, spent: Spending, now_ms: int) -> Facts:
    """Return the facts with what this machine knows: where folders really are, what time it is, and what was spent."""
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


def stop(
    connection: Connection,
    task: Task,
    judged: Judged,
    record: PolicyRecord,
    now_ms: int,
    by_ms: int | None = None,
    named: Card | None = None,
) -> None:
    """Refuse the task, or have a person asked. by_ms: by when they have to have answered where no rule says, in epoch
    milliseconds; None: any time. named: of the specialist to whom it was given, whose ceiling of risk the approval
    covers. Raises VersionConflict."""
    verdict = judged.verdict
    if verdict.denied_by is not None:
        why = verdict.refusal.text
        asked = InputRequest(kind=InputKind.APPROVAL, text=why, since_ms=now_ms, rejected=why)
        event, told = Failing(Reason.REJECTED), {"why": why, "rule": verdict.denied_by}
        asks = asked.model_dump(mode="json")
        task = task_rows.advance(connection, task, event, now_ms, data=told, asks=asks, risk=verdict.risk.value)
        record_policy(connection, task, record, now_ms)
        ready_dependents(connection, task, now_ms)
        return
    if (demanded := verdict.demanded) is None:
        raise ValueError("nothing stops it")
    until_ms = by_ms if demanded.within_ms is None else now_ms + demanded.within_ms
    request = InputRequest(
        kind=InputKind.APPROVAL,
        text=f"asks for approval, which the policy requires ({_told(verdict, demanded)}){_ceiling(verdict, named)}",
        since_ms=now_ms,
        rules=demanded.rules,
        approvers=demanded.by,
        until_ms=until_ms,
        answer=specialist_meant(task),
    )
    task = ask(connection, task, request, now_ms)
    record_policy(connection, task, record, now_ms)
