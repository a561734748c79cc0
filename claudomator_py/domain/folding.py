"""Letters as a reader sees them: without case, accents and what is invisible, and with look-alike letters undone."""

import unicodedata
from typing import Final

from claudomator_py.values import regex

_INVISIBLE: Final = regex(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]"
)
_ACCENTS: Final = regex("[\u0300-\u036f]")
_LIKE: Final = str.maketrans("авекмнорстухіјѕԁԛԝһӏԍьαβεικνορτυχϲ", "abekmhopctyxijsdqwhlgbabeikvoptuxc")
"""Letters of Cyrillic and Greek that look like Latin ones."""
_PLAIN: Final = str.maketrans({"ł": "l", "\u0131": "i", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe", "\u2019": "'"})
_OTHER: Final = regex("[\u0370-\u052f]")
_MIXED: Final = regex(r"\w*(?:[a-z]\w*[\u0370-\u052f]|[\u0370-\u052f]\w*[a-z])\w*")


def visible(text: str) -> str:
    """Return the text without invisible characters, and in letters of one width."""
    return text if text.isascii() else unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))


def fold(text: str) -> str:
    """Return the text without case, accents and width; a word that mixes alphabets is Latin."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", _INVISIBLE.sub("", text)).casefold()
    plain = unicodedata.normalize("NFKC", _ACCENTS.sub("", apart)).translate(_PLAIN)
    return _MIXED.sub(lambda word: word[0].translate(_LIKE), plain) if _OTHER.search(plain) else plain


def listed(text: str) -> list[str]:
    """Return the entries of a list that commas separate, folded."""
    return [entry for part in fold(text).split(",") if (entry := " ".join(part.split()))]
