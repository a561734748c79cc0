"""The intake: accepted files become tasks and schedules, or change those that they became earlier."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress

from sqlalchemy import Connection

from claudomator_py.domain.errors import Problem
from claudomator_py.domain.principal import INBOX
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.workdirs import Workdirs
from claudomator_py.faults import error_text
from claudomator_py.log import get_logger
from claudomator_py.ports import Clock
from claudomator_py.sources.inbox.ledger import FileReading, FileRefused, FileStamp
from claudomator_py.sources.inbox.taking import FileBatch, FileTransaction
from claudomator_py.store import inbox_rows, schedule_rows
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.events import caused_by
from claudomator_py.tasks.feasibility import acceptance_warnings, placement_problems, zone_problems
from claudomator_py.tasks.schedules import end_of_file

log = get_logger("claudomator.inbox")

MAX_IN_TICK = 8
"""Tasks that a tick accepts at most, as it starts nothing meanwhile."""
TICK_S = 0.05
"""How long a tick has to accept a file, in seconds, before the writer's thread does it."""


class StoreIntake:
    """The ``Intake`` that creates tasks from files, each file whole or not at all. workdirs: returns what is currently
    allowed. rescheduled: called after files with schedules were accepted."""

    def __init__(
        self,
        database: Database,
        registry: AgentRegistry,
        workdirs: Callable[[], Workdirs],
        clock: Clock,
        rescheduled: Callable[[], None] = lambda: None,
    ) -> None:
        self._database = database
        self._registry = registry
        self._workdirs = workdirs
        self._clock = clock
        self._rescheduled = rescheduled
        self.hand_over: Callable[[Callable[[], None]], bool] = lambda _: False
        """Has the next tick do what the function queues; returns False, having done nothing, if that is not possible.
        See ``InboxWatcher.hand_over``."""
        self.was_planned = False

    def known_files(self) -> Mapping[str, FileStamp]:
        files = self._database.read(inbox_rows.files)
        return {file.path: FileStamp(file.mtime_ns, file.size, file.inode) for file in files}

    def take(self, readings: Sequence[FileReading]) -> Sequence[Sequence[Problem]]:
        results: list[list[Problem] | FileTransaction] = []
        place = 0
        for reading in readings:
            problems = [
                reading.parsed.located(spec, problem)
                for spec in reading.parsed.items
                for problem in (*placement_problems(spec, self._registry, self._workdirs()), *zone_problems(spec))
            ]
            results.append(problems or FileTransaction(reading, self._clock(), place))
            place += len(reading.parsed.items)
        # In one transaction, so that no tick sees only the first file and gives it the slot of a more urgent one.
        changes = FileBatch([result for result in results if isinstance(result, FileTransaction)]).changes()
        taking = iter(self._submit([caused_by(INBOX.id, change) for change in changes], tasks=place))
        verdicts = [result if isinstance(result, list) else _verdict(next(taking)) for result in results]
        for reading, refused in zip(readings, verdicts, strict=True):
            if not refused:
                self._warn(reading)
        if any(spec.schedule is not None for reading in readings for spec in reading.parsed.items):
            self._rescheduled()
        return verdicts

    def _submit(self, changes: Sequence[Callable[[Connection], None]], tasks: int) -> list[Future[None]]:
        """Make the changes, and return their results. tasks: how many tasks they may accept."""
        taking: list[Future[None]] = []

        def queue() -> None:
            taking.extend(self._database.submit_together(changes, lazily=True))

        self.was_planned = len(changes) == 1 and tasks <= MAX_IN_TICK and self.hand_over(queue)
        if self.was_planned:
            # In one commit with the start. If no tick takes it, its own commit wakes the next one.
            with suppress(FileRefused):
                try:
                    taking[0].result(TICK_S)
                except TimeoutError:
                    self._database.flush()
            return taking
        # On this thread: the writer's takes two thread switches. The inbox reports them, once it is known whether more
        # have arrived.
        with self._database.together():
            return self._database.submit_together(changes, planned=True)

    def _warn(self, reading: FileReading) -> None:
        """Log oddities of an accepted file, with their lines."""
        for spec in reading.parsed.items:
            for warning in acceptance_warnings(spec, self._registry):
                log.warning("task_warning", warning=reading.parsed.located(spec, warning).render(reading.path))

    def gone(self, paths: Sequence[str]) -> None:
        now_ms = self._clock()

        def forget(connection: Connection, paths: Sequence[str]) -> None:
            inbox_rows.forget_files(connection, paths)
            inbox_rows.mark_files_gone(connection, paths, now_ms)
            scheduling = schedule_rows.with_schedules(connection, paths)
            for path in paths:
                if path in scheduling:
                    end_of_file(connection, path, now_ms)

        self._together_or_each(paths, forget)

    def archived(self, paths: Sequence[str]) -> None:
        """See ``inbox.ledger.Intake``. A file arriving under that name later is new, so the identity is given up."""

        def forget(connection: Connection, paths: Sequence[str]) -> None:
            inbox_rows.forget_files(connection, paths)
            inbox_rows.forget_documents(connection, paths)
            schedule_rows.detach(connection, paths, self._clock())

        self._together_or_each(paths, forget)

    def _together_or_each(self, paths: Sequence[str], change: Callable[[Connection, Sequence[str]], None]) -> None:
        """Make the change in one transaction or, if that fails, in one per file, so that no file holds up another. What
        fails is retried with the next scan."""
        try:
            self._database.write(caused_by(INBOX.id, lambda connection: change(connection, paths)))
        except StoreUnavailable:
            raise
        except Exception as error:
            if len(paths) == 1:
                log.error("file_not_forgotten", file=paths[0], problem=error_text(error))
                return
            for path in paths:
                self._together_or_each([path], change)


def _verdict(taken: Future[None]) -> Sequence[Problem]:
    try:
        taken.result()
    except FileRefused as refused:
        return refused.problems
    return []
