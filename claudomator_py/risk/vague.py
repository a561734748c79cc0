"""Whether a text says too little for anybody: every word of it could be about anything."""

import re
from functools import cache
from typing import Final

from claudomator_py.risk.folding import listed
from claudomator_py.risk.lexicon import data
from claudomator_py.values import regex

MAX_WORDS: Final = 30
"""Words of a text that says nothing; with more, it is given the benefit of the doubt."""
_MAX_TOLD: Final = 200
_CONCRETE: Final = regex(
    r"[`\"\u201c\u201d/\\_#@=<>{}\[\]]|\d|\b[a-z]+[A-Z]\w*|\b[A-Z]{2,}\b|\w\.\w|(?<=[a-z,] )[A-Z][a-z]+"
)
_DAYS: Final = regex(r"\b(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|Hi|Hello|Thanks|Please|I|TODO|ASAP)\b")
_WORD: Final = regex(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")


def says_nothing(text: str) -> str | None:
    """Return the text, if every word of it could be about anything; None: it says something."""
    if text.count(" ") > 2 * MAX_WORDS:
        return None
    words = _WORD.findall(text[: _MAX_TOLD * MAX_WORDS])
    if len(words) > MAX_WORDS or _CONCRETE.search(_DAYS.sub(" ", text.strip().removesuffix("."))):
        return None
    says = [word for word in words if re.sub(r"['\u2019]s?$|['\u2019]\w+$", "", word.lower()) not in _says_nothing()]
    return None if says else " ".join(words)[:_MAX_TOLD]


@cache
def _says_nothing() -> frozenset[str]:
    return frozenset(listed(data()["vague"]["words"]))
