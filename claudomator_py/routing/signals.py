"""What speaks for a specialist besides likeness: its keywords, how it has done so far, and how lately."""

import math
import re
import unicodedata
from collections.abc import Iterable

from claudomator_py.domain.units import HOUR_MS

HALF_LIFE_MS = 48 * HOUR_MS
"""How long it takes for a success to count half."""
NO_PERFORMANCE = 0.5
"""Of a specialist of whom nothing is known."""


def keyword_in(text: str, keywords: Iterable[str]) -> str | None:
    """The first of the keywords that is in the text, as whole words, in any case; None: none is."""
    folded = _folded(text)
    for keyword in keywords:
        phrase = r"\s+".join(re.escape(word) for word in _folded(keyword).split())
        if phrase and re.search(rf"(?<!\w){phrase}(?!\w)", folded):
            return keyword
    return None


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def recency(last_success_ms: int | None, now_ms: int) -> float:
    """0 to 1: ``0.5 ** (age / 48 h)`` of the last success; 0 if there was none, 1 for one that is yet to come."""
    if last_success_ms is None:
        return 0.0
    return math.pow(0.5, max(0, now_ms - last_success_ms) / HALF_LIFE_MS)
