"""Questions to the cheap model, which is not asked while it fails or its account is limited.

It answers questions with few possible answers: which of several close specialists a task is for, how risky a task is,
and, within a second, whether a channel's primary should answer.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from typing import Final

from sqlalchemy import Connection

from claudomator_py.domain.health import Breaker, Trouble
from claudomator_py.domain.limits import Bucket, Hold, RanOn
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.units import SECOND_MS
from claudomator_py.log import get_logger
from claudomator_py.ports import CheapModel, Clock
from claudomator_py.routing.questions import Choice, Reply, ReplyQuestion, RiskQuestion, is_yes
from claudomator_py.scheduler.classification import Cause, ModelFault, ModelQuestion, NoAnswer
from claudomator_py.store import hold_rows
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.tables import Task
from claudomator_py.tasks.holds import hold_account


class GuardedModel:
    """Asks the model, unless it has failed several times in a row. Safe to use from many threads.

    account: kind and account of the agents that share the model's limits; None if there are none.
    """

    def __init__(self, model: CheapModel, clock: Clock, account: tuple[str, str] | None = None) -> None:
        self._model = model
        self._clock = clock
        self._bucket = None if account is None else Bucket(kind=account[0], account=account[1])
        self._breaker = Breaker()
        self.trouble: Trouble | None = None
        """The model's current fault, if any. A limit is not a fault but a hold."""
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Name of the model."""
        return self._model.model

    def ask(self, question: ModelQuestion, timeout_s: float, *, anyway: bool = False) -> str:
        """Return the answer, which may be invalid. anyway: ask even if it has just failed. Raises ModelFault."""
        if not self._may_try(anyway=anyway):
            raise ModelFault(Cause.BREAKER_OPEN, "it failed several times in a row")
        ok = False
        try:
            answer = self._model.ask(question, timeout_s)
            ok = True  # Even an invalid answer counts: the next question may get a valid one.
            self.trouble = None
            return answer
        except ModelFault as fault:
            if fault.cause is not Cause.LIMITED:
                self.trouble = Trouble.after(self.trouble, fault.detail or fault.cause.value, self._clock())
            raise
        finally:
            self._tried(ok=ok)

    def hold(self, connection: Connection, now_ms: int) -> Hold | None:
        """Return the hold on the shared account that applies to this model, if any."""
        if self._bucket is None:
            return None
        ran_on = RanOn("", self._bucket.kind or "", self._bucket.account or "", self._model.model)
        return next((hold for hold in hold_rows.in_force(connection, now_ms) if hold.is_on(ran_on)), None)

    def ask_unless_held(
        self, database: Database, question: ModelQuestion, timeout_s: float, *, anyway: bool = False
    ) -> str:
        """Return the answer as ``ask`` does. Raises ModelFault, also while the shared account is limited, and
        StoreUnavailable."""
        if database.read(lambda connection: self.hold(connection, self._clock())) is not None:
            raise ModelFault(Cause.LIMITED, self.hold_text())
        return self.ask(question, timeout_s, anyway=anyway)

    def hold_text(self) -> str:
        """Return why the model is not asked while there is a hold."""
        label = "" if self._bucket is None else self._bucket.label
        return f"the account {label}, which it shares with agents, is limited"

    def met(
        self, connection: Connection, task_id: str, detail: str | None, retry_after_s: float | None, now_ms: int
    ) -> None:
        """Hold the account that the model shares with agents, because it met a limit when asked about the task."""
        bucket = self._bucket
        if bucket is None or self.hold(connection, now_ms) is not None:
            return
        reset_at = None if retry_after_s is None else now_ms + round(retry_after_s * SECOND_MS)
        limited = Outcome(
            status=OutcomeStatus.LIMITED,
            reason=Reason.RATE_LIMITED,
            detail=f"the classifier: {detail}",
            reset_at=reset_at,
        )
        hold_account(connection, bucket, task_id, limited, now_ms)

    def close(self) -> None:
        """Close the model."""
        self._model.close()

    def _may_try(self, *, anyway: bool) -> bool:
        with self._lock:
            if not anyway and not self._breaker.allows(self._clock()):
                return False
            self._breaker = self._breaker.began()
            return True

    def _tried(self, *, ok: bool) -> None:
        with self._lock:
            self._breaker = self._breaker.succeeded() if ok else self._breaker.failed(self._clock())


log = get_logger("claudomator.routing")

_CACHE_SIZE = 1_000
"""Answers that are cached."""


class Chooser:
    """Asks a cheap model to choose among answers. If it fails, the scores of close candidates, or the words of a task's
    risk, decide as they do without a model."""

    def __init__(self, model: GuardedModel, database: Database, timeout_ms: int, clock: Clock) -> None:
        self._model = model
        self._database = database
        self._timeout_s = timeout_ms / 1000
        self._clock = clock
        self._known: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def name(self, choice: Choice | RiskQuestion) -> str:
        """Return the name of the model and prompt, as decisions record it."""
        return f"{self._model.name}/{choice.version}"

    def choose(self, choice: Choice | RiskQuestion, task: Task) -> str | None:
        """Return the answer, or None if there is no valid one, which is logged. Answers are cached, except for
        restarted tasks. Blocks up to the timeout. Raises StoreUnavailable."""
        key = choice.key(self._model.name)
        with self._lock:
            known = self._known.get(key)
        if known is not None and task.generation == 1:
            return known
        try:
            anyway = task.generation > 1
            text = self._model.ask_unless_held(self._database, choice.question, self._timeout_s, anyway=anyway)
            answer = choice.answer(text)
        except NoAnswer as fault:
            log.warning("choice_fallback", task=task.name, task_id=task.id, cause=fault.cause, detail=fault.detail)
            self._met(task, fault)
            return None
        with self._lock:
            self._known[key] = answer
            while len(self._known) > _CACHE_SIZE:
                self._known.popitem(last=False)
        return answer

    def _met(self, task: Task, fault: NoAnswer) -> None:
        if not isinstance(fault, ModelFault) or fault.cause is not Cause.LIMITED:
            return
        self._database.write(
            lambda connection: self._model.met(connection, task.id, fault.detail, fault.retry_after_s, self._clock())
        )


channel_log = get_logger("claudomator.channels")

TIMEOUT_S: Final = 0.9
CONCURRENCY: Final = 8


class PrimaryJudge:
    """Asks the configured model whether a channel's primary should answer. If it fails, the answer is no."""

    def __init__(
        self,
        database: Database,
        model: Callable[[], GuardedModel | None],
        *,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """model: returns the configured model, if any."""
        self._database = database
        self._model = model
        self._timeout_s = timeout_s
        self._pool = ThreadPoolExecutor(CONCURRENCY, "primary")

    def ask(self, question: ReplyQuestion) -> Reply:
        """Return the answer, or no with the cause if none comes in time."""
        model = self._model()
        if model is None:
            return Reply(yes=False, cause="no classifier is configured")
        try:
            asked = self._pool.submit(self._ask, model, question)
            return Reply(asked.result(self._timeout_s))
        except NotInTime:
            channel_log.warning("primary_not_judged", channel=question.channel, cause="timeout")
            return Reply(yes=False, cause="timeout")
        except NoAnswer as fault:
            channel_log.warning("primary_not_judged", channel=question.channel, cause=fault.cause, detail=fault.detail)
            return Reply(yes=False, cause=fault.cause.replace("_", " "))
        except StoreUnavailable as error:
            channel_log.warning("primary_not_judged", channel=question.channel, problem=str(error))
            return Reply(yes=False, cause="the database is not available")
        except Exception:
            channel_log.exception("primary_not_judged", channel=question.channel)
            return Reply(yes=False, cause="an error in the daemon, see its log")

    def close(self) -> None:
        """Cancel pending questions."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _ask(self, model: GuardedModel, question: ReplyQuestion) -> bool:
        return is_yes(model.ask_unless_held(self._database, question.question, self._timeout_s))
