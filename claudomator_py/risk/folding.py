"""Letters as a reader sees them: without case, accents and width, and with what is made to look like them undone."""

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
_OTHER: Final = regex("[\u0370-\u052f]")
_MIXED: Final = regex(r"\w*(?:[a-z]\w*[\u0370-\u052f]|[\u0370-\u052f]\w*[a-z])\w*")
_SPACED: Final = regex(r"[ ._*-][^\W\d_][ ._*-][^\W\d_][ ._*-][^\W\d_](?![^\W_])")
_ALSO_SPACED: Final = regex(r"(?<![^\W_])[^\W_](?:[ ._*-][^\W_])+(?![^\W_])")
_TOKEN: Final = regex(
    r"(?<!\w)@[\w-]+|[^\W_]+(?:'[^\W_]+)*|[,:](?!\S)|[\[\]{}\"\u201c\u201d\u201e\u00ab\u00bb\u2013\u2014|*&]"
    r"|(?<!\S)-+(?!\S)|-->"
)


class _Letters(dict[int, str]):
    """What each letter is folded to, found out once."""

    def __missing__(self, code: int) -> str:
        apart = unicodedata.normalize("NFKD", chr(code)).casefold()
        bare = "".join(one for one in apart if not unicodedata.combining(one) or one in _KEPT)
        self[code] = unicodedata.normalize("NFKC", bare).translate(_PLAIN).casefold()
        return self[code]


_LETTERS: Final = _Letters()


def fold(text: str) -> str:
    """Return the text without case, accents, width and what cannot be seen; a word that mixes alphabets is Latin."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).translate(_LETTERS)
    return _MIXED.sub(lambda word: word[0].translate(_LIKE), folded) if _OTHER.search(folded) else folded


def joined(text: str) -> str:
    """Return the text with words in one that are spelt with a space or a mark after each letter: ``d e l e t e``."""
    return _ALSO_SPACED.sub(lambda word: word[0][::2], text) if _SPACED.search(text) else text


def words_in(text: str) -> list[str]:
    """Return the words of a text, folded, and the marks that part them, in order."""
    return _TOKEN.findall(fold(text).replace("\u2019", "'"))
