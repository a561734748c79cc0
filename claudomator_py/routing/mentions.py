"""Who is addressed in a text with ``@name``: found in one pass, with the names as people write them.

1. A mention is ``@`` and a name. Before the ``@`` stands the start of the text, or anything but a letter, a digit, a
   combining mark, or one of ``_ . - / \\ @``. Variation selectors are no combining marks.
2. The name is the longest of all who take part (id, username, display name) that follows in the text, after NFKC and
   case folding, where white space within a line is one space. It ends at the end of the text, or before anything but a
   letter, a digit, a combining mark, ``_`` and ``-``.
3. A display name may stand in quotation marks right after the ``@``.
4. A name with ``(``, ``/``, ``@``, or ``.`` and a letter or digit, right behind it is code, a path, a scope or a
   handle: no mention, and no shorter name is tried.
5. Nothing in code spans and fences (as in CommonMark), URLs, e-mail addresses and quoted lines is a mention.
6. A name of several participants is ambiguous, and addresses nobody.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from claudomator_py.routing.markdown import code_and_quotes

_NOT_BEFORE: Final = frozenset("_.-/\\@")
_QUOTES: Final = {'"': '"', "'": "'", "“": "”", "„": "“", "«": "»", "\u2018": "\u2019"}
"""What closes each opening one."""
_LINE_BREAKS: Final = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
_URL = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]{0,31}://|(?<![A-Za-z0-9])[Ww]{3}\.)[^\s<>\"]*")
# Each is looked for once, from its beginning. What follows the @ may be the mailbox of the next one.
_MAIL = re.compile(r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]++@(?=([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+))")
_LONGEST_CLUSTER: Final = 32


@dataclass(frozen=True, slots=True)
class Participant:
    """Somebody who can be addressed."""

    id: str
    display_name: str | None = None
    username: str | None = None


@dataclass(frozen=True, slots=True)
class Mention:
    """A place where somebody is addressed."""

    start: int
    end: int
    text: str
    """As it is written, with the ``@`` and any quotation marks."""
    ids: tuple[str, ...]
    """Of those whose name it is; several: it is ambiguous."""


@dataclass(slots=True)
class _Node:
    """A place in the tree of names."""

    following: dict[str, "_Node"] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)
    """Ids of those who have a name that ends here."""
    displayed: set[str] = field(default_factory=set)
    """Of those whose display name it is."""


class Names:
    """The names of some participants. Immutable."""

    def __init__(self, participants: Iterable[Participant]) -> None:
        self._root = _Node()
        for one in participants:
            for name in (one.id, one.username):
                if name:
                    self._add(name).whole.add(one.id)
            if one.display_name and one.display_name.strip():
                node = self._add(" ".join(one.display_name.split()))
                node.whole.add(one.id)
                node.displayed.add(one.id)

    def _add(self, name: str) -> _Node:
        return _leaf(self._root, name)

    def mentions(self, text: str) -> list[Mention]:
        """All that are in the text, in its order."""
        place = text.find("@")
        if place < 0:
            return []
        left_out = _LeftOut(text)
        found = []
        while place >= 0:
            mention = None
            if _may_stand_before(text, place) and not left_out.has(place):
                mention = self._at(text, place)
            if mention is not None:
                found.append(mention)
            place = text.find("@", place + 1 if mention is None else mention.end)
        return found

    def addressed(self, text: str) -> str | None:
        """The id of the first who is addressed, and nobody else could be meant; None: nobody is."""
        return next((one.ids[0] for one in self.mentions(text) if len(one.ids) == 1), None)

    def _at(self, text: str, place: int) -> Mention | None:
        longest: tuple[int, _Node] | None = None
        if (closing := _QUOTES.get(text[place + 1 : place + 2])) is not None:
            for end, node in _walk(self._root, text, place + 2):
                if node.displayed and text.startswith(closing, end):
                    longest = (end, node)
            if longest is not None:
                end, node = longest
                return Mention(place, end + 1, text[place : end + 1], tuple(sorted(node.displayed)))
        for end, node in _walk(self._root, text, place + 1):
            if node.whole and not _goes_on(text, end):
                longest = (end, node)
        if longest is None or _is_code(text, longest[0]):
            return None
        end, node = longest
        return Mention(place, end, text[place:end], tuple(sorted(node.whole)))


class Phrases:
    """Words and phrases to be found in texts, compared as names are. Immutable."""

    def __init__(self, phrases: Iterable[str]) -> None:
        self._root = _Node()
        for phrase in phrases:
            if words := phrase.split():
                _leaf(self._root, " ".join(words)).whole.add(phrase)

    def any_in(self, text: str) -> bool:
        """Whether one of them is in the text as whole words, outside all in which nothing is a mention."""
        if not self._root.following:
            return False
        left_out: _LeftOut | None = None
        # Most places are told from the first character alone, which is what makes long texts cheap.
        first = {_decomposed(character) for character in self._root.following}
        begins = {character: _decomposed(_folded(character)) in first for character in set(text)}
        for place, character in enumerate(text):
            if not begins[character] or (place > 0 and (text[place - 1] in "_-" or _is_word(text[place - 1]))):
                continue
            for end, node in _walk(self._root, text, place):
                if not node.whole or _goes_on(text, end):
                    continue
                left_out = left_out or _LeftOut(text)
                if not left_out.overlaps(place, end):
                    return True
        return False


def _leaf(root: _Node, name: str) -> _Node:
    """The place of that name in the tree, made where it is not there yet."""
    node = root
    for character in _folded(name):
        node = node.following.setdefault(character, _Node())
    return node


def _walk(root: _Node, text: str, start: int) -> Iterator[tuple[int, _Node]]:
    """Where the text has gone on from there as some name does, and how far that name is; as long as one does."""
    node, place = root, start
    while place < len(text):
        if text[place].isspace():
            if text[place] in _LINE_BREAKS:
                return
            end = place + 1
            while end < len(text) and text[end].isspace() and text[end] not in _LINE_BREAKS:
                end += 1
            following = node.following.get(" ")
        else:
            end = _cluster_end(text, place)
            following = node
            for character in _folded(text[place:end]):
                following = following.following.get(character) if following is not None else None
        if following is None:
            return
        node, place = following, end
        yield place, node


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _decomposed(text: str) -> str:
    """Its first character without what is composed with it."""
    return unicodedata.normalize("NFD", text)[:1]


def _is_word(character: str) -> bool:
    """A letter, a digit or a combining mark."""
    return unicodedata.category(character)[0] in "LNM" and not "\ufe00" <= character <= "\ufe0f"


def _cluster_end(text: str, place: int) -> int:
    """The end of the character there, with all that may be composed with it."""
    end, most = place + 1, min(len(text), place + _LONGEST_CLUSTER)
    while end < most and _may_compose(text[end]):
        end += 1
    return end


def _may_compose(character: str) -> bool:
    first = unicodedata.normalize("NFKC", character)[0]
    # The vowels and final consonants of which Hangul syllables are composed.
    return "\u1161" <= first <= "\u11c2" or (unicodedata.category(first)[0] == "M" and _is_word(character))


def _may_stand_before(text: str, place: int) -> bool:
    return place == 0 or not (text[place - 1] in _NOT_BEFORE or _is_word(text[place - 1]))


def _goes_on(text: str, end: int) -> bool:
    """Whether a name that ends there is only the beginning of a longer word."""
    return end < len(text) and (text[end] in "_-" or _is_word(text[end]))


def _is_code(text: str, end: int) -> bool:
    after = text[end : end + 2]
    if after[:1] in ("(", "/", "@"):
        return True
    return len(after) == 2 and after[0] == "." and unicodedata.category(after[1])[0] in "LN"


class _LeftOut:
    """The parts of a text in which nothing is a mention."""

    def __init__(self, text: str) -> None:
        urls = ((one.start(), one.end()) for one in _URL.finditer(text))
        mails = ((one.start(), one.end(1)) for one in _MAIL.finditer(text))
        parts = [*code_and_quotes(text), *urls, *mails]
        starts: list[int] = []
        ends: list[int] = []
        for start, end in sorted(parts):
            if ends and start <= ends[-1]:
                ends[-1] = max(ends[-1], end)
            else:
                starts.append(start)
                ends.append(end)
        self._starts, self._ends = starts, ends

    def has(self, place: int) -> bool:
        """Whether that place is in one of them."""
        at = bisect_left(self._starts, place + 1) - 1
        return at >= 0 and place < self._ends[at]

    def overlaps(self, start: int, end: int) -> bool:
        """Whether any of what is between those two places is in one of them."""
        at = bisect_left(self._starts, end) - 1
        return at >= 0 and start < self._ends[at]
