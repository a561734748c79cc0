"""Letters as a reader sees them: without what is invisible, and with look-alike letters undone."""

import re
import unicodedata
from functools import cache
from typing import Any, Final

from claudomator_py.values import regex, toml_data

_INVISIBLE: Final = regex(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]"
)
_ACCENTS: Final = regex("[\u0300-\u036f]")
_LIKE: Final = str.maketrans("авекмнорстухіјѕԁԛԝһӏԍьαβεικνορτυχϲ", "abekmhopctyxijsdqwhlgbabeikvoptuxc")
"""Letters of Cyrillic and Greek that look like Latin ones."""
_PLAIN: Final = str.maketrans({"ł": "l", "\u0131": "i", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe", "\u2019": "'"})
_OTHER: Final = regex("[\u0370-\u052f]")
_MIXED: Final = regex(r"\w*(?:[a-z]\w*[\u0370-\u052f]|[\u0370-\u052f]\w*[a-z])\w*")
_SPACED: Final = regex(r"[ ._*-][^\W\d_](?:[ ._*-][^\W\d_]){2,}\b")


def cleaned(text: str) -> str:
    """Return the text in letters of one width, without invisible ones, and spaced words (``d e l e t e``) joined."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    return _SPACED.sub(lambda word: f" {word[0][1::2]}", f" {plain}")[1:]


def fold(text: str) -> str:
    """Return the text without case, accents and width; a word that mixes alphabets is Latin."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", _INVISIBLE.sub("", text)).casefold()
    plain = unicodedata.normalize("NFKC", _ACCENTS.sub("", apart)).translate(_PLAIN)
    return _MIXED.sub(lambda word: word[0].translate(_LIKE), plain) if _OTHER.search(plain) else plain


def data() -> dict[str, Any]:
    """Return the lexicon as it is written."""
    return toml_data("claudomator_py.risk", "lexicon.toml")


def listed(text: str) -> list[str]:
    """Return the entries of a list, folded, which commas separate."""
    return [entry for part in fold(text).split(",") if (entry := " ".join(part.split()))]


@cache
def entries(table: str, key: str) -> frozenset[str]:
    """Return the entries of a list of the lexicon."""
    return frozenset(listed(data()[table][key]))


@cache
def pattern(table: str, key: str) -> re.Pattern[str]:
    """Return an expression of the lexicon."""
    return re.compile(data()[table][key])
