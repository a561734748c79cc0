"""Routes each queued task to a specialist, or stops it as the policy says, in one transaction with the decision."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection

from claudomator_py.acts import Reach
from claudomator_py.dispatch.cheap_model import Chooser
from claudomator_py.dispatch.deciding import Creator, Decided, Decider, Subject
from claudomator_py.dispatch.heads import QueuedTask
from claudomator_py.dispatch.policing import is_long
from claudomator_py.dispatch.start import MAX_STARTS_PER_COMMIT
from claudomator_py.dispatch.stopping import stop
from claudomator_py.domain.card import Card, Registration, Transport
from claudomator_py.domain.inputs import InputRequest
from claudomator_py.domain.lifecycle import InputKind
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.routing import Constraints, Risk, TaskRoute
from claudomator_py.domain.task import Permissions, TaskSpec
from claudomator_py.domain.transcript import intent_of
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.faults import Activity, Faults, UnreadableCard, item_of
from claudomator_py.log import get_logger
from claudomator_py.ports import Clock
from claudomator_py.routing.questions import MAX_CHOICES, Choice, RiskQuestion
from claudomator_py.routing.ranking import close_of, picked
from claudomator_py.routing.role import agent_of, constraints_of, done_by, escalation_of, only_adds
from claudomator_py.scheduler.lanes import lane_columns
from claudomator_py.scheduler.records import Route, SpecialistRecord
from claudomator_py.store import queue, specialist_rows, task_rows
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.tables import Task
from claudomator_py.store.task_rows import VersionConflict, resumption_of
from claudomator_py.tasks.decisions import record_policy, record_specialist, route
from claudomator_py.tasks.handing_on import rerouting_columns
from claudomator_py.tasks.learning import correct
from claudomator_py.tasks.readiness import ask

log = get_logger("claudomator.routing")

BATCH_SIZE = 200
"""Tasks decided in one round."""
T = TypeVar("T")


class SpecialistRouter:
    """Routes queued tasks: stores each decision together with its effect on the task.

    decider: makes the decisions. pool: runs whatever waits for others, such as the encoder and models. choice_model:
    chooses among close candidates; None to choose by score. max_handoffs: how often a task may be handed on.
    answer_within_ms: time limit for a person's answer if no policy rule sets one; None for no limit. risk_model:
    assesses the risk, which it can only raise; None to use words and rules alone. text_pool: judges long texts, one at
    a time; None for the pool. rule_pool: evaluates slow rules, so that short tasks do not wait for long texts; None for
    the text_pool.
    """

    def __init__(
        self,
        database: Database,
        registry: AgentRegistry,
        decider: Decider,
        clock: Clock,
        faults: Faults,
        pool: Executor,
        choice_model: Chooser | None = None,
        max_handoffs: int = 2,
        answer_within_ms: int | None = None,
        risk_model: Chooser | None = None,
        text_pool: Executor | None = None,
        rule_pool: Executor | None = None,
        default_reach: Reach | None = None,
        is_reach_configured: bool = False,
    ) -> None:
        self.decider = decider
        self._database = database
        self._registry = registry
        self._clock = clock
        self._faults = faults
        self._pool = pool
        self._text_pool = text_pool or pool
        self._rule_pool = rule_pool or self._text_pool
        self._choice_model = choice_model
        self._max_handoffs = max_handoffs
        self._answer_within_ms = answer_within_ms
        self._risk_model = risk_model
        self._default_reach = default_reach
        self._is_reach_configured = is_reach_configured
        self._in_progress: Counter[str] = Counter()
        """Number of jobs per task id; such tasks are left alone by ``route``."""
        self._closed = False
        self._lock = threading.Lock()
        self._connected_digest: str | None = None

    def route(self) -> None:
        """Route the next tasks that have no route. Raises StoreUnavailable."""
        self._rejudge_queued()
        with self._lock:
            in_progress = frozenset(self._in_progress)
        digest, ready, slow = self._database.read(partial(self._next_tasks, in_progress=in_progress))
        self._connect_remote(digest)
        for task, spec in slow:
            pool = self._text_pool if is_long(spec) else self._rule_pool
            self._submit([task], partial(self._route_slow, task, spec), pool)
        # This tick still plans what it skips here; only what is left for the next tick has to wake the loop.
        self._route_all(ready, digest, planned=len(ready) + len(slow) < BATCH_SIZE)

    def _route_slow(self, task: Task, spec: TaskSpec) -> None:
        """Route a task that takes long to judge."""
        self._route_all([self._database.read(partial(self.decider.subject, task=task, spec=spec))])
        self._database.flush()  # as at the end of a tick

    def _route_all(self, ready: Sequence[Subject], digest: str | None = None, *, planned: bool = False) -> None:
        """Route the tasks, or stop them as the policy says.

        digest: the registry's hash, if just read. planned: whether the current tick plans these tasks anyway.
        """
        stopped: list[Subject] = []
        unspecialised: list[Subject] = []
        subjects: list[Subject] = []
        for subject in ready:
            needs_no_route = self.decider.needs_no_route(subject)
            # The specialist of a held task is decided first, so that the one question to a person covers everything.
            if subject.stopped and (needs_no_route or not subject.is_held):
                stopped.append(subject)
            elif needs_no_route:
                unspecialised.append(subject)
            elif self._risk_model is None or subject.stopped:
                subjects.append(subject)
            else:
                self._submit([subject.task], partial(self._assess_risk, self._risk_model, subject))
        self._write_all([Decided(subject, None, subject.judged) for subject in stopped], planned=planned)
        if unspecialised:
            self._skip(unspecialised, planned)
        if not subjects:
            return
        if self.decider.answers_at_once:
            self._decide(subjects, digest, planned=planned)
        else:
            self._submit([subject.task for subject in subjects], partial(self._decide, subjects))

    @property
    def rejudges(self) -> bool:
        """Whether the policy's verdict may change while a task waits."""
        return self.decider.policing.is_volatile

    def reroute_stale(self, task: Task) -> bool:
        """Return whether a task that is about to start is routed again first, because rules on the time or on spending
        give another verdict by now. Raises StoreUnavailable."""
        if not self._database.read(partial(self.decider.is_outdated, task=task)):
            return False
        self._database.write(partial(queue.route_again, task_ids=[task.id]))
        return True

    def reroute(self, queued: QueuedTask) -> None:
        """Have another specialist found for a task whose own is gone, in a new conversation. Without its card, the task
        would run with neither its role nor its permissions. Raises StoreUnavailable."""
        columns = rerouting_columns(queued.task, queued.content)
        with suppress(VersionConflict):  # it has changed meanwhile, and is planned again
            self._database.write(partial(task_rows.change, task=queued.task, now_ms=self._clock(), **columns))

    def _rejudge_queued(self) -> None:
        """Have tasks that were queued under other rules judged by the current ones."""
        policing = self.decider.policing
        if policing.is_up_to_date:
            return
        policing.is_up_to_date = self._database.read(policing.is_in_force)
        if not policing.is_up_to_date and (number := self._database.write(policing.rejudge_queued)):
            log.info("policy_changed", tasks=number, note="queued tasks are judged again")

    def _skip(self, subjects: Sequence[Subject], planned: bool) -> None:
        """Record that these tasks need no specialist."""
        if self.decider.policing.has_rules:
            self._write_all([Decided(subject, None, subject.judged) for subject in subjects], planned=planned)
            return
        tasks = [subject.task for subject in subjects]
        # A start of one of them in this tick commits this first, in the same transaction.
        self._database.submit(partial(self._write_skipped, tasks), planned=planned, lazily=True)

    def _write_skipped(self, tasks: Sequence[Task], connection: Connection) -> None:
        if self._is_in_force(connection):
            queue.pass_routing(connection, {task.id: task.version for task in tasks})
            for task in tasks:
                self._faults.clear(item_of(Activity.ROUTE, task))

    def _next_tasks(
        self, connection: Connection, in_progress: frozenset[str]
    ) -> tuple[str, list[Subject], list[tuple[Task, TaskSpec]]]:
        """Return the registry's hash; the next tasks to route, with the policy's verdicts; and those that take long to
        judge, without. A task that cannot be judged is noted and left out."""
        visible_to: dict[Creator, frozenset[str]] = {}
        ready, slow = [], []
        for task, content in queue.unrouted(connection, BATCH_SIZE, in_progress | self._paused(connection)):
            reading = partial(self.decider.subject_or_spec, connection, task, content, visible_to)
            read = self._faults.attempt(item_of(Activity.ROUTE, task), reading, whole=False)
            if isinstance(read, Subject):
                ready.append(read)
            elif read is not None:
                slow.append((task, read))
        return specialist_rows.registry_hash(connection), ready, slow

    def _paused(self, connection: Connection) -> set[str]:
        """Return the tasks that pause after a fault of their own."""
        now_ms = self._clock()
        ids = [fault.item.id for fault in self._faults.all() if fault.item.activity is Activity.ROUTE]
        tasks = [task for task_id in ids if (task := task_rows.find(connection, task_id)) is not None]
        return {task.id for task in tasks if self._faults.is_paused(item_of(Activity.ROUTE, task), now_ms)}

    def _connect_remote(self, digest: str) -> None:
        """Register remote specialists as agents, by their current cards. digest: the registry's hash.

        Over HTTP only those of the operator's own cards, because the daemon sends a secret there. An agent of the hub
        has authenticated itself with a token and is sent no secret.
        """
        if digest == self._connected_digest:
            return
        registered = self._database.read(specialist_rows.seen)
        self._registry.reach([agent_of(each.card) for each in registered if is_reached(each)])
        self._connected_digest = digest

    def close(self) -> None:
        """Stop. Decisions that are still pending are not written, because another configuration is in force by then."""
        with self._lock:
            self._closed = True
        for pool in (self._pool, self._text_pool, self._rule_pool):
            pool.shutdown(wait=False, cancel_futures=True)
        self.decider.close()

    def _submit(self, tasks: Sequence[Task], work: Callable[[], object], pool: Executor | None = None) -> None:
        """Run the work outside the tick, which leaves the tasks alone meanwhile."""
        with self._lock:
            if self._closed:
                return
            (pool or self._pool).submit(self._run_job, tasks, work)
            self._in_progress.update(task.id for task in tasks)

    def _run_job(self, tasks: Sequence[Task], work: Callable[[], object]) -> None:
        try:
            work()
        except StoreUnavailable as error:
            log.warning("route_not_recorded", problem=str(error))
        except Exception as error:
            for task in tasks:
                self._note_fault(task, error)
        finally:
            with self._lock:
                self._in_progress -= Counter(task.id for task in tasks)

    def _attempt(self, task: Task, work: Callable[[], T]) -> T | None:
        """Return the result of the work, or None if it failed, which is noted for this task alone. Raises
        StoreUnavailable."""
        try:
            return work()
        except StoreUnavailable:
            raise
        except Exception as error:
            self._note_fault(task, error)
            return None

    def _note_fault(self, task: Task, error: Exception) -> None:
        """Note the fault, so that the task is tried again after a pause, unless the router is closed."""
        if not self._closed:
            self._faults.note(item_of(Activity.ROUTE, task), error)

    def _decide(self, subjects: Sequence[Subject], digest: str | None = None, *, planned: bool = False) -> None:
        """Route the tasks. digest: the registry's hash, if just read. planned: see ``_route_all``."""
        decided = []
        for subject, record in self._records(subjects, digest):
            is_open = len(close_of(record)) > 1 and not (subject.asked.was_asked or subject.stopped)
            if self._choice_model is not None and is_open:
                self._submit([subject.task], partial(self._choose, self._choice_model, subject, record))
            else:
                decided.append(self._attempt(subject.task, partial(self.decider.rejudge, subject, record)))
        self._write_all([each for each in decided if each is not None], planned=planned)

    def _records(self, subjects: Sequence[Subject], digest: str | None) -> list[tuple[Subject, SpecialistRecord]]:
        """Return the decision on each task. If a batch fails, each half is tried, until the failing task is known."""
        try:
            decided = self.decider.decide(subjects, digest)
        except StoreUnavailable:
            raise
        except Exception as error:
            if len(subjects) == 1:
                self._note_fault(subjects[0].task, error)
                return []
            half = len(subjects) // 2
            return self._records(subjects[:half], digest) + self._records(subjects[half:], digest)
        return [(subject, decided[subject.task.id]) for subject in subjects]

    def _write_all(self, decided: Sequence[Decided], *, planned: bool = False) -> None:
        """Store the decisions in few transactions. A failure is noted for its task alone. planned: see ``_route_all``;
        a few decisions are then committed with the starts that follow."""
        written = [
            (each.subject.task, self._database.submit(partial(self._write, each), planned=planned)) for each in decided
        ]
        waits = not (planned and len(written) <= MAX_STARTS_PER_COMMIT and self._database.is_together)
        for task, future in written:
            if waits or future.done():  # what failed is done
                self._attempt(task, future.result)

    def _assess_risk(self, risk_model: Chooser, subject: Subject) -> None:
        """Ask a model for the task's risk; then route the task whatever the answer, or stop it as the policy says."""
        question = RiskQuestion(subject.spec.name, subject.spec.instructions)
        answer, by = risk_model.choose(question, subject.task), risk_model.name(question)
        if answer is not None:
            judging = partial(self.decider.with_risk, subject=subject, risk=Risk(answer), by=by)
            subject = self._database.read(judging)
        else:
            subject = replace(subject, judged=self.decider.policing.judge_unanswered(subject.judged, by))
        if subject.stopped and not subject.is_held:
            self._write_all([Decided(subject, None, subject.judged)])
        else:
            self._decide([subject])

    def _choose(self, choice_model: Chooser, subject: Subject, record: SpecialistRecord) -> None:
        """Ask a model to choose among the close candidates; then route the task whatever the answer."""
        begun_ms, names = self._clock(), close_of(record)[:MAX_CHOICES]
        cards = self._database.read(lambda connection: specialist_rows.cards(connection, names))
        descriptions = {name: cards[name].description for name in names if name in cards}
        choice = Choice(subject.spec.name, subject.spec.instructions, descriptions)
        chosen = choice_model.choose(choice, subject.task) if len(descriptions) > 1 else None
        if chosen is not None:
            record = picked(record, chosen, choice_model.name(choice))
        took_ms = (record.latency_ms or 0) + self._clock() - begun_ms
        self._write_all([self.decider.rejudge(subject, record.model_copy(update={"latency_ms": took_ms}))])

    def _is_in_force(self, connection: Connection) -> bool:
        """Return whether decisions of this router still count. Call it in the writer, which orders it with changes."""
        return not self._closed and self.decider.policing.is_in_force(connection)

    def _write(self, decided: Decided, connection: Connection) -> None:
        """Store the decision, which ends a fault of its task."""
        if self._store(decided, connection):
            self._faults.clear(item_of(Activity.ROUTE, decided.subject.task))

    def _store(self, decided: Decided, connection: Connection) -> bool:
        """Store the decision, and return whether it was stored. It is not, and the task is routed again, if the task or
        the configuration has changed meanwhile or the chosen specialist is gone."""
        subject, record, judged, now_ms = decided.subject, decided.record, decided.judged, self._clock()
        task = subject.task
        by_ms = None if self._answer_within_ms is None else now_ms + self._answer_within_ms
        policy_record = self.decider.policing.record(judged, self.decider.versions)
        card = None if record is None else _card_of(connection, record)
        chosen = None if record is None or card is not None else record.specialist
        if chosen is not None and chosen in specialist_rows.content_hashes(connection):
            raise UnreadableCard(f"the card of `{chosen}` cannot be read")
        if chosen is not None or not self._is_in_force(connection):
            return False
        try:
            if policy_record is not None and judged.stopped:
                stop(connection, task, judged, policy_record, now_ms, by_ms, record, card)
                return True
            if record is not None and record.route is Route.CLARIFY:
                task = ask(connection, task, _question(record, now_ms, by_ms), now_ms)
            else:
                task = self._route(connection, decided, card, now_ms)
        except VersionConflict:
            return False
        if policy_record is not None:
            record_policy(connection, task, policy_record, now_ms)
        if record is not None:
            correct(connection, task, record, now_ms, subject.predecessor)
            record_specialist(connection, task, self._completed(record, card, subject.spec), now_ms)
        return True

    def _completed(self, record: SpecialistRecord, card: Card | None, spec: TaskSpec) -> SpecialistRecord:
        """Return the record with the task's intent, by fixed rules, and the owner, escalation and expected output of
        the current card."""
        update: dict[str, object] = {"max_handoffs": self._max_handoffs, "intent": intent_of(spec.instructions) or None}
        if card is not None:
            update |= {"owner": card.owner, "escalation": escalation_of(card), "expected_output": card.expected_output}
        return record.model_copy(update=update)

    def _route(self, connection: Connection, decided: Decided, card: Card | None, now_ms: int) -> Task:
        """Return the routed task. card: the chosen specialist's. Raises VersionConflict."""
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
        routing = TaskRoute(specialist=name, skill=skill, risk=judged.verdict.risk, constraints=constraints)
        return route(connection, task, routing, now_ms, lane=lane)

    def _within_default(self, spec: TaskSpec, constraints: Constraints) -> Constraints:
        """Return the constraints with the default reach if the task sets neither a reach nor permissions."""
        if spec.reach is not None or constraints.reach is not None or spec.permissions != Permissions():
            return constraints
        default = {"default_reach": self._default_reach, "is_reach_configured": self._is_reach_configured}
        return constraints.model_copy(update=default)


def _card_of(connection: Connection, record: SpecialistRecord) -> Card | None:
    """Return the chosen specialist's card, if any."""
    name = record.specialist
    return None if name is None else specialist_rows.cards(connection, [name]).get(name)


def is_reached(registered: Registration) -> bool:
    """Return whether the specialist is a remote agent that tasks may be sent to."""
    transport = registered.card.transport
    return transport is Transport.HUB or (transport is Transport.HTTP and registered.creator == OPERATOR.id)


def _question(record: SpecialistRecord, now_ms: int, until_ms: int | None) -> InputRequest:
    close = [candidate.specialist for candidate in record.specialist_candidates if not candidate.barred][:3]
    return InputRequest(
        kind=InputKind.CLARIFICATION,
        unclear=record.reason,
        candidates=tuple(close),
        since_ms=now_ms,
        until_ms=until_ms,
    )
