"""The encoder that needs no model: counts of words, pairs of words and character n-grams, hashed into a fixed width."""

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from claudomator_py.domain.vectors import Vector

DIMENSIONS = 4_096
VERSION = 1
LONGEST = 20_000
"""Characters of a text that count."""
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_GRAMS = (3, 4, 5)
_OF_WORD, _OF_PAIR, _OF_GRAM = 1.0, 0.7, 0.4
"""How much a feature of each sort counts. Grams carry what typing errors and inflection leave of a word."""


class Hashed:
    """Counts only: how rare a feature is among the texts that are compared is weighed there (``weighs_rarity``)."""

    id = f"hashed-{DIMENSIONS}-v{VERSION}"
    dimensions = DIMENSIONS
    immediate = True
    weighs_rarity = True

    def encode(self, texts: Sequence[str]) -> "Vector":
        """A row for each text: the root of each feature's count, by its sort. Rows are not normalised."""
        import numpy as np  # a daemon without tasks has no use for it

        rows = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for (feature, weight), count in Counter(_features(text[:LONGEST])).items():
                # Two features of one place are rare enough, at this width, to need no sign.
                row[zlib.crc32(feature.encode()) % DIMENSIONS] += weight * count**0.5
        return rows

    def close(self) -> None:
        """Nothing to let go of."""


def _features(text: str) -> Iterator[tuple[str, float]]:
    words = _WORD.findall(unicodedata.normalize("NFKC", text).lower())
    for word in words:
        yield f"w{word}", _OF_WORD
        framed = f"<{word}>"
        for length in _GRAMS:
            for start in range(len(framed) - length + 1):
                yield f"c{framed[start : start + length]}", _OF_GRAM
    for one, other in pairwise(words):
        yield f"b{one} {other}", _OF_PAIR
