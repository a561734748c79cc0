"""The vectors of cards' texts: each is made once, as long as a card has the text."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from claudomator_py.domain.encoder import Encoder, EncoderFault
from claudomator_py.domain.units import DAY_MS
from claudomator_py.ports import Clock
from claudomator_py.store import embedding_rows
from claudomator_py.store.database import Database

if TYPE_CHECKING:
    from claudomator_py.domain.vectors import Vector
    from claudomator_py.routing.space import Row

_BATCH_SIZE: Final = 256
"""Texts that are encoded in one go, as their vectors take much room until their zeros are left out."""
_TELLING: Final = 8
"""Texts of one go that no encoder of any use has one vector for; two may differ in case alone."""
KEPT_MS: Final = 7 * DAY_MS
"""How old the row of a text that no card has must be to go: what is taken back next day is not encoded again."""


def encoded(encoder: Encoder, texts: "Sequence[str]") -> "Vector":
    """Return a row for each text. Raises EncoderFault, for rows that tell nothing as well."""
    rows = encoder.encode(texts)
    if not encoder.immediate:  # Counts of features may well be none.
        if not rows.any(axis=1).all():
            raise EncoderFault("it has vectors of no length")
        if len(rows) >= _TELLING and (rows == rows[0]).all():
            raise EncoderFault("it has the same vector for different texts")
    return rows


class TextVectors:
    """Those of one encoder: in memory, and in rows where it takes its time. Not safe to use from several threads.

    Counts of features are kept without their zeros: a text has some hundred features of thousands.
    """

    def __init__(self, database: Database, encoder: Encoder, clock: Clock, *, keeps: bool = True) -> None:
        """keeps: whether rows are written, and those of no use removed."""
        self._database = database
        self._encoder = encoder
        self._clock = clock
        self._keeps = keeps and not encoder.immediate
        self._there: dict[str, Row] = {}

    def of(self, texts: Mapping[str, str]) -> "Mapping[str, Row]":
        """Return the vectors by hash of their text; those that are not there are made. texts: all that cards have, by
        hash: what else was there is let go of. Raises StoreUnavailable, EncoderFault."""
        there = self._fitting({digest: self._there[digest] for digest in texts if digest in self._there})
        missing = [digest for digest in texts if digest not in there]
        if missing and not self._encoder.immediate:
            kept = self._database.read(lambda connection: embedding_rows.kept(connection, self._encoder.id, missing))
            there |= self._fitting(kept)
            missing = [digest for digest in missing if digest not in there]
        if missing:
            made = self._made(texts, missing)
            there = self._fitting(there) | made
            if narrower := [digest for digest in texts if digest not in there]:
                there |= self._made(texts, narrower)
        if len(there) < len(self._there) or missing:
            self._let_go(texts)
        self._there = there
        return there

    def _made(self, texts: Mapping[str, str], digests: "Sequence[str]") -> "dict[str, Row]":
        """Raises StoreUnavailable, EncoderFault."""
        found: dict[str, Row] = {}
        for start in range(0, len(digests), _BATCH_SIZE):
            some = digests[start : start + _BATCH_SIZE]
            rows = encoded(self._encoder, [texts[digest] for digest in some])
            found |= self._kept(dict(zip(some, rows, strict=True)))
        return found

    def _fitting(self, there: "Mapping[str, Row]") -> "dict[str, Row]":
        """Those as wide as what the encoder gives now: a server may have another model under the same name."""
        width = self._encoder.dimensions
        return {digest: found for digest, found in there.items() if width in (0, len(found))}

    def _kept(self, made: "Mapping[str, Vector]") -> "dict[str, Row]":
        from claudomator_py.routing.sparse import SparseRow  # numpy is for whoever compares

        if self._keeps:
            now_ms = self._clock()
            self._database.write(lambda connection: embedding_rows.keep(connection, self._encoder.id, made, now_ms))
        return {
            digest: SparseRow.of(row) if self._encoder.weighs_rarity else row.copy() for digest, row in made.items()
        }

    def _let_go(self, texts: Mapping[str, str]) -> None:
        """Of rows whose texts no card has, whichever encoder made them."""
        if not self._keeps:
            return
        before_ms = self._clock() - KEPT_MS
        old = self._database.read(lambda connection: embedding_rows.made_before(connection, before_ms))
        unused = [digest for digest in old if digest not in texts]
        if unused:
            self._database.write(lambda connection: embedding_rows.drop(connection, unused))
