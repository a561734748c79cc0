"""Texts of others, made safe to display, as terminal control codes could hide, forge or execute something; folded, so
that words are recognised however they are written; cut to a length; and recognised again by their digest."""

import hashlib
import json
import re
from typing import Final, Literal

from claudomator_py.values import regex

_MAX_UNFINISHED = 4_096

# Control sequences: CSI; strings (OSC, DCS, SOS, PM, APC) up to their terminator; other escapes. Then line ends and
# remaining control characters, including those that change text direction. A string ends where another begins, and only
# the first of consecutive carriage returns looks ahead, so no text is scanned more than once.
_BEGINS_STRING = r"\x90\x98\x9d-\x9f"
_STRING = rf"(?:\x1b[\]PX^_]|[{_BEGINS_STRING}])[^\x07\x1b\x9c\n{_BEGINS_STRING}]*"
_RETURNS = r"(?<!\r)\r+"
_SEQUENCE = rf"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|{_STRING}(?:\x07|\x1b\\|\x9c)|\x1b[ -/]*[0-OQ-WYZ\\`-~]"
_LINE_END = rf"(?P<line_end>{_RETURNS}\n|[\r\u2028\u2029])"
# Invisible characters: control characters, and those that change text direction or have no width.
_UNSEEN = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
# These have no width either, but many scripts and emoji need them.
_JOINERS = "\u200c\u200d"
_UNWANTED = regex(f"{_SEQUENCE}|{_LINE_END}|[{_UNSEEN}]")
_JOINER = regex(f"[{_JOINERS}]")
_TO_ESCAPE = regex(f"[{_UNSEEN}{_JOINERS}\u2028\u2029\ud800-\udfff]")
# What a later part of the text may complete.
_UNFINISHED = regex(rf"(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*|{_STRING}\x1b?|\x1b[ -/]*|{_RETURNS})\Z")
# Ends of a clause: the end of a sentence, a semicolon, or the start of data, a URL or a note in brackets.
_CLAUSE_END = regex(r"(?<=[^.\s])\. |; | \{|\{\"| \(?https?://| · ")
# What a reader does not see, or takes for other letters.
_INVISIBLE: Final = regex(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]"
)
_ACCENTS: Final = regex("[\u0300-\u036f]")
_LIKE: Final = str.maketrans("авекмнорстухіјѕԁԛԝһӏԍьαβεικνορτυχϲ", "abekmhopctyxijsdqwhlgbabeikvoptuxc")
"""Letters of Cyrillic and Greek that look like Latin ones."""
_PLAIN: Final = str.maketrans({"ł": "l", "\u0131": "i", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe", "\u2019": "'"})
_OTHER: Final = regex("[\u0370-\u052f]")
_MIXED: Final = regex(r"\w*(?:[a-z]\w*[\u0370-\u052f]|[\u0370-\u052f]\w*[a-z])\w*")


def plain(text: str) -> str:
    """Return the text without control sequences and control characters; carriage returns become line ends."""
    # Most texts shown are short and plain, and a page shows hundreds of them.
    return text if text.isascii() and text.isprintable() else _UNWANTED.sub(_replacement, text)


def one_line(text: str) -> str:
    """Return the clean text with each run of white space as a single blank, for a table cell."""
    return " ".join(_JOINER.sub("", plain(text)).split())


def escaped(text: str) -> str:
    """Return the text with all invisible characters except tabs and line ends escaped as in JSON: ``\\u202e``. The
    meaning of JSON text is preserved."""
    return _TO_ESCAPE.sub(lambda match: json.dumps(match[0])[1:-1], text)


def clause(text: str, most: int = 120) -> str:
    """Return the first clause of a program's text, for a list; empty if it begins with data, which would be meaningless
    there. most: maximum characters; longer text is cut at a word."""
    line = next((one_line(part) for part in text.splitlines() if part.strip()), "")
    if line.startswith(("{", "[{", "<!", "<html", "Traceback")):
        return ""
    end = _CLAUSE_END.search(line)
    first = (line if end is None else line[: end.start()]).rstrip(" .:;,-([{")
    return _cut(first if "]" in first else first.lstrip("["), most)


def subject_line(text: str, most: int = 120) -> str:
    """Return the first line of a text of our own, which says what the rest is about; cut like a clause."""
    return _cut(one_line(text.partition("\n")[0]), most)


def visible(text: str) -> str:
    """Return the text without invisible characters, and in letters of one width."""
    return text if text.isascii() else _normalised("NFKC", _INVISIBLE.sub("", text))


def fold(text: str) -> str:
    """Return the text without case, accents and width; a word that mixes alphabets is Latin."""
    if text.isascii():
        return text.lower()
    apart = _normalised("NFKD", _INVISIBLE.sub("", text)).casefold()
    latin = _normalised("NFKC", _ACCENTS.sub("", apart)).translate(_PLAIN)
    return _MIXED.sub(lambda word: word[0].translate(_LIKE), latin) if _OTHER.search(latin) else latin


def listed(text: str) -> list[str]:
    """Return the entries of a list that commas separate, folded."""
    return [entry for part in fold(text).split(",") if (entry := " ".join(part.split()))]


def finished(text: str) -> int:
    """Return how much of the text no later part can change: everything except an incomplete control sequence."""
    unfinished = _UNFINISHED.search(text)
    if unfinished is None or len(text) - unfinished.start() > _MAX_UNFINISHED:
        return len(text)
    return unfinished.start()


def place_in(text: str, place: int) -> int:
    """Return the position in the text that corresponds to ``place`` in the plain text, past anything removed before
    it."""
    shown = 0
    position = 0
    for unwanted in _UNWANTED.finditer(text):
        between = unwanted.start() - position
        if shown + between > place:
            break
        instead = len(_replacement(unwanted))
        if shown + between + instead > place:
            return unwanted.start()
        shown += between + instead
        position = unwanted.end()
    return position + place - shown


def cut(text: str, most: int) -> str:
    """Return the text; of one with more than ``most`` characters the beginning, with dots in the place of the rest."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def cut_line(text: str, most: int) -> str:
    """Return the text on one line, with each run of white space as a blank; cut as by ``cut``."""
    return cut(" ".join(text.split()), most)


def json_hash(value: object) -> str:
    """Return the SHA-256 of the value as JSON, in hexadecimal, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def marker_of(label: str, text: str) -> str:
    """Return a line to put before and after the text. As it is derived from the text, the text cannot contain it."""
    return f"{label}-{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:16]}"


def _normalised(form: Literal["NFKC", "NFKD"], text: str) -> str:
    import unicodedata  # late: ASCII does not need it

    return unicodedata.normalize(form, text)


def _cut(line: str, most: int) -> str:
    return line if len(line) <= most else f"{line[: most - 1].rsplit(' ', 1)[0]}…"


def _replacement(unwanted: re.Match[str]) -> str:
    return "\n" if unwanted["line_end"] is not None else ""
