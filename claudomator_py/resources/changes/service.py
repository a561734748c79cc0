"""Changes: reading what was recorded of runs."""

from sqlalchemy import Connection

from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.redaction import replaced
from claudomator_py.environment.secrets import Secrets
from claudomator_py.ports import RunHost
from claudomator_py.resources.changes.shape import ChangeCalls, ChangesView, PatchView, TaskChangesView
from claudomator_py.resources.concealment import unnamed
from claudomator_py.resources.session import Service, find_run, find_task
from claudomator_py.store import run_rows, task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.stored_json import readable
from claudomator_py.store.tables import Run
from claudomator_py.surface.operation import answers

UNKNOWN = "not known"


class Changes(Service):
    """What can be asked about changes. Every method may raise ``domain.errors.ServiceError``, NotFound above all."""

    def __init__(self, database: Database, host: RunHost, secrets: Secrets) -> None:
        super().__init__(database)
        self._host = host
        self._secrets = secrets

    @answers(ChangeCalls.changes)
    def of_task(self, ref: str) -> TaskChangesView:
        """Return what the runs of the task changed: all that is kept of it."""

        def read(connection: Connection) -> TaskChangesView:
            task = find_task(connection, ref, self._by)
            runs = unnamed(connection, run_rows.of_task(connection, task.id), self._by)
            views = tuple(self._view(connection, number, run) for number, run in enumerate(runs, start=1))
            return TaskChangesView(task_id=task.id, task_name=task.name, runs=views)

        return self._read(read)

    @answers(ChangeCalls.patch)
    def patch(self, run_id: str) -> PatchView:
        """Return the patch of a run."""

        def read(connection: Connection) -> tuple[Run, dict[str, str]]:
            run = find_run(connection, run_id, self._by)
            return run, task_rows.spec_of(connection, run.task_id, run.revision).env

        run, env = self._read(read)
        record = self._host.changes(run.id)
        text = self._secrets.redactor(env, run.id).redact(self._host.patch(run.id))
        return PatchView(run_id=run.id, text=text, is_whole=record is None or record.is_patch_whole)

    def _view(self, connection: Connection, number: int, run: Run) -> ChangesView:
        outcome = readable(Outcome, run.outcome)
        changes = None if outcome is None else outcome.changes
        if changes is not None and changes.file_count > len(changes.files):
            record = self._host.changes(run.id)
            if record is not None:
                env = task_rows.spec_of(connection, run.task_id, run.revision).env
                shown = replaced(record, self._secrets.redactor(env, run.id).redact)
                changes = changes.model_copy(update={"files": shown.files})
        summary = UNKNOWN if outcome is None else outcome.changes_text or UNKNOWN
        doubtful = outcome is not None and outcome.is_doubtful
        return ChangesView.of(run, run_id=run.id, number=number, summary=summary, is_doubtful=doubtful, changes=changes)
