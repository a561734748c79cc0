"""What speaks for a specialist besides likeness: its keywords, how it has done so far, and how lately."""

import math
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from claudomator_py.domain.units import HOUR_MS
from claudomator_py.routing.cleaning import memoized

HALF_LIFE_MS = 48 * HOUR_MS
"""How long it takes for a success to count half."""
NO_PERFORMANCE = 0.5
"""Of a specialist of whom nothing is known."""


def keyword_in(text: str, keywords: Iterable[str]) -> str | None:
    """Return the first of the keywords that is in the text, as whole words, in any case; None: none is."""
    folded = _folded(text)
    for keyword in keywords:
        word, phrase = _phrase(keyword)
        # Most keywords are in no part of the text: that is seen without looking for whole words.
        if word and word in folded and phrase.search(folded):
            return keyword
    return None


@memoized
def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


@lru_cache(maxsize=20_000)
def _phrase(keyword: str) -> tuple[str, re.Pattern[str]]:
    """The first word of the keyword, empty if it has none; and what finds all of it."""
    words = _folded(keyword).split()
    phrase = r"\s+".join(map(re.escape, words))
    return words[0] if words else "", re.compile(rf"(?<!\w){phrase}(?!\w)")


def recency(last_success_ms: int | None, now_ms: int) -> float:
    """Return 0 to 1: ``0.5 ** (age / 48 h)`` of the last success; 0 if there was none, 1 for one that is yet to
    come."""
    if last_success_ms is None:
        return 0.0
    return math.pow(0.5, max(0, now_ms - last_success_ms) / HALF_LIFE_MS)
