"""Finds who is addressed in a text with ``@name``, in one pass.

1. A mention is ``@`` and a name. The ``@`` is at the start of the text or follows any character except a letter, a
   digit, a combining mark, or one of ``_ . - / \\ @``. Variation selectors do not count as combining marks.
2. The name is the longest name of any participant (id, username, display name) that follows in the text, compared after
   NFKC and case folding, with white space within a line as one space. It ends at the end of the text, or before any
   character except a letter, a digit, a combining mark, ``_`` and ``-``. Letters of a script without spaces between
   words, and of Korean, whose particles follow a word, may precede an ``@``, and end a name in any other script.
3. A display name may be quoted right after the ``@``.
4. A name directly followed by ``(``, ``/``, ``@``, or by ``.`` and a letter or digit, is code, a path, a scope or a
   handle: there is no mention, and no shorter name is tried.
5. Code spans and fences (as in CommonMark), URLs, e-mail addresses and quoted lines contain no mentions.
6. A name of several participants is ambiguous, and addresses nobody.

A task's text is written to somebody. There, such letters also end a name in their own script; letters of right-to-left
scripts, whose prepositions join the following word, may precede an ``@``, and so may an ``_`` that is closed after the
name; a full-width ``@`` counts; and an id takes precedence over display names of others. In a channel people write
about each other, so none of that applies: what is labelled there says so.
"""

import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Final

from claudomator_py.routing.markdown import code_and_quotes
from claudomator_py.values import dataclass, regex

_NOT_BEFORE: Final = frozenset("_.-/\\@")
AT: Final = regex("@")
WIDE_AT: Final = regex("[@\ufe6b\uff20]")
"""What a mention begins with; in a task's text, also the full-width forms."""
_UNSPACED: Final = regex(
    "["
    "\u0e00-\u0fff"  # Thai, Lao, Tibetan
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Myanmar
    "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff\uffa0-\uffdc"  # Hangul
    "\u1780-\u17ff\u19e0-\u19ff"  # Khmer
    "\u1950-\u19df\u1a20-\u1aaf\uaa80-\uaadf"  # Tai Le, New Tai Lue, Tai Tham, Tai Viet
    "\u1b00-\u1b7f\ua980-\ua9df"  # Balinese, Javanese
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c"  # iteration marks and numbers
    "\u3041-\u312f\u31a0-\u31bf\u31f0-\u31ff\uff66-\uff9f\U0001b000-\U0001b16f"  # Hiragana, Katakana, Bopomofo
    "\u3400-\u4dbf\u4e00-\ua4cf\uf900-\ufaff\U00020000-\U0003ffff"  # Han, Yi
    "]"
)
"""Letters of scripts written without spaces, and of Hangul. Source: Unicode 17, UAX 14 (class SA) and block names."""
_QUOTES: Final = {
    '"': '"',
    "'": "'",
    "“": "”",
    "„": "“",
    "«": "»",
    "\u2018": "\u2019",
    "\u300c": "\u300d",
    "\u300e": "\u300f",
}
"""Closing quotation mark by opening one."""
_LINE_BREAKS: Final = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
_URL = regex(r"(?:[A-Za-z][A-Za-z0-9+.-]{0,31}://|(?<![A-Za-z0-9])[Ww]{3}\.)[^\s<>\"]*")
# Each match is tried once, from its start. The part after the @ may be the mailbox of the next address.
_MAIL = regex(r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]++@(?=([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+))")
_MAX_CLUSTER: Final = 32


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
    """As written, with the ``@`` and any quotation marks."""
    ids: tuple[str, ...]
    """Ids of those with that name; if there are several, it is ambiguous."""


@dataclass(slots=True)
class _Node:
    """A node in the tree of names."""

    following: dict[str, "_Node"] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)
    """Ids of those with a name that ends here."""
    displayed: set[str] = field(default_factory=set)
    """Ids of those whose display name ends here."""
    identified: str | None = None
    """The participant whose id ends here."""

    def meant(self, *, of_task: bool) -> tuple[str, ...]:
        """Return the ids of those who may be meant. Ids take precedence only in tasks: ids are unique, while guests can
        choose any display name."""
        return (self.identified,) if of_task and self.identified is not None else tuple(sorted(self.whole))


class Names:
    """The names of some participants. Immutable. of_task: True if the texts are those of tasks."""

    def __init__(self, participants: Iterable[Participant], *, of_task: bool = False) -> None:
        self._root = _Node()
        self._of_task = of_task
        for participant in participants:
            for name in (participant.id, participant.username):
                if name:
                    self._add(name).whole.add(participant.id)
            self._add(participant.id).identified = participant.id
            if participant.display_name and participant.display_name.strip():
                node = self._add(" ".join(participant.display_name.split()))
                node.whole.add(participant.id)
                node.displayed.add(participant.id)

    def _add(self, name: str) -> _Node:
        return _leaf(self._root, name)

    def mentions(self, text: str) -> list[Mention]:
        """Return all mentions in the text, in order."""
        begin = WIDE_AT if self._of_task else AT
        at = begin.search(text)
        if at is None:
            return []
        left_out = _LeftOut(text)
        mentions = []
        while at is not None:
            place, mention = at.start(), None
            emphasised = self._of_task and text[place - 1 : place] == "_" and _may_stand_before(text, place - 1)
            allowed = emphasised or _may_stand_before(text, place, of_task=self._of_task)
            if allowed and not left_out.has(place):
                mention = self._at(text, place, emphasised=emphasised)
            if mention is not None:
                mentions.append(mention)
            at = begin.search(text, place + 1 if mention is None else mention.end)
        return mentions

    def addressed(self, text: str) -> str | None:
        """Return the id of the first participant who is addressed unambiguously; None if there is none."""
        return next((mention.ids[0] for mention in self.mentions(text) if len(mention.ids) == 1), None)

    def _at(self, text: str, place: int, *, emphasised: bool) -> Mention | None:
        """The mention there. emphasised: True if a preceding ``_`` must be closed right after it."""
        longest: tuple[int, _Node] | None = None
        if (closing := _QUOTES.get(text[place + 1 : place + 2])) is not None:
            for end, node in _walk(self._root, text, place + 2):
                if node.displayed and text.startswith(closing, end):
                    longest = (end, node)
            if longest is not None:
                end, node = longest
                return Mention(place, end + 1, text[place : end + 1], tuple(sorted(node.displayed)))
        for end, node in _walk(self._root, text, place + 1):
            ends = text.startswith("_", end) if emphasised else not _goes_on(text, end, in_unspaced=self._of_task)
            if node.whole and ends:
                longest = (end, node)
        if longest is None or _is_code(text, longest[0]):
            return None
        end, node = longest
        return Mention(place, end, text[place:end], node.meant(of_task=self._of_task))


class Phrases:
    """Words and phrases to find in texts, compared like names. Immutable."""

    def __init__(self, phrases: Iterable[str]) -> None:
        self._root = _Node()
        for phrase in phrases:
            if words := phrase.split():
                _leaf(self._root, " ".join(words)).whole.add(phrase)

    def any_in(self, text: str) -> bool:
        """Return whether one of them occurs in the text as whole words, outside the parts that cannot contain
        mentions."""
        if not self._root.following:
            return False
        left_out: _LeftOut | None = None
        # Most positions are ruled out by their first character alone, which keeps long texts cheap.
        first = {_decomposed(character) for character in self._root.following}
        begins = {character: _decomposed(_folded(character)) in first for character in set(text)}
        for place, character in enumerate(text):
            if not begins[character] or (place > 0 and _goes_on_to(text, place)):
                continue
            for end, node in _walk(self._root, text, place):
                if not node.whole or _goes_on(text, end):
                    continue
                left_out = left_out or _LeftOut(text)
                if not left_out.overlaps(place, end):
                    return True
        return False


def _leaf(root: _Node, name: str) -> _Node:
    """The node of that name, created if missing."""
    node = root
    for character in _folded(name):
        node = node.following.setdefault(character, _Node())
    return node


def _walk(root: _Node, text: str, start: int) -> Iterator[tuple[int, _Node]]:
    """Yields the node and position after each step for which the text matches the start of a name."""
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
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return folded.replace("\u2010", "-")  # as written by programs that keep a word on one line


def _decomposed(text: str) -> str:
    """The first character without its combining marks."""
    return unicodedata.normalize("NFD", text)[:1]


def _is_word(character: str) -> bool:
    """True for a letter, a digit or a combining mark."""
    return unicodedata.category(character)[0] in "LNM" and not "\ufe00" <= character <= "\ufe0f"


def _goes_on_to(text: str, start: int) -> bool:
    """True if a phrase that begins there would be only the end of a longer word."""
    before = text[start - 1]
    changes = _UNSPACED.match(before) is not None and not _UNSPACED.match(text[start])
    return before in "_-" or (_is_word(before) and not changes)


def _cluster_end(text: str, place: int) -> int:
    """End of the character there, including everything that may be composed with it."""
    end, most = place + 1, min(len(text), place + _MAX_CLUSTER)
    while end < most and _may_compose(text[end]):
        end += 1
    return end


def _may_compose(character: str) -> bool:
    first = unicodedata.normalize("NFKC", character)[0]
    # The vowels and final consonants of which Hangul syllables are composed.
    return "\u1161" <= first <= "\u11c2" or (unicodedata.category(first)[0] == "M" and _is_word(character))


def _may_stand_before(text: str, place: int, *, of_task: bool = False) -> bool:
    before = text[place - 1 : place] if place > 0 else ""
    if of_task and before and unicodedata.bidirectional(before) in ("R", "AL"):
        return True
    return not before or not (before in _NOT_BEFORE or (_is_word(before) and not _UNSPACED.match(before)))


def _goes_on(text: str, end: int, *, in_unspaced: bool = False) -> bool:
    """True if a name that ends there would be only the start of a longer word. in_unspaced: True if a name in a script
    without spaces may end next to a letter of such a script."""
    if end >= len(text) or text[end] in "_-" or not _is_word(text[end]):
        return end < len(text) and text[end] in "_-"
    return not (_UNSPACED.match(text[end]) and (in_unspaced or not _UNSPACED.match(text[end - 1])))


def _is_code(text: str, end: int) -> bool:
    after = text[end : end + 2]
    if after[:1] in ("(", "/", "@"):
        return True
    return len(after) == 2 and after[0] == "." and unicodedata.category(after[1])[0] in "LN"


class _LeftOut:
    """The parts of a text that cannot contain mentions."""

    def __init__(self, text: str) -> None:
        urls = ((match.start(), match.end()) for match in _URL.finditer(text))
        mails = ((match.start(), match.end(1)) for match in _MAIL.finditer(text))
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
        """True if the position is in one of the parts."""
        at = bisect_left(self._starts, place + 1) - 1
        return at >= 0 and place < self._ends[at]

    def overlaps(self, start: int, end: int) -> bool:
        """True if any position in that range is in one of the parts."""
        at = bisect_left(self._starts, end) - 1
        return at >= 0 and start < self._ends[at]
