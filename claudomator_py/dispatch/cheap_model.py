"""The cheap model behind what is asked of it: left alone while it fails, and while its account is limited."""

import threading

from sqlalchemy import Connection

from claudomator_py.domain.breaker import Breaker, Trouble
from claudomator_py.domain.limits import Bucket, Hold, RanOn
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.units import SECOND_MS
from claudomator_py.ports import CheapModel, Clock
from claudomator_py.scheduler.classification import Cause, ModelFault, ModelQuestion
from claudomator_py.store import hold_rows
from claudomator_py.tasks.holds import hold_account


class GuardedModel:
    """Asks the model, unless it has failed several times in a row. Safe to use from many threads.

    account: kind and account of the agents with which the model shares its limits; None: with nobody.
    """

    def __init__(self, model: CheapModel, clock: Clock, account: tuple[str, str] | None = None) -> None:
        self._model = model
        self._clock = clock
        self._bucket = None if account is None else Bucket(kind=account[0], account=account[1])
        self._breaker = Breaker()
        self.trouble: Trouble | None = None
        """What is wrong with the model, as far as it was asked; a limit is none, and has a hold."""
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The model's."""
        return self._model.model

    def ask(self, question: ModelQuestion, timeout_s: float, *, anyway: bool = False) -> str:
        """Return what it says, whatever that is worth. anyway: even if it has failed just now. Raises ModelFault."""
        if not self._may_try(anyway=anyway):
            raise ModelFault(Cause.BREAKER_OPEN, "it failed several times in a row")
        ok = False
        try:
            answer = self._model.ask(question, timeout_s)
            ok = True  # An answer that is useless is one: the next question may well get a better one.
            self.trouble = None
            return answer
        except ModelFault as fault:
            if fault.cause is not Cause.LIMITED:
                self.trouble = Trouble.after(self.trouble, fault.detail or fault.cause.value, self._clock())
            raise
        finally:
            self._tried(ok=ok)

    def hold(self, connection: Connection, now_ms: int) -> Hold | None:
        """Return what holds the account that it shares with agents, if it does, for this model."""
        if self._bucket is None:
            return None
        ran_on = RanOn("", self._bucket.kind or "", self._bucket.account or "", self._model.model)
        return next((hold for hold in hold_rows.in_force(connection, now_ms) if hold.is_on(ran_on)), None)

    def hold_text(self) -> str:
        """Return why it is not asked while there is a hold."""
        label = "" if self._bucket is None else self._bucket.label
        return f"the account {label}, which it shares with agents, is limited"

    def met(
        self, connection: Connection, task_id: str, detail: str | None, retry_after_s: float | None, now_ms: int
    ) -> None:
        """Record the limit that it met, asked about that task, as that of the agents with which it shares an
        account."""
        bucket = self._bucket
        if bucket is None or self.hold(connection, now_ms) is not None:
            return
        reset_at = None if retry_after_s is None else now_ms + round(retry_after_s * SECOND_MS)
        told = f"the classifier: {detail}"
        met = Outcome(status=OutcomeStatus.LIMITED, reason=Reason.RATE_LIMITED, detail=told, reset_at=reset_at)
        hold_account(connection, bucket, task_id, met, now_ms)

    def close(self) -> None:
        """Let go of the model."""
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
