"""Delivers answers: turns the results of tasks made from messages into messages, each exactly once.

Due answers are read from the rows each time, and an answer and its delivered mark share one transaction. So a crash at
any point is harmless: before the commit nothing was delivered, after it the answer is no longer due.
"""

import logging
from collections.abc import Callable

from claudomator_py.domain.channel import ChannelSettings
from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.environment.workdirs import Workdirs, directory_key
from claudomator_py.ports import Clock
from claudomator_py.store import channel_rows
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.tables import ChannelAnswer
from claudomator_py.tasks.messages import Policy, TriageInputs, deliver, no_policy
from claudomator_py.workers import Worker

log = logging.getLogger("claudomator.channels")

SETTLE_S = 0.1
"""Delay that lets changes committed in quick succession be handled in one round."""


def place_key(working_dir: str | None, workdirs: Workdirs) -> str | None:
    """Return the key that tasks in that directory share; None: no task may work there, or it cannot be examined."""
    if working_dir is not None and workdirs.problem(working_dir) is not None:
        return None
    try:
        return directory_key(working_dir)
    except (OSError, RuntimeError):
        return None


class AnswerDispatcher(Worker):
    """Delivers due answers in the background. policy: see ``tasks.messages.Policy``."""

    wakes_on_commit = True

    def __init__(
        self, database: Database, workdirs: Callable[[], Workdirs], clock: Clock, policy: Policy = no_policy
    ) -> None:
        super().__init__("answers", clock, settle_s=SETTLE_S)
        self._database = database
        self._workdirs = workdirs
        self._policy = policy

    def run_once(self) -> int:
        """Give all due answers; return how many. Raises StoreUnavailable."""
        given = 0
        while answers := self._database.read(channel_rows.ready):
            before = given
            for answer in answers:
                given += self._give(answer)
            if given == before:
                break
        return given

    def _give(self, answer: ChannelAnswer) -> int:
        try:
            channel = self._database.read(lambda connection: channel_rows.get(connection, answer.channel_id))
            working_dir = ChannelSettings.model_validate(channel.settings).working_dir
            advice = TriageInputs(dir_key=place_key(working_dir, self._workdirs()), policy=self._policy)
            crashpoint("answer-due")
            given = self._database.write(lambda connection: deliver(connection, answer, advice, self._clock()))
        except StoreUnavailable:
            raise
        except Exception:
            # An answer that cannot be delivered blocks no other; it is retried.
            log.exception("the answer of %s to message %s was not given", answer.specialist, answer.message_id)
            return 0
        crashpoint("answer-given")
        return 0 if given is None else 1
