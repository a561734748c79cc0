"""The intake: accepted files become tasks, or change the tasks that they became before."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from claudomator_py.core.problem import Problem
from claudomator_py.core.task import TaskSpec
from claudomator_py.core.taskfile import content_hash
from claudomator_py.service.admission_checks import cycle_problem, placement_problems
from claudomator_py.service.inbox_values import FileReading, FileStamp
from claudomator_py.service.ports import Clock
from claudomator_py.service.registry import AgentRegistry
from claudomator_py.service.task_changes import Order, accept, replace_content
from claudomator_py.service.workdirs import Workdirs, directory_key
from claudomator_py.store import inbox_rows, task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import InboxDocument, InboxFile


class StoreIntake:
    """Makes tasks of files, each file in one transaction."""

    def __init__(self, database: Database, registry: AgentRegistry, workdirs: Workdirs, clock: Clock) -> None:
        self._database = database
        self._registry = registry
        self._workdirs = workdirs
        self._clock = clock

    def known_files(self) -> Mapping[str, FileStamp]:
        """See ``inbox_values.Intake``."""
        files = self._database.read(inbox_rows.files)
        return {file.path: FileStamp(file.mtime_ns, file.size, file.inode) for file in files}

    def take(self, reading: FileReading) -> Sequence[Problem]:
        """See ``inbox_values.Intake``."""
        return self.take_many([reading])[0]

    def take_many(self, readings: Sequence[FileReading]) -> Sequence[Sequence[Problem]]:
        """See ``inbox_values.Intake``."""
        taking = []
        for reading in readings:
            problems = [
                problem
                for spec in reading.parsed.specs
                for problem in placement_problems(spec, self._registry, self._workdirs)
            ]
            taking.append(problems or self._database.submit(_Taking(reading, self._clock())))
        return [taken if isinstance(taken, list) else taken.result() for taken in taking]

    def gone(self, paths: Sequence[str]) -> None:
        """See ``inbox_values.Intake``."""
        now_ms = self._clock()

        def forget(connection: Connection) -> None:
            inbox_rows.forget_files(connection, paths)
            for path in paths:
                inbox_rows.mark_gone(connection, path, now_ms)

        self._database.write(forget)

    def archived(self, paths: Sequence[str]) -> None:
        """See ``inbox_values.Intake``. The next arrival of such a file is a new one, so its identity is given up."""

        def forget(connection: Connection) -> None:
            inbox_rows.forget_files(connection, paths)
            for path in paths:
                inbox_rows.forget_documents(connection, path)

        self._database.write(forget)


class _Taking:
    """The transaction that takes one file."""

    def __init__(self, reading: FileReading, now_ms: int) -> None:
        self._path = reading.path
        self._stamp = reading.stamp
        self._specs = reading.parsed.specs
        self._orders = {
            spec.name: Order(spec, directory_key(spec.working_dir), "file", self._path) for spec in self._specs
        }
        self._now_ms = now_ms

    def __call__(self, connection: Connection) -> list[Problem]:
        problems = [problem for spec in self._specs for problem in self._problems(connection, spec)]
        if problems:
            return problems
        for spec in self._specs:
            self._document(connection, spec)
        inbox_rows.mark_gone(connection, self._path, self._now_ms, besides=self._orders)
        stamp = self._stamp
        file = InboxFile(
            path=self._path, mtime_ns=stamp.mtime_ns, size=stamp.size, inode=stamp.inode, accepted_ms=self._now_ms
        )
        inbox_rows.put_file(connection, file)
        return []

    def _problems(self, connection: Connection, spec: TaskSpec) -> list[Problem]:
        for other in inbox_rows.named(connection, spec.name):
            if other.path != self._path and other.gone_ms is None:
                message = f"the name `{spec.name}` is taken by {other.path}"
                return [Problem(field="name", message=message, remedy="give one of the two another name")]
        entry = inbox_rows.document(connection, self._path, spec.name)
        cycle = cycle_problem(connection, spec, entry.task_id if entry is not None else None)
        return [cycle] if cycle is not None else []

    def _document(self, connection: Connection, spec: TaskSpec) -> None:
        digest = content_hash(spec)
        order = self._orders[spec.name]
        entry = inbox_rows.document(connection, self._path, spec.name) or self._moved(connection, spec.name, digest)
        if entry is None:
            task_id = accept(connection, order, self._now_ms).id
        else:
            task_id = entry.task_id
            task = task_rows.get(connection, task_id)
            if entry.content_hash != digest:
                replace_content(connection, task, order, self._now_ms)
        inbox_rows.put_document(
            connection, InboxDocument(path=self._path, name=spec.name, task_id=task_id, content_hash=digest)
        )

    def _moved(self, connection: Connection, name: str, digest: str) -> InboxDocument | None:
        """A file that was only renamed: the same name and content as a document that is gone. It is no new task."""
        for other in inbox_rows.named(connection, name):
            if other.gone_ms is not None and other.content_hash == digest:
                inbox_rows.forget_document(connection, other.path, other.name)
                return other
        return None
