"""The encoder that needs no model: counts of words, pairs of words and character n-grams, hashed into a fixed width."""

import unicodedata
import zlib
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from claudomator_py.values import regex

if TYPE_CHECKING:
    from claudomator_py.domain.vectors import Vector

DIMENSIONS = 4_096
VERSION = 1
MAX_LENGTH = 20_000
"""Characters of a text that count."""
_WORD = regex(r"[^\W_]+(?:'[^\W_]+)?")
_GRAMS = (3, 4, 5)
_WEIGHTS = (1.0, 0.7, 0.4)
"""How much a feature of each sort counts: words, pairs of them, grams. Grams carry what typing errors and inflection
leave of a word."""
_USUAL = 32
"""Characters of a word whose features are kept for its next time, in some kilobytes."""
_WORD_SEED, _PAIR_SEED, _GRAM_SEED = (zlib.crc32(sort) for sort in (b"w", b"b", b"c"))
_PAIR, _GRAM = 1 << 32, 2 << 32
"""A feature is a number: the CRC-32 of its text, and above that its sort."""


class Hashed:
    """Counts only: how rare a feature is among the texts that are compared is weighed there (``weighs_rarity``)."""

    id = f"hashed-{DIMENSIONS}-v{VERSION}"
    dimensions = DIMENSIONS
    immediate = True
    weighs_rarity = True

    def encode(self, texts: Sequence[str]) -> "Vector":
        """Return a row for each text: the root of each feature's count, by its sort. Rows are not normalised."""
        import numpy as np  # a daemon without tasks has no use for it

        rows = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        weights = np.array(_WEIGHTS)
        for row, text in zip(rows, texts, strict=True):
            found = _features(text[:MAX_LENGTH])
            features = np.fromiter(found, np.int64, len(found))
            counts = np.fromiter(found.values(), np.float64, len(found))
            sorts, hashes = np.divmod(features, _PAIR)
            # Two features of one place are rare enough, at this width, to need no sign.
            np.add.at(row, hashes % DIMENSIONS, (weights[sorts] * np.sqrt(counts)).astype(np.float32))
        return rows

    def close(self) -> None:
        """Do nothing: there is nothing to let go of."""


def _features(text: str) -> Counter[int]:
    words = _WORD.findall(unicodedata.normalize("NFKC", text).lower())
    features = Counter([feature for word in words for feature in _known(word)])
    features.update([zlib.crc32(f"{one} {other}".encode(), _PAIR_SEED) | _PAIR for one, other in pairwise(words)])
    return features


def _known(word: str) -> list[int]:
    return _remembered(word) if len(word) <= _USUAL else _of_word(word)


def _of_word(word: str) -> list[int]:
    """Itself, and the grams of it."""
    framed = f"<{word}>"
    grams = [framed[start : start + length] for length in _GRAMS for start in range(len(framed) - length + 1)]
    return [zlib.crc32(word.encode(), _WORD_SEED), *(zlib.crc32(gram.encode(), _GRAM_SEED) | _GRAM for gram in grams)]


_remembered = lru_cache(2_048)(_of_word)
