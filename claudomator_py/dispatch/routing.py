"""Deciding who does each task, once it is queued: in one transaction with what follows for the task."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection

from claudomator_py.acts import Reach
from claudomator_py.dispatch.cheap_model import Chooser
from claudomator_py.dispatch.deciding import BATCH_SIZE, Decided, Decider, Subject
from claudomator_py.dispatch.policing import stop
from claudomator_py.domain.card import Card, Registration, Transport
from claudomator_py.domain.inputs import InputRequest
from claudomator_py.domain.lifecycle import InputKind
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.routing import Constraints, Risk, Routing
from claudomator_py.domain.task import Permissions, TaskSpec
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.faults import Activity, Faults, UnreadableCard, item_of
from claudomator_py.log import get_logger
from claudomator_py.policy.facts import is_long
from claudomator_py.ports import Clock
from claudomator_py.prompts.conversations import resumption_of
from claudomator_py.routing.questions import MAX_CHOICES, Choice, RiskQuestion
from claudomator_py.routing.ranking import close_of, picked
from claudomator_py.routing.role import agent_of, constraints_of, done_by, escalation_of, only_adds
from claudomator_py.scheduler.decision import Route, SpecialistRecord
from claudomator_py.scheduler.lanes import lane_columns
from claudomator_py.store import queue, specialist_rows, task_rows
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.tables import Task
from claudomator_py.store.task_rows import VersionConflict
from claudomator_py.tasks.decisions import record_policy, record_specialist, route
from claudomator_py.tasks.learning import correct
from claudomator_py.tasks.readiness import ask

log = get_logger("claudomator.routing")

T = TypeVar("T")


class SpecialistRouter:
    """Routes what is queued: writes what is decided, and what follows from it for the task.

    decider: who decides. pool: where whatever does not answer at once is asked: an encoder, the chooser, the weigher.
    chooser: who chooses among close candidates; None: signals do. max_handoffs: how often a task may be handed on.
    answer_within_ms: how long a person has who is asked, where no rule of the policy says; None: any time.
    weigher: says how risky a task is, which can only raise its risk; None: words and rules do. reader: where what
    says much is judged, one task after the other; None: in the pool. judge: where anything else is judged by rules that
    may take long, so that it does not wait for what says much; None: where that is.
    """

    def __init__(
        self,
        database: Database,
        registry: AgentRegistry,
        decider: Decider,
        clock: Clock,
        faults: Faults,
        pool: Executor,
        chooser: Chooser | None = None,
        max_handoffs: int = 2,
        answer_within_ms: int | None = None,
        weigher: Chooser | None = None,
        reader: Executor | None = None,
        judge: Executor | None = None,
        default_reach: Reach | None = None,
        is_reach_configured: bool = False,
    ) -> None:
        self.decider = decider
        self._database = database
        self._registry = registry
        self._clock = clock
        self._faults = faults
        self._pool = pool
        self._reader = reader or pool
        self._judge = judge or self._reader
        self._chooser = chooser
        self._max_handoffs = max_handoffs
        self._answer_within_ms = answer_within_ms
        self._weigher = weigher
        self._default_reach = default_reach
        self._is_reach_configured = is_reach_configured
        self._away: Counter[str] = Counter()
        self._closed = False
        self._lock = threading.Lock()
        self._reached: str | None = None

    def route(self) -> None:
        """Route the next tasks that are not routed. Raises StoreUnavailable."""
        self._follow_policy()
        with self._lock:
            away = frozenset(self._away)
        digest, found, long = self._database.read(partial(self._look, away=away))
        self._reach(digest)
        for task, spec in long:
            self._go([task], partial(self._take_long, task, spec), self._reader if is_long(spec) else self._judge)
        # What this tick passes it sees itself; what was left for the next one it has to be woken for.
        self._take(found, digest, planned=len(found) + len(long) < BATCH_SIZE)

    def _take_long(self, task: Task, spec: TaskSpec) -> None:
        """Route a task that takes long to judge."""
        self._take([self._database.read(partial(self.decider.subject, task=task, spec=spec))])
        self._database.flush()  # as at the end of a tick

    def _take(self, found: Sequence[Subject], digest: str | None = None, *, planned: bool = False) -> None:
        """Route these, or stop them as the policy says. digest: of the registry, if it was read just before. planned:
        whether a look at those that nobody in particular does follows anyway."""
        stopped: list[Subject] = []
        passed: list[Subject] = []
        subjects: list[Subject] = []
        for subject in found:
            group = stopped if subject.stopped else passed if self.decider.needs_no_route(subject) else subjects
            group.append(subject)
        self._written([Decided(subject, None, subject.judged) for subject in stopped])
        if passed:
            self._pass(passed, planned)
        if not subjects:
            return
        if self._weigher is not None:
            for subject in subjects:
                self._go([subject.task], partial(self._weigh, self._weigher, subject))
        elif self.decider.answers_at_once:
            self._decide(subjects, digest)
        else:
            self._go([subject.task for subject in subjects], partial(self._decide, subjects))

    @property
    def rejudges(self) -> bool:
        """Whether what the policy says may change while a task waits."""
        return self.decider.policing.moves

    def judged_again(self, task: Task) -> bool:
        """Return whether a task that is about to start is judged and routed again first, as rules on the time or on
        what was spent say something else by now. Raises StoreUnavailable."""
        if not self._database.read(partial(self.decider.is_outdated, task=task)):
            return False
        self._database.write(partial(queue.route_again, task_ids=[task.id]))
        return True

    def _follow_policy(self) -> None:
        """What was queued under other rules is judged by those in force."""
        policing = self.decider.policing
        if not policing.is_followed and (again := self._database.read(policing.follow)) is not None:
            number = self._database.write(again)
            if number:
                log.info("policy_changed", tasks=number, note="queued tasks are judged again")

    def _pass(self, subjects: Sequence[Subject], planned: bool) -> None:
        """Nobody in particular does these."""
        if self.decider.policing.has_rules:
            self._written([Decided(subject, None, subject.judged) for subject in subjects])
            return
        tasks = [subject.task for subject in subjects]
        # Whoever starts one of them meanwhile commits it together with this, which comes first.
        self._database.submit(partial(self._passed, tasks), planned=planned, lazily=True)

    def _passed(self, tasks: Sequence[Task], connection: Connection) -> None:
        if self._is_in_force(connection):
            queue.pass_routing(connection, {task.id: task.version for task in tasks})
            for task in tasks:
                self._faults.over(item_of(Activity.ROUTE, task))

    def _look(
        self, connection: Connection, away: frozenset[str]
    ) -> tuple[str, list[Subject], list[tuple[Task, TaskSpec]]]:
        """The hash of the registry, what is to be routed, and what takes long to judge and is judged first."""
        found, long = self.decider.subjects(connection, self._faults, away | self._paused(connection))
        return specialist_rows.registry_hash(connection), found, long

    def _paused(self, connection: Connection) -> set[str]:
        """The tasks that are not tried now, as that has failed by a fault of their own."""
        now_ms = self._clock()
        ids = [fault.item.id for fault in self._faults.all() if fault.item.doing is Activity.ROUTE]
        tasks = [task for task_id in ids if (task := task_rows.find(connection, task_id)) is not None]
        return {task.id for task in tasks if self._faults.is_paused(item_of(Activity.ROUTE, task), now_ms)}

    def _reach(self, digest: str) -> None:
        """Have the agents that remote specialists are, as their cards say at present. digest: of the registry.

        Over HTTP those of the operator's own cards alone, as a secret of the daemon's is sent there. Whoever connects
        to the hub has shown a token, and is sent none.
        """
        if digest == self._reached:
            return
        found = self._database.read(specialist_rows.seen)
        self._registry.reach([agent_of(one.card) for one in found if is_reached(one)])
        self._reached = digest

    def close(self) -> None:
        """Ask nothing more. What was asked before is written no more either: something else is in force by then."""
        with self._lock:
            self._closed = True
        for pool in (self._pool, self._reader, self._judge):
            pool.shutdown(wait=False, cancel_futures=True)
        self.decider.close()

    def _go(self, tasks: Sequence[Task], work: Callable[[], object], pool: Executor | None = None) -> None:
        """Do it beside the tick; the tasks are left alone until then."""
        with self._lock:
            if self._closed:
                return
            (pool or self._pool).submit(self._beside, tasks, work)
            self._away.update(task.id for task in tasks)

    def _beside(self, tasks: Sequence[Task], work: Callable[[], object]) -> None:
        try:
            work()
        except StoreUnavailable as error:
            log.warning("route_not_recorded", problem=str(error))
        except Exception as error:
            for task in tasks:
                self._failed(task, error)
        finally:
            with self._lock:
                self._away -= Counter(task.id for task in tasks)

    def _alone(self, task: Task, work: Callable[[], T]) -> T | None:
        """What is done for that task, on any thread; None: it failed, which keeps no other waiting. Raises
        StoreUnavailable."""
        try:
            return work()
        except StoreUnavailable:
            raise
        except Exception as error:
            self._failed(task, error)
            return None

    def _failed(self, task: Task, error: Exception) -> None:
        """It is tried again after a pause; whoever is closed has nothing to try."""
        if not self._closed:
            self._faults.note(item_of(Activity.ROUTE, task), error)

    def _decide(self, subjects: Sequence[Subject], digest: str | None = None) -> None:
        """Route them. digest: of the registry, if it was read just before."""
        ready = []
        for subject, record in self._decided(subjects, digest):
            if self._chooser is not None and len(close_of(record)) > 1 and not subject.asked.was_asked:
                self._go([subject.task], partial(self._choose, self._chooser, subject, record))
            else:
                ready.append(self._alone(subject.task, partial(self.decider.judged_again, subject, record)))
        self._written([one for one in ready if one is not None])

    def _decided(self, subjects: Sequence[Subject], digest: str | None) -> list[tuple[Subject, SpecialistRecord]]:
        """Who does each of them. Where that fails, it is asked of each half, until it is known with which task."""
        try:
            decided = self.decider.decide(subjects, digest)
        except StoreUnavailable:
            raise
        except Exception as error:
            if len(subjects) == 1:
                self._failed(subjects[0].task, error)
                return []
            half = len(subjects) // 2
            return self._decided(subjects[:half], digest) + self._decided(subjects[half:], digest)
        return [(subject, decided[subject.task.id]) for subject in subjects]

    def _written(self, decided: Sequence[Decided]) -> None:
        """Write them down, all in few transactions; what fails with one is told of that one."""
        written = [(one.subject.task, self._database.submit(partial(self._write, one))) for one in decided]
        for task, future in written:
            if self._alone(task, future.result):
                self._faults.over(item_of(Activity.ROUTE, task))

    def _weigh(self, weigher: Chooser, subject: Subject) -> None:
        """Ask how risky it is. Whatever comes of that, the task is routed, or stopped as the policy says."""
        question = RiskQuestion(subject.spec.name, subject.spec.instructions)
        said, by = weigher.choose(question, subject.task), weigher.name(question)
        if said is not None:
            raised = partial(self.decider.raised, subject=subject, risk=Risk(said), by=by)
            subject = self._database.read(raised)
        else:
            subject = replace(subject, judged=self.decider.policing.unanswered(subject.judged, by))
        if subject.stopped:
            self._written([Decided(subject, None, subject.judged)])
        else:
            self._decide([subject])

    def _choose(self, chooser: Chooser, subject: Subject, record: SpecialistRecord) -> None:
        """Ask who of the close ones it is. Whatever comes of that, the task is routed."""
        begun_ms, names = self._clock(), close_of(record)[:MAX_CHOICES]
        cards = self._database.read(lambda connection: specialist_rows.cards(connection, names))
        told = {name: cards[name].description for name in names if name in cards}
        choice = Choice(subject.spec.name, subject.spec.instructions, told)
        who = chooser.choose(choice, subject.task) if len(told) > 1 else None
        if who is not None:
            record = picked(record, who, chooser.name(choice))
        took_ms = (record.latency_ms or 0) + self._clock() - begun_ms
        self._written([self.decider.judged_again(subject, record.model_copy(update={"latency_ms": took_ms}))])

    def _is_in_force(self, connection: Connection) -> bool:
        """Whether what it has decided still counts. In the writer, where that changes before or after."""
        return not self._closed and self.decider.policing.is_in_force(connection)

    def _write(self, decided: Decided, connection: Connection) -> bool:
        """Whether it was written. Nothing of it, if the task or what is in force has changed meanwhile, or whoever was
        chosen has gone: it is looked at again."""
        subject, record, judged, now_ms = decided.subject, decided.record, decided.judged, self._clock()
        task = subject.task
        by_ms = None if self._answer_within_ms is None else now_ms + self._answer_within_ms
        said = self.decider.policing.record(judged, self.decider.versions)
        card = None if record is None else _card_of(connection, record)
        chosen = None if record is None or card is not None else record.specialist
        if chosen is not None and chosen in specialist_rows.content_hashes(connection):
            raise UnreadableCard(f"the card of `{chosen}` cannot be read")
        if chosen is not None or not self._is_in_force(connection):
            return False
        try:
            if said is not None and judged.stopped:
                named = subject.claims.specialist
                cards = {} if named is None else specialist_rows.cards(connection, [named])
                stop(connection, task, judged, said, now_ms, by_ms, cards.get(named or ""))
                return True
            if record is not None and record.route is Route.CLARIFY:
                task = ask(connection, task, _question(record, now_ms, by_ms), now_ms)
            else:
                task = self._route(connection, decided, card, now_ms)
        except VersionConflict:
            return False
        if said is not None:
            record_policy(connection, task, said, now_ms)
        if record is not None:
            correct(connection, task, record, now_ms, subject.predecessor)
            record_specialist(connection, task, self._planned(record, card), now_ms)
        return True

    def _planned(self, record: SpecialistRecord, card: Card | None) -> SpecialistRecord:
        """With what the card says at present of who answers for the task, what comes of it, and where it goes next."""
        planned: dict[str, object] = {"max_handoffs": self._max_handoffs}
        if card is not None:
            planned |= {"owner": card.owner, "escalation": escalation_of(card), "expected_output": card.expected_output}
        return record.model_copy(update=planned)

    def _route(self, connection: Connection, decided: Decided, card: Card | None, now_ms: int) -> Task:
        """Raises VersionConflict. card: of whoever does it."""
        task, record, judged = decided.subject.task, decided.record, decided.judged
        name = None if record is None else record.specialist
        of_card = Constraints() if card is None else constraints_of(card)
        constraints = of_card.and_those(judged.verdict.constraints)
        if record is not None:
            constraints = self._within_default(decided.subject.spec, constraints)
        if record is not None and card is not None and card.permissions is not None:
            constraints = constraints.model_copy(update={"role_adds": only_adds(record.reason.code, card)})
        lane = lane_columns(done_by(decided.subject.spec, card, constraints), resumption_of(task))
        skill = None if record is None else record.skill
        routing = Routing(specialist=name, skill=skill, risk=judged.verdict.risk, constraints=constraints)
        return route(connection, task, routing, now_ms, lane=lane)

    def _within_default(self, spec: TaskSpec, constraints: Constraints) -> Constraints:
        """With how far a routed task may act that says nothing of that: neither its reach nor what its agent may do."""
        if spec.reach is not None or constraints.reach is not None or spec.permissions != Permissions():
            return constraints
        default = {"default_reach": self._default_reach, "is_reach_configured": self._is_reach_configured}
        return constraints.model_copy(update=default)


def _card_of(connection: Connection, record: SpecialistRecord) -> Card | None:
    """The card of whoever was chosen; None: no specialist."""
    name = record.specialist
    return None if name is None else specialist_rows.cards(connection, [name]).get(name)


def is_reached(registered: Registration) -> bool:
    transport = registered.card.transport
    return transport is Transport.HUB or (transport is Transport.HTTP and registered.creator == OPERATOR.id)


def _question(record: SpecialistRecord, now_ms: int, until_ms: int | None) -> InputRequest:
    close = [one.specialist for one in record.specialist_candidates if not one.barred][:3]
    return InputRequest(
        kind=InputKind.CLARIFICATION,
        unclear=record.reason,
        candidates=tuple(close),
        since_ms=now_ms,
        until_ms=until_ms,
    )
