"""Detects results that claim a change or admit a failure, by the words in ``claims.toml``, to flag dubious results."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from re import DOTALL, MULTILINE, Pattern, escape
from typing import Any, Final

from claudomator_py.texts import fold, listed
from claudomator_py.values import dataclass, regex, toml_data

MAX_CHARS: Final = 4_000
"""How many characters at the start of a result are examined for claims."""
MAX_END_CHARS: Final = 600
"""How many characters at either end of a result are examined for admissions."""
_MAX_END_SENTENCES: Final = 2
"""How many sentences at either end may be an admission."""
MAX_MEMO: Final = 500
_SENTENCE_END: Final = regex(r"[.!?]+(?=\s|$)|[\u3002\uff01\uff1f;\n]+")
_WORD: Final = regex(r"[\w'\u2019/-]*\w")
_QUOTED: Final = regex(r"`[^`\n]*`")
_SHOWN: Final = regex(
    r"```.*?(?:```|\Z)|(?m:^[ \t]*[>|][^\n]*)|`[^`\n]*`|\"[^\"\n]*\"|\u201c[^\u201d\n]*\u201d"
    r"|\u201e[^\u201c\n]*\u201c|\u00ab[^\u00bb\n]*\u00bb|\u300c[^\u300d\n]*\u300d"
    r"|(?<!\w)['\u2018](?:[^'\u2019\n]|['\u2019]\w)*['\u2019](?!\w)",
    DOTALL,
)
"""What a result quotes: code, output, the words of others."""
_QUESTION_END: Final = regex(r"[?\uff1f\u061f][\s*_`\"'\u2019\u201d\u00bb)]*\Z")
_OPTIONS: Final = regex(r"(?:\n+[ \t]*(?:[-*+\u2022]|\d+[.)]|\(?[A-Za-z][.)])[ \t][^\n]*)+\s*\Z")
"""A list with which a text ends."""
UNSPACED: Final = ("zh", "ja", "ko")


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of one language; see the file."""

    done: Sequence[str]
    says: Sequence[str]
    refuted: Sequence[str]
    outside: Sequence[str]
    none: Sequence[str]
    first: frozenset[str]
    """The first word of each entry of ``done``; empty for languages written without spaces."""
    signs: frozenset[str]
    admits: Pattern[str]
    unless: Sequence[str]
    turned: Sequence[str]
    asks: Pattern[str]
    announces: Pattern[str]


@cache
def _marked_or_fence(marker: str) -> Pattern[str]:
    emphasis = r"(?:\*\*|__)?"
    marked = rf"(?:#{{1,6}} )?{emphasis}{escape(marker)}{emphasis}"
    return regex(rf"^ {{0,3}}(?:(?P<fence>`{{3,}}|~{{3,}})|{marked})", MULTILINE)


def after_marker(text: str, marker: str) -> str | None:
    """Return what follows the marker at the start of a line of the message, up to its end; None if nothing does. A
    heading sign or emphasis may precede it. In a quotation or a fenced block it means nothing."""
    opened: str | None = None
    for match in _marked_or_fence(marker).finditer(text):
        fence = match["fence"]
        if fence is None:
            if opened is None:
                return text[match.end() :].strip() or None
        elif opened is None:
            opened = fence
        elif fence.startswith(opened):
            opened = None
    return None


def asks_a_person(text: str) -> bool:
    """Return whether the last sentence of a result's text asks a person something. Options may follow it."""
    end = text[-MAX_END_CHARS:]
    before = _OPTIONS.sub("", end)
    # A list under a heading that is a question is the answer.
    asked = (end,) if before.rpartition("\n")[2].lstrip().startswith(("#", "**")) else (end, before)
    return any(_QUESTION_END.search(part) or _last_sentence_has(part, lambda words: words.asks) for part in asked)


def announces_work(text: str) -> bool:
    """Return whether the last sentence of a result's text says what is to be done next."""
    return _last_sentence_has(text, lambda words: words.announces)


def _last_sentence_has(text: str, pattern: Callable[[_Words], Pattern[str]]) -> bool:
    sentences = _sentences(_SHOWN.sub(" x ", text[-MAX_END_CHARS:]))
    if not sentences:
        return False
    last, spaced = sentences[-1].strip(), spaced_words(sentences[-1])
    for words in _languages():
        sentence = spaced if words.first else last
        if pattern(words).search(sentence):
            return True
    return False


def admits_failure(text: str) -> bool:
    """Return whether the first or last sentences of a result's text say that the task was not done."""
    return _admits(outer_sentences(text))


def outer_sentences(text: str) -> tuple[str, ...]:
    """Return the first and last sentences of a result's text, folded and without what it quotes."""
    shown = _SHOWN.sub(" x ", text)
    begin, end = (shown, "") if len(shown) <= 2 * MAX_END_CHARS else (shown[:MAX_END_CHARS], shown[-MAX_END_CHARS:])
    sentences = (*_sentences(begin), *_sentences(end))
    if len(sentences) <= 2 * _MAX_END_SENTENCES:
        return sentences
    return (*sentences[:_MAX_END_SENTENCES], *sentences[-_MAX_END_SENTENCES:])


@lru_cache(MAX_MEMO)
def _admits(considered: tuple[str, ...]) -> bool:
    for number, sentence in enumerate(considered):
        spaced = spaced_words(sentence)
        seen = frozenset(spaced.split())
        for words in _languages():
            if words.first:
                is_admission = not words.signs.isdisjoint(seen) and _is_admission(spaced, words)
            else:
                is_admission = any(map(sentence.__contains__, words.signs)) and _is_admission(sentence.strip(), words)
            if is_admission:
                if any(_is_claim(later, words) for later in considered[number + 1 :]):
                    break
                return True
    return False


def _makes_up(sentence: str, words: _Words) -> bool:
    """Return whether a sentence after an admission says that the work was done all the same, unlike "so I have not"."""
    if not words.first:
        return _holds(sentence, words.turned, words) or _is_claim(sentence, words)
    spaced = f" {spaced_words(sentence)} "
    for phrase in words.turned:
        _, there, after = spaced.partition(f" {phrase} ")
        if there and not _has(f" {' '.join(after.split()[:2])} ", words.refuted):
            return True
    return _is_claim(sentence, words)


def _sentences(text: str) -> Sequence[str]:
    return [sentence for sentence in _SENTENCE_END.split(fold(text)) if _WORD.search(sentence)]


def _is_admission(sentence: str, words: _Words) -> bool:
    for admission in words.admits.finditer(sentence):
        around = f"{sentence[: admission.start()]} x {sentence[admission.end() :]}"
        if not _holds(around, words.unless, words) and not _makes_up(sentence[admission.end() :], words):
            return True
    return False


def _holds(sentence: str, phrases: Sequence[str], words: _Words) -> bool:
    return holds(sentence, phrases, is_spaced=bool(words.first))


def holds(sentence: str, phrases: Sequence[str], *, is_spaced: bool) -> bool:
    """Return whether a sentence has one of the phrases, as whole words if its language has spaces between them."""
    if not is_spaced:
        return any(phrase in sentence for phrase in phrases)
    return _has(f" {spaced_words(sentence)} ", phrases)


def spaced_words(sentence: str) -> str:
    """Return the sentence's words, separated by single spaces."""
    return " ".join(_WORD.findall(sentence))


def claims_changes(text: str) -> bool:
    """Return whether a result's text claims that files were changed."""
    folded = fold(text[:MAX_CHARS])
    sentences = [_QUOTED.sub(" x ", sentence) for sentence in _SENTENCE_END.split(folded)]
    seen = frozenset(_WORD.findall(folded))
    return any(
        _claims(folded, sentences, words)
        for words in _languages()
        if not words.first or not words.first.isdisjoint(seen)
    )


def _claims(text: str, sentences: Sequence[str], words: _Words) -> bool:
    if any(phrase in text for phrase in words.none):
        return False
    return any(_is_claim(sentence, words) for sentence in sentences)


def _is_claim(sentence: str, words: _Words) -> bool:
    if not words.first:
        return any(phrase in sentence for phrase in words.done) and not any(
            phrase in sentence for phrase in (*words.refuted, *words.outside)
        )
    spaced = f" {spaced_words(sentence)} "
    if _has(spaced, words.outside):
        return False
    for phrase in words.done:
        before, there, after = spaced.partition(f" {phrase} ")
        # What follows describes what was done, except for a word as in "changed nothing".
        if (
            there
            and not _has(f"{before} ", words.refuted)
            and not _has(f" {' '.join(after.split()[:1])} ", words.refuted)
        ):
            return not words.says or not (before.strip() and after.strip()) or _has(f"{before} ", words.says)
    return False


def _has(spaced: str, words: Sequence[str]) -> bool:
    return any(f" {word} " in spaced for word in words)


def expression(admissions: Mapping[str, Any], *items: Mapping[str, str]) -> Pattern[str]:
    """Return the expression that finds any of the items. admissions: what the file says of a language's."""
    tasks = "|".join(map(escape, listed(admissions["tasks"])))
    alternatives = "|".join(f"(?:{' '.join(item['words'].split())})" for item in items)
    return regex(alternatives.replace("<tasks>", f"(?:{tasks})"))


@cache
def _languages() -> tuple[_Words, ...]:
    return tuple(
        _Words(
            done=listed(entry["done"]),
            says=listed(entry["says"]),
            refuted=listed(entry["not"]),
            outside=listed(entry["outside"]),
            none=listed(entry["none"]),
            first=frozenset(() if name in UNSPACED else (item.split()[0] for item in listed(entry["done"]))),
            signs=frozenset(listed(entry["admissions"]["signs"])),
            admits=expression(entry["admissions"], *entry["admissions"]["says"]),
            unless=listed(entry["admissions"]["unless"]),
            turned=listed(entry["admissions"]["turned"]),
            asks=expression(entry["admissions"], entry["asks"]),
            announces=expression(entry["admissions"], entry["announces"]),
        )
        for name, entry in toml_data("claudomator_py.domain", "claims.toml").items()
    )
