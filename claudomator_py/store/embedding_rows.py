"""Rows of embeddings: cached vectors, so that each encoder encodes a text once."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, Connection, delete, insert, select, true

from claudomator_py.store.tables import EMBEDDING

if TYPE_CHECKING:
    from claudomator_py.domain.vectors import Vector

_BATCH_SIZE = 500


def kept(connection: Connection, encoder: str, text_hashes: Collection[str]) -> "Mapping[str, Vector]":
    """Return the encoder's cached vectors of these texts, by hash."""
    from claudomator_py.domain.vectors import from_bytes  # imported late, as it loads numpy

    wanted = sorted(set(text_hashes))
    vectors: dict[str, Vector] = {}
    for start in range(0, len(wanted), _BATCH_SIZE):
        query = select(EMBEDDING.c.text_hash, EMBEDDING.c.vector).where(
            EMBEDDING.c.encoder == encoder, EMBEDDING.c.text_hash.in_(wanted[start : start + _BATCH_SIZE])
        )
        vectors |= {row.text_hash: from_bytes(row.vector) for row in connection.execute(query)}
    return vectors


def keep(connection: Connection, encoder: str, vectors: "Mapping[str, Vector]", now_ms: int) -> None:
    """Cache vectors by the hash of their text, replacing existing ones."""
    if not vectors:
        return
    from claudomator_py.domain.vectors import to_bytes  # see ``kept``

    _drop(connection, vectors, EMBEDDING.c.encoder == encoder)
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


def made_before(connection: Connection, before_ms: int) -> Sequence[str]:
    """Return the hashes of texts with a vector made before ``before_ms`` (epoch milliseconds) by any encoder."""
    query = select(EMBEDDING.c.text_hash).where(EMBEDDING.c.created_ms < before_ms).distinct()
    return connection.execute(query.order_by(EMBEDDING.c.text_hash)).scalars().all()


def drop(connection: Connection, text_hashes: Collection[str]) -> None:
    """Remove the vectors of these texts, of every encoder."""
    _drop(connection, text_hashes, true())


def _drop(connection: Connection, text_hashes: Collection[str], which: ColumnElement[bool]) -> None:
    unwanted = sorted(set(text_hashes))
    for start in range(0, len(unwanted), _BATCH_SIZE):
        some = EMBEDDING.c.text_hash.in_(unwanted[start : start + _BATCH_SIZE])
        connection.execute(delete(EMBEDDING).where(which, some))
