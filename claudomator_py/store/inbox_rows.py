"""Rows of the inbox: accepted files, and the documents in them that became tasks."""

from collections.abc import Collection, Sequence

from sqlalchemy import (
    BindParameter,
    Connection,
    String,
    bindparam,
    delete,
    insert,
    literal_column,
    select,
    union_all,
    update,
)

from claudomator_py.store.statement import Selection, Statement
from claudomator_py.store.tables import INBOX_DOCUMENT, INBOX_FILE, SCHEDULE, TASK_DEPENDENCY, InboxDocument, InboxFile

# Compiled once, as they run for every file.
_FILES: BindParameter[Sequence[str]] = bindparam("files", expanding=True)
_FORGET_FILES = Statement(delete(INBOX_FILE).where(INBOX_FILE.c.path.in_(_FILES)))
_ADD_FILE = Statement(insert(INBOX_FILE))
_FORGET_DOCUMENT = Statement(
    delete(INBOX_DOCUMENT).where(
        INBOX_DOCUMENT.c.path == bindparam("file"), INBOX_DOCUMENT.c.name == bindparam("called")
    )
)
_ADD_DOCUMENT = Statement(insert(INBOX_DOCUMENT))
_NAMED = Selection(
    InboxDocument,
    select(INBOX_DOCUMENT).where(INBOX_DOCUMENT.c.name == bindparam("called")).order_by(INBOX_DOCUMENT.c.path),
)
_MARK_GONE = Statement(
    update(INBOX_DOCUMENT).where(
        INBOX_DOCUMENT.c.path == bindparam("file"),
        INBOX_DOCUMENT.c.gone_ms.is_(None),
        INBOX_DOCUMENT.c.name.not_in(bindparam("besides", expanding=True)),
    )
)
_IN_FILES = INBOX_DOCUMENT.c.path.in_(_FILES)
_MARK_FILES_GONE = Statement(update(INBOX_DOCUMENT).where(_IN_FILES, INBOX_DOCUMENT.c.gone_ms.is_(None)))
_FORGET_DOCUMENTS = Statement(delete(INBOX_DOCUMENT).where(_IN_FILES))
_NAMES: BindParameter[Sequence[str]] = bindparam("names", expanding=True)
_BY_PATH = literal_column("'path'", String).label("by")
_BY_NAME = literal_column("'name'", String).label("by")
_KNOWN = union_all(
    select(_BY_PATH, INBOX_FILE.c.path.label("text")).where(INBOX_FILE.c.path.in_(_FILES)),
    select(_BY_PATH, INBOX_DOCUMENT.c.path).where(_IN_FILES, INBOX_DOCUMENT.c.gone_ms.is_(None)),
    select(_BY_PATH, SCHEDULE.c.file_path).where(SCHEDULE.c.file_path.in_(_FILES), SCHEDULE.c.gone_ms.is_(None)),
    select(_BY_NAME, INBOX_DOCUMENT.c.name).where(INBOX_DOCUMENT.c.name.in_(_NAMES)),
    select(_BY_NAME, TASK_DEPENDENCY.c.name).where(
        TASK_DEPENDENCY.c.name.in_(_NAMES), TASK_DEPENDENCY.c.depends_on_id.is_(None)
    ),
).subquery()
_ALL_KNOWN = Statement(select(_KNOWN.c.by, _KNOWN.c.text))


def files(connection: Connection) -> Sequence[InboxFile]:
    """Return every accepted file that is not gone."""
    return InboxFile.rows(connection, select(INBOX_FILE))


def put_files(connection: Connection, files: Sequence[InboxFile], *, new: bool = False) -> None:
    """Store the current state of the files. new: they are known to have no rows."""
    if not new:
        forget_files(connection, [file.path for file in files])
    _ADD_FILE.run_all(connection, [file.stored() for file in files])


def forget_files(connection: Connection, paths: Collection[str]) -> None:
    """Forget the files; their documents stay."""
    _FORGET_FILES.run(connection, files=sorted(paths))


def of_file(connection: Connection, path: str) -> Sequence[InboxDocument]:
    """Return the documents in the file."""
    query = select(INBOX_DOCUMENT).where(INBOX_DOCUMENT.c.path == path, INBOX_DOCUMENT.c.gone_ms.is_(None))
    return InboxDocument.rows(connection, query.order_by(INBOX_DOCUMENT.c.name))


def named(connection: Connection, name: str) -> Sequence[InboxDocument]:
    """Return all documents with this name, in any file."""
    return _NAMED.all(connection, called=name)


def known(connection: Connection, paths: Collection[str], names: Collection[str]) -> tuple[set[str], set[str]]:
    """Return those of the files that have a row, or documents or schedules which are not gone; and those of the names
    that any document has, gone or not, or that a task waits for."""
    rows = _ALL_KNOWN.rows(connection, files=sorted(paths), names=sorted(names))
    return {text for by, text in rows if by == "path"}, {text for by, text in rows if by == "name"}


def put_document(connection: Connection, entry: InboxDocument, *, new: bool = False) -> None:
    """Insert or replace the document. new: it is known to have no row."""
    if not new:
        forget_document(connection, entry.path, entry.name)
    add_documents(connection, [entry])


def add_documents(connection: Connection, entries: Sequence[InboxDocument]) -> None:
    """Insert documents that have no rows yet."""
    _ADD_DOCUMENT.run_all(connection, [entry.stored() for entry in entries])


def expect_again(connection: Connection, task_id: str) -> None:
    """Treat the task's documents as changed when they are read next."""
    connection.execute(update(INBOX_DOCUMENT).where(INBOX_DOCUMENT.c.task_id == task_id).values(content_hash=""))


def forget_document(connection: Connection, path: str, name: str) -> None:
    """Forget the document; its task stays."""
    _FORGET_DOCUMENT.run(connection, file=path, called=name)


def mark_gone(connection: Connection, path: str, now_ms: int, *, besides: Collection[str] = ()) -> None:
    """Record that the documents of the file, except ``besides``, are gone."""
    _MARK_GONE.run(connection, file=path, besides=sorted(besides), gone_ms=now_ms)


def mark_files_gone(connection: Connection, paths: Collection[str], now_ms: int) -> None:
    """Record that all documents of the files are gone."""
    _MARK_FILES_GONE.run(connection, files=sorted(paths), gone_ms=now_ms)


def forget_documents(connection: Connection, paths: Collection[str]) -> None:
    """Forget all documents of the files; their tasks stay."""
    _FORGET_DOCUMENTS.run(connection, files=sorted(paths))
