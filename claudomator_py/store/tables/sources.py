"""Tables of tasks' sources: files of the inbox, and schedules."""

from typing import Any

from sqlalchemy import BigInteger, Index
from sqlmodel import Field

from claudomator_py.store.tables.columns import Row, by_operator, json_column, partial_index


class InboxFile(Row):
    """A file of the inbox as it was when it was last accepted."""

    __tablename__ = "inbox_file"

    path: str = Field(primary_key=True)
    mtime_ns: int = Field(sa_type=BigInteger)
    size: int = Field(sa_type=BigInteger)
    inode: int = Field(sa_type=BigInteger)
    accepted_ms: int = Field(sa_type=BigInteger)


class InboxDocument(Row):
    """A document, identified by path and name, with the task or schedule it became and its last content's hash."""

    __tablename__ = "inbox_document"
    __table_args__ = (Index("ix_document_task", "task_id"), Index("ix_document_name", "name"))

    path: str = Field(primary_key=True)
    name: str = Field(primary_key=True)
    task_id: str | None = Field(default=None, foreign_key="task.id")
    schedule_id: str | None = Field(default=None, foreign_key="schedule.id")
    content_hash: str
    gone_ms: int | None = Field(default=None, sa_type=BigInteger)


class Schedule(Row):
    """A recurring task."""

    __tablename__ = "schedule"
    __table_args__ = (
        partial_index("uq_schedule_name", "name", where="gone_ms IS NULL AND organisation IS NULL", unique=True),
        partial_index(
            "uq_schedule_organisation_name",
            "organisation",
            "name",
            where="gone_ms IS NULL AND organisation IS NOT NULL",
            unique=True,
        ),
    )

    id: str = Field(primary_key=True)
    name: str
    spec: dict[str, Any] = Field(sa_column=json_column())
    """The parsed spec, from which its tasks are created."""
    cron: str
    """Its times, as a cron expression."""
    timezone: str
    """The time zone of ``cron``, stored even if the spec leaves it to the machine."""
    source: str
    file_path: str | None = None
    """The file that it follows; None: created by the API, or its file was moved away."""
    last_ms: int = Field(sa_type=BigInteger)
    """Its times up to this one are handled."""
    paused_ms: int | None = Field(default=None, sa_type=BigInteger)
    gone_ms: int | None = Field(default=None, sa_type=BigInteger)
    """When it ended, which freed its name."""
    creator: str = by_operator()
    """The creator, also of its tasks."""
    organisation: str | None = None
    """The organisation that owns it and its tasks, if any."""
    created_ms: int = Field(sa_type=BigInteger)
    updated_ms: int = Field(sa_type=BigInteger)


class ScheduleFire(Row):
    """A schedule's time that was handled: by the task it created, or skipped for a reason."""

    __tablename__ = "schedule_fire"
    __table_args__ = (Index("ix_fire_task", "task_id"),)

    schedule_id: str = Field(primary_key=True, foreign_key="schedule.id")
    due_ms: int = Field(primary_key=True, sa_type=BigInteger)
    task_id: str | None = Field(default=None, foreign_key="task.id")
    skipped: str | None = None
    by: str
    at_ms: int = Field(sa_type=BigInteger)
