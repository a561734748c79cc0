"""What the daemon's own rows say of a night: runs, holds, and when which task was queued."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.limits import Bucket, RanOn
from claudomator_py.domain.task import TaskSpec
from claudomator_py.store.database import Database
from claudomator_py.store.tables import EVENT, HOLD, RUN, TASK, TASK_REVISION, Run, Task
from tests.e2e.site import Site


@dataclass(frozen=True, slots=True)
class Span:
    """From one moment up to another, in epoch milliseconds."""

    begin: int
    end: int

    @property
    def length(self) -> int:
        """Milliseconds; 0 if it ends before it begins."""
        return max(0, self.end - self.begin)

    def within(self, other: "Span") -> "Span":
        """The part of it that lies in the other."""
        return Span(max(self.begin, other.begin), min(self.end, other.end))


@dataclass(frozen=True, slots=True)
class HoldRow:
    """A hold as it was written down. until: None: until released. by: the run that told how long it lasts."""

    bucket: Bucket
    reason: str | None
    window: str | None
    provenance: str
    by: str | None
    created: int
    until: int | None
    released: int | None

    def span(self, now: int) -> Span:
        """While it held."""
        return Span(self.created, min(moment for moment in (self.until, self.released, now) if moment is not None))

    def is_on(self, run: Run) -> bool:
        """Whether it is on what the run draws on."""
        return self.bucket.is_of(run.agent, run.kind, run.account)

    def care(self, now: int) -> Span:
        """From its end by time until it was closed: its bucket is used again, with care."""
        return Span(now if self.until is None else self.until, now if self.released is None else self.released)


@dataclass(frozen=True, slots=True)
class Records:
    """All rows of a night, read when it was over. runs: in order of their start."""

    agents: dict[str, AgentSpec]
    total: int
    tasks: dict[str, Task]
    specs: dict[str, TaskSpec]
    runs: Sequence[Run]
    holds: Sequence[HoldRow]
    queued: dict[str, list[Span]]
    ended: int

    def runs_of(self, task_id: str) -> list[Run]:
        """Of one task, in order."""
        return [run for run in self.runs if run.task_id == task_id]

    def span(self, run: Run) -> Span:
        """While it was live."""
        return Span(run.started_ms, self.ended if run.ended_ms is None else run.ended_ms)

    def name(self, run: Run) -> str:
        """Of its task."""
        return self.tasks[run.task_id].name

    def met(self, hold: HoldRow) -> list[Run]:
        """The runs that met what it is for: one told how long it lasts, others ended so while it held."""
        span = hold.span(self.ended)
        return [
            run
            for run in self.runs
            if run.id == hold.by
            or (hold.is_on(run) and run.reason == hold.reason and span.begin <= self.span(run).end < span.end)
        ]

    def drawing(self, hold: HoldRow) -> Iterator[AgentSpec]:
        """The agents that it stops."""
        return (
            agent for agent in self.agents.values() if hold.bucket.is_of(agent.name, agent.kind, agent.quota_account)
        )


def read(site: Site, agents: Sequence[AgentSpec], total: int, now: int) -> Records:
    """What the store says. total: slots in all."""
    with Database.open(site.database, state_dir=site.state) as database:

        def ask(connection: Connection) -> Records:
            runs = [Run(**row._mapping) for row in connection.execute(select(RUN).order_by(RUN.c.started_ms, RUN.c.id))]
            newest = select(TASK_REVISION).order_by(TASK_REVISION.c.revision)
            return Records(
                agents={agent.name: agent for agent in agents},
                total=total,
                tasks={task.id: task for task in Task.rows(connection, select(TASK))},
                specs={row.task_id: TaskSpec.model_validate(row.spec) for row in connection.execute(newest)},
                runs=runs,
                holds=_holds(connection),
                queued=_queued(connection, now),
                ended=now,
            )

        return database.read(ask)


def ran_on(run: Run) -> RanOn:
    """What it drew on."""
    return RanOn(run.agent, run.kind, run.account, run.model)


def _holds(connection: Connection) -> list[HoldRow]:
    return [
        HoldRow(
            Bucket(agent=row.agent, kind=row.kind, account=row.account, family=row.family),
            row.reason,
            row.window,
            row.provenance,
            row.run_id,
            row.created_ms,
            row.until_ms,
            row.released_ms,
        )
        for row in connection.execute(select(HOLD).order_by(HOLD.c.id))
    ]


def _queued(connection: Connection, now: int) -> dict[str, list[Span]]:
    spans: dict[str, list[Span]] = defaultdict(list)
    since: dict[str, int] = {}
    for row in connection.execute(select(EVENT).where(EVENT.c.kind == "state").order_by(EVENT.c.id)):
        begun = since.pop(row.task_id, None)
        if begun is not None:
            spans[row.task_id].append(Span(begun, row.at_ms))
        if row.data["state"] == "QUEUED":
            since[row.task_id] = row.at_ms
    for task_id, begun in since.items():
        spans[task_id].append(Span(begun, now))
    return spans
