"""Asking a cheap model what has few answers: which of some close specialists a task is for, and how risky it is."""

import threading
from collections import OrderedDict

from claudomator_py.dispatch.cheap_model import GuardedModel
from claudomator_py.log import get_logger
from claudomator_py.ports import Clock
from claudomator_py.routing.questions import Choice, RiskQuestion
from claudomator_py.scheduler.classification import Cause, ModelFault, NoAnswer
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Task

log = get_logger("claudomator.routing")

_REMEMBERED = 1_000
"""Choices that are not asked for again."""


class Chooser:
    """Lets a cheap model choose among answers. No fault of it does more than leave the choice to what there is without
    it: the signals of close candidates, and what words say of a risk."""

    def __init__(self, model: GuardedModel, database: Database, timeout_ms: int, clock: Clock) -> None:
        self._model = model
        self._database = database
        self._timeout_s = timeout_ms / 1000
        self._clock = clock
        self._known: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def name(self, choice: Choice | RiskQuestion) -> str:
        """Return the name by which a decision says who chose."""
        return f"{self._model.name}/{choice.version}"

    def choose(self, choice: Choice | RiskQuestion, task: Task) -> str | None:
        """Return what it names; None: nothing, and the log says why. What it has named for the same is not asked again,
        unless an operator has restarted the task. Takes as long as the timeout. Raises StoreUnavailable."""
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
