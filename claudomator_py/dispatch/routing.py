"""Deciding who does each task, once it is queued: in one transaction with what follows for the task."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial

from sqlalchemy import Connection

from claudomator_py.dispatch.cheap_model import GuardedModel
from claudomator_py.dispatch.policing import Judged, Policing, stop
from claudomator_py.dispatch.specialists import SpecialistDirectory
from claudomator_py.domain.card import Card, Registration, Transport
from claudomator_py.domain.decision import Versions
from claudomator_py.domain.inputs import InputRequest
from claudomator_py.domain.lifecycle import InputKind
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.rationale import RationaleCode, rationale
from claudomator_py.domain.routing import Constraints, Routing
from claudomator_py.domain.task import TaskSpec
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.faults import Doing, Faults, item_of
from claudomator_py.log import get_logger
from claudomator_py.ports import Clock, EncoderFault
from claudomator_py.prompts.conversations import resumption_of
from claudomator_py.routing.assessment import assess
from claudomator_py.routing.choice import MOST, PROMPT_VERSION, Choice
from claudomator_py.routing.mentions import Names, Participant
from claudomator_py.routing.profile import Request
from claudomator_py.routing.ranking import RoutingRules, close_of, decide, picked, rank, to, topic_of, unless_vague
from claudomator_py.routing.role import agent_name, agent_of, constraints_of, done_by, escalation_of
from claudomator_py.scheduler.classification import Cause, ModelFault, NoAnswer
from claudomator_py.scheduler.decision import HandoffRecord, Route, SpecialistRecord
from claudomator_py.scheduler.lanes import eligibility
from claudomator_py.schema.agent_settings import BY_NAME_KINDS
from claudomator_py.schema.routing_settings import OnAmbiguity
from claudomator_py.store import dependency_rows, queue, specialist_rows, task_rows
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.tables import Task
from claudomator_py.store.task_rows import VersionConflict
from claudomator_py.tasks.accept import ask
from claudomator_py.tasks.decisions import record_policy, record_specialist, route
from claudomator_py.tasks.handing_on import hops
from claudomator_py.tasks.inputs import asked_of
from claudomator_py.tasks.learning import correct

log = get_logger("claudomator.routing")

_REMEMBERED = 1_000
"""Choices that are not asked for again."""
AT_ONCE = 200
"""Tasks that one look routes."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is compared with cards, and whose they may be."""

    request: Request
    seen: frozenset[str]
    """The specialists that exist for whoever made it."""
    organisation: str | None
    """Whose it is, and from whose earlier tasks something was learned."""
    finally_: bool = False
    """Whether a person was asked already, and is not asked again."""


@dataclass(frozen=True, slots=True)
class _Subject:
    """A queued task of which nobody has decided yet who does it."""

    task: Task
    spec: TaskSpec
    asked: _Asked
    before: Task | None = None
    """The task that it continues."""
    said: str | None = None
    """What a person said who was asked which specialist is meant."""
    handed: HandoffRecord | None = None
    """How it was handed on last in this generation."""
    judged: Judged | None = None
    """What the policy says of it; None: there is none."""


@dataclass(frozen=True, slots=True)
class _Decided:
    """What becomes of a task. record: who does it; None: nobody in particular, and nothing was decided about that."""

    subject: _Subject
    record: SpecialistRecord | None
    judged: Judged | None = None


class Chooser:
    """Lets a cheap model choose among close candidates. No fault of it does more than leave the choice to signals."""

    def __init__(self, model: GuardedModel, database: Database, timeout_ms: int, clock: Clock) -> None:
        self._model = model
        self._database = database
        self._timeout_s = timeout_ms / 1000
        self._clock = clock
        self._known: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """By which a decision says who chose."""
        return f"{self._model.name}/{PROMPT_VERSION}"

    def choose(self, choice: Choice, task: Task) -> str | None:
        """Whom it names; None: nobody, and the log says why. What it has named for the same is not asked again, unless
        an operator has restarted the task. Takes as long as the timeout. Raises StoreUnavailable.
        """
        key = choice.key(self._model.name)
        with self._lock:
            known = self._known.get(key)
        if known is not None and task.generation == 1:
            return known
        try:
            if self._database.read(lambda connection: self._model.hold(connection, self._clock())) is not None:
                raise ModelFault(Cause.LIMITED, self._model.hold_text())
            said = choice.answer(self._model.ask(choice.question, self._timeout_s, anyway=task.generation > 1))
        except NoAnswer as fault:
            log.warning("choice_fallback", task=task.name, task_id=task.id, cause=fault.cause, detail=fault.detail)
            self._met(task, fault)
            return None
        with self._lock:
            self._known[key] = said
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return said

    def _met(self, task: Task, fault: NoAnswer) -> None:
        if not isinstance(fault, ModelFault) or fault.cause is not Cause.LIMITED:
            return
        self._database.write(
            lambda connection: self._model.met(connection, task.id, fault.detail, fault.retry_after_s, self._clock())
        )


class SpecialistRouter:
    """Routes what is queued, within what the policy allows. No fault of an encoder does more than leave words to be
    compared.

    directory: None: no specialist is looked for, and only the policy is asked. policing: None: everything is allowed.
    rules: those in force. fallback: compares words where the encoder cannot be asked.
    chooser: who chooses among close candidates; None: signals do. pool: where an encoder is asked that does not answer
    at once, and the chooser; None: in the tick.
    """

    def __init__(
        self,
        database: Database,
        registry: AgentRegistry,
        directory: SpecialistDirectory | None,
        fallback: SpecialistDirectory | None,
        rules: RoutingRules,
        fallback_rules: RoutingRules,
        clock: Clock,
        faults: Faults,
        chooser: Chooser | None = None,
        pool: Executor | None = None,
        policing: Policing | None = None,
    ) -> None:
        self._database = database
        self._registry = registry
        self._directory = directory
        self._fallback = fallback
        self._rules = rules
        self._fallback_rules = fallback_rules
        self._clock = clock
        self._faults = faults
        self._chooser = chooser
        self._pool = pool
        self._policing = policing
        self._away: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._reached: str | None = None

    def route(self) -> int:
        """Route the next tasks that are not routed; how many of them are. Raises StoreUnavailable."""
        self._follow_policy()
        digest, found = self._database.read(self._look)
        self._reach(digest)
        stopped = [_Decided(subject, None, subject.judged) for subject in found if _is_stopped(subject)]
        if stopped:
            self._written(stopped)
        open_ = [subject for subject in found if not _is_stopped(subject)]
        subjects = [subject for subject in open_ if not self._needs_no_route(subject)]
        if len(subjects) < len(open_):
            self._pass([subject for subject in open_ if subject not in subjects])
        if not subjects:
            return 0
        if self._directory is None or self._directory.encoder.immediate or self._pool is None:
            return self._decide(subjects, digest)
        self._go(subjects, lambda: self._decide(subjects))
        return 0

    def preview(self, request: Request, by: Principal) -> SpecialistRecord:
        """Who would do a task of that content, if that principal made it now. Raises StoreUnavailable."""
        begun_ms = self._clock()
        seen = self._database.read(lambda connection: frozenset(specialist_rows.ids_seen(connection, by)))
        asked = _Asked(request, seen, by.organisation)
        if (addressed := self._addressed(asked)) is not None:
            return to(RationaleCode.MENTIONED, addressed, self._versions)
        (record,) = self._compared([asked])
        return record.model_copy(update={"latency_ms": self._clock() - begun_ms})

    def _follow_policy(self) -> None:
        """What was queued under other rules is judged by those in force."""
        if self._policing is not None and (again := self._database.read(self._policing.follow)) is not None:
            number = self._database.write(again)
            if number:
                log.info("policy_changed", tasks=number, note="queued tasks are judged again")

    def _pass(self, subjects: Sequence[_Subject]) -> None:
        """Nobody in particular does these."""
        policed = [one for one in subjects if self._policing is not None and self._policing.has_rules]
        if policed:
            self._written([_Decided(subject, None, subject.judged) for subject in policed])
            return
        ids = [subject.task.id for subject in subjects]
        self._database.write(lambda connection: queue.pass_routing(connection, ids))

    def _look(self, connection: Connection) -> tuple[str, list[_Subject]]:
        """The hash of the registry, and what is to be routed."""
        return specialist_rows.registry_hash(connection), self._subjects(connection)

    def _reach(self, digest: str) -> None:
        """Have the agents that remote specialists are, as their cards say at present. digest: of the registry.

        Over HTTP those of the operator's own cards alone, as a secret of the daemon's is sent there. Whoever connects
        to the hub has shown a token, and is sent none.
        """
        if digest == self._reached:
            return
        found = self._database.read(specialist_rows.seen)
        self._registry.reach([agent_of(one.card) for one in found if _is_reached(one)])
        self._reached = digest

    def _can_do(self, card: Card) -> bool:
        """Whether there is anybody to do its tasks."""
        return card.transport is Transport.LOCAL or self._registry.find(agent_name(card)) is not None

    def close(self) -> None:
        """Ask nothing more."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        if self._directory is not None:
            self._directory.encoder.close()

    def _go(self, subjects: Sequence[_Subject], work: Callable[[], object]) -> None:
        """Do it beside the tick, if there is somewhere to; the tasks are left alone until then."""
        if self._pool is None:
            work()
            return
        with self._lock:
            self._away.update(subject.task.id for subject in subjects)
        self._pool.submit(self._beside, subjects, work)

    def _beside(self, subjects: Sequence[_Subject], work: Callable[[], object]) -> None:
        try:
            work()
        except StoreUnavailable as error:
            log.warning("route_not_recorded", problem=str(error))
        except Exception:
            log.exception("routing_failed")
        finally:
            with self._lock:
                self._away -= Counter(subject.task.id for subject in subjects)

    def _subjects(self, connection: Connection) -> list[_Subject]:
        seen: dict[tuple[str, str | None], frozenset[str]] = {}
        found = []
        for task, content in queue.unrouted(connection, AT_ONCE + len(self._away)):
            if task.id in self._away:
                continue
            whose = (task.creator, task.organisation)
            if whose not in seen:
                by = Principal(task.creator, Role.OPERATE, task.organisation)
                seen[whose] = frozenset(specialist_rows.ids_seen(connection, by))
            spec = TaskSpec.model_validate(content)
            asked = asked_of(task)
            said = asked.answer if asked is not None and asked.kind is InputKind.CLARIFICATION else None
            before = _before(connection, task, spec)
            request = _Asked(Request.of(spec), seen[whose], task.organisation, finally_=said is not None)
            handed = hops(connection, task.id, task.generation)[-1:] if task.seq else ()
            judged = None
            if self._policing is not None:
                reads = not self._takes_no_role(spec)
                judged = self._policing.judge(connection, task, spec, reads=reads)
            found.append(_Subject(task, spec, request, before, said, next(iter(handed), None), judged))
        return found

    def _decide(self, subjects: Sequence[_Subject], digest: str | None = None) -> int:
        """How many of them are routed now. digest: of the registry, if it was read just before."""
        begun_ms = self._clock()
        settled = {subject.task.id: record for subject in subjects if (record := self._settled(subject)) is not None}
        compared = [subject for subject in subjects if subject.task.id not in settled]
        records = self._compared([_within(subject) for subject in compared], digest)
        took = {"latency_ms": self._clock() - begun_ms}
        decided = settled | {
            subject.task.id: record.model_copy(update=took) for subject, record in zip(compared, records, strict=True)
        }
        choosing = set()
        if self._chooser is not None and self._rules.on_ambiguity is OnAmbiguity.CLASSIFIER:
            for subject in compared:
                record = decided[subject.task.id]
                if len(close_of(record)) > 1 and not subject.asked.finally_:
                    choosing.add(subject.task.id)
                    self._go([subject], partial(self._choose, self._chooser, subject, record))
        ready = [one for one in subjects if one.task.id not in choosing]
        return self._written([self._judged_again(one, decided[one.task.id]) for one in ready])

    def _judged_again(self, subject: _Subject, record: SpecialistRecord) -> _Decided:
        """With what the policy says of whoever was chosen, by whatever."""
        judged = subject.judged
        if judged is None or self._policing is None:
            return _Decided(subject, record)
        judged = self._policing.again(judged, record.specialist, record.skill)
        told = {"risk": judged.verdict.risk, "policy_checks": judged.verdict.checks}
        return _Decided(subject, record.model_copy(update=told), judged)

    def _written(self, decided: Sequence[_Decided]) -> int:
        """How many of them are routed now."""
        written = [(one.subject.task, self._database.submit(partial(self._write, one))) for one in decided]
        return sum(bool(self._faults.attempt(item_of(Doing.ROUTE, task), future.result)) for task, future in written)

    def _choose(self, chooser: Chooser, subject: _Subject, record: SpecialistRecord) -> None:
        """Ask who of the close ones it is. Whatever comes of that, the task is routed."""
        begun_ms, names = self._clock(), close_of(record)[:MOST]
        cards = self._database.read(lambda connection: specialist_rows.cards(connection, names))
        told = {name: cards[name].description for name in names if name in cards}
        choice = Choice(subject.spec.name, subject.spec.instructions, told)
        who = chooser.choose(choice, subject.task) if len(told) > 1 else None
        if who is not None:
            record = picked(record, who, chooser.name)
        took_ms = (record.latency_ms or 0) + self._clock() - begun_ms
        self._written([self._judged_again(subject, record.model_copy(update={"latency_ms": took_ms}))])

    def _settled(self, subject: _Subject) -> SpecialistRecord | None:
        """What is decided without comparing anything. Whom the policy excludes gets a task in no way."""
        record = self._given(subject)
        verdict = None if subject.judged is None else subject.judged.verdict
        if record is None or verdict is None or record.specialist not in verdict.excluded:
            return record
        why = rationale(RationaleCode.EXCLUDED, specialist=record.specialist)
        return SpecialistRecord(reason=why, route=Route.CLARIFY, specialist=None, versions=self._versions)

    def _given(self, subject: _Subject) -> SpecialistRecord | None:
        """To whom somebody or something has given it; None: to nobody."""
        spec, code = subject.spec, None
        named = spec.specialist
        by_rule = None if subject.judged is None else subject.judged.verdict.specialist
        if by_rule is not None and by_rule not in subject.asked.seen:
            why = rationale(RationaleCode.GONE, specialist=by_rule)
            return SpecialistRecord(reason=why, route=Route.CLARIFY, specialist=None, versions=self._versions)
        if by_rule is not None:
            why = rationale(RationaleCode.GIVEN_BY_RULE, rule=_rule_for(subject, by_rule), specialist=by_rule)
            return SpecialistRecord(
                reason=why, route=Route.SPECIALIST, specialist=by_rule, skill=None, versions=self._versions
            )
        if subject.said is not None and subject.said.strip() in subject.asked.seen:
            named, code = subject.said.strip(), RationaleCode.BY_HAND
        elif (handed := subject.handed) is not None and handed.specialist is not None:
            return _handed_on(handed, handed.specialist, subject.asked.seen, self._versions)
        elif named is not None:
            code = RationaleCode.NAMED
        elif (addressed := self._addressed(subject.asked)) is not None:
            named, code = addressed, RationaleCode.MENTIONED
        elif subject.before is not None and subject.before.specialist in subject.asked.seen:
            named, code = subject.before.specialist, RationaleCode.CONTINUED
        if named is not None and code is not None:
            if named not in subject.asked.seen:
                why = rationale(RationaleCode.GONE, specialist=named)
                return SpecialistRecord(reason=why, route=Route.CLARIFY, specialist=None, versions=self._versions)
            return to(code, named, self._versions, spec.skill)
        return None

    def _addressed(self, asked: _Asked) -> str | None:
        """Whom the text addresses with ``@``, of those who exist for whoever made it."""
        if "@" not in asked.request.text:
            return None
        cards = self._database.read(lambda connection: specialist_rows.cards(connection, asked.seen))
        return Names(Participant(one.id, one.title) for one in cards.values()).addressed(asked.request.text)

    @property
    def _versions(self) -> Versions:
        return self._rules.versions

    def _needs_no_route(self, subject: _Subject) -> bool:
        """Whether there is nothing to decide: nobody could do it in particular, or nobody is asked for."""
        if subject.handed is not None:
            return False
        nobody = not subject.asked.seen and subject.spec.specialist is None and subject.said is None
        return self._directory is None or nobody or self._takes_no_role(subject.spec)

    def _takes_no_role(self, spec: TaskSpec) -> bool:
        """Whether the task is for an agent that does what it is configured to do, see ``scheduler.admission``."""
        agent_type = spec.agent.type
        if agent_type is None or spec.specialist is not None:
            return False
        meant = [agent for agent in self._registry.agents if agent_type in (agent.name, agent.kind)]
        kinds = {agent.kind for agent in meant} or {agent_type}
        return kinds <= set(BY_NAME_KINDS)

    def _compared(self, asked: Sequence[_Asked], digest: str | None = None) -> list[SpecialistRecord]:
        """The decision on each of them. digest: see ``_decide``."""
        if not asked or self._directory is None or self._fallback is None:
            return []
        requests = [one.request for one in asked]
        degraded = False
        directory, rules = self._directory, self._rules
        try:
            roster = directory.roster(digest)
            found = directory.compare(roster, requests)
            learned = directory.learned(roster, [one.organisation for one in asked])
        except EncoderFault as fault:
            log.warning("encoder_failed", problem=str(fault), note="words are compared instead")
            degraded, directory, rules = True, self._fallback, self._fallback_rules
            roster = directory.roster(digest)
            found = directory.compare(roster, requests)
            learned = directory.learned(roster, [one.organisation for one in asked])
        versions = rules.versions.model_copy(update={"registry": roster.registry_hash, "encoder": directory.encoder.id})
        rules = replace(rules, versions=versions)
        records = []
        for one, compared in zip(asked, found, strict=True):
            cards = {name: card for name, card in roster.cards.items() if name in one.seen and self._can_do(card)}
            default = rules.default if rules.default in cards else None
            of_task = replace(rules, default=default)
            if one.finally_:
                of_task = replace(of_task, on_ambiguity=OnAmbiguity.SIGNALS)
            known, now_ms = learned[one.organisation], self._clock()
            topic = topic_of(cards.values(), compared.likeness)
            ranked = rank(
                one.request,
                tuple(cards.values()),
                compared.likeness,
                rules.calibration,
                standings=known.standings,
                votes=known.votes(compared.task, now_ms),
                topic=topic,
                now_ms=now_ms,
            )
            views = len(one.request.views)
            record = decide(ranked, cards, of_task, views=views, topic=topic, degraded=degraded)
            if not one.finally_:
                record = unless_vague(record, assess(one.request.text))
            records.append(record)
        return records

    def _write(self, decided: _Decided, connection: Connection) -> bool:
        """Whether it is routed; not if the task has changed meanwhile, and is looked at again."""
        subject, record, judged, now_ms = decided.subject, decided.record, decided.judged, self._clock()
        task = subject.task
        said = None if judged is None or self._policing is None else self._policing.record(judged, self._versions)
        card = None if record is None else _card_of(connection, record)
        try:
            if judged is not None and said is not None and judged.stopped:
                stop(connection, task, judged, said, now_ms)
                return True
            if record is not None and record.route is Route.CLARIFY:
                task = ask(connection, task, _question(record, now_ms), now_ms)
            else:
                task = self._route(connection, decided, card, now_ms)
        except VersionConflict:
            return False
        if said is not None:
            record_policy(connection, task, said, now_ms)
        if record is not None:
            correct(connection, task, record, now_ms, subject.before)
            record_specialist(connection, task, _planned(record, card), now_ms)
        return True

    def _route(self, connection: Connection, decided: _Decided, card: Card | None, now_ms: int) -> Task:
        """Raises VersionConflict. card: of whoever does it."""
        task, record, judged = decided.subject.task, decided.record, decided.judged
        name = None if record is None else record.specialist
        constraints = Constraints() if card is None else constraints_of(card)
        risk = None if record is None else record.risk
        if judged is not None:
            constraints, risk = constraints.and_those(judged.verdict.constraints), judged.verdict.risk
        told = eligibility(done_by(decided.subject.spec, card, constraints), resumption_of(task))
        skill = None if record is None else record.skill
        routing = Routing(specialist=name, skill=skill, risk=risk, constraints=constraints)
        return route(connection, task, routing, now_ms, eligibility=told)


def _handed_on(handed: HandoffRecord, to: str, seen: Collection[str], versions: Versions) -> SpecialistRecord:
    """Who goes on with a task that was handed on, unless they have gone meanwhile."""
    if to not in seen:
        why = rationale(RationaleCode.GONE, specialist=to)
        return SpecialistRecord(reason=why, route=Route.CLARIFY, specialist=None, versions=versions)
    return SpecialistRecord(
        reason=handed.reason, risk=handed.risk, route=Route.SPECIALIST, specialist=to, versions=versions
    )


def _card_of(connection: Connection, record: SpecialistRecord) -> Card | None:
    """The card of whoever was chosen; None: nobody in particular."""
    name = record.specialist
    return None if name is None else specialist_rows.cards(connection, [name]).get(name)


def _planned(record: SpecialistRecord, card: Card | None) -> SpecialistRecord:
    """With what the card says at present of who answers for the task, and where it goes on."""
    if card is None:
        return record
    return record.model_copy(update={"owner": card.owner, "escalation": escalation_of(card)})


def _is_reached(registered: Registration) -> bool:
    transport = registered.card.transport
    return transport is Transport.HUB or (transport is Transport.HTTP and registered.creator == OPERATOR.id)


def _is_stopped(subject: _Subject) -> bool:
    return subject.judged is not None and subject.judged.stopped


def _within(subject: _Subject) -> _Asked:
    """What is compared, without the specialists whom rules exclude."""
    excluded = frozenset() if subject.judged is None else subject.judged.verdict.excluded
    return replace(subject.asked, seen=subject.asked.seen - excluded) if excluded else subject.asked


def _rule_for(subject: _Subject, specialist: str) -> str:
    """The rule that gives the task to that specialist."""
    checks = () if subject.judged is None else subject.judged.verdict.checks
    return next((one.rule for one in checks if one.effect and "specialist" in one.effect.split(", ")), specialist)


def _question(record: SpecialistRecord, now_ms: int) -> InputRequest:
    words = record.reason.text
    close = [one.specialist for one in record.specialist_candidates[:3]]
    choice = f" Candidates: {', '.join(close)}." if close else ""
    text = f"{words[0].upper()}{words[1:]}. Which specialist is meant? Answer with its id.{choice}"
    return InputRequest(kind=InputKind.CLARIFICATION, text=text, since_ms=now_ms)


def _before(connection: Connection, task: Task, spec: TaskSpec) -> Task | None:
    """The task that it continues, if it does."""
    if spec.continues is None:
        return None
    ids = [found for name, found, _ in dependency_rows.bound(connection, task.id) if name == spec.continues]
    return None if not ids or ids[0] is None else task_rows.find(connection, ids[0])
