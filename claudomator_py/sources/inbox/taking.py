"""The transactions that accept files: each file whole or not at all, and many new files at once."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile
from typing import cast

from sqlalchemy import Connection

from claudomator_py.domain.errors import Problem
from claudomator_py.domain.lifecycle import ENDED
from claudomator_py.domain.principal import INBOX
from claudomator_py.domain.task import TaskSpec
from claudomator_py.environment.workdirs import directory_key
from claudomator_py.schema.taskfile import content_hash
from claudomator_py.schema.zones import local_zone
from claudomator_py.sources.inbox.ledger import FileReading, FileRefused
from claudomator_py.store import inbox_rows, schedule_rows, task_rows
from claudomator_py.store.tables import InboxDocument, InboxFile, Task
from claudomator_py.tasks.accept import NewTask, accept, accept_ready, is_ready_when_new, rename, replace_content
from claudomator_py.tasks.readiness import cycle_problems
from claudomator_py.tasks.renewal import cancel_now
from claudomator_py.tasks.schedules import Plan, begin, end_of_file, move, replace
from claudomator_py.tasks.specialists import task_problems

MAX_DOCUMENTS = 1_000
"""Maximum number of documents in one statement: databases limit the number of values."""


class FileTransaction:
    """The transaction that accepts one file. Raises FileRefused."""

    def __init__(self, reading: FileReading, now_ms: int, place: int) -> None:
        """place: number of documents in other files before this one."""
        self._path = reading.path
        self._renamed_from = reading.renamed_from
        self._stamp = reading.stamp
        self._parsed = reading.parsed
        self._specs = reading.parsed.items
        self._orders = {
            spec.name: NewTask(spec, directory_key(spec.working_dir), "file", self._path, number, creator=INBOX.id)
            for number, spec in enumerate(self._specs, place)
        }
        self._named: dict[str, Sequence[InboxDocument]] = {}
        self._schedules = frozenset(spec.name for spec in self._specs if spec.schedule is not None)
        self._zone = local_zone() if self._schedules else ""
        self._now_ms = now_ms

    @property
    def path(self) -> str:
        """Path of the file."""
        return self._path

    @property
    def names(self) -> Sequence[str]:
        """Names of its documents."""
        return tuple(self._orders)

    @property
    def only_adds(self) -> bool:
        """True if, provided nothing is known about the file yet, it only adds tasks that are ready immediately."""
        return self._renamed_from is None and all(
            spec.schedule is None and is_ready_when_new(spec, self._now_ms) for spec in self._specs
        )

    def problems(self, connection: Connection) -> list[Problem]:
        """Return why the file's tasks cannot be done."""
        return [
            self._parsed.located(spec, problem)
            for spec in self._specs
            for problem in task_problems(connection, spec, INBOX)
        ]

    def orders(self) -> Sequence[tuple[NewTask, int]]:
        """Return the file's tasks, each with its time of arrival in epoch milliseconds."""
        return [(order, self._now_ms) for order in self._orders.values()]

    def file(self) -> InboxFile:
        """Return the file's row, as stored once it is accepted."""
        stamp = self._stamp
        return InboxFile(
            path=self._path, mtime_ns=stamp.mtime_ns, size=stamp.size, inode=stamp.inode, accepted_ms=self._now_ms
        )

    def __call__(self, connection: Connection) -> None:
        if self._renamed_from is not None:
            self._follow_rename(connection, self._renamed_from)
        self._refuse([problem for spec in self._specs for problem in self._taken_names(connection, spec)])
        self._refuse(self.problems(connection))
        end_of_file(connection, self._path, self._now_ms, kept_names=self._schedules)
        tasks = [(self._document(connection, spec), spec) for spec in self._specs if spec.schedule is None]
        # Only now, as the documents of a file may name each other, in any order.
        self._refuse(cycle_problems(connection, tasks, self._parsed.located))
        for spec in self._specs:
            if spec.schedule is not None:
                self._schedule(connection, spec)
        inbox_rows.mark_gone(connection, self._path, self._now_ms, besides=self._orders)
        inbox_rows.put_files(connection, [self.file()])

    def _follow_rename(self, connection: Connection, old_path: str) -> None:
        """Handle a file that was accepted under another path: what it became keeps its identity and, if the file
        provides the name, takes the new name. Nothing runs again because of this."""
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
            raise FileRefused(problems)

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
        document = InboxDocument(path=self._path, name=spec.name, task_id=task.id, content_hash=digest)
        inbox_rows.put_document(connection, document, new=entry is None)
        return task

    def _schedule(self, connection: Connection, spec: TaskSpec) -> None:
        digest = content_hash(spec)
        plan = Plan(spec, self._zone, "file", self._path, creator=INBOX.id)
        entry = self._known(connection, spec.name, digest)
        if entry is not None and entry.task_id is not None:
            self._give_up(connection, entry.task_id)
        # Otherwise this may be the schedule of a file that was moved away after it was accepted.
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
        """Cancel what the document was before it became a schedule, unless that is running: a run continues to its
        end."""
        task = task_rows.get(connection, task_id)
        if task.state not in (*ENDED, "RUNNING"):
            cancel_now(connection, task, self._now_ms, data={"by": "schedule"})

    def _known(self, connection: Connection, name: str, digest: str) -> InboxDocument | None:
        """The document with that name as accepted earlier. For a file that was only renamed, this is the document that
        is gone and has the same name and content: it is not a new task."""
        for other in self._named[name]:
            if other.path == self._path:
                return other
        for other in self._named[name]:
            if other.gone_ms is not None and other.content_hash == digest:
                inbox_rows.forget_document(connection, other.path, other.name)
                return other
        return None


class FileBatch:
    """Accepts files that arrived together, in order, each so that it can be rolled back separately.

    The first of several consecutive new files accepts the others along with it, using one statement per table: one by
    one they would cost several times as much.
    """

    def __init__(self, files: Sequence[FileTransaction]) -> None:
        self._files = files
        self._looked_at = 0
        self._new: set[int] = set()
        self._taken: set[int] = set()

    def changes(self) -> list[Callable[[Connection], None]]:
        """Return one change per file, to be made in this order within one transaction. Each raises FileRefused."""
        return [partial(self._take, place) for place in range(len(self._files))]

    def _take(self, place: int, connection: Connection) -> None:
        if place in self._taken:
            return
        if place >= self._looked_at:
            self._look(place, connection)
        row = list(takewhile(self._new.__contains__, range(place, self._looked_at)))
        if not row:
            self._files[place](connection)
            return
        # If this fails, each of them is accepted separately, so that only the faulty one is refused.
        self._new.difference_update(row)
        _add(connection, [self._files[each] for each in row])
        self._taken.update(row)

    def _look(self, begin: int, connection: Connection) -> None:
        """Find out which of the files from there on are entirely new. Accepting one of these does not affect the
        others, as no two share a name and none waits for anything."""
        row: list[FileTransaction] = []
        names: set[str] = set()
        for file in self._files[begin:]:
            if not file.only_adds or not names.isdisjoint(file.names):
                break
            if len(names) + len(file.names) > MAX_DOCUMENTS:
                break
            row.append(file)
            names.update(file.names)
        self._looked_at = begin + max(1, len(row))
        if not row:
            return
        paths = [file.path for file in row]
        known_paths, known_names = inbox_rows.known(connection, paths, names)
        for place, file in enumerate(row, begin):
            known = file.path in known_paths or not known_names.isdisjoint(file.names)
            if not known and not file.problems(connection):
                self._new.add(place)


def _add(connection: Connection, files: Sequence[FileTransaction]) -> None:
    """Accept entirely new files."""
    made = accept_ready(connection, [order for file in files for order in file.orders()])
    documents = [
        InboxDocument(
            path=cast("str", task.file_path),  # each of these came from a file
            name=task.name,
            task_id=task.id,
            content_hash=content.content_hash,
        )
        for task, content in made
    ]
    inbox_rows.add_documents(connection, documents)
    inbox_rows.put_files(connection, [file.file() for file in files], new=True)
