"""Texts that say too little for anybody: every word of them could be about anything."""

import re
from typing import Final

from claudomator_py.risk.folding import entries, pattern

MAX_WORDS: Final = 30
"""Words of a text that says nothing; with more, it is given the benefit of the doubt."""
_MAX_LETTERS: Final = 6_000


def says_nothing(text: str) -> str | None:
    """Return the text, if every word of it could be about anything; None: it says something."""
    words = re.findall(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*", text[:_MAX_LETTERS])
    if len(words) > MAX_WORDS or pattern("vague", "concrete").search(
        pattern("vague", "capital").sub(" ", text.strip().removesuffix("."))
    ):
        return None
    bare = {re.sub(r"['\u2019]s?$|['\u2019]\w+$", "", word.lower()) for word in words}
    return " ".join(words)[:200] if bare <= entries("vague", "words") else None
