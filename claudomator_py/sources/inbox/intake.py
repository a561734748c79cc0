"""The intake: accepted files become tasks and schedules, or change those that they became before."""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from sqlalchemy import Connection

from claudomator_py.domain.errors import Problem, problems_text
from claudomator_py.domain.principal import INBOX
from claudomator_py.domain.task import TaskSpec
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.workdirs import Workdirs, directory_key, local_zone
from claudomator_py.faults import error_text
from claudomator_py.log import get_logger
from claudomator_py.ports import Clock
from claudomator_py.schema.taskfile import content_hash
from claudomator_py.sources.inbox.values import FileReading, FileStamp
from claudomator_py.store import inbox_rows, schedule_rows, task_rows
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.events import caused_by
from claudomator_py.store.tables import InboxDocument, Task
from claudomator_py.tasks.accept import ENDED, NewTask, accept, cancel_now, circle_problem, rename, replace_content
from claudomator_py.tasks.feasibility import acceptance_warnings, placement_problems, zone_problems
from claudomator_py.tasks.schedules import Plan, begin, end_of_file, move, replace
from claudomator_py.tasks.specialists import task_problems

log = get_logger("claudomator.inbox")


class StoreIntake:
    """Makes tasks of files, each file whole or not at all. workdirs: what is allowed at present.

    rescheduled: told after files with schedules came.
    """

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

    def known_files(self) -> Mapping[str, FileStamp]:
        """See ``inbox.values.Intake``."""
        files = self._database.read(inbox_rows.files)
        return {file.path: FileStamp(file.mtime_ns, file.size, file.inode) for file in files}

    def take(self, reading: FileReading) -> Sequence[Problem]:
        """See ``inbox.values.Intake``."""
        return self.take_many([reading])[0]

    def take_many(self, readings: Sequence[FileReading]) -> Sequence[Sequence[Problem]]:
        """See ``inbox.values.Intake``."""
        found: list[list[Problem] | _Taking] = []
        place = 0
        for reading in readings:
            problems = [
                reading.parsed.located(spec.name, problem)
                for spec in reading.parsed.specs
                for problem in (*placement_problems(spec, self._registry, self._workdirs()), *zone_problems(spec))
            ]
            found.append(problems or _Taking(reading, self._clock(), place))
            place += len(reading.parsed.specs)
        # Together, so that no tick sees the first of them alone and gives it the slot of one that is more urgent.
        taking = iter(
            self._database.submit_together([caused_by(INBOX.id, one) for one in found if isinstance(one, _Taking)])
        )
        verdicts = [one if isinstance(one, list) else _verdict(next(taking)) for one in found]
        for reading, refused in zip(readings, verdicts, strict=True):
            if not refused:
                self._warn(reading)
        if any(spec.schedule is not None for reading in readings for spec in reading.parsed.specs):
            self._rescheduled()
        return verdicts

    def _warn(self, reading: FileReading) -> None:
        """Log what is odd about an accepted file, with its line."""
        for spec in reading.parsed.specs:
            for warning in acceptance_warnings(spec, self._registry):
                log.warning("task_warning", warning=reading.parsed.located(spec.name, warning).render(reading.path))

    def gone(self, paths: Sequence[str]) -> None:
        """See ``inbox.values.Intake``."""
        now_ms = self._clock()

        def forget(connection: Connection, paths: Sequence[str]) -> None:
            inbox_rows.forget_files(connection, paths)
            for path in paths:
                inbox_rows.mark_gone(connection, path, now_ms)
                end_of_file(connection, path, now_ms)

        self._together_or_each(paths, forget)

    def keep_to(self, folders: Collection[str]) -> None:
        """These are the inboxes now: what was accepted from any other folder lies in none any more, and is gone."""
        elsewhere = [path for path in self.known_files() if str(Path(path).parent) not in folders]
        if elsewhere:
            self.gone(elsewhere)

    def archived(self, paths: Sequence[str]) -> None:
        """See ``inbox.values.Intake``. The next arrival of such a file is a new one, so its identity is given up."""

        def forget(connection: Connection, paths: Sequence[str]) -> None:
            inbox_rows.forget_files(connection, paths)
            for path in paths:
                inbox_rows.forget_documents(connection, path)
            schedule_rows.detach(connection, paths, self._clock())

        self._together_or_each(paths, forget)

    def _together_or_each(self, paths: Sequence[str], change: Callable[[Connection, Sequence[str]], None]) -> None:
        """In one transaction; where that fails in one for each, so that one file keeps no other. It is tried again with
        the next scan."""
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


class _Refused(Exception):
    """Undoes the transaction that it is raised in."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(problems_text(problems))
        self.problems = problems


def _verdict(taken: Future[None]) -> list[Problem]:
    try:
        taken.result()
    except _Refused as refused:
        return refused.problems
    return []


class _Taking:
    """The transaction that takes one file. Raises _Refused."""

    def __init__(self, reading: FileReading, now_ms: int, place: int) -> None:
        """place: how many documents of other files come before its own."""
        self._path = reading.path
        self._renamed_from = reading.renamed_from
        self._stamp = reading.stamp
        self._parsed = reading.parsed
        self._specs = reading.parsed.specs
        self._orders = {
            spec.name: NewTask(spec, directory_key(spec.working_dir), "file", self._path, number, creator=INBOX.id)
            for number, spec in enumerate(self._specs, place)
        }
        self._named: dict[str, Sequence[InboxDocument]] = {}
        self._schedules = frozenset(spec.name for spec in self._specs if spec.schedule is not None)
        self._zone = local_zone() if self._schedules else ""
        self._now_ms = now_ms

    def __call__(self, connection: Connection) -> None:
        if self._renamed_from is not None:
            self._follow_rename(connection, self._renamed_from)
        self._refuse([problem for spec in self._specs for problem in self._taken_names(connection, spec)])
        self._refuse(
            [
                self._parsed.located(spec.name, problem)
                for spec in self._specs
                for problem in task_problems(connection, spec, INBOX)
            ]
        )
        end_of_file(connection, self._path, self._now_ms, besides=self._schedules)
        tasks = [(self._document(connection, spec), spec) for spec in self._specs if spec.schedule is None]
        # Only now, as the documents of one file may name each other, in any order.
        circle = circle_problem(connection, tasks)
        self._refuse([circle] if circle is not None else [])
        for spec in self._specs:
            if spec.schedule is not None:
                self._schedule(connection, spec)
        inbox_rows.mark_gone(connection, self._path, self._now_ms, besides=self._orders)
        stamp = self._stamp
        file = inbox_rows.new_file(
            path=self._path, mtime_ns=stamp.mtime_ns, size=stamp.size, inode=stamp.inode, accepted_ms=self._now_ms
        )
        inbox_rows.put_file(connection, file)

    def _follow_rename(self, connection: Connection, old_path: str) -> None:
        """This very file lay under another name: what it became keeps its identity, and takes its name from the file
        again if it has none of its own. Nothing runs again for that."""
        documents = inbox_rows.of_file(connection, old_path)
        for entry in documents:
            spec = next((spec for spec in self._specs if spec.name == entry.name), None)
            if spec is None and len(documents) == len(self._specs) == 1:
                spec = self._specs[0]
            if spec is None:
                continue
            inbox_rows.forget_document(connection, old_path, entry.name)
            if entry.name != spec.name:
                self._refuse(self._taken_names(connection, spec))
            if entry.task_id is not None:
                task = task_rows.get(connection, entry.task_id)
                if task.name != spec.name:
                    rename(connection, task, spec.name, self._now_ms)
            elif entry.schedule_id is not None:
                schedule = schedule_rows.get(connection, entry.schedule_id)
                move(connection, schedule, Plan(spec, self._zone, "file", self._path, creator=INBOX.id), self._now_ms)
            moved = {"path": self._path, "name": spec.name, "content_hash": content_hash(spec)}
            inbox_rows.put_document(connection, InboxDocument(**{**entry.model_dump(), **moved}))
        inbox_rows.mark_gone(connection, old_path, self._now_ms)
        end_of_file(connection, old_path, self._now_ms)
        inbox_rows.forget_files(connection, [old_path])

    def _refuse(self, problems: list[Problem]) -> None:
        if problems:
            raise _Refused(problems)

    def _taken_names(self, connection: Connection, spec: TaskSpec) -> list[Problem]:
        named = self._named[spec.name] = inbox_rows.named(connection, spec.name)
        for other in named:
            if other.path != self._path and other.gone_ms is None:
                message = f"the name `{spec.name}` is taken by {other.path}"
                return [Problem(field="name", message=message, remedy="give one of the two another name")]
        there = schedule_rows.named(connection, spec.name) if spec.schedule is not None else None
        if there is not None and there.source == "api":
            message = f"the name `{spec.name}` is taken by a schedule made through the API"
            remedy = f"give it another name, or end the other: claudomator schedule delete {spec.name}"
            return [Problem(field="name", message=message, remedy=remedy)]
        return []

    def _document(self, connection: Connection, spec: TaskSpec) -> Task:
        digest = content_hash(spec)
        order = self._orders[spec.name]
        entry = self._known(connection, spec.name, digest)
        if entry is None or entry.task_id is None:
            task = accept(connection, order, self._now_ms)
        else:
            task = task_rows.get(connection, entry.task_id)
            if task.file_path != self._path:
                task = task_rows.change(connection, task, self._now_ms, file_path=self._path)
            if entry.content_hash != digest:
                task = replace_content(connection, task, order, self._now_ms)
        document = inbox_rows.new_document(path=self._path, name=spec.name, task_id=task.id, content_hash=digest)
        inbox_rows.put_document(connection, document, new=entry is None)
        return task

    def _schedule(self, connection: Connection, spec: TaskSpec) -> None:
        digest = content_hash(spec)
        plan = Plan(spec, self._zone, "file", self._path, creator=INBOX.id)
        entry = self._known(connection, spec.name, digest)
        if entry is not None and entry.task_id is not None:
            self._give_up(connection, entry.task_id)
        # Else one that is left of a file which was moved away once it was accepted.
        known = entry.schedule_id if entry is not None else None
        schedule = (
            schedule_rows.get(connection, known) if known is not None else schedule_rows.named(connection, spec.name)
        )
        if schedule is None:
            schedule = begin(connection, plan, self._now_ms)
        elif entry is None or entry.content_hash != digest or schedule.gone_ms is not None:
            replace(connection, schedule, plan, self._now_ms)
        inbox_rows.put_document(
            connection,
            InboxDocument(path=self._path, name=spec.name, schedule_id=schedule.id, content_hash=digest),
        )

    def _give_up(self, connection: Connection, task_id: str) -> None:
        """The document is a schedule now: what it was does not start any more; a run goes on to its end."""
        task = task_rows.get(connection, task_id)
        if task.state not in (*ENDED, "RUNNING"):
            cancel_now(connection, task, self._now_ms, data={"by": "schedule"})

    def _known(self, connection: Connection, name: str, digest: str) -> InboxDocument | None:
        """The document of that name as it was accepted before.

        Of a file that was only renamed it is the one that is gone and has the same name and content: it is no new task.
        """
        for other in self._named[name]:
            if other.path == self._path:
                return other
        for other in self._named[name]:
            if other.gone_ms is not None and other.content_hash == digest:
                inbox_rows.forget_document(connection, other.path, other.name)
                return other
        return None
