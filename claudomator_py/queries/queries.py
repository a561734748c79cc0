"""What one principal may know about tasks, runs and agents. Reads only."""

from collections.abc import Callable
from functools import partial
from typing import Self

from sqlalchemy import Connection

from claudomator_py.dispatch.observe import Observer
from claudomator_py.domain.card import Card, Visibility
from claudomator_py.domain.health import CheckView
from claudomator_py.domain.output import with_zeros
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.requests import LatestFilter, TaskFilter
from claudomator_py.domain.run import Stream
from claudomator_py.domain.units import DAY_MS
from claudomator_py.domain.views.base import Page
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.secrets import Secrets
from claudomator_py.faults import Faults
from claudomator_py.ports import Clock, RunHost, Trees
from claudomator_py.queries import cursors
from claudomator_py.queries.concealment import concealed, unnamed
from claudomator_py.queries.event_stream import Logs, log_step
from claudomator_py.queries.explain import (
    backlog_sentences,
    cancelled_sentences,
    check_waits_sentence,
    conversation_sentences,
    discarded_sentences,
    thread_sentences,
    tree_sentences,
)
from claudomator_py.queries.finding import find_run, find_task
from claudomator_py.queries.history import history_sentences, schedule_sentences
from claudomator_py.queries.inputs import input_sentences
from claudomator_py.queries.routing import known_to, routing_of
from claudomator_py.queries.task_views import TaskViews, spec_shown, with_tree
from claudomator_py.queries.views import run_view
from claudomator_py.resources.agents.ask import (
    agent_views,
    budget_sentences,
    day_budget,
    hold_sentences,
    spending_view,
)
from claudomator_py.resources.daemon.shape import ReadinessView
from claudomator_py.resources.decisions.ask import placements_of
from claudomator_py.resources.events.ask import event_views
from claudomator_py.resources.overview.shape import FileProblemPage, FileProblemView, StatusView
from claudomator_py.resources.runs.shape import LogChunk, RunView
from claudomator_py.resources.schedules.ask import by_next_time
from claudomator_py.resources.session import Service
from claudomator_py.resources.tasks.shape import TaskView, WhyView
from claudomator_py.scheduler.decision import DecisionKind
from claudomator_py.sources.inbox.refusals import Refusal, Refusals, readable
from claudomator_py.store import (
    decision_rows,
    events,
    queue,
    reads,
    run_rows,
    specialist_rows,
)
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.tasks.holds import drain_check, drain_view

SHOWN = 50
MAX_LOG_BYTES = 1024 * 1024


def _refused_file(refused: Refusal) -> FileProblemView:
    return FileProblemView(path=readable(refused.path), problems=refused.problems)


class Queries(Service):
    """What one principal may know.

    Synchronous and safe to call from many threads. Every method may raise ``domain.errors.ServiceError``. ref: as for
    ``service.task_service.TaskService``.
    """

    def __init__(
        self,
        database: Database,
        registry: AgentRegistry,
        host: RunHost,
        observer: Observer,
        clock: Clock,
        refusals: Refusals,
        health: Callable[[], list[CheckView]],
        secrets: Secrets | None = None,
        faults: Faults | None = None,
        trees: Trees | None = None,
    ) -> None:
        """refusals: the files that are refused at present. faults: what fails for single tasks; None: nothing does.

        trees: where work trees are; None: there are none. secrets: what agents may know and their output may not show;
        None: nothing but what is known by its shape.
        """
        super().__init__(database)
        self._registry = registry
        self._host = host
        self._observer = observer
        self._clock = clock
        self._refusals = refusals
        self._health = health
        self.task_views = TaskViews(registry, observer, faults or Faults(clock))
        self._trees = trees
        self.logs = Logs(database, registry, host, secrets or Secrets())

    def as_(self, by: Principal) -> Self:
        """The same, for who asks."""
        bound = super().as_(by)
        bound.logs = self.logs.as_(by)
        bound.task_views = self.task_views.as_(by)
        return bound

    def tasks(self, wanted: TaskFilter, cursor: str | None, limit: int) -> Page[TaskView]:
        """Tasks, newest first, at most ``limit``. Raises Invalid for a cursor that was not given out."""
        before = cursors.read(cursor, wanted) if cursor is not None else None

        def read(connection: Connection) -> Page[TaskView]:
            found = reads.page(connection, wanted, before, limit + 1, self._by)
            part, following = cursors.part(found, limit, lambda one: cursors.write((one.created_ms, one.id), wanted))
            return Page(items=tuple(self.task_views.of(connection, part)), next_cursor=following)

        return self._read(read)

    def count(self, wanted: TaskFilter) -> int:
        """Return how many tasks match."""
        return self._read(lambda connection: reads.count(connection, wanted, self._by))

    def latest(self, wanted: LatestFilter, cursor: str | None, limit: int) -> tuple[Page[TaskView], int]:
        """Return tasks, the latest change first, at most ``limit``, and how many there are in all. One that changes
        meanwhile is on a page that was seen already. Raises BadCursor."""
        listed = {"list": "latest", **wanted.model_dump(mode="json", exclude_none=True)}
        before = cursors.read_time(cursor, listed) if cursor is not None else None

        def read(connection: Connection) -> tuple[Page[TaskView], int]:
            found = reads.latest(connection, wanted, before, limit + 1, self._by)
            part, following = cursors.part(
                found.tasks, limit, lambda one: cursors.write_time(one.updated_ms, one.id, listed)
            )
            return Page(items=tuple(self.task_views.of(connection, part)), next_cursor=following), found.total

        return self._read(read)

    def task(self, ref: str) -> TaskView:
        """The task with its content."""
        view = self._read(
            lambda connection: self.task_views.of(connection, [find_task(connection, ref, self._by)], with_spec=True)[0]
        )
        return view if self._trees is None else with_tree(view, self._trees, self._read)

    def runs(self, ref: str) -> list[RunView]:
        """All runs of the task, oldest first."""

        def read(connection: Connection) -> list[RunView]:
            runs = unnamed(connection, run_rows.of_task(connection, find_task(connection, ref, self._by).id), self._by)
            return list(concealed(connection, [run_view(run, self._host) for run in runs], self._by))

        return self._read(read)

    def run(self, run_id: str) -> RunView:
        """Return one run, by its id or the beginning of it."""

        def read(connection: Connection) -> RunView:
            run = unnamed(connection, [find_run(connection, run_id, self._by)], self._by)[0]
            return concealed(connection, [run_view(run, self._host)], self._by)[0]

        return self._read(read)

    def log(self, run_id: str, stream: Stream, offset: int, limit: int, *, check: bool = False) -> LogChunk:
        """At most ``limit`` bytes of what the run wrote, or its check; empty when there is nothing yet."""
        run = self._read(lambda connection: find_run(connection, run_id, self._by))
        reading = partial(self._host.read, run.id, stream, step=log_step(run, check=check))
        data = with_zeros(reading, offset, min(limit, MAX_LOG_BYTES))
        end = offset + len(data)
        return LogChunk(data, offset, end, ended=not run.live and not data)

    def why(self, ref: str) -> WhyView:
        """Why the task is where it is, in words, with the decisions and events behind them."""

        def read(connection: Connection) -> WhyView:
            task = find_task(connection, ref, self._by)
            view = self.task_views.of(connection, [task], with_spec=True)[0]
            decided = decision_rows.of_task(connection, task.id)
            seen = known_to(connection, decided, self._by)
            runs = unnamed(connection, run_rows.of_task(connection, task.id), self._by)
            now_ms = self._clock()
            told = unnamed(connection, events.of_task(connection, task.id), self._by)
            sentences = [_headline(view), *(f"Warning: {warning}" for warning in view.warnings)]
            live = next((run.id for run in runs if run.live), None)
            waits = None if live is None else self._observer.check_waits(live)
            if waits is not None:
                sentences.append(check_waits_sentence(waits))
            else:
                sentences += backlog_sentences(None if live is None else self._host.backlog(live))
            specialists = self._observer.routes and bool(specialist_rows.ids_seen(connection, self._by))
            sentences += hold_sentences(view.holds)
            sentences += input_sentences(task, told, now_ms, specialists=specialists)
            sentences += [*thread_sentences(view), *conversation_sentences(task, told), *tree_sentences(told)]
            sentences += [*cancelled_sentences(task, told), *discarded_sentences(told)]
            spec = spec_shown(connection, task)
            sentences += [*schedule_sentences(connection, task), *budget_sentences(connection, task, spec)]
            sentences += () if view.reach_origin is None else (view.reach_origin.sentence,)
            by_run = {str(one.run_id): one for one in decided if one.kind == DecisionKind.PLACEMENT}
            routing = routing_of(task, decided, seen)
            sentences += () if routing is None else routing.sentences
            sentences += history_sentences(runs, by_run, told, now_ms)
            shape = WhyView(
                task=view,
                sentences=tuple(sentences),
                routing=routing,
                decisions=placements_of(connection, task, decided, self._by),
                events=event_views(connection, told, self._by),
            )
            return concealed(connection, [shape], self._by)[0]

        return self._read(read)

    def status(self) -> StatusView:
        """Everything at a glance."""

        def read(connection: Connection) -> StatusView:
            budgets = self._observer.budgets
            now_ms, counts = self._clock(), queue.counts(connection, self._by)
            today, own = budgets.seen(connection, now_ms, self._by)
            whole = self._by.sees_all
            files = self._refusals.page(limit=SHOWN) if whole else ()
            refused = len(self._refusals) if whole else 0
            since_ms = now_ms - DAY_MS
            lists = reads.status_lists(connection, SHOWN, failed_since_ms=since_ms, counts=counts, by=self._by)
            shown = {name: tuple(self.task_views.of(connection, found.tasks)) for name, found in lists.items()}
            return StatusView(
                needs_you=shown["needs_you"],
                problems=shown["problems"],
                problem_reasons=reads.failures(connection, since_ms, self._by) if shown["problems"] else {},
                inbox=tuple(map(_refused_file, files)),
                running=shown["running"],
                queued=shown["queued"],
                recent=shown["recent"],
                agents=tuple(agent_views(connection, self._registry, budgets, now_ms, self._by, (today, own))),
                schedules=tuple(by_next_time(connection, self._by)),
                spent_today=spending_view(own.total),
                budget=day_budget(budgets, today) if whole else None,
                counts=counts,
                totals={**{name: found.total for name, found in lists.items()}, "inbox": refused},
            )

        found = self._read(read)
        if not self._by.sees_all:
            return found  # what troubles the daemon may name what others have
        return found.model_copy(update={"trouble": tuple(check for check in self._checks() if not check.ok)})

    def inbox_problems(self, cursor: str | None, limit: int) -> FileProblemPage:
        """Files of the inbox that were refused, the last one first. Raises BadCursor."""
        if not self._by.sees_all:
            return FileProblemPage(items=(), total=0)  # whoever writes into the inbox belongs to none
        listed = {"list": "inbox"}
        before = None if cursor is None else cursors.read_number(cursor, listed)
        found = self._refusals.page(before, limit + 1)
        part, following = cursors.part(found, limit, lambda one: cursors.write_number(one.number, listed))
        return FileProblemPage(items=tuple(map(_refused_file, part)), next_cursor=following, total=len(self._refusals))

    def readiness(self) -> ReadinessView:
        """Whether tasks are accepted and started. Never raises."""
        checks = self._checks()
        return ReadinessView(
            ready=all(check.ok or not check.blocking for check in checks),
            checks=tuple(checks) if self._by.sees_all else (),
        )

    def public_cards(self) -> list[Card]:
        """The cards of specialists that everybody may know of, by id."""
        found = self._read(specialist_rows.seen)
        return [one.card for one in found if one.card.visibility is Visibility.PUBLIC]

    def _checks(self) -> list[CheckView]:
        return [*self._store_checks(), *self._health()]

    def _store_checks(self) -> list[CheckView]:
        try:
            drained = drain_check(self._database.read(drain_view))
        except StoreUnavailable as error:
            return [CheckView(name="store", ok=False, detail=error.reason, remedy=error.remedy)]
        if (trouble := self._database.trouble) is not None:
            return [CheckView(name="store", ok=False, detail=trouble.reason, remedy=trouble.remedy), drained]
        return [CheckView(name="store", ok=True, detail=f"{self._database.dialect} answers"), drained]


def _headline(view: TaskView) -> str:
    tail = f": {view.reason_text}" if view.reason_text else ""
    where = f" on {view.agent}" if view.state == "RUNNING" and view.agent else ""
    said = f"{view.name} is {view.state}{where}{tail}"
    return said if said.endswith(("?", "!")) else f"{said.rstrip('.')}."
