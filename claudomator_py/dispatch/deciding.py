"""Decisions on the specialist and the policy's verdict for a task, from the database and the cards. Reads only."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy import Connection

from claudomator_py.dispatch.card_vectors import SpecialistDirectory
from claudomator_py.dispatch.policing import Judged, Policing, is_long
from claudomator_py.domain.agent import asks_no_model, reads_task
from claudomator_py.domain.card import Card, Transport
from claudomator_py.domain.decision import Versions
from claudomator_py.domain.health import Trouble
from claudomator_py.domain.principal import Principal, creator_of
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.task import TaskSpec
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.log import get_logger
from claudomator_py.ports import Clock, EncoderFault
from claudomator_py.risk import assess
from claudomator_py.routing.mentions import WIDE_AT, Names, Participant
from claudomator_py.routing.profile import Likeness, Request
from claudomator_py.routing.ranking import (
    ANYBODY,
    NO_LIKENESS,
    Needs,
    RoutingRules,
    decide,
    rank,
    topic_of,
    unless_vague,
)
from claudomator_py.routing.role import Assignments, agent_name, as_approved, explicit_choice
from claudomator_py.scheduler.records import HandoffRecord, PolicyVerdict, SpecialistRecord
from claudomator_py.schema.routing_settings import OnAmbiguity, OnVague
from claudomator_py.store import dependency_rows, specialist_rows, task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.queue import Content
from claudomator_py.store.tables import Task
from claudomator_py.tasks.handing_on import accepted_handoffs
from claudomator_py.tasks.inputs import specialist_approved, specialist_meant
from claudomator_py.values import dataclass

log = get_logger("claudomator.routing")

Creator = tuple[str, str | None]
"""A task's creator and organisation."""


@dataclass(frozen=True, slots=True)
class RoutingRequest:
    """A request to be compared with cards."""

    request: Request
    visible: frozenset[str]
    """The specialists that may be given the creator's work."""
    organisation: str | None
    """The task's organisation, whose learning applies."""
    needs: Needs = ANYBODY
    """What the specialist must meet."""
    was_asked: bool = False
    """Whether a person was already asked for the specialist, and is not asked again."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A queued task that is not routed yet."""

    task: Task
    spec: TaskSpec
    asked: RoutingRequest
    judged: Judged
    """The policy's verdict."""
    predecessor: Task | None = None
    """The task that it continues."""
    by_hand: str | None = None
    """The specialist that a person chose when asked, or by approving the task for it."""
    handed: HandoffRecord | None = None
    """The last handoff in this generation."""
    addressed: str | None = None
    """The specialist whom its text addresses."""

    @property
    def claims(self) -> Assignments:
        """The explicit assignments of the task."""
        verdict = self.judged.verdict
        return Assignments(
            by_rule=verdict.specialist,
            rule=verdict.given_by,
            by_hand=self.by_hand,
            handed=self.handed,
            named=self.spec.specialist,
            addressed=self.addressed,
            before=None if self.predecessor is None else self.predecessor.specialist,
        )

    @property
    def stopped(self) -> bool:
        """Whether the policy keeps it from starting now."""
        return self.judged.stopped

    @property
    def is_held(self) -> bool:
        """Whether a person has to approve it before it starts."""
        return self.judged.outcome is PolicyVerdict.HELD


@dataclass(frozen=True, slots=True)
class Decided:
    """The decision on a task. record: the specialist's; None: no specialist is needed, so none was decided."""

    subject: Subject
    record: SpecialistRecord | None
    judged: Judged


class Decider:
    """Decides who does a task, within the policy. If the encoder fails, words are compared instead.

    directory: None: there are no specialists, and only the policy is evaluated. fallback: compares words, in addition
    to the encoder with the weight of the calibration, and instead of it if it fails.
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
        policing: Policing,
    ) -> None:
        self._database = database
        self._registry = registry
        self._directory = directory
        self._fallback = fallback
        self._rules = rules
        self._fallback_rules = fallback_rules
        self._clock = clock
        self.policing = policing
        self.trouble: Trouble | None = None
        """The encoder's current problem, if any."""

    @property
    def versions(self) -> Versions:
        """The versions of everything that decisions depend on."""
        return self._rules.versions

    @property
    def answers_at_once(self) -> bool:
        """Whether decisions wait for no external encoder."""
        return self._directory is None or self._directory.encoder.immediate

    def close(self) -> None:
        """Close the encoder."""
        if self._directory is not None:
            self._directory.encoder.close()

    def preview(self, request: Request, by: Principal, requires: tuple[str, ...] = ()) -> Decided | None:
        """Return the decision on such a task if the principal submitted it now, or None if there are no specialists.

        The specialist is decided even if the policy would stop the task. requires: capabilities. Raises
        StoreUnavailable.
        """
        if self._directory is None:
            return None
        spec = _spec_of(request, requires)
        task = _preview_task(spec, by, self._clock())

        def read(connection: Connection) -> Subject:
            visible_to = {(task.creator, task.organisation): frozenset(specialist_rows.assignable_ids(connection, by))}
            subject = self.subject(connection, task, spec, visible_to)
            return replace(subject, asked=replace(subject.asked, request=request))

        subject = self._database.read(read)
        return self.rejudge(subject, self.decide([subject])[task.id])

    def subject_or_spec(
        self, connection: Connection, task: Task, content: Content, visible_to: dict[Creator, frozenset[str]]
    ) -> Subject | TaskSpec:
        """Return the subject, or only the spec if judging it takes long. visible_to: see ``subject``."""
        spec = task_rows.read_spec(content)
        return spec if self._takes_long(spec) else self.subject(connection, task, spec, visible_to)

    def subject(
        self,
        connection: Connection,
        task: Task,
        spec: TaskSpec,
        visible_to: dict[Creator, frozenset[str]] | None = None,
    ) -> Subject:
        """Return the task with all that its decision depends on. visible_to: a cache of specialists by creator, which
        is filled."""
        handed = accepted_handoffs(connection, task.id, task.generation)[-1:] if task.seq else ()
        by_hand = specialist_meant(task)
        no_role = self._takes_no_role(spec, by_hand)
        judged = self.policing.judge(connection, task, spec, reads=self._reads(spec, by_hand))
        needs = _needs_of(task, spec, judged)
        needs_cards = bool(handed) or not no_role
        known = {} if visible_to is None else visible_to
        visible = _visible(connection, task, known) if needs_cards else frozenset[str]()
        asked = RoutingRequest(Request.of(spec), visible, task.organisation, needs, was_asked=by_hand is not None)
        predecessor = None if spec.continues is None else dependency_rows.dependency(connection, task, spec.continues)
        addressed = _addressed(connection, spec.instructions, visible)
        return Subject(task, spec, asked, judged, predecessor, by_hand, next(iter(handed), None), addressed)

    def _takes_long(self, spec: TaskSpec) -> bool:
        """Return whether judging the task could hold up others."""
        return is_long(spec) or self.policing.policy.may_take_long

    def is_outdated(self, connection: Connection, task: Task) -> bool:
        """Return whether the policy's verdict on a queued and routed task has changed."""
        if not self.policing.is_stale(connection, task):
            return False
        spec = task_rows.spec_of(connection, task.id, task.revision)
        if self._takes_long(spec):
            return True  # decided where it is judged again, see ``SpecialistRouter``
        judged = self.policing.judge(connection, task, spec, reads=self._reads(spec, specialist_meant(task)))
        judged = self.policing.judge_specialist(judged, task.specialist, task.skill)
        return self.policing.has_changed(connection, task, judged)

    def with_risk(self, connection: Connection, subject: Subject, risk: Risk, by: str) -> Subject:
        """Return the task judged with the risk that a model has assessed, if that is higher. by: the model's name."""
        judged = self.policing.judge_risk(connection, subject.task, subject.judged, risk, by)
        return replace(
            subject, judged=judged, asked=replace(subject.asked, needs=_needs_of(subject.task, subject.spec, judged))
        )

    def decide(self, subjects: Sequence[Subject], digest: str | None = None) -> dict[str, SpecialistRecord]:
        """Return the decisions on specialists by task id. digest: the registry's hash, if just read. Raises
        StoreUnavailable."""
        begun_ms = self._clock()
        given = {subject.task.id: record for subject in subjects if (record := self._explicit(subject)) is not None}
        compared = [subject for subject in subjects if subject.task.id not in given]
        records = self._compared([subject.asked for subject in compared], digest)
        took = {"latency_ms": self._clock() - begun_ms}
        return given | {
            subject.task.id: self._as_approved(subject, record).model_copy(update=took)
            for subject, record in zip(compared, records, strict=True)
        }

    def decide_alone(self, subject: Subject) -> Decided:
        """Return the decision, without asking a model to choose among close candidates. Raises StoreUnavailable."""
        if subject.stopped or self.needs_no_route(subject):
            return Decided(subject, None, subject.judged)
        return self.rejudge(subject, self.decide([subject])[subject.task.id])

    def rejudge(self, subject: Subject, record: SpecialistRecord) -> Decided:
        """Return the decision after judging the task with the chosen specialist, who is replaced by a question to a
        person if the policy or the needs exclude it."""
        judged = self.policing.judge_specialist(subject.judged, record.specialist, record.skill)
        needs = _needs_of(subject.task, subject.spec, judged)
        needs = replace(needs, approved=needs.approved or subject.asked.needs.approved)
        update = {
            "risk": judged.verdict.risk,
            "policy_checks": judged.verdict.checks,
            "required_capabilities": needs.capabilities,
        }
        record = record.model_copy(update=update)
        chosen = [] if record.specialist is None or needs.of_anybody else [record.specialist]
        cards = self._database.read(lambda connection: specialist_rows.cards(connection, chosen)) if chosen else {}
        return Decided(subject, needs.met_by(record, cards), judged)

    def _explicit(self, subject: Subject) -> SpecialistRecord | None:
        """Return the decision by explicit assignment, or None if there is none."""
        asked = subject.asked
        return explicit_choice(subject.claims, asked.visible, asked.needs, self._rules, subject.spec.skill)

    def _as_approved(self, subject: Subject, record: SpecialistRecord) -> SpecialistRecord:
        approved, asked = specialist_approved(subject.task), subject.asked
        if approved is None:
            return record
        return as_approved(approved, record, asked.visible, asked.needs, self._rules, subject.spec.skill)

    def needs_no_route(self, subject: Subject) -> bool:
        """Return whether no specialist has to be decided: there is none to choose from, or the task takes none."""
        if subject.handed is not None:
            return False
        nobody = not subject.asked.visible and subject.spec.specialist is None and subject.by_hand is None
        nobody = nobody and not subject.asked.needs.capabilities and specialist_approved(subject.task) is None
        return self._directory is None or nobody or self._takes_no_role(subject.spec, subject.by_hand)

    def _takes_no_role(self, spec: TaskSpec, by_hand: str | None) -> bool:
        """Return whether the task is for an agent that asks no model, see ``scheduler.admission``. by_hand: as in
        ``Subject``."""
        return spec.specialist is None and by_hand is None and asks_no_model(spec.agent.type, self._registry.agents)

    def _reads(self, spec: TaskSpec, by_hand: str | None) -> bool:
        """Return whether the task's text will be read as instructions. by_hand: as in ``Subject``."""
        return spec.specialist is not None or by_hand is not None or reads_task(spec.agent.type, self._registry.agents)

    def _can_do(self, card: Card) -> bool:
        """Return whether an agent exists for the card's tasks."""
        return card.transport is Transport.LOCAL or self._registry.find(agent_name(card)) is not None

    def _is_away(self, card: Card) -> bool:
        """Return whether the card's agent is not connected and cannot be woken, so that a task for it would fail."""
        return card.transport is Transport.HUB and card.wake_url is None and not self._registry.is_present(card.id)

    def _compared(self, asked: Sequence[RoutingRequest], digest: str | None = None) -> list[SpecialistRecord]:
        """Decide the requests by comparison. digest: see ``decide``."""
        if not asked or self._directory is None or self._fallback is None:
            return []
        requests, organisations = [item.request for item in asked], [item.organisation for item in asked]
        degraded = False
        directory, rules = self._directory, self._rules
        try:
            roster, similarities, learned = directory.look(requests, organisations, digest)
            self.trouble = None
        except EncoderFault as fault:
            self.trouble = Trouble.after(self.trouble, str(fault), self._clock())
            log.warning("encoder_failed", problem=str(fault), note="words are compared instead")
            degraded, directory, rules = True, self._fallback, self._fallback_rules
            roster, similarities, learned = directory.look(requests, organisations, digest)
        by_words: Sequence[Mapping[str, Likeness]] = [NO_LIKENESS] * len(asked)
        if rules.calibration.weights.words:
            by_words = [
                comparison.likeness for comparison in self._fallback.compare(self._fallback.roster(digest), requests)
            ]
        versions = rules.versions.model_copy(update={"registry": roster.registry_hash, "encoder": directory.encoder.id})
        rules = replace(rules, versions=versions)
        records = []
        for item, compared, words in zip(asked, similarities, by_words, strict=True):
            cards = {name: card for name, card in roster.cards.items() if name in item.visible and self._can_do(card)}
            needs = replace(item.needs, away=frozenset(name for name, card in cards.items() if self._is_away(card)))
            of_task = _rules_for(item, rules, cards)
            known, now_ms = learned[item.organisation], self._clock()
            votes = known.votes(compared.task, now_ms)
            topic = topic_of(cards.values(), compared.likeness)
            ranked = rank(
                item.request,
                tuple(cards.values()),
                compared.likeness,
                rules.calibration,
                words=words,
                standings=known.standings,
                votes=votes,
                topic=topic,
                now_ms=now_ms,
            )
            record = decide(ranked, cards, of_task, needs=needs, topic=topic, votes=votes, degraded=degraded)
            if not item.was_asked:
                record = unless_vague(record, assess(item.request.text), of_task)
            records.append(record.model_copy(update={"unheeded": item.request.unheeded}))
        return records


def _rules_for(asked: RoutingRequest, rules: RoutingRules, cards: Mapping[str, Card]) -> RoutingRules:
    """Return the rules that hold for the request, whose task is not stopped twice: after an approval, nobody is asked
    for the specialist."""
    rules = replace(rules, default=rules.default if rules.default in cards else None)
    if asked.was_asked or (asked.needs.approved and rules.on_ambiguity is OnAmbiguity.CLARIFY):
        rules = replace(rules, on_ambiguity=OnAmbiguity.SIGNALS)
    return replace(rules, on_vague=OnVague.DEFAULT) if asked.needs.approved else rules


def _needs_of(task: Task, spec: TaskSpec, judged: Judged) -> Needs:
    """Return the needs of the task and of the policy; of one that is held, those that it has once approved."""
    approved = bool(judged.approved) or judged.held or (spec.approval and task.approved_ms is not None)
    verdict = judged.verdict
    capabilities = tuple(dict.fromkeys((*spec.requires, *verdict.requires)))
    permitted = verdict.allowed_by is not None
    return Needs(
        verdict.risk, capabilities, verdict.excluded, approved=approved, permitted=permitted, unread=judged.unread
    )


def _spec_of(request: Request, requires: tuple[str, ...]) -> TaskSpec:
    """Return a spec for the request. Its name may be one that no task could have, but counts for the comparison."""
    spec = TaskSpec(name="such-a-task", instructions=request.text, tags=request.tags, requires=requires)
    return spec.model_copy(update={"name": request.name} if request.name else {})


def _preview_task(spec: TaskSpec, by: Principal, now_ms: int) -> Task:
    """Return a row, which is not stored, for a task of the principal."""
    return Task(
        id="",
        name=spec.name,
        state="QUEUED",
        creator=by.id,
        organisation=by.organisation,
        source="api",
        priority=spec.priority.value,
        tags=list(spec.tags),
        rank_ms=now_ms,
        eligibility="",
        dir_key="",
        created_ms=now_ms,
        updated_ms=now_ms,
    )


def _visible(connection: Connection, task: Task, known: dict[Creator, frozenset[str]]) -> frozenset[str]:
    """Return the specialists that may be given the creator's work. known: a cache, which is filled."""
    whose = task.creator, task.organisation
    if whose not in known:
        known[whose] = frozenset(specialist_rows.assignable_ids(connection, creator_of(task)))
    return known[whose]


def _addressed(connection: Connection, text: str, visible: frozenset[str]) -> str | None:
    """Return the visible specialist whom the text addresses with ``@``, if any."""
    if WIDE_AT.search(text) is None:
        return None
    cards = specialist_rows.cards(connection, visible)
    names = Names((Participant(card.id, card.title) for card in cards.values()), of_task=True)
    return names.addressed(text)
