"""Handing a task on while its run lives: the run, or an operator in its place, says who is to go on with it."""

from collections.abc import Callable
from copy import copy

from sqlalchemy import Connection

from claudomator_py.domain.errors import Conflict, NotFound, Unavailable
from claudomator_py.domain.outcome import HandoffRequest
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.domain.redaction import clean
from claudomator_py.domain.views import HandoffView
from claudomator_py.environment.secrets import Secrets
from claudomator_py.ports import Clock
from claudomator_py.queries.reading import find_run
from claudomator_py.scheduler.decision import HandoffRecord
from claudomator_py.store import task_rows
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.events import caused_by
from claudomator_py.store.tables import Run, Task
from claudomator_py.tasks.decisions import record_handoff
from claudomator_py.tasks.handing_on import decided, weigh


class HandingOn:
    """What a run can ask about its task. Every method may raise ``domain.errors.ServiceError``."""

    def __init__(self, database: Database, clock: Clock, most: Callable[[], int], secrets: Secrets) -> None:
        """most: how often a task may be handed on at present. secrets: what no request may have stored."""
        self._database = database
        self._clock = clock
        self._most = most
        self._secrets = secrets
        self._by = OPERATOR

    def as_(self, by: Principal) -> "HandingOn":
        """The same, for who asks."""
        bound = copy(self)
        bound._by = by
        return bound

    def hand_on(self, run_id: str, asked: HandoffRequest) -> HandoffView:
        """Have that specialist go on with the task once the run has ended, however it ends. Harmless when repeated.

        Raises NotFound for another's run, and Conflict if the task cannot be handed on: whoever has it keeps it.
        """

        def transaction(connection: Connection) -> HandoffView:
            run = find_run(connection, run_id, self._by)
            if self._by.run_id not in (None, run.id):
                raise NotFound(f"There is no run {run_id!r} of yours.", remedy="A run hands on its own task alone.")
            task = task_rows.get(connection, run.task_id)
            spec = task_rows.spec_of(connection, task.id, run.revision)
            request = clean(asked, self._secrets.redactor(spec.env, run.id))
            return _shown(task, self._handed_on(connection, task, run, request))

        try:
            return self._database.write(caused_by(self._by.id, transaction))
        except StoreUnavailable as error:
            raise Unavailable(error.reason, remedy=error.remedy) from error

    def _handed_on(self, connection: Connection, task: Task, run: Run, asked: HandoffRequest) -> HandoffRecord:
        known = decided(connection, run.id)
        if known is not None and known.asked == asked:
            return known
        if known is not None:
            detail = f"{task.name} goes to {known.specialist or 'a person'} already."
            raise Conflict(detail, remedy="A run hands its task on once.")
        if not run.live or task.cancel_requested_ms is not None or task.restart_requested is not None:
            detail = f"The run of {task.name} has ended, or is to end."
            raise Conflict(detail, remedy="Only a run that is under way hands its task on.")
        record = weigh(connection, task, run, asked, self._most())
        if not record.accepted:
            detail = f"{task.name} cannot be handed on to {asked.to}: {record.reason.text}."
            raise Conflict(detail, remedy="Continue the task yourself, or ask the operator.")
        record_handoff(connection, task, record, self._clock())
        return record


def _shown(task: Task, record: HandoffRecord) -> HandoffView:
    return HandoffView(
        task_id=task.id,
        run_id=record.run_id,
        specialist=record.specialist or "",
        handed_on_by=record.by,
        hop=record.hop,
        max_handoffs=record.max_handoffs,
    )
