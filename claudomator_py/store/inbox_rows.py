"""Inbox rows: the files that were accepted, and the documents that became tasks."""

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from claudomator_py.store.loading import loader, maker
from claudomator_py.store.tables import INBOX_DOCUMENT, INBOX_FILE, InboxDocument, InboxFile

_document_from = loader(InboxDocument)
_file_from = loader(InboxFile)
new_document = maker(InboxDocument)
new_file = maker(InboxFile)
"""A document and a file that are in no table yet."""

# Made once, as making one takes several times as long as executing it: these are on the way of every file.
_FORGET_FILE = delete(INBOX_FILE).where(INBOX_FILE.c.path == bindparam("file"))
_ADD_FILE = insert(INBOX_FILE)
_THIS = (INBOX_DOCUMENT.c.path == bindparam("file"), INBOX_DOCUMENT.c.name == bindparam("called"))
_DOCUMENT = select(INBOX_DOCUMENT).where(*_THIS)
_FORGET_DOCUMENT = delete(INBOX_DOCUMENT).where(*_THIS)
_ADD_DOCUMENT = insert(INBOX_DOCUMENT)
_NAMED = select(INBOX_DOCUMENT).where(INBOX_DOCUMENT.c.name == bindparam("called")).order_by(INBOX_DOCUMENT.c.path)
_MARK_GONE = update(INBOX_DOCUMENT).where(
    INBOX_DOCUMENT.c.path == bindparam("file"),
    INBOX_DOCUMENT.c.gone_ms.is_(None),
    INBOX_DOCUMENT.c.name.not_in(bindparam("besides", expanding=True)),
)


def files(connection: Connection) -> Sequence[InboxFile]:
    """Every accepted file that is not gone."""
    return [_file_from(row) for row in connection.execute(select(INBOX_FILE))]


def put_file(connection: Connection, file: InboxFile) -> None:
    """Remember the file as it is now."""
    connection.execute(_FORGET_FILE, {"file": file.path})
    connection.execute(_ADD_FILE, {column.name: getattr(file, column.name) for column in INBOX_FILE.columns})


def forget_files(connection: Connection, paths: Collection[str]) -> None:
    """Forget the files; their documents stay."""
    connection.execute(delete(INBOX_FILE).where(INBOX_FILE.c.path.in_(sorted(paths))))


def document(connection: Connection, path: str, name: str) -> InboxDocument | None:
    """The document of that identity, gone or not."""
    row = connection.execute(_DOCUMENT, {"file": path, "called": name}).one_or_none()
    return None if row is None else _document_from(row)


def of_file(connection: Connection, path: str) -> Sequence[InboxDocument]:
    """The documents that the file holds."""
    query = select(INBOX_DOCUMENT).where(INBOX_DOCUMENT.c.path == path, INBOX_DOCUMENT.c.gone_ms.is_(None))
    return [_document_from(row) for row in connection.execute(query.order_by(INBOX_DOCUMENT.c.name))]


def named(connection: Connection, name: str) -> Sequence[InboxDocument]:
    """All documents of that name, in whichever file."""
    return [_document_from(row) for row in connection.execute(_NAMED, {"called": name})]


def put_document(connection: Connection, entry: InboxDocument, *, new: bool = False) -> None:
    """Insert the document, or replace what was known of it. new: nothing is known of it."""
    if not new:
        forget_document(connection, entry.path, entry.name)
    values = {column.name: getattr(entry, column.name) for column in INBOX_DOCUMENT.columns}
    connection.execute(_ADD_DOCUMENT, values)


def expect_again(connection: Connection, task_id: str) -> None:
    """Whatever the documents of this task hold when they come next, it counts as changed."""
    connection.execute(update(INBOX_DOCUMENT).where(INBOX_DOCUMENT.c.task_id == task_id).values(content_hash=""))


def forget_document(connection: Connection, path: str, name: str) -> None:
    """Forget the document; its task stays."""
    connection.execute(_FORGET_DOCUMENT, {"file": path, "called": name})


def mark_gone(connection: Connection, path: str, now_ms: int, *, besides: Collection[str] = ()) -> None:
    """The file, or all its documents but these, are no longer there."""
    connection.execute(_MARK_GONE, {"file": path, "besides": sorted(besides), "gone_ms": now_ms})


def forget_documents(connection: Connection, path: str) -> None:
    """Forget all documents of the file; their tasks stay."""
    connection.execute(delete(INBOX_DOCUMENT).where(INBOX_DOCUMENT.c.path == path))
