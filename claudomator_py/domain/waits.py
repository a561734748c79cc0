"""Sentences with instants in them, taken apart, so that whoever shows one words its instants: in a zone, as markup."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

# Stale as soon as it is said; it is shown next to the time, or not at all.
_HOW_LONG = re.compile(r" \(in [0-9a-z]+\)")


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text, or an instant (RFC 3339, UTC)."""

    text: str = ""
    instant: str | None = None


Sentence = tuple[Piece, ...]


def instant_text(instant: str) -> str:
    """An RFC 3339 instant in UTC, to the minute, as sentences of the daemon say it."""
    return f"{instant[:10]} {instant[11:16]} UTC"


def sentence_of(text: str | None, until: str | None, others: Iterable[str | None] = ()) -> Sentence | None:
    """The sentence with those instants apart that it says; ``until`` is put behind it if it does not say that one.

    others: further instants that it may say. None: there is nothing to say.
    """
    if text is None:
        return None if until is None else (Piece("until "), Piece(instant=until))
    spelled = _spellings(instant for instant in (until, *others) if instant is not None)
    if not spelled:
        return (Piece(text),)
    pieces: list[Piece] = []
    rest = text
    pattern = re.compile("|".join(re.escape(words) for words in sorted(spelled, key=len, reverse=True)))
    while (found := pattern.search(rest)) is not None:
        pieces += [Piece(rest[: found.start()]), Piece(instant=spelled[found[0]])]
        rest = rest[found.end() :]
        if (how_long := _HOW_LONG.match(rest)) is not None:
            rest = rest[how_long.end() :]
    if until is not None and not any(piece.instant for piece in pieces):
        return (Piece(f"{text.removesuffix('.')}, until "), Piece(instant=until))
    return tuple(piece for piece in (*pieces, Piece(rest)) if piece.text or piece.instant)


def worded(sentence: Sentence, clock: Callable[[str], str]) -> str:
    """The sentence, each instant as ``clock`` words it."""
    return "".join(piece.text if piece.instant is None else clock(piece.instant) for piece in sentence)


def _spellings(instants: Iterable[str]) -> dict[str, str]:
    """What sentences say for each instant: with its date, and without. The first one that would be said so counts."""
    spelled: dict[str, str] = {}
    for instant in instants:
        spelled.setdefault(instant_text(instant), instant)
        spelled.setdefault(f"{instant[11:16]} UTC", instant)
    return spelled
