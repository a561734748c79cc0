"""Detects results that say that only a part of the task is done: behind the marker that the prompt asks for, in words,
in a list or a table of what was to be done, or under a heading for what is left. The words are in ``progress.toml``."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain
from re import IGNORECASE, Match, Pattern, escape
from typing import Any, Final

from claudomator_py.domain.claims import MAX_MEMO, UNSPACED, after_marker, holds, outer_sentences, spaced_words
from claudomator_py.texts import cut, fold, listed, one_line
from claudomator_py.values import dataclass, regex, toml_data

UNFINISHED_MARKER: Final = "CLAUDOMATOR UNFINISHED:"
"""Starts a line in an agent's last message; everything from there to the end says what it leaves undone."""
MAX_LEFT: Final = 200
"""Maximum characters shown of that."""
_NOTHING_LEFT: Final = regex(
    r"(?:no|none|nothing)(?: (?:is|was|has been|remains))?"
    r"(?: (?:left|remaining|undone|unfinished|open|outstanding|pending|to do|to report))*"
)
"""How a clause says there that nothing is, although it was to leave the marker out."""
_CLAUSE: Final = regex(r"[.,;:!()]|\s[-\u2013\u2014]+\s")
_MAX_GAP_WORDS: Final = 2
"""Words between two counts of one tally."""
MAX_LINES: Final = 400
"""How many lines of a result are searched for lists and headings."""
_MAX_STATUS_WORDS: Final = 8
"""Words of a line that may be an entry of a list without a bullet."""
_SLASHED: Final = regex(r"(?<!\S)(?P<some>\d+)/(?P<all>\d+)(?!\S)")
_DIGITS: Final = regex(r"\d+")
_IN_BRACKETS: Final = regex(r"\s?\([^()]*\)")
_CLAUSE_END: Final = regex(r"[,:\u3001\uff0c](?=\D)| [\u2014\u2013-] ")
_OF_WHICH: Final = regex(r"\s*\S+(?: \S+){0,2} \d")
_HEADING: Final = regex(r"#+\s+(?P<title>.+)|\*\*(?P<bold>[^*]+)\*\*:?(?P<same>.*)|(?P<plain>[^|:]{2,60}):")
_ITEM: Final = regex(r"(?P<bullet>(?:[-*+\u2022]|\d+[.)])\s+)?(?:\[(?P<box>[ xX])\]\s*)?(?P<body>.*)")
_LABEL: Final = regex(
    r".*(?:[:\uff1a]\**| [\u2014\u2013\u2192-])\s+(?P<status>[^:\uff1a]{1,60})|.*\s\((?P<note>[^()]{1,60})\)"
)
_DONE_MARKS: Final = "\u2705\u2611\u2714"
_CROSSES: Final = "\u274c\u2717\u2718"
"""In a list like open; in a table they may stand for any no."""
_OPEN_MARKS: Final = "\u2b1c\u2610\U0001f532\u23f3\U0001f6a7\U0001f51c"
_NOT_WORDS: Final = regex(r"^[^\w]+")
_TALLY: Final = regex(
    r"(?P<number>\d+)(?: tests?| specs?)? (?P<state>pass|fail|error)(?:ed|ing|ures?|s)?\b"
    r"|\b(?P<heading>pass|fail|error)(?:ed|ures?|s)?[:=] ?(?P<behind>\d+)|\b(?P<run>tests run:|failed \()",
    IGNORECASE,
)
"""What runners of tests print in a text of any language: ``12 passed, 3 failed``, ``Tests run: 15, Failures: 3``."""


@dataclass(frozen=True, slots=True)
class _PartialWords:
    """The words of one language; see the file."""

    is_spaced: bool
    is_latin: bool
    """Whether it has Latin letters, which are ASCII once they are folded."""
    values: dict[str, int]
    """Numbers by their words."""
    parts: Sequence[Pattern[str]]
    before: Pattern[str]
    after: Pattern[str]
    says: Pattern[str]
    unless: Sequence[str]
    spared: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Marks:
    """The words of lists and headings, of all languages."""

    left: Pattern[str]
    nothing: Pattern[str]
    later: Sequence[str]
    open: Pattern[str]
    done: Pattern[str]


def left_undone(text: str) -> str | None:
    """Return what a result's text says that it leaves undone, behind ``UNFINISHED_MARKER``, in one line; None: it does
    not say so."""
    left = after_marker(text, UNFINISHED_MARKER)
    if left is None:
        return None
    clause = next((spaced_words(fold(part)) for part in _CLAUSE.split(left) if spaced_words(part)), "")
    is_nothing = _NOTHING_LEFT.fullmatch(clause) or (
        # "Everything", which in a list may be what is done.
        _marks().nothing.fullmatch(clause) and not clause.startswith(("every", "all "))
    )
    return None if is_nothing else cut(one_line(left).strip("*_ ").rstrip("."), MAX_LEFT)


def is_partial(text: str) -> bool:
    """Return whether a result's text says that a part of the task is not done: in its first or last sentences, in a
    list, or by the last tally of its tests."""
    lines = text.splitlines()
    return _is_said(outer_sentences(text)) or _is_listed(lines[:MAX_LINES]) or _is_tallied(lines[-MAX_LINES:])


@lru_cache(MAX_MEMO)
def _is_said(sentences: Sequence[str]) -> bool:
    for number, sentence in enumerate(sentences):
        if sentence.lstrip().startswith("#"):
            continue
        spaced, clauses = spaced_words(sentence), _clauses_with_parts(sentence)
        for words in _languages():
            if sentence.isascii() and not words.is_latin:
                continue
            said = spaced if words.is_spaced else sentence.strip()
            if words.says.search(said) or any(_is_part(clause, words) for clause in clauses):
                excused = (". ".join(sentences[number : number + 2]), words.spared), (sentence, words.unless)
                if any(holds(near, phrases, is_spaced=words.is_spaced) for near, phrases in excused):
                    break
                return True
    return False


def _clauses_with_parts(sentence: str) -> Sequence[str]:
    """Return clauses that may say how many of how many; they need two numbers."""
    bare = _IN_BRACKETS.sub("", sentence)
    clauses = [*_CLAUSE_END.split(bare), *_IN_BRACKETS.findall(sentence)]
    # "Of the 40 handlers, I moved 9": a mark is between them.
    clauses += [bare] if len(_CLAUSE_END.split(bare)) == 2 and _OF_WHICH.match(bare) else []
    numbers = _number_words()
    spaced = map(spaced_words, clauses)
    return [text for text in spaced if len(_DIGITS.findall(text)) + sum(word in numbers for word in text.split()) > 1]


def _is_part(clause: str, words: _PartialWords) -> bool:
    parts = chain.from_iterable(part.finditer(clause) for part in (*words.parts, _SLASHED))
    return any(_is_less(part, words) and _is_of_work(part, words) for part in parts)


def _is_less(part: Match[str], words: _PartialWords) -> bool:
    some, of = (words.values.get(part[name]) or int(part[name]) for name in ("some", "all"))
    return some < of


def _is_of_work(part: Match[str], words: _PartialWords) -> bool:
    """Whether that many are done, rather than found or affected."""
    if not words.is_spaced:
        return words.after.search(part.string) is not None
    if words.before.search(part.string, 0, part.start("some")):
        return True
    # Behind other words, "3/12" may be a date.
    is_date = part.re is _SLASHED and part.start() > 0
    return not is_date and words.after.match(part.string, part.end()) is not None


def _is_listed(lines: Sequence[str]) -> bool:
    """Whether the lines have a list or a table in which some entries are done and others not, or a heading over what is
    left."""
    marks = _marks()
    seen, is_fenced, is_left, is_later = defaultdict[int, set[bool]](set), False, False, False
    for line in lines:
        bare = line.strip()
        if bare.startswith(("```", "~~~")):
            is_fenced = not is_fenced
        if is_fenced or not bare:
            continue
        if heading := _HEADING.fullmatch(bare):
            title = spaced_words(fold(heading["title"] or heading["bold"] or heading["plain"]))
            rest = _NOT_WORDS.sub("", heading["same"] or "")
            is_left = marks.left.fullmatch(title) is not None
            if not rest:
                is_later = any(word in title for word in marks.later)
                seen.clear()
                continue
            bare = rest if is_left else bare
        if is_left:
            if not marks.nothing.match(fold(_NOT_WORDS.sub("", bare))):
                return True
            is_left = False
        entries = list(_statuses(bare))
        if not entries:
            seen.clear()
        for column, status in entries:
            if status is not None and not is_later:
                seen[column].add(status)
                if len(seen[column]) > 1:
                    return True
    return False


def _is_tallied(lines: Sequence[str]) -> bool:
    """Return whether the last tally of tests has failures, which the text does not excuse."""
    for number in reversed(range(len(lines))):
        for tally in reversed(_tallies(lines[number])):
            counts = {
                (match["state"] or match["heading"]).lower(): int(match["number"] or match["behind"])
                for match in tally
                if not match["run"]
            }
            if counts.get("pass") or (counts and any(match["run"] for match in tally)):
                near = fold(" ".join(lines[number : number + 2]))
                fails = counts.get("fail", 0) + counts.get("error", 0) > 0
                return fails and not any(holds(near, words.spared, is_spaced=words.is_spaced) for words in _languages())
    return False


def _tallies(line: str) -> list[list[Match[str]]]:
    """Return the counts of a line, of which those with hardly a word between them are one tally."""
    tallies = list[list[Match[str]]]()
    for match in _TALLY.finditer(line):
        gap = len(line[tallies[-1][-1].end() : match.start()].split()) if tallies else 0
        if tallies and gap <= _MAX_GAP_WORDS:
            tallies[-1].append(match)
        else:
            tallies.append([match])
    return tallies


def _statuses(line: str) -> Iterator[tuple[int, bool | None]]:
    """Yield the columns of a row behind the first, or an entry of a list, and whether that is done; None: it says
    nothing of that."""
    if line.startswith("|"):
        for column, cell in enumerate(line.strip("|").split("|")[1:], 1):
            yield column, _status(cell)
        return
    item = _ITEM.fullmatch(line)
    if item is None:
        return
    body, label = item["body"], _LABEL.fullmatch(item["body"])
    if item["box"]:
        yield 0, item["box"] != " "
    elif body[:1] in _DONE_MARKS + _OPEN_MARKS + _CROSSES:
        yield 0, body[:1] in _DONE_MARKS
    elif label and (item["bullet"] or len(body.split()) <= _MAX_STATUS_WORDS):
        yield 0, _status(label["status"] or label["note"])
    elif item["bullet"]:
        yield 0, None


def _status(text: str) -> bool | None:
    bare = text.strip(" *_")
    if bare[:1] and bare[0] in _DONE_MARKS + _OPEN_MARKS:
        return bare[0] in _DONE_MARKS
    words, marks = fold(_NOT_WORDS.sub("", bare)), _marks()
    if marks.open.match(words):
        return False
    return True if marks.done.match(words) else None


@cache
def _number_words() -> frozenset[str]:
    return frozenset(word for words in _languages() for word in words.values)


@cache
def _languages() -> Sequence[_PartialWords]:
    return [_words(entry, is_spaced=name not in UNSPACED) for name, entry in _data().items()]


def _words(entry: dict[str, Any], *, is_spaced: bool) -> _PartialWords:
    numbers = listed(entry["numbers"])
    number = "|".join([r"\d+", *numbers])
    before, after = (" ".join(entry[name].split()) for name in ("before", "after"))

    def compiled(words: Iterable[str]) -> Pattern[str]:
        joined = "|".join(f"(?:{' '.join(item.split())})" for item in words)
        return regex(joined.replace("<number>", f"(?:{number})"))

    edge = r"\b" if is_spaced else ""
    return _PartialWords(
        is_spaced=is_spaced,
        is_latin=all(item["words"].isascii() for item in entry["says"]),
        values={word: number for number, word in enumerate(numbers, 2)},
        parts=[compiled([f"{edge}{part}{edge}"]) for part in entry["part"]],
        before=compiled([rf"\b(?:{before}) $"]),
        after=compiled([rf"(?: \S+){{0,8}}? (?:{after})\b"] if is_spaced else [after]),
        says=compiled([item["words"] for item in entry["says"]]),
        unless=listed(entry["unless"]),
        spared=listed(entry["spared"]),
    )


@cache
def _marks() -> _Marks:
    def begins(name: str) -> Pattern[str]:
        spaced = [
            word for language, entry in _data().items() if language not in UNSPACED for word in listed(entry[name])
        ]
        others = [word for language in UNSPACED for word in listed(_data()[language][name])]
        return regex(rf"(?:{'|'.join(map(escape, spaced))})(?!\w)|{'|'.join(map(escape, others))}")

    return _Marks(
        left=regex("|".join(" ".join(entry["left"].split()) for entry in _data().values())),
        nothing=begins("nothing"),
        later=[part for entry in _data().values() for part in listed(entry["later"])],
        open=begins("open"),
        done=begins("done"),
    )


def _data() -> dict[str, Any]:
    return toml_data("claudomator_py.domain", "progress.toml")
