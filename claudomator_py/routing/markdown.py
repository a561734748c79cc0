"""Finds the parts of a text that are code or quotations according to CommonMark, in which nobody is addressed.

Only what matters for that is parsed: list items and blocks that end a paragraph, fences, and within a paragraph code
spans and constructs of equal precedence. Two simplifications: an indented line is text, and a line that begins with
``>`` is a quotation, whatever surrounds it.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Final

from claudomator_py.values import dataclass, regex

_LINE: Final = regex(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_QUOTED: Final = regex(r" {0,3}>")
_FENCE: Final = regex(r"(`{3,}(?=[^`]*\Z)|~{3,})")
_HEADING: Final = regex(r"#{1,6}(?:[ \t]|\Z)")
_UNDERLINE: Final = regex(r"(?:=+|-+)[ \t]*\Z")
_BREAK: Final = regex(r"(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})\Z")
_MARKER: Final = regex(r"([-+*]|([0-9]{1,9})[.)])(?=[ \t]|\Z)")
_TICKS: Final = regex("`+")
_TAG: Final = regex(
    r"""</[A-Za-z][A-Za-z0-9-]*+\s*+>
    |<[A-Za-z][A-Za-z0-9-]*+
      (?>\s++[A-Za-z_:][A-Za-z0-9_.:-]*+(?:\s*+=\s*+(?:[^\s"'=<>`]++|'[^']*+'|"[^"]*+"))?)*+\s*+/?>
    |<[A-Za-z][A-Za-z0-9.+-]{1,31}:[^\x00-\x20<>]*+>
    |<[A-Za-z0-9.!\#$%&'*+/=?^_`{|}~-]++@[A-Za-z0-9.-]++>""",
    re.VERBOSE,
)
"""An HTML tag or a link in angle brackets: a backtick inside does not begin code."""
_PUNCTUATION: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_TAB: Final = 4
_MAX_ITEMS: Final = 100
"""Maximum nesting of lists; anything deeper is text."""
_MAX_INDENT: Final = 3
"""Maximum indentation, in columns, of the start of a block."""


def code_and_quotes(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of fences, quoted lines and code spans, end exclusive."""
    blocks = _Blocks(text)
    for line in _LINE.finditer(text):
        if line.start() == line.end():
            break
        yield from blocks.take(line.start(), line.end(), line[0].rstrip("\r\n"))
    yield from blocks.close(len(text))


@dataclass(slots=True)
class _Blocks:
    """The blocks that are open at some line of a text."""

    text: str
    items: list[int] = field(default_factory=list)
    """For each list item around the line, outermost first: the indentation, in columns, of what belongs to it."""
    empty: bool = False
    """True if the innermost item has no content yet."""
    paragraph: list[tuple[int, int]] = field(default_factory=list)
    """Lines of the open paragraph; empty if there is none."""
    fence: str = ""
    """Opening marker of the open fence; empty if there is none."""
    begun: int = 0
    """Start of the open fence."""

    def take(self, start: int, end: int, content: str) -> Iterator[tuple[int, int]]:
        """Process the next line. content: the line without its line break."""
        line = _Rest(content)
        within = self._around(line)
        if self.fence:
            if within == len(self.items):
                if self._closes(line):
                    yield self.begun, end
                    self.fence = ""
                return
            yield self.begun, start
            self.fence = ""
        if _QUOTED.match(content):
            yield from self.close(start)
            yield start, end
            return
        if line.blank:
            yield from self._end_paragraph()
            if self.empty:
                self.items.pop()
            self.empty = False
            return
        yield from self._begin(line, within, start, end)

    def close(self, at: int) -> Iterator[tuple[int, int]]:
        """Close all open blocks."""
        yield from self._end_paragraph()
        if self.fence:
            yield self.begun, at
        self.fence, self.items, self.empty = "", [], False

    def _around(self, line: "_Rest") -> int:
        """Number of the items that contain the line, whose position moves past their indentation."""
        for number, width in enumerate(self.items):
            if not line.blank and line.indent < width:
                return number
            line.skip(width)
        return len(self.items)

    def _closes(self, line: "_Rest") -> bool:
        bare = line.bare.strip(" \t")
        return line.indent <= _MAX_INDENT and len(bare) >= len(self.fence) and bare == self.fence[0] * len(bare)

    def _begin(self, line: "_Rest", within: int, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Process a line that is not blank and not in a fence."""
        inside = within == len(self.items)
        while line.indent <= _MAX_INDENT:
            bare = line.bare
            ends = self.paragraph and inside and _UNDERLINE.match(bare)
            if ends or _BREAK.match(bare) or _HEADING.match(bare):
                if not ends:
                    yield from self._end_paragraph()
                    self._leave(within)
                self.paragraph.append((start, end))
                yield from self._end_paragraph()
                return
            opened = _FENCE.match(bare)
            if opened is not None:
                yield from self._end_paragraph()
                self._leave(within)
                self.fence, self.begun = opened[1], start + line.place
                return
            marker = _MARKER.match(bare)
            if (
                marker is None
                or len(self.items) == _MAX_ITEMS
                or (self.paragraph and inside and not _interrupts(marker, bare))
            ):
                break
            yield from self._end_paragraph()
            self._leave(within)
            self.items.append(line.enter(marker.end()))
            within, inside = len(self.items), True
            if line.blank:
                self.empty = True
                return
        if not inside and not self.paragraph:
            self._leave(within)
        self.empty = False
        self.paragraph.append((start + (0 if self.paragraph else line.place), end))

    def _leave(self, within: int) -> None:
        del self.items[within:]
        self.empty = False

    def _end_paragraph(self) -> Iterator[tuple[int, int]]:
        lines, self.paragraph = self.paragraph, []
        if lines:
            yield from _spans(self.text, lines[0][0], lines[-1][1])


@dataclass(slots=True)
class _Rest:
    """The rest of a line."""

    content: str
    place: int = 0
    """Index of its start."""
    column: int = 0
    """Column of its start."""
    left: int = 0
    """Remaining columns of the tab before it."""

    @property
    def bare(self) -> str:
        """The rest without its indentation."""
        return self.content[self.place :].lstrip(" \t")

    @property
    def blank(self) -> bool:
        """True if it is empty or white space."""
        return not self.bare

    @property
    def indent(self) -> int:
        """Width of its indentation in columns."""
        return self._width(self.place)[0]

    def _width(self, place: int) -> tuple[int, int]:
        column = self.column
        while place < len(self.content) and self.content[place] in " \t":
            column += _TAB - column % _TAB if self.content[place] == "\t" else 1
            place += 1
        return self.left + column - self.column, place

    def skip(self, columns: int) -> None:
        """Skip at most this many columns of indentation."""
        taken = min(columns, self.left)
        self.left -= taken
        while taken < columns and self.content[self.place : self.place + 1] in (" ", "\t"):
            wide = _TAB - self.column % _TAB if self.content[self.place] == "\t" else 1
            self.column += wide
            self.place += 1
            self.left = max(0, taken + wide - columns)
            taken = min(columns, taken + wide)

    def enter(self, marker: int) -> int:
        """Skip a list item's marker of that length; return the indentation of the item's content in columns."""
        before, self.place = self._width(self.place)
        self.column += before - self.left
        self.left = 0
        self.place, self.column = self.place + marker, self.column + marker
        spaces = self.indent
        after = spaces if spaces <= _MAX_INDENT + 1 and not self.blank else 1
        self.skip(after)
        return before + marker + after


def _interrupts(marker: re.Match[str], bare: str) -> bool:
    """True if an item with this marker can interrupt a paragraph."""
    return marker[2] in (None, "1") and bool(bare[marker.end() :].strip(" \t"))


def _spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The code spans of a paragraph: from a run of backticks to the next run of the same length."""
    runs: dict[int, list[int]] = defaultdict(list)
    for run in _TICKS.finditer(text, start, end):
        runs[run.end() - run.start()].append(run.start())
    if not runs:
        return
    place = start
    while place < end:
        if text[place] == "\\" and text[place + 1 : place + 2] in _PUNCTUATION and place + 1 < end:
            place += 2
        elif text[place] == "<":
            place = _behind_tag(text, place, end)
        elif text[place] != "`":
            place += 1
        else:
            opened = _TICKS.match(text, place, end)
            behind = place + 1 if opened is None else opened.end()
            closing = _next(runs.get(behind - place, ()), behind)
            if closing is None:
                place = behind
            else:
                yield place, closing + behind - place
                place = closing + behind - place


def _next(places: Sequence[int], after: int) -> int | None:
    """The first of these positions that is not before the given one."""
    at = bisect_left(places, after)
    return places[at] if at < len(places) else None


def _behind_tag(text: str, place: int, end: int) -> int:
    """End of the tag, comment or link that begins there; just past the bracket if there is none."""
    if text.startswith("<!--", place):
        if text.startswith((">", "->"), place + 4):
            return text.index(">", place) + 1
        closed = text.find("-->", place + 4, end)
        return place + 1 if closed < 0 else closed + 3
    match = _TAG.match(text, place, end)
    return place + 1 if match is None else match.end()
