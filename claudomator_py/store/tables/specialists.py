"""Who does tasks: the cards of specialists, what they are found by, for whom they exist, and how they do."""

from typing import Any

from sqlalchemy import BigInteger, Index
from sqlmodel import Field

from claudomator_py.store.tables.columns import Row, RowNumber, json_column, partial_index, shown_text_column


class Specialist(Row):
    """A card in the registry: one for each id, whoever sees it.

    A card that was removed keeps its row, so that its versions continue if it comes back.
    """

    __tablename__ = "specialist"

    id: str = Field(primary_key=True)
    creator: str
    """Who registered it, by its principal's id."""
    organisation: str | None = None
    """Whose it is: the card's, or else its creator's."""
    visibility: str
    """The card's, see ``domain.card.Visibility``."""
    source: str
    """See ``domain.card.Registration``."""
    file_path: str | None = None
    """The file that it follows."""
    version: int
    card: dict[str, Any] = Field(sa_column=json_column())
    """As it was given, since runs need it so, and without what is only a default."""
    content_hash: str
    """Of the card, see ``domain.card.Card``."""
    admitted_hash: str | None = None
    """The content with which an administrator of the daemon admitted it to the work of others; None: never."""
    admitted_by: str | None = None
    """That administrator, by the id of its principal."""
    shipped: dict[str, Any] | None = Field(default=None, sa_column=json_column(nullable=True))
    """The card that comes with Claudomator under the same id, for which this one stands."""
    created_ms: int = Field(sa_type=BigInteger)
    updated_ms: int = Field(sa_type=BigInteger)
    removed_ms: int | None = Field(default=None, sa_type=BigInteger)


class SpecialistSkill(Row):
    """What a specialist is found by: a row for each skill, and one for the card's own text.

    The full text of ``title`` and ``body`` is indexed: by a table of SQLite that triggers keep up, and by an index of
    PostgreSQL, both named ``specialist_text``. There are rows only for cards that were not removed.
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
    """For whom a shared card exists beside its organisation."""

    __tablename__ = "specialist_grant"
    __table_args__ = (Index("ix_grant_grantee", "grantee"),)

    specialist_id: str = Field(primary_key=True, foreign_key="specialist.id")
    grantee: str = Field(primary_key=True)
    """A principal's id, or ``org:NAME``."""
    by: str
    """Who gave it."""
    created_ms: int = Field(sa_type=BigInteger)


class Embedding(Row):
    """The vector of a text, once per encoder. It follows from both, so it can be removed at any time."""

    __tablename__ = "embedding"

    encoder: str = Field(primary_key=True)
    """Its id, with all that changes its vectors."""
    text_hash: str = Field(primary_key=True)
    vector: bytes
    """See ``domain.vectors.to_bytes``."""
    dimensions: int
    created_ms: int = Field(sa_type=BigInteger)


class Label(Row):
    """What is said of a decision on who does a task, once its outcome is known; at most one for each decision.

    It stays when the decision goes for its age, and goes with the task, whose text is no longer there to learn from.
    """

    __tablename__ = "label"
    __table_args__ = (
        Index("ix_label_task", "task_id"),
        Index("ix_label_at", "organisation", "at_ms"),
        partial_index("ix_label_unlearned", "at_ms", where="learned_ms IS NULL"),
    )

    decision_id: str = Field(primary_key=True)
    task_id: str
    revision: int
    """The content that was decided on."""
    organisation: str
    """Of the task, whose decisions alone it bears on; empty: of none."""
    specialist: str | None = None
    """Who was chosen; None: no specialist."""
    wanted: str | None = None
    """To whom an operator gave it instead; None: nobody did."""
    topic: str | None = None
    """The decision's."""
    verdict: str
    """See ``domain.learning.Verdict``."""
    rule: str
    """See ``domain.learning.LabelRule``."""
    answer_chars: int | None = None
    """How long the answer was; None: there was none to measure."""
    at_ms: int = Field(sa_type=BigInteger)
    learned_ms: int | None = Field(default=None, sa_type=BigInteger)
    """When it had moved what is known of the specialist; None: it has not yet."""
    counted: str | None = None
    """The verdict by which it has moved that, see ``domain.learning.Verdict``; None: by none."""
    counted_as: int | None = None
    """How many labels had moved it then, with this one."""
    forgotten_ms: int | None = Field(default=None, sa_type=BigInteger)
    """When an operator reset what was learned; or, while that was frozen, when it was to be learned. It counts no
    more."""


class Standing(Row):
    """How a specialist has done, for one organisation, on one topic or on all together."""

    __tablename__ = "standing"

    organisation: str = Field(primary_key=True)
    """See ``Label``."""
    specialist: str = Field(primary_key=True)
    topic: str = Field(primary_key=True)
    """Empty: all together."""
    performance: float
    """0 to 1, see ``routing.lessons.moved``."""
    positive: int
    """Labels that moved it up."""
    negative: int
    """Labels that moved it down."""
    last_success_ms: int | None = Field(default=None, sa_type=BigInteger)
    updated_ms: int = Field(sa_type=BigInteger)
