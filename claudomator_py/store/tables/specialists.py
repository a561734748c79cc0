"""Tables of specialists' cards, their full text and grants, and of learning: embeddings, labels and standings."""

from typing import Any

from sqlalchemy import BigInteger, Index
from sqlmodel import Field

from claudomator_py.store.tables.columns import Row, RowNumber, json_column, partial_index, shown_text_column


class Specialist(Row):
    """A card in the registry. A removed card keeps its row, so that versions continue if it is registered again."""

    __tablename__ = "specialist"

    id: str = Field(primary_key=True)
    creator: str
    """The id of the principal who registered it."""
    organisation: str | None = None
    """The owner: the card's organisation, else its creator's."""
    visibility: str
    """The card's, see ``domain.card.Visibility``."""
    source: str
    """See ``domain.card.Registration``."""
    file_path: str | None = None
    """The file that it follows."""
    version: int
    card: dict[str, Any] = Field(sa_column=json_column())
    """The card as given, without defaults. Secrets stay, as runs need them."""
    content_hash: str
    """Of the card, see ``domain.card.Card``."""
    admitted_hash: str | None = None
    """The content hash that an administrator of the daemon admitted to the work of others; None: never."""
    admitted_by: str | None = None
    """The principal id of that administrator."""
    shipped: dict[str, Any] | None = Field(default=None, sa_column=json_column(nullable=True))
    """The shipped card with the same id that this one replaces."""
    created_ms: int = Field(sa_type=BigInteger)
    updated_ms: int = Field(sa_type=BigInteger)
    removed_ms: int | None = Field(default=None, sa_type=BigInteger)


class SpecialistSkill(Row):
    """Searchable text of a card: a row for each skill, and one for the card's own text. Removed cards have none.

    ``title`` and ``body`` are in a full-text index named ``specialist_text``: with SQLite a table that triggers
    maintain, with PostgreSQL an index.
    """

    __tablename__ = "specialist_skill"
    __table_args__ = (Index("ix_specialist_skill", "specialist_id"),)

    id: int | None = Field(default=None, primary_key=True, sa_type=RowNumber)
    specialist_id: str = Field(foreign_key="specialist.id")
    skill: str | None = None
    """Its id; None: the card's own text."""
    title: str = Field(sa_column=shown_text_column())
    body: str = Field(sa_column=shown_text_column())


class SpecialistGrant(Row):
    """A grant: somebody outside of its organisation who may see a shared card."""

    __tablename__ = "specialist_grant"
    __table_args__ = (Index("ix_grant_grantee", "grantee"),)

    specialist_id: str = Field(primary_key=True, foreign_key="specialist.id")
    grantee: str = Field(primary_key=True)
    """A principal's id, or ``org:NAME``."""
    by: str
    """The principal who granted it."""
    created_ms: int = Field(sa_type=BigInteger)


class Embedding(Row):
    """A text's vector by one encoder. A cache: rows may be removed at any time."""

    __tablename__ = "embedding"

    encoder: str = Field(primary_key=True)
    """The encoder's id, which depends on everything that changes its vectors."""
    text_hash: str = Field(primary_key=True)
    vector: bytes
    """See ``routing.space.to_bytes``."""
    dimensions: int
    created_ms: int = Field(sa_type=BigInteger)


class Label(Row):
    """The label of a decision on the specialist of a task, given once its outcome is known; at most one per decision.
    It outlives the decision, but is removed with the task, without whose text nothing can be learned from it."""

    __tablename__ = "label"
    __table_args__ = (
        Index("ix_label_task", "task_id"),
        Index("ix_label_at", "organisation", "at_ms"),
        partial_index("ix_label_unlearned", "at_ms", where="learned_ms IS NULL"),
    )

    decision_id: str = Field(primary_key=True)
    task_id: str
    revision: int
    """The revision of the task that was decided on."""
    organisation: str
    """The task's organisation, whose decisions alone it affects; empty: none."""
    specialist: str | None = None
    """The chosen specialist, or None."""
    wanted: str | None = None
    """The specialist to whom an operator reassigned the task, or None."""
    topic: str | None = None
    """The decision's topic."""
    verdict: str
    """See ``domain.learning.LabelVerdict``."""
    rule: str
    """See ``domain.learning.LabelRule``."""
    answer_chars: int | None = None
    """Length of the answer in characters, if there was one."""
    at_ms: int = Field(sa_type=BigInteger)
    learned_ms: int | None = Field(default=None, sa_type=BigInteger)
    """When it was counted in the specialist's standing; None: not yet."""
    counted: str | None = None
    """The verdict with which it was counted, see ``domain.learning.LabelVerdict``; None: without any."""
    counted_as: int | None = None
    """Its ordinal among the labels counted in the standing."""
    forgotten_ms: int | None = Field(default=None, sa_type=BigInteger)
    """When it ceased to count: an operator reset learning, or it was due while learning was frozen."""


class Standing(Row):
    """A specialist's record for one organisation, on one topic or all together."""

    __tablename__ = "standing"

    organisation: str = Field(primary_key=True)
    """The organisation whose decisions it counts; empty: of tasks without one."""
    specialist: str = Field(primary_key=True)
    topic: str = Field(primary_key=True)
    """Empty: all together."""
    performance: float
    """0 to 1, see ``routing.lessons.moved``."""
    positive: int
    """Labels that raised it."""
    negative: int
    """Labels that lowered it."""
    last_success_ms: int | None = Field(default=None, sa_type=BigInteger)
    updated_ms: int = Field(sa_type=BigInteger)
