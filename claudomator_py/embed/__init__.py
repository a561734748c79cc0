"""Encoders: from texts to vectors, by which routing compares them; here the one without a model, which counts words,
word pairs and character n-grams, hashed to a fixed width."""

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from claudomator_py.ports import Encoder
    from claudomator_py.routing.space import Vector
    from claudomator_py.schema.routing_settings import EncoderSettings

_DIMENSIONS = 4_096
_VERSION = 1
_MAX_LENGTH = 20_000
"""Characters of a text that are encoded."""
_WORD = r"[^\W_]+(?:'[^\W_]+)?"
_GRAMS = (3, 4, 5)
_WEIGHTS = (1.0, 0.7, 0.4)
"""Weights of words, word pairs and n-grams. N-grams make up for typing errors and inflection."""
_USUAL = 32
"""Characters of a word up to which its features are cached."""
_WORD_SEED, _PAIR_SEED, _GRAM_SEED = (zlib.crc32(sort) for sort in (b"w", b"b", b"c"))
_BITS = 32
_PAIR, _GRAM = 1 << _BITS, 2 << _BITS
"""A feature is a number: the CRC-32 of its text in the lower 32 bits, and its sort above."""


def encoder(settings: "EncoderSettings", environ: Mapping[str, str]) -> "Encoder":
    """Return the encoder for the settings. environ: has the API key. Raises ValueError, with the remedy, if it is not
    installed."""
    # Imported late, as the process of a model imports this package, and is to be small.
    from claudomator_py.schema.routing_settings import EncoderKind

    match settings.kind:
        case EncoderKind.HASHED:
            return Hashed()
        case EncoderKind.MINILM:
            from claudomator_py.embed.model_process import minilm, weights

            return minilm(weights())
        case EncoderKind.ONNX:
            from claudomator_py.embed.model_process import onnx

            return onnx(Path(settings.folder or ""))
        case EncoderKind.OPENAI:
            from claudomator_py.embed.openai import OpenAi

            key = environ.get(settings.key_variable or "")
            return OpenAi(settings.model_name or "", settings.base_url, key, settings.timeout / 1000)


class Hashed:
    """The encoder. It only counts: whoever compares texts weighs features by rarity (``weighs_rarity``)."""

    id = f"hashed-{_DIMENSIONS}-v{_VERSION}"
    dimensions = _DIMENSIONS
    immediate = True
    weighs_rarity = True

    def encode(self, texts: Sequence[str]) -> "Vector":
        """Return texts x ``dimensions``: the weighted square roots of the features' counts, not normalised."""
        import numpy as np  # imported late, as a daemon without tasks does not need it

        rows = np.zeros((len(texts), _DIMENSIONS), dtype=np.float32)
        weights = np.array(_WEIGHTS)
        for place, text in enumerate(texts):
            found = _features(text[:_MAX_LENGTH])
            features = np.fromiter(found, np.int64, len(found))
            counts = np.fromiter(found.values(), np.float64, len(found))
            # Collisions are rare enough at this width to do without a hashed sign.
            rows[place] = np.bincount(
                features % _DIMENSIONS, weights=weights[features >> _BITS] * np.sqrt(counts), minlength=_DIMENSIONS
            )
        return rows

    def close(self) -> None:
        """Do nothing: there are no resources."""


def _features(text: str) -> Counter[int]:
    words = re.findall(_WORD, unicodedata.normalize("NFKC", text).lower())
    features = Counter(
        [feature for word in words for feature in (_remembered(word) if len(word) <= _USUAL else _of_word(word))]
    )
    features.update([zlib.crc32(f"{first} {other}".encode(), _PAIR_SEED) | _PAIR for first, other in pairwise(words)])
    return features


def _of_word(word: str) -> list[int]:
    """Return the features of a word: itself and its n-grams."""
    framed = f"<{word}>"
    grams = [framed[start : start + length] for length in _GRAMS for start in range(len(framed) - length + 1)]
    return [zlib.crc32(word.encode(), _WORD_SEED), *(zlib.crc32(gram.encode(), _GRAM_SEED) | _GRAM for gram in grams)]


_remembered = lru_cache(2_048)(_of_word)
