"""Words with instants in them: text that is put together here, and whose instants whoever shows it words, in a zone of
its own or as markup. Nothing that was put together is ever taken apart again."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from claudomator_py.domain.units import DAY_MS, format_duration, format_instant, parse_instant
from claudomator_py.values import dataclass

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
    """Return the instant, in epoch milliseconds, to be worded by whoever shows it."""
    return (Piece(instant=format_instant(instant_ms)),)


def said(text: str) -> Sentence:
    """Return the text without instants."""
    return (Piece(text),)


def instant_text(instant: str) -> str:
    """Return an RFC 3339 instant in UTC, to the minute, as sentences of the daemon say it."""
    return f"{instant[:10]} {instant[11:16]} UTC"


def worded(sentence: Sentence, clock: Clock = instant_text) -> str:
    """Return the sentence, each instant as ``clock`` words it."""
    return "".join(piece.text if piece.instant is None else clock(piece.instant) for piece in sentence)


def joined(sentences: Sequence[Sentence], between: str) -> Sentence:
    """Return several sentences as one."""
    pieces: list[Piece] = []
    for number, sentence in enumerate(sentences):
        pieces += [Piece(between)] if number else []
        pieces += sentence
    return tuple(pieces)


def filled(template: str, values: Mapping[str, Sentence]) -> Sentence:
    """Return the template with its values: ``{name}`` is one of them, ``[a|b]`` the first of its alternatives whose
    values are all there, and nothing where none is. A value that is missing elsewhere is a question mark."""
    pieces: list[Piece] = []
    for part in _filled(template, values):
        if part.instant is None and pieces and pieces[-1].instant is None:
            pieces[-1] = Piece(pieces[-1].text + part.text)
        elif part.text or part.instant is not None:
            pieces.append(part)
    return tuple(pieces)


def placeholders(template: str) -> tuple[str, ...]:
    """Return the names of all values that it may hold, in its order."""
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


def due_clock(now_ms: int) -> Clock:
    """Return how an instant that is waited for is worded: in UTC, with how long that is from now."""
    return lambda instant: due_text(parse_instant(instant), now_ms)


def utc_clock(near_ms: int) -> Clock:
    """Return how an instant is worded beside another one: in UTC, with its date if that is another day."""
    return lambda instant: clock_text(parse_instant(instant), near_ms)


def clock_text(instant_ms: int, near_ms: int) -> str:
    """Return the time of day in UTC, to the minute, with its date unless that is the day of ``near_ms``."""
    date, _, clock = format_instant(instant_ms).partition("T")
    same_day = instant_ms // DAY_MS == near_ms // DAY_MS
    return f"{clock[:5]} UTC" if same_day else f"{date} {clock[:5]} UTC"


def due_text(until_ms: int, now_ms: int) -> str:
    """Return the time, with how long that is from now."""
    return f"{clock_text(until_ms, now_ms)} (in {time_between(now_ms, until_ms)})"


def time_between(start_ms: int, end_ms: int) -> str:
    """Return how long that is, in whole seconds."""
    return format_duration(max(0, end_ms - start_ms) // 1000 * 1000)
