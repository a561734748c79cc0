"""Upper bound for the cost of a condition, estimated from its text: a cheap condition is evaluated in place, any other
in a process that can be killed, see ``sandbox``.

Anything not recognised counts as expensive, so it is enough to know how ordinary rules are written: comparisons,
``in``, a single iteration over one of the task's lists, patterns that compile fast. Costs are generous, in
microseconds, for a task with few characters.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from claudomator_py.policy import facts
from claudomator_py.policy.expression import FUNCTIONS, STRING
from claudomator_py.values import dataclass, regex

MAX_CHARACTERS: Final = 60_000
"""Maximum characters of all that a task says for which the estimates hold."""
MAX_US: Final = 50_000
"""Maximum cost of a condition that is evaluated in place."""
_MAX_DEPTH: Final = 16
"""Maximum nesting of brackets, for a recursive parser."""
_MAX_CHOICES: Final = 16
"""Maximum number of question marks, for the same reason."""
_TOKEN: Final = regex(
    rf"(?P<space>[ \t\r\n\f]+|//[^\n]*)|(?P<string>{STRING})|(?P<number>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[uU]?)"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<sign>&&|\|\||[=!<>]=|[-+*/%<>!?:.,()\[\]])",
    re.ASCII,
)
_WALKS: Final = frozenset({"all", "exists", "exists_one"})
_GOES_ON: Final = frozenset(".([")
_WORDS: Final = frozenset({"true", "false", "null", "in"})
_TOKEN_US: Final = 5
_CALL_US: Final = 100
_FAST_CALL_US: Final = 5
_LONG_US: Final = 50
"""Each use of a text or a list of the task."""
_PATTERN_US: Final = 60
"""A pattern, which the library compiles each time."""
_LETTER_US: Final = 3
_CLASS_US: Final = 50
"""A character class in a pattern, such as ``.``."""
_SCRIPTS_US: Final = 700
"""A class that covers the letters of all scripts, such as ``\\w``."""
_CLASSES: Final = regex(r"(?<!\\)\.|\[|&&|\\[a-z]")
_SCRIPTS: Final = regex(r"\\[wWpPDS]")
_REPEATED: Final = regex(r"\{([^}]*)\}")
_HIDDEN: Final = regex(r"\\[xXuU0-7]")
"""A character given by its code, which may be a bracket."""
_MAX_PATTERN: Final = 300


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


class _Unknown(Exception):
    """The condition is not written as ordinary rules are."""


def is_small(text: str) -> bool:
    """Return whether the condition costs little time and memory on any task with few characters."""
    try:
        return _cost(tuple(_tokens(text))) <= MAX_US
    except _Unknown:
        return False


def _tokens(text: str) -> Iterator[_Token]:
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise _Unknown
        place, kind = match.end(), str(match.lastgroup)
        if kind != "space":
            yield _Token(kind, match[kind])


def _cost(tokens: Sequence[_Token]) -> float:
    """The cost in microseconds. Raises _Unknown."""
    if sum(token.text == "?" for token in tokens) > _MAX_CHOICES:
        raise _Unknown
    cost, turns = 0.0, 1
    walks: list[bool] = []
    """For each open bracket, whether it iterates over a list."""
    for place, token in enumerate(tokens):
        cost += _TOKEN_US * turns**0.5
        if token.kind == "name":
            cost += _cost_of_name(tokens, place, walks=turns > 1) * turns
        elif token.text == "+" and not (_is_number(tokens, place - 1, -1) or _is_number(tokens, place + 1, 1)):
            raise _Unknown  # it builds longer and longer texts
        elif token.text in "([" and token.kind == "sign":
            walking = _is_walk(tokens, place)
            if (walking and any(walks)) or len(walks) >= _MAX_DEPTH:
                raise _Unknown
            walks.append(walking)
        elif token.text in ")]" and token.kind == "sign":
            if not walks:
                raise _Unknown
            walks.pop()
        turns = facts.MAX_PATHS if any(walks) else 1
    if walks:
        raise _Unknown
    return cost


def _cost_of_name(tokens: Sequence[_Token], place: int, *, walks: bool) -> float:
    """Cost of a fact, a function, or the name of a list's entry."""
    if _text(tokens, place - 1) == ".":
        return _cost_of_call(tokens, place, walks=walks) if _text(tokens, place + 1) == "(" else 0.0
    name = tokens[place].text
    if name in _WORDS:
        return 0.0
    if _text(tokens, place + 1) == "(":
        return 0.0 if name == "has" else _cost_of_call(tokens, place, walks=walks)
    if name not in facts.names():
        return 0.0  # a list's entry, or an unknown name
    value = facts.value_at(_path(tokens, place))
    if value is None or isinstance(value, dict):
        raise _Unknown
    return _LONG_US if isinstance(value, str | list) else 0.0


def _cost_of_call(tokens: Sequence[_Token], place: int, *, walks: bool) -> float:
    name = tokens[place].text
    if name in _WALKS:
        return 0.0
    if name not in FUNCTIONS:
        raise _Unknown
    if name != "matches":
        return _FAST_CALL_US if name in ("startsWith", "endsWith", "contains") else _CALL_US
    method, subject = _text(tokens, place - 1) == ".", _text(tokens, place - 2)
    of_entry = _text(tokens, place - 3) != "." and subject.isidentifier() and subject not in facts.names()
    pattern = tokens[place + 2] if place + 3 < len(tokens) else None
    if not method or (walks and not of_entry):
        raise _Unknown
    if pattern is None or pattern.kind != "string" or _text(tokens, place + 3) != ")":
        raise _Unknown
    return _cost_of_pattern(pattern.text)


def _cost_of_pattern(pattern: str) -> float:
    """Cost of a pattern. Raises _Unknown."""
    raw = pattern[0] in "rR"
    if len(pattern) > _MAX_PATTERN or pattern[0] in "bB" or (not raw and _HIDDEN.search(pattern.replace(r"\\", ""))):
        raise _Unknown
    times = 1
    for match in _REPEATED.finditer(pattern):
        times *= max([1, *(int(number) for number in re.findall(r"\d{1,9}", match[1]))])
    classes, scripts = len(_CLASSES.findall(pattern)), len(_SCRIPTS.findall(pattern))
    return _PATTERN_US + times * (len(pattern) * _LETTER_US + classes * _CLASS_US + scripts * _SCRIPTS_US)


def _is_walk(tokens: Sequence[_Token], place: int) -> bool:
    """True if the bracket begins an iteration over one of the task's lists. Raises _Unknown for anything else."""
    if tokens[place].text != "(" or _text(tokens, place - 1) not in _WALKS or _text(tokens, place - 2) != ".":
        return False
    before = takewhile(lambda token: token.kind == "name" or token.text == ".", tokens[place - 3 :: -1])
    if not isinstance(facts.value_at("".join(reversed([token.text for token in before]))), list):
        raise _Unknown
    return True


def _is_number(tokens: Sequence[_Token], place: int, step: int) -> bool:
    """True if the value that begins there, or ends there, is a number in the rule or the task."""
    if not 0 <= place < len(tokens):
        return False
    if tokens[place].kind == "number":
        return step < 0 or _text(tokens, place + 1) not in _GOES_ON
    if step < 0:
        while place > 1 and tokens[place - 1].text == "." and tokens[place - 2].kind == "name":
            place -= 2
    if tokens[place].kind != "name" or _text(tokens, place - 1) == ".":
        return False
    path = _path(tokens, place)
    if step > 0 and _text(tokens, place + 2 * path.count(".") + 1) in _GOES_ON:
        return False
    return isinstance(facts.value_at(path), int | float)


def _path(tokens: Sequence[_Token], place: int) -> str:
    """The dotted names from there on, without that of a function."""
    names = [tokens[place].text]
    while _text(tokens, place + 1) == "." and _text(tokens, place + 2).isidentifier():
        place += 2
        if _text(tokens, place + 1) == "(":
            break
        names.append(tokens[place].text)
    return ".".join(names)


def _text(tokens: Sequence[_Token], place: int) -> str:
    return tokens[place].text if 0 <= place < len(tokens) else ""
