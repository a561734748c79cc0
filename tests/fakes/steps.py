"""What a test does in a world: asks for something, and has agents say and end something."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select

from claudomator_py.dispatch.apply_report import Applied, CheckWanted, PendingEnd, ReportApplier, ReportedRun
from claudomator_py.dispatch.observe import Observation, Observer
from claudomator_py.dispatch.reconciler import Reconciler, TickReport
from claudomator_py.domain.errors import Problem
from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.report import RunReport
from claudomator_py.domain.requests import RestartRequest, TaskFilter
from claudomator_py.domain.task import TaskSpec
from claudomator_py.resources.tasks import TaskView
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.schema.documents import ParsedFile
from claudomator_py.schema.taskfile import parse_task
from claudomator_py.sources.inbox.intake import StoreIntake
from claudomator_py.sources.inbox.ledger import FileStamp, InboxReading
from claudomator_py.store import run_rows, task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import TASK, Run, Task
from tests.fakes.runs import EndedBy, MemoryRunHost


def from_document(document: Mapping[str, object]) -> TaskSpec:
    """The task of a document that must be right."""
    parsed = parse_task(document)
    assert isinstance(parsed, TaskSpec), parsed
    return parsed


def spec(name: str, **fields: Any) -> TaskSpec:
    """A valid task with these fields, as a file would write them."""
    return from_document({"name": name, "instructions": f"do {name}", **fields})


class Steps:
    """A world as seen by a test that acts in it."""

    database: Database
    host: MemoryRunHost
    applier: ReportApplier
    observer: Observer
    reconciler: Reconciler
    service: Tasks
    intake: StoreIntake
    now_ms: int

    def tick(self, after_ms: int = 0) -> TickReport:
        """A tick, so much later."""
        self.now_ms += after_ms
        self.host.now_ms = self.now_ms
        report = self.reconciler.tick()
        self.host.watch((step.run_id, step.step) for step in report.live)
        return report

    def apply(self, report: RunReport, now_ms: int, known: ReportedRun | None = None) -> Applied | CheckWanted:
        """Apply a report, and wait until that is durable."""
        applied = self.applier.apply(report, now_ms, known)
        return applied.applied() if isinstance(applied, PendingEnd) else applied

    def observed(self) -> Observation:
        """What a tick with queued tasks would plan now."""
        observed = self.database.read(self.observer.observe)
        assert observed is not None, "no task is queued"
        return observed

    def submit(self, name: str, **fields: Any) -> TaskView:
        return self.service.submit(spec(name, **fields))

    def restart(self, name: str, **fields: Any) -> TaskView:
        return self.service.restart(name, RestartRequest(**fields))

    def take(
        self, path: str, *specs: TaskSpec, mtime_ns: int = 1, renamed_from: str | None = None
    ) -> Sequence[Problem]:
        """The file was read with these documents. renamed_from: where it lay before, unchanged."""
        reading = InboxReading(path, FileStamp(mtime_ns, 1, 1), ParsedFile(tuple(specs), ()), renamed_from)
        return self.intake.take([reading])[0]

    def take_many(self, files: Mapping[str, Sequence[TaskSpec]]) -> Sequence[Sequence[Problem]]:
        """These files were read at once."""
        readings = [
            InboxReading(path, FileStamp(1, 1, 1), ParsedFile(tuple(specs), ())) for path, specs in files.items()
        ]
        return self.intake.take(readings)

    def names(self, **wanted: Any) -> list[str]:
        """The names of all tasks that such a filter finds, newest first."""
        return [view.name for view in self.service.page(TaskFilter(**wanted), None, 200).items]

    def keep_tier(self, task_ids: Sequence[str], tier: str) -> None:
        """These tasks are to be tried again on that tier."""
        change = TASK.update().where(TASK.c.id.in_(task_ids)).values(tier=tier)
        self.database.write(lambda connection: connection.execute(change))

    def task(self, name: str) -> TaskView:
        return self.service.get(name)

    def state(self, name: str) -> str:
        """State and reason, such as ``WAITING dependency``."""
        view = self.task(name)
        return f"{view.state} {view.reason}" if view.reason is not None else view.state

    def row(self, name: str) -> Task:
        def newest(connection: Any) -> Task:
            query = select(TASK).where(TASK.c.name == name).order_by(TASK.c.created_ms.desc(), TASK.c.id.desc())
            return Task.load(connection.execute(query.limit(1)).one())

        return self.database.read(newest)

    def live(self, name: str) -> Run:
        """The live run of the newest task of that name."""
        task_id = self.row(name).id
        live = [run for run in self.database.read(run_rows.live) if run.task_id == task_id]
        assert live, f"{name} has no live run: {self.state(name)}"
        return live[0]

    def running(self) -> dict[str, str]:
        """The agent of each live run, by the task's name."""

        def read(connection: Any) -> dict[str, str]:
            runs = run_rows.live(connection)
            return {task_rows.get(connection, run.task_id).name: run.agent for run in runs}

        return self.database.read(read)

    def say(self, name: str, **outcome: Any) -> None:
        """The task's agent writes its outcome."""
        payload = Outcome(**({"status": "succeeded"} | outcome)).model_dump(mode="json")
        self.host.write(self.live(name).id, json.dumps(payload).encode() + b"\n")

    def answer(self, name: str) -> None:
        """The model of the task's run says something; the daemon has not seen it yet."""
        self.host.write(self.live(name).id, b"# on it\n")

    def use(self, name: str, **used: Any) -> None:
        """The task's agent says what its run has used so far; the daemon has not seen it yet."""
        self.host.write(self.live(name).id, b"#used " + json.dumps(used).encode() + b"\n")

    def end(self, name: str, *, exit_code: int | None = 0, ended_by: EndedBy | None = None, **outcome: Any) -> None:
        """The task's agent writes its outcome and ends; the daemon has not seen it yet."""
        self.say(name, **outcome)
        self.host.end(self.live(name).id, exit_code, ended_by=ended_by)

    def succeed(self, name: str) -> None:
        self.end(name)
        self.tick()

    def fail(self, name: str, reason: str = "refused", **outcome: Any) -> None:
        self.end(name, exit_code=1, status="failed", reason=reason, **outcome)
        self.tick()

    def limit(self, name: str, *, reset_at: int | None = None, reason: str = "rate_limited") -> None:
        provenance = "reported" if reset_at is not None else None
        outcome: dict[str, Any] = {"reason": reason, "reset_at": reset_at, "limit": "five_hour"}
        self.end(name, exit_code=1, status="limited", provenance=provenance, **outcome)
        self.tick()
