"""Asking the cheap model whether a channel's primary should answer: in less than a second, whatever becomes of it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from typing import Final

from claudomator_py.dispatch.cheap_model import GuardedModel
from claudomator_py.log import get_logger
from claudomator_py.ports import Clock
from claudomator_py.routing.questions import Reply, ReplyQuestion, says_yes
from claudomator_py.scheduler.classification import Cause, ModelFault, NoAnswer
from claudomator_py.store.database import Database, StoreUnavailable

log = get_logger("claudomator.channels")

TIMEOUT_S: Final = 0.9
CONCURRENCY: Final = 8


class PrimaryJudge:
    """Asks the model that is configured at present. No fault of it does more than mean no."""

    def __init__(
        self,
        database: Database,
        model: Callable[[], GuardedModel | None],
        clock: Clock,
        *,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """model: None: there is none."""
        self._database = database
        self._model = model
        self._clock = clock
        self._timeout_s = timeout_s
        self._pool = ThreadPoolExecutor(CONCURRENCY, "primary")

    def ask(self, question: ReplyQuestion) -> Reply:
        """Return what it says in time."""
        model = self._model()
        if model is None:
            return Reply(yes=False, cause="no classifier is configured")
        try:
            asked = self._pool.submit(self._ask, model, question)
            return Reply(asked.result(self._timeout_s))
        except NotInTime:
            log.warning("primary_not_judged", channel=question.channel, cause="timeout")
            return Reply(yes=False, cause="timeout")
        except NoAnswer as fault:
            log.warning("primary_not_judged", channel=question.channel, cause=fault.cause, detail=fault.detail)
            return Reply(yes=False, cause=fault.cause.replace("_", " "))
        except StoreUnavailable as error:
            log.warning("primary_not_judged", channel=question.channel, problem=str(error))
            return Reply(yes=False, cause="the database is not available")
        except Exception:
            log.exception("primary_not_judged", channel=question.channel)
            return Reply(yes=False, cause="an error in the daemon, see its log")

    def close(self) -> None:
        """Ask nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _ask(self, model: GuardedModel, question: ReplyQuestion) -> bool:
        if self._database.read(lambda connection: model.hold(connection, self._clock())) is not None:
            raise ModelFault(Cause.LIMITED, model.hold_text())
        return says_yes(model.ask(question.question, self._timeout_s))
