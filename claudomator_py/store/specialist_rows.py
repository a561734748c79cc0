"""Rows of specialists: cards and who may see them, their full-text index, grants, and cached vectors of texts, so that
each encoder encodes a text once."""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, Select, bindparam, delete, insert, select, true, update

from claudomator_py.domain.card import Card, Pricing, Registration
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.store.statement import Statement
from claudomator_py.store.stored_json import cached_reader, raw, readable
from claudomator_py.store.tables import EMBEDDING, SPECIALIST, SPECIALIST_GRANT, SPECIALIST_SKILL, Specialist
from claudomator_py.store.tables.columns import bytewise
from claudomator_py.store.visibility import assignable_cards, cards_hidden, cards_seen

if TYPE_CHECKING:
    from claudomator_py.routing.space import Vector

_FEW = 500
"""Maximum number of ids in a query; for more, reading the whole table is cheaper."""
REGISTERED = SPECIALIST.c.removed_ms.is_(None)
_CARDS = Statement(
    select(
        SPECIALIST.c.id,
        raw(SPECIALIST.c.card),
        SPECIALIST.c.organisation,
        SPECIALIST.c.admitted_hash == SPECIALIST.c.content_hash,
    ).where(SPECIALIST.c.id.in_(bindparam("specialists", expanding=True)), SPECIALIST.c.removed_ms.is_(None))
)
_PRICED = Statement(
    select(raw(SPECIALIST.c.card), SPECIALIST.c.creator).where(
        SPECIALIST.c.id == bindparam("specialist"), SPECIALIST.c.removed_ms.is_(None)
    )
)
_PRICE = '"pricing"'
"""The key by which the text of a card gives a price."""
_read_card = cached_reader(Card)
_UNINDEX = Statement(delete(SPECIALIST_SKILL).where(SPECIALIST_SKILL.c.specialist_id == bindparam("specialist")))
_INDEX = Statement(insert(SPECIALIST_SKILL))
_GRANTED = select(SPECIALIST_GRANT.c.specialist_id, SPECIALIST_GRANT.c.grantee).order_by(
    bytewise(SPECIALIST_GRANT.c.grantee)
)
_GRANTS = Statement(_GRANTED)
_GRANTS_OF = Statement(_GRANTED.where(SPECIALIST_GRANT.c.specialist_id.in_(bindparam("specialists", expanding=True))))


_HASHES = Statement(
    select(SPECIALIST.c.id, SPECIALIST.c.content_hash).where(cards_seen(OPERATOR)).order_by(SPECIALIST.c.id)
)
"""Compiled once, as each tick checks whether the registry has changed."""


def seen(
    connection: Connection,
    by: Principal = OPERATOR,
    *,
    ids: Collection[str] | None = None,
    after: str | None = None,
    limit: int | None = None,
) -> Sequence[Registration]:
    """Return the cards visible to the principal, ordered by id. ids: only these; after: only greater ids; limit: at
    most this number. None: no restriction."""
    query = select(SPECIALIST).where(cards_seen(by)).order_by(bytewise(SPECIALIST.c.id))
    if ids is not None:
        query = query.where(SPECIALIST.c.id.in_(sorted(ids)))
    if after is not None:
        query = query.where(bytewise(SPECIALIST.c.id) > after)
    return _registrations(connection, query if limit is None else query.limit(limit))


def get(connection: Connection, specialist_id: str, by: Principal = OPERATOR) -> Registration:
    """Return the card with this id. Raises LookupError if there is none or it is hidden from the principal."""
    registration = find(connection, specialist_id, by)
    if registration is None:
        raise LookupError(f"there is no specialist {specialist_id}")
    return registration


def find(connection: Connection, specialist_id: str, by: Principal = OPERATOR) -> Registration | None:
    """Return the card with this id, or None if there is none or it is hidden from the principal."""
    if "\0" in specialist_id:  # PostgreSQL refuses NUL in text
        return None
    return next(iter(seen(connection, by, ids=[specialist_id])), None)


def price_of(connection: Connection, specialist_id: str, skill_id: str | None) -> tuple[Pricing, str] | None:
    """Return what the specialist's work by that skill costs, and whom that is owed to; None if it is free. The end of
    each run asks, so a card without a price is not parsed."""
    text, creator = _PRICED.row(connection, specialist=specialist_id) or ("", "")
    if _PRICE not in text or (card := _read_card(text)) is None:
        return None
    skill = None if skill_id is None else card.skill(skill_id)
    return card.pricing_of(skill_id), creator if skill is None else skill.creator or creator


def cards(connection: Connection, ids: Collection[str]) -> dict[str, Card]:
    """Return the existing cards with these ids in the form in which they do work, whoever may see them: with their
    organisation, and without permissions beyond the task's unless they are admitted."""
    if not ids:
        return {}
    grants_by_id = {}
    for specialist_id, document, organisation, is_admitted in _CARDS.rows(connection, specialists=sorted(ids)):
        if (stored := _read_card(document)) is not None:
            card = stored.model_copy(update={"organisation": organisation})
            grants_by_id[specialist_id] = card if is_admitted else card.restricting
    return grants_by_id


def ids_seen(connection: Connection, by: Principal) -> Sequence[str]:
    """Return the ids of the cards visible to the principal, in order."""
    return (
        connection.execute(select(SPECIALIST.c.id).where(cards_seen(by)).order_by(bytewise(SPECIALIST.c.id)))
        .scalars()
        .all()
    )


def assignable_ids(connection: Connection, by: Principal) -> Sequence[str]:
    """Return the ids of the cards that may be given the principal's work, in order."""
    return _assignable_to(by).values(connection)


@lru_cache(maxsize=64)
def _assignable_to(by: Principal) -> Statement:
    """Return the statement for a principal. Cached, as each task that names no agent runs it."""
    return Statement(select(SPECIALIST.c.id).where(assignable_cards(by)).order_by(bytewise(SPECIALIST.c.id)))


def is_assignable(connection: Connection, specialist_id: str, by: Principal) -> bool:
    """Return whether the specialist may be given the principal's work."""
    if "\0" in specialist_id:  # PostgreSQL refuses NUL in text
        return False
    query = select(SPECIALIST.c.id).where(SPECIALIST.c.id == specialist_id, assignable_cards(by))
    return connection.execute(query).first() is not None


def skills_seen(connection: Connection, by: Principal) -> frozenset[str]:
    """Return the ids of the skills of all cards visible to the principal."""
    of_card = SPECIALIST_SKILL.c.specialist_id == SPECIALIST.c.id
    query = select(SPECIALIST_SKILL.c.skill).join(SPECIALIST, of_card).where(cards_seen(by)).distinct()
    return frozenset(skill for skill in connection.execute(query).scalars() if skill is not None)


def hidden(connection: Connection, ids: Collection[str | None], by: Principal) -> frozenset[str]:
    """Return those of the ids whose card is, or was until its removal, hidden from the principal."""
    named = sorted({id_ for id_ in ids if id_ is not None and "\0" not in id_})
    if by.sees_all or not named:
        return frozenset()
    return frozenset(_hidden_from(by).values(connection, named=named))


@lru_cache(maxsize=64)
def _hidden_from(by: Principal) -> Statement:
    """Return the statement for a principal. Cached, as every page runs it several times."""
    named = SPECIALIST.c.id.in_(bindparam("named", expanding=True))
    return Statement(select(SPECIALIST.c.id).where(named, cards_hidden(by)))


def addresses(connection: Connection, ids: Collection[str]) -> frozenset[str]:
    """Return the URLs and wake-up URLs of these specialists, removed ones included, whoever may see them."""
    rows = connection.execute(select(SPECIALIST.c.card).where(SPECIALIST.c.id.in_(sorted(ids)))).scalars()
    return frozenset(url for card in rows for url in (card.get("url"), card.get("wake_url")) if url is not None)


def registry_hash(connection: Connection) -> str:
    """Return a SHA-256 that changes when any card changes."""
    rows = _HASHES.rows(connection)
    return hashlib.sha256("".join([f"{name} {content}\n" for name, content in rows]).encode()).hexdigest()


def content_hashes(connection: Connection) -> dict[str, str]:
    """Return the content hashes of all cards, whoever may see them, by id."""
    query = select(SPECIALIST.c.id, SPECIALIST.c.content_hash).where(SPECIALIST.c.removed_ms.is_(None))
    return {row.id: row.content_hash for row in connection.execute(query)}


def row_of(connection: Connection, specialist_id: str) -> Specialist | None:
    """Return the row with this id, removed or not, or None. For writing."""
    return Specialist.find(connection, SPECIALIST.c.id == specialist_id)


def of_file(connection: Connection, path: str) -> Sequence[Registration]:
    """Return the cards that follow the file, by id."""
    query = select(SPECIALIST).where(SPECIALIST.c.file_path == path, SPECIALIST.c.removed_ms.is_(None))
    return _registrations(connection, query.order_by(bytewise(SPECIALIST.c.id)))


def files(connection: Connection) -> Sequence[str]:
    """Return the files that cards follow."""
    query = select(SPECIALIST.c.file_path).where(SPECIALIST.c.file_path.is_not(None), SPECIALIST.c.removed_ms.is_(None))
    return connection.execute(query.distinct().order_by(SPECIALIST.c.file_path)).scalars().all()


def shipped_ids(connection: Connection) -> Sequence[str]:
    """Return the ids of shipped cards, including replaced and removed ones."""
    query = select(SPECIALIST.c.id).where((SPECIALIST.c.source == "shipped") | SPECIALIST.c.shipped.is_not(None))
    return connection.execute(query.order_by(SPECIALIST.c.id)).scalars().all()


def change(connection: Connection, specialist_id: str, **changes: Any) -> None:
    """Update columns of the row."""
    connection.execute(update(SPECIALIST).where(SPECIALIST.c.id == specialist_id).values(**changes))


def index(connection: Connection, specialist_id: str, card: Card | None) -> None:
    """Replace the specialist's entries in the full-text index. card: None removes them."""
    _UNINDEX.run(connection, specialist=specialist_id)
    if card is None:
        return
    own = "\n".join((card.id, card.description, *card.keywords))
    texts: list[dict[str, Any]] = [{"skill": None, "title": card.title, "body": own}]
    for skill in card.skills:
        body = "\n".join((skill.description, *skill.tags, *skill.examples))
        texts.append({"skill": skill.id, "title": skill.name, "body": body})
    _INDEX.run_all(connection, [{"specialist_id": specialist_id, **text} for text in texts])


def grant(connection: Connection, specialist_id: str, grantee: str, by: str, now_ms: int) -> None:
    """Insert a grant. Raises IntegrityError if it exists."""
    values = {"specialist_id": specialist_id, "grantee": grantee, "by": by, "created_ms": now_ms}
    connection.execute(insert(SPECIALIST_GRANT).values(values))


def revoke(connection: Connection, specialist_id: str, grantee: str | None = None) -> None:
    """Remove a grant. grantee: None removes all."""
    query = delete(SPECIALIST_GRANT).where(SPECIALIST_GRANT.c.specialist_id == specialist_id)
    connection.execute(query if grantee is None else query.where(SPECIALIST_GRANT.c.grantee == grantee))


def _grants(connection: Connection, ids: Sequence[str] | None) -> Mapping[str, Sequence[str]]:
    rows = _GRANTS.rows(connection) if ids is None else _GRANTS_OF.rows(connection, specialists=ids)
    grants_by_id: dict[str, list[str]] = defaultdict(list)
    for specialist_id, grantee in rows:
        grants_by_id[specialist_id].append(grantee)
    return grants_by_id


def _registrations(connection: Connection, query: Select[Any]) -> Sequence[Registration]:
    rows = Specialist.rows(connection, query)
    grants = _grants(connection, [row.id for row in rows] if len(rows) <= _FEW else None)
    return [registration for row in rows if (registration := _registration(row, grants)) is not None]


def _registration(row: Specialist, grants: Mapping[str, Sequence[str]]) -> Registration | None:
    """Return the registration, or None if the row is unreadable, so that it gets no work."""
    card = readable(Card, row.card)
    if card is None:
        return None
    values = {
        "card": card,
        "grants": tuple(grants.get(row.id, ())),
        "admitted_by": row.admitted_by if row.admitted_hash == row.content_hash else None,
    }
    return readable(Registration, {**vars(row), **values})


_VECTOR_BATCH = 500


def kept_vectors(connection: Connection, encoder: str, text_hashes: Collection[str]) -> "Mapping[str, Vector]":
    """Return the encoder's cached vectors of these texts, by hash."""
    from claudomator_py.routing.space import from_bytes  # imported late, as it loads numpy

    wanted = sorted(set(text_hashes))
    vectors: dict[str, Vector] = {}
    for start in range(0, len(wanted), _VECTOR_BATCH):
        query = select(EMBEDDING.c.text_hash, EMBEDDING.c.vector).where(
            EMBEDDING.c.encoder == encoder, EMBEDDING.c.text_hash.in_(wanted[start : start + _VECTOR_BATCH])
        )
        vectors |= {row.text_hash: from_bytes(row.vector) for row in connection.execute(query)}
    return vectors


def keep_vectors(connection: Connection, encoder: str, vectors: "Mapping[str, Vector]", now_ms: int) -> None:
    """Cache vectors by the hash of their text, replacing existing ones."""
    if not vectors:
        return
    from claudomator_py.routing.space import to_bytes  # see ``kept_vectors``

    _drop_vectors(connection, vectors, EMBEDDING.c.encoder == encoder)
    rows = [
        {
            "encoder": encoder,
            "text_hash": text_hash,
            "vector": to_bytes(vector),
            "dimensions": len(vector),
            "created_ms": now_ms,
        }
        for text_hash, vector in vectors.items()
    ]
    connection.execute(insert(EMBEDDING), rows)


def texts_encoded_before(connection: Connection, before_ms: int) -> Sequence[str]:
    """Return the hashes of texts with a vector made before ``before_ms`` (epoch milliseconds) by any encoder."""
    query = select(EMBEDDING.c.text_hash).where(EMBEDDING.c.created_ms < before_ms).distinct()
    return connection.execute(query.order_by(EMBEDDING.c.text_hash)).scalars().all()


def drop_vectors(connection: Connection, text_hashes: Collection[str]) -> None:
    """Remove the vectors of these texts, of every encoder."""
    _drop_vectors(connection, text_hashes, true())


def _drop_vectors(connection: Connection, text_hashes: Collection[str], which: ColumnElement[bool]) -> None:
    unwanted = sorted(set(text_hashes))
    for start in range(0, len(unwanted), _VECTOR_BATCH):
        some = EMBEDDING.c.text_hash.in_(unwanted[start : start + _VECTOR_BATCH])
        connection.execute(delete(EMBEDDING).where(which, some))
