"""A problem in a document: what is wrong, where, and what to do about it."""

import difflib
from collections.abc import Iterable, Mapping

from pydantic import BaseModel, ConfigDict

Path = tuple[str | int, ...]
Lines = Mapping[Path, int]

_SHOWN = 60


class Problem(BaseModel):
    """One thing wrong with a document.

    line and column count from 1, in the file. field: the place in the document, such as ``agent.tier`` or ``check[0]``.
    remedy: what to do about it. document: which of several ``---`` documents, from 1.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    line: int | None = None
    column: int | None = None
    field: str | None = None
    message: str
    remedy: str | None = None
    document: int | None = None

    def render(self, filename: str = "") -> str:
        """One line: ``file:line: field: message; remedy``, without the parts that are not known."""
        place = ":".join([printable(filename)] * bool(filename) + [str(n) for n in (self.line, self.column) if n])
        parts = [part for part in (place, self.field, self.message) if part]
        text = ": ".join(parts)
        return f"{text}; {self.remedy}" if self.remedy else text

    def __str__(self) -> str:
        return self.render()


def field_name(path: Path) -> str | None:
    """The path as people write it: ``agent.tier``, ``check[0]``; None for the whole document."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{shown(part)}" if text else shown(part)
    return text or None


def line_of(lines: Lines, path: Path) -> int | None:
    """The line of the path, or of the nearest part that contains it."""
    for length in range(len(path), -1, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


def suggestion(word: str, valid: Iterable[str]) -> str:
    """A remedy that names the valid word nearest to this one, or else all of them."""
    words = sorted(valid)
    by_folded = {known.casefold(): known for known in words}
    nearest = difflib.get_close_matches(word[:_SHOWN].casefold(), by_folded, n=1, cutoff=0.6)
    if nearest:
        return f"did you mean `{by_folded[nearest[0]]}`?"
    return f"write one of {', '.join(words)}" if words else "remove it"


def printable(text: str) -> str:
    """The text with everything escaped that could break a line or speak to a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def shown(text: str) -> str:
    """The text as a message quotes it: printable and short."""
    return printable(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")
