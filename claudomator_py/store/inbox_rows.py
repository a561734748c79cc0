"""Inbox rows: the files that were accepted, and the documents that became tasks."""

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, delete, insert, select, update

from claudomator_py.store.loading import loader
from claudomator_py.store.tables import INBOX_DOCUMENT, INBOX_FILE, InboxDocument, InboxFile

_document_from = loader(InboxDocument)
_file_from = loader(InboxFile)


def files(connection: Connection) -> Sequence[InboxFile]:
    """Every accepted file that is not gone."""
    return [_file_from(row) for row in connection.execute(select(INBOX_FILE))]


def put_file(connection: Connection, file: InboxFile) -> None:
    """Remember the file as it is now."""
    connection.execute(delete(INBOX_FILE).where(INBOX_FILE.c.path == file.path))
    connection.execute(
        insert(INBOX_FILE).values({column.name: getattr(file, column.name) for column in INBOX_FILE.columns})
    )


def forget_files(connection: Connection, paths: Collection[str]) -> None:
    """Forget the files; their documents stay."""
    connection.execute(delete(INBOX_FILE).where(INBOX_FILE.c.path.in_(sorted(paths))))


def document(connection: Connection, path: str, name: str) -> InboxDocument | None:
    """The document of that identity, gone or not."""
    query = select(INBOX_DOCUMENT).where(INBOX_DOCUMENT.c.path == path, INBOX_DOCUMENT.c.name == name)
    row = connection.execute(query).one_or_none()
    return None if row is None else _document_from(row)


def of_file(connection: Connection, path: str) -> Sequence[InboxDocument]:
    """The documents that the file holds."""
    query = select(INBOX_DOCUMENT).where(INBOX_DOCUMENT.c.path == path, INBOX_DOCUMENT.c.gone_ms.is_(None))
    return [_document_from(row) for row in connection.execute(query.order_by(INBOX_DOCUMENT.c.name))]


def named(connection: Connection, name: str) -> Sequence[InboxDocument]:
    """All documents of that name, in whichever file."""
    query = select(INBOX_DOCUMENT).where(INBOX_DOCUMENT.c.name == name).order_by(INBOX_DOCUMENT.c.path)
    return [_document_from(row) for row in connection.execute(query)]


def put_document(connection: Connection, entry: InboxDocument) -> None:
    """Insert the document, or replace what was known of it."""
    forget_document(connection, entry.path, entry.name)
    values = {column.name: getattr(entry, column.name) for column in INBOX_DOCUMENT.columns}
    connection.execute(insert(INBOX_DOCUMENT).values(values))


def expect_again(connection: Connection, task_id: str) -> None:
    """Whatever the documents of this task hold when they come next, it counts as changed."""
    connection.execute(update(INBOX_DOCUMENT).where(INBOX_DOCUMENT.c.task_id == task_id).values(content_hash=""))


def forget_document(connection: Connection, path: str, name: str) -> None:
    """Forget the document; its task stays."""
    connection.execute(delete(INBOX_DOCUMENT).where(INBOX_DOCUMENT.c.path == path, INBOX_DOCUMENT.c.name == name))


def mark_gone(connection: Connection, path: str, now_ms: int, *, besides: Collection[str] = ()) -> None:
    """The file, or all its documents but these, are no longer there."""
    query = update(INBOX_DOCUMENT).where(INBOX_DOCUMENT.c.path == path, INBOX_DOCUMENT.c.gone_ms.is_(None))
    if besides:
        query = query.where(INBOX_DOCUMENT.c.name.not_in(sorted(besides)))
    connection.execute(query.values(gone_ms=now_ms))


def forget_documents(connection: Connection, path: str) -> None:
    """Forget all documents of the file; their tasks stay."""
    connection.execute(delete(INBOX_DOCUMENT).where(INBOX_DOCUMENT.c.path == path))
