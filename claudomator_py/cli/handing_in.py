"""Handing in a task so that it is made once: a request whose answer got lost is sent again, under the same key."""

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from claudomator_py.client.errors import ConnectionLost, DaemonNotRunning, ServiceProblem
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.views import TaskView
from claudomator_py.domain.views.schedules import ScheduleView

if TYPE_CHECKING:
    from tenacity import RetryCallState

    from claudomator_py.client.http import Client

V = TypeVar("V")

_TRIES = 8
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0
_LONGEST_ASKED_S = 30


class Submitter:
    """Submits tasks over one client, and over a new one after the connection was lost. Use it in a ``with`` block."""

    def __init__(self, connect: Callable[[], "Client"]) -> None:
        self._connect = connect
        self._gone = False
        self.client = connect()

    def __enter__(self) -> "Submitter":
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def submit(self, spec: TaskSpec) -> TaskView:
        """Hand in the task. Raises ClientError, and ConnectionLost only after several tries over some seconds."""
        key = secrets.token_urlsafe(18)
        return self._send(spec.name, lambda client: client.submit(spec, idempotency_key=key))

    def add_schedule(self, spec: TaskSpec) -> ScheduleView:
        """Hand in a schedule. Raises as ``submit`` does."""
        key = secrets.token_urlsafe(18)
        return self._send(spec.name, lambda client: client.add_schedule(spec, idempotency_key=key))

    def _send(self, name: str, send: "Callable[[Client], V]") -> V:
        import tenacity  # only this command needs it

        request = _Request()
        again = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(_TRIES),
            wait=_pause,
            retry=tenacity.retry_if_exception(request.may_be_repeated),
            before_sleep=lambda _: self._let_go(),
            reraise=True,
        )
        try:
            return again(lambda: send(self._client()))
        except DaemonNotRunning as error:
            if not request.lost:
                raise
            remedy = "See with `claudomator status` whether it was accepted before you submit it again."
            raise ConnectionLost(
                f"{error.detail} It is not known whether {name} was accepted.", remedy=remedy
            ) from error

    def _client(self) -> "Client":
        if self._gone:
            # A daemon that was started again may listen elsewhere.
            self.client = self._connect()
            self._gone = False
        return self.client

    def _let_go(self) -> None:
        self.client.close()
        self._gone = True


class _Request:
    """One submission. lost: it was sent, and its answer did not come."""

    def __init__(self) -> None:
        self.lost = False

    def may_be_repeated(self, error: BaseException) -> bool:
        """Whether to send it again. That no daemon runs is told at once, unless one was there a moment ago."""
        match error:
            case ConnectionLost():
                self.lost = True
                return True
            case DaemonNotRunning():
                return self.lost
            case ServiceProblem(code="idempotency_key_in_use"):
                return self.lost
            case ServiceProblem(retry_after_s=int(seconds)):
                return seconds <= _LONGEST_ASKED_S
        return False


def _pause(state: "RetryCallState") -> float:
    """Seconds until the next try: what the daemon asked for, else ever longer."""
    error = state.outcome.exception() if state.outcome is not None else None
    if isinstance(error, ServiceProblem) and error.retry_after_s is not None:
        return float(error.retry_after_s)
    return float(min(_FIRST_PAUSE_S * 2 ** (state.attempt_number - 1), _LONGEST_PAUSE_S))
