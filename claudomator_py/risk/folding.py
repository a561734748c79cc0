"""Text as a reader sees it: without case, accents and width, and with look-alike letters and spaced words undone."""

import unicodedata
from typing import Final

from claudomator_py.values import regex

_INVISIBLE: Final = regex(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]"
)
_KEPT: Final = frozenset("\u3099\u309a")
"""Marks that make another letter of kana."""
_LIKE: Final = str.maketrans("авекмнорстухіјѕԁԛԝһӏԍьαβεικνορτυχϲ", "abekmhopctyxijsdqwhlgbabeikvoptuxc")
"""Letters of Cyrillic and Greek that look like Latin ones."""
_PLAIN: Final = str.maketrans({"ß": "ss", "ł": "l", "\u0131": "i", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe"})
_NOT_ASCII: Final = regex("[^\\x00-\\x7f]+")
_OTHER: Final = regex("[\u0370-\u052f]")
_MIXED: Final = regex(r"\w*(?:[a-z]\w*[\u0370-\u052f]|[\u0370-\u052f]\w*[a-z])\w*")
_SPACED: Final = regex(r"[ ._*-][^\W\d_][ ._*-][^\W\d_][ ._*-][^\W\d_](?![^\W_])")
_ALSO_SPACED: Final = regex(r"(?<![^\W_])[^\W_](?:[ ._*-][^\W_])+(?![^\W_])")


class _Letters(dict[int, str]):
    """What each letter is folded to, found out once."""

    def __missing__(self, code: int) -> str:
        apart = unicodedata.normalize("NFKD", chr(code)).casefold()
        bare = "".join(letter for letter in apart if not unicodedata.combining(letter) or letter in _KEPT)
        self[code] = unicodedata.normalize("NFKC", bare).translate(_PLAIN).casefold()
        return self[code]


_LETTERS: Final = _Letters()


def fold(text: str) -> str:
    """Return the text without case, accents, width and what cannot be seen; a word that mixes alphabets is Latin."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).lower()
    folded = _NOT_ASCII.sub(lambda letters: letters[0].translate(_LETTERS), plain)
    return _MIXED.sub(lambda word: word[0].translate(_LIKE), folded) if _OTHER.search(folded) else folded


def joined(text: str) -> str:
    """Return the text with words in one that are spelt with a space or a mark after each letter: ``d e l e t e``."""
    return _ALSO_SPACED.sub(lambda word: word[0][::2], text) if _SPACED.search(text) else text
