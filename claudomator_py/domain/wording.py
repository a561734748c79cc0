"""Words with instants in them: text that is put together here, and whose instants whoever shows it words, in a zone of
its own or as markup. Nothing that was put together is ever taken apart again."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from claudomator_py.domain.units import format_instant

_PART = re.compile(r"\[([^\[\]]*)\]|\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text, or an instant (RFC 3339, UTC)."""

    text: str = ""
    instant: str | None = None


Sentence = tuple[Piece, ...]
Clock = Callable[[str], str]
"""How an instant (RFC 3339, UTC) is worded."""


_UNKNOWN = (Piece("?"),)


def at(instant_ms: int) -> Sentence:
    """The instant, in epoch milliseconds, to be worded by whoever shows it."""
    return (Piece(instant=format_instant(instant_ms)),)


def said(text: str) -> Sentence:
    """The text without instants."""
    return (Piece(text),)


def instant_text(instant: str) -> str:
    """An RFC 3339 instant in UTC, to the minute, as sentences of the daemon say it."""
    return f"{instant[:10]} {instant[11:16]} UTC"


def worded(sentence: Sentence, clock: Clock = instant_text) -> str:
    """The sentence, each instant as ``clock`` words it."""
    return "".join(piece.text if piece.instant is None else clock(piece.instant) for piece in sentence)


def joined(sentences: Sequence[Sentence], between: str) -> Sentence:
    """Several sentences as one."""
    pieces: list[Piece] = []
    for number, sentence in enumerate(sentences):
        pieces += [Piece(between)] if number else []
        pieces += sentence
    return tuple(pieces)


def filled(template: str, values: Mapping[str, Sentence]) -> Sentence:
    """The template with its values: ``{name}`` is one of them, ``[a|b]`` the first of its alternatives whose values are
    all there, and nothing where none is. A value that is missing elsewhere is a question mark.
    """
    pieces: list[Piece] = []
    for part in _filled(template, values):
        if part.instant is None and pieces and pieces[-1].instant is None:
            pieces[-1] = Piece(pieces[-1].text + part.text)
        elif part.text or part.instant is not None:
            pieces.append(part)
    return tuple(pieces)


def placeholders(template: str) -> tuple[str, ...]:
    """The names of all values that it may hold, in its order."""
    return tuple(dict.fromkeys(re.findall(r"\{([a-z_]+)\}", template)))


def _filled(template: str, values: Mapping[str, Sentence]) -> Iterator[Piece]:
    end = 0
    for found in _PART.finditer(template):
        yield Piece(template[end : found.start()])
        end = found.end()
        alternatives, name = found.groups()
        if name is not None:
            yield from values.get(name, _UNKNOWN)
            continue
        for alternative in alternatives.split("|"):
            if all(needed in values for needed in placeholders(alternative)):
                yield from _filled(alternative, values)
                break
    yield Piece(template[end:])
