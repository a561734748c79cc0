"""The condition of a rule, checked as far as possible before it decides anything.

Without that, an error in an expression would show only when evaluation reaches it, for some task, which is then held.
So names, words and patterns are verified here, and every condition is tried, in whole and in part, on tasks of every
shape. Conditions that may be expensive are tried and evaluated in a separate process, see ``sandbox``: the library has
no limits, and aborts the process when memory runs out.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any, Final

from claudomator_py.domain.errors import InvalidText, near, shown, suggestion
from claudomator_py.policy import facts, sandbox
from claudomator_py.policy.cost import MAX_CHARACTERS, is_small
from claudomator_py.policy.expression import (
    FUNCTIONS,
    STRING,
    Context,
    Expression,
    Unevaluated,
    code_of,
    context_of,
    first_line,
    instead_of,
    literal,
    misuses,
)
from claudomator_py.values import dataclass, regex

MAX_LENGTH = 2_000
"""Maximum characters of a condition."""
_MEMBER = regex(r"(?<![\w.])([A-Za-z_]\w*)((?:\s*\.\s*[A-Za-z_]\w*)*)(\s*\()?")
MAX_NESTED: Final = 2
"""Maximum nesting of list iterations in a condition. A task names up to ``facts.MAX_PATHS`` paths: three nested lists
would take seconds, and the library has no budget of its own."""
_WALKS = regex(r"\.\s*(all|exists|exists_one|map|filter)\s*\(")
_WHOLE_TEXT = regex(r"\btask\s*(?:\.\s*text\b|\[|(?=[,)\]}]))")
_MACROS = regex(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(\s*([A-Za-z_]\w*)\s*,")
_VALUE = rf"(?:{STRING}|-?\d[\w.]*|true\b|false\b)"
_PATH: Final = (
    r"""(?<![\w.])(?:task|actor|now|spent|limits)(?:\s*\.\s*\w+|\s*\[\s*(?:"\w+"|'\w+')\s*\])*(?!\w|\s*[(.\[])"""
)
_COMPARED: Final = (
    regex(rf"(?P<path>{_PATH})\s*(?:==|!=)\s*(?P<values>{_VALUE})"),
    regex(rf"(?P<values>{_VALUE})\s*(?:==|!=)\s*(?P<path>{_PATH})"),
    regex(rf"(?P<path>{_PATH})\s+in\s*\[(?P<values>[^\]]*)\]"),
)
_ORDERED: Final = (
    regex(rf"(?P<path>{_PATH})\s*[<>]=?\s*(?P<values>{STRING})"),
    regex(rf"(?P<values>{STRING})\s*[<>]=?\s*(?P<path>{_PATH})"),
)
_LISTED = regex(rf"(?P<values>{_VALUE})\s+in\s+(?P<path>{_PATH})")
_PATTERN = regex(rf"\bmatches\s*\((?:[^()]*,)?\s*({STRING})\s*\)")
_PATTERN_REMEDY: Final = "write one as https://docs.rs/regex has it: without look-around and back-references"
_MAX_FREE: Final = 8
"""Maximum number of parts of a condition for which both values are tried."""
_LITERALS = frozenset({"true", "false", "null", "in", "has"})


class BadCondition(InvalidText):
    """The text is not a valid condition."""


class Condition:
    """Whether a rule applies to a task. Raises BadCondition if the text is not a valid condition."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise BadCondition(f"is longer than {MAX_LENGTH:,} characters", "split it into several rules")
        self.text = text
        code = code_of(text)
        self._paths = frozenset(_paths(code))
        _check_names(code)
        for message, remedy in misuses(code):
            raise BadCondition(message, remedy)
        _check_cost(code)
        self.is_small = is_small(text)
        """True if it is cheap for any task with few characters; otherwise it is evaluated in a separate process."""
        self._program = checked(text) if self.is_small else None
        if self._program is None and (refused := sandbox.check(text)) is not None:
            raise BadCondition(*refused)
        self._varies = any(self.mentions(path) for path in facts.LONG)

    def applies(self, context: Context) -> bool:
        """Return whether it applies. Raises Unevaluated."""
        if self._program is None or (self._varies and context.characters > MAX_CHARACTERS):
            return _truth(sandbox.evaluate(self.text, context))
        return _truth(self._program.value(context))

    def mentions(self, name: str) -> bool:
        """Return whether it uses that value, such as ``task.specialist`` or ``spent``, directly or as part of a
        group."""
        wanted = tuple(name.split("."))
        return any(path[: len(wanted)] == wanted[: len(path)] for path in self._paths)


def checked(text: str) -> Expression:
    """Return the condition, verified and tried in this process. Raises BadCondition."""
    code = code_of(text)
    try:
        program = Expression(text, code)
    except (ValueError, RecursionError) as error:
        raise BadCondition(first_line(error), "see https://cel.dev for the language") from None
    _check_functions(program.functions)
    _check_values(text, code)
    _check_patterns(text, code)
    _try(program, text, code)
    return program


def _truth(value: object) -> bool:
    """Raises Unevaluated."""
    if not isinstance(value, bool):
        raise Unevaluated(f"is {shown(str(value))}, which is neither true nor false")
    return value


def _try(program: Expression, text: str, code: str) -> None:
    """Raises BadCondition if the condition has no value for some task."""
    for shape in _shapes():
        try:
            _truth(program.value(shape.context))
        except Unevaluated as undecided:
            raise _without_value(undecided, shape.said) from None
    parts = list(_parts(code, text))
    for part in parts if len(parts) > 1 else ():
        faults = part.faults
        always = len(faults) == len(_shapes())
        for shape, fault in faults.items():
            of_its_types = always and fault.remedy
            if of_its_types or _gets_to(part, parts, text, code, shape):
                raise _without_value(fault, "" if always else shape.said, part)


@dataclass(frozen=True, slots=True, eq=False)
class _Shape:
    """A task on which conditions are tried. said: describes the task in words."""

    said: str
    context: Context


@cache
def _shapes() -> Sequence[_Shape]:
    return tuple(_Shape(shape, context_of(values)) for shape, values in facts.shapes())


@dataclass(frozen=True, slots=True)
class _Part:
    """An operand of ``&&``, ``||``, ``?`` and ``:``."""

    start: int
    end: int
    text: str
    names: frozenset[str]
    """The values that it uses."""
    program: Expression

    @property
    def faults(self) -> dict[_Shape, Unevaluated]:
        """The tasks for which it has no value, and why."""
        values = {}
        for shape in _shapes():
            try:
                self.program.value(shape.context)
            except Unevaluated as undecided:
                values[shape] = undecided
        return values


def _parts(code: str, text: str) -> Iterator[_Part]:
    for start, end in _operands(code, 0, len(code)):
        names = frozenset(".".join(path) for path in _paths(code[start:end]) if len(path) > 1)
        try:
            yield _Part(start, end, text[start:end], names, Expression(text[start:end], code[start:end]))
        except (ValueError, RecursionError):
            continue  # not an expression by itself


def _operands(code: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Ranges of the innermost operands, in order."""
    depth, cuts, closed = 0, [start], end
    for match in re.compile(r"[(\[{]|[)\]}]|&&|\|\||[?:]").finditer(code, start, end):
        mark = match[0]
        if mark in "([{":
            depth += 1
        elif mark in ")]}":
            depth -= 1
            closed = match.start() if depth == 0 and closed == end else closed
        elif depth == 0:
            cuts += [match.start(), match.end()]
    cuts.append(end)
    if len(cuts) > 2:
        for left, right in zip(cuts[::2], cuts[1::2], strict=True):
            yield from _operands(code, left, right)
        return
    start += len(code[start:end]) - len(code[start:end].lstrip(" \t\r\n!"))
    end -= len(code[start:end]) - len(code[start:end].rstrip())
    if code[start : start + 1] == "(" and closed == end - 1:
        yield from _operands(code, start + 1, end - 1)
    elif start < end:
        yield start, end


def _gets_to(part: _Part, parts: Sequence[_Part], text: str, code: str, shape: _Shape) -> bool:
    """True if the condition can have no value for a task of that shape because this part has none, for some values of
    the other parts that look at different facts."""
    free = [other for other in parts if other is not part and part.names.isdisjoint(other.names)][:_MAX_FREE]
    for values in product(("true", "false"), repeat=len(free)):
        tried, tried_code = text, code
        for name, value in reversed(list(zip(free, values, strict=True))):
            tried, tried_code = (f"{whole[: name.start]}{value}{whole[name.end :]}" for whole in (tried, tried_code))
        try:
            Expression(tried, tried_code).value(shape.context)
        except Unevaluated:
            return True
        except (ValueError, RecursionError):
            continue
    return False


def _without_value(undecided: Unevaluated, message: str, part: _Part | None = None) -> BadCondition:
    at = "" if part is None else f" at character {part.start + 1}, `{shown(part.text)}`,"
    where = f"{at} {message}".rstrip().removesuffix(",")
    remedy = undecided.remedy or "it has to be true or false for every task: ask first whether there is what it needs"
    return BadCondition(f"cannot be evaluated{where}: {undecided}", remedy)


def _paths(code: str) -> Iterator[tuple[str, ...]]:
    """The names it uses, each with the dotted members that follow, without functions and literals."""
    for match in _MEMBER.finditer(code):
        root, rest, call = match.groups()
        if root in _LITERALS or (call and not rest):
            continue
        members = [part.strip() for part in rest.split(".")[1:]]
        yield root, *(members[:-1] if call else members)


def _check_names(code: str) -> None:
    """Raises BadCondition for a name that no task has, wherever it is in the condition."""
    known = facts.names()
    bound = set(_MACROS.findall(code))
    for root, *members in _paths(code):
        if root in bound:
            continue
        if root not in known:
            instead = None if members else instead_of(root)
            raise BadCondition(f"uses `{shown(root)}`, which is not a known name", instead or suggestion(root, known))
        for end in range(len(members)):
            path = ".".join(members[: end + 1])
            if path not in known[root]:
                valid = [f"{root}.{name}" for name in known[root]]
                message = f"uses `{shown(f'{root}.{path}')}`, which no task has"
                instead = instead_of(path) if root == "now" else None
                raise BadCondition(message, instead or suggestion(f"{root}.{path}", valid))


def _check_cost(code: str) -> None:
    """Refuse a condition that may take very long, or run out of memory, on some task. This must be detected in advance,
    as the library cannot be interrupted. Raises BadCondition."""
    open_: list[str | None] = []
    walks = {match.end() - 1: match[1] for match in _WALKS.finditer(code)}
    for place, letter in enumerate(code):
        if letter == ")" and open_:
            open_.pop()
        if letter != "(":
            continue
        walk = walks.get(place)
        outer = [bracket for bracket in open_ if bracket is not None]
        open_.append(walk)
        if walk is None:
            continue
        if len(outer) >= MAX_NESTED:
            message = f"walks {len(outer) + 1} lists within each other, which takes seconds where they are long"
            raise BadCondition(message, f"walk at most {MAX_NESTED}, or split it into several rules")
        if walk == "map" and outer:
            raise BadCondition("makes a list for each entry of a list", "use `exists` or `all` in place of `map` there")
        if walk == "map" and _WHOLE_TEXT.search(code, place, _closing(code, place)):
            raise BadCondition(
                "copies the whole text of a task for each entry of a list", "leave `task.text` out of `map`"
            )


def _closing(code: str, place: int) -> int:
    """Position at which the bracket that opens there is closed; the end of the text if it is not."""
    depth = 0
    for at in range(place, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if not depth:
            return at
    return len(code)


def _check_functions(used: Sequence[str]) -> None:
    """Raises BadCondition for an unknown function, even if the condition may never reach it."""
    for name in used:
        if name.isidentifier() and name not in FUNCTIONS:
            raise BadCondition(f"calls `{shown(name)}`, which is not a function", suggestion(name, FUNCTIONS))


def _check_values(text: str, code: str) -> None:
    """Raises BadCondition if a value is compared with one that it can never have."""
    checks = {_LISTED: _check_listed, **dict.fromkeys(_ORDERED, _check_ordered)}
    for pattern in (*_COMPARED, *_ORDERED, _LISTED):
        for match in pattern.finditer(text):
            place = match.start("path")
            if code[place] != text[place]:  # inside a string literal
                continue
            path = re.sub(r"""\s*(?:\.\s*|\[\s*["'])(\w+)(?:["']\s*\])?""", r".\1", match["path"])
            values = [literal(value_text) for value_text in re.findall(_VALUE, match["values"], re.DOTALL)]
            for value in (literal_value for literal_value in values if literal_value is not None):
                checks.get(pattern, _check_equal)(path, value)


def _check_equal(path: str, value: Any) -> None:
    """Raises BadCondition if the value at the path can never equal that one."""
    shape = facts.value_at(path)
    possible: Collection[Any] | None = facts.WORDS.get(path)
    never = f"compares `{path}` with {_written(value)}, which it never is"
    if isinstance(shape, list):
        raise BadCondition(never, f"write `{_written(value)} in {path}`")
    if possible is not None and value not in possible:
        raise BadCondition(never, suggestion(str(value), map(str, possible)))
    if shape is not None and _kind(shape) is not _kind(value):
        raise BadCondition(never, f"it is {_KINDS[_kind(shape)]}")


def _check_ordered(path: str, value: Any) -> None:
    """Raises BadCondition if a value with a fixed vocabulary is compared by order, as the language only orders
    letters."""
    possible = [word for word in facts.WORDS.get(path, ()) if isinstance(word, str)]
    if isinstance(value, str) and possible:
        message = f"orders `{path}`, but texts are ordered by their letters, not by what they mean"
        words = [f'"{word}"' for word in possible if word]
        remedy = f"name those that are meant, of {', '.join(words)}, as in `{path} in [{', '.join(words[-2:])}]`"
        raise BadCondition(message, remedy)


def _check_listed(path: str, value: Any) -> None:
    """Raises BadCondition if the list at the path can never contain that value, but can contain a similar one."""
    if isinstance(facts.value_at(path), list) and not isinstance(value, str):
        raise BadCondition(f"looks for {_written(value)} in `{path}`, where it never is", "its entries are texts")
    possible = facts.WORDS.get(path, ())
    if value not in possible and (nearest := near(str(value), map(str, possible))) is not None:
        raise BadCondition(f"looks for {_written(value)} in `{path}`, where it never is", nearest)


def _kind(value: object) -> type:
    if isinstance(value, bool):
        return bool
    return float if isinstance(value, int | float) else type(value)


_KINDS: Final = {bool: "true or false", float: "a number", str: "a text, in quotes", dict: "a group of values"}


def _written(value: object) -> str:
    return shown(
        f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    )


def _check_patterns(text: str, code: str) -> None:
    """Raises BadCondition for an invalid regular expression, even if the condition may never reach it."""
    for match in _PATTERN.finditer(text):
        if code[match.start()] != text[match.start()]:
            continue
        try:
            Expression(f'"".matches({match[1]})', "").value(context_of({}))
        except (ValueError, RecursionError):
            continue
        except Unevaluated as undecided:
            why = f"has a pattern at character {match.start(1) + 1} that is no regular expression, {shown(match[1])}"
            raise BadCondition(f"{why}: {str(undecided).rpartition(': ')[2]}", _PATTERN_REMEDY) from None
