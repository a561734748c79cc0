"""CEL expressions, the language of rule conditions: compiling, evaluating, and describing errors in words.

The language is Google's Common Expression Language (https://cel.dev). The implementation checks neither names nor types
when it compiles, and counts a text's bytes where the language counts characters, so ``size`` is our own.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from claudomator_py.values import dataclass, regex

if TYPE_CHECKING:
    import cel

_CLOCK: Final = {"hour": "write `now.hour`, from 0 to 23", "minute": "write `now.minute`, from 0 to 59"}
_WEEKDAY: Final = "write `now.weekday`, which is 1 on Monday and 7 on Sunday"
_DATE: Final = 'write `now.date`, a text, as in now.date >= "2026-12-24" or now.date.startsWith("2026-12")'
_FINER: Final = "rules know the time to the minute: write `now.minute`, or leave it out"
_ANY: Final = "write `now.hour`, `now.minute`, `now.weekday` or `now.date`"
_INSTEAD: Final = {
    **_CLOCK,
    **dict.fromkeys(("dayofweek", "weekday", "day_of_week", "isoweekday"), _WEEKDAY),
    **dict.fromkeys(("date", "day", "dayofmonth", "dayofyear", "month", "year", "fullyear", "today"), _DATE),
    **dict.fromkeys(("second", "millisecond", "microsecond", "nanosecond"), _FINER),
}
_OF_TEXTS: Final = frozenset({"contains", "endsWith", "matches", "size", "startsWith"})
_METHOD: Final = regex(r"(?<![\w.])now((?:\s*\.\s*[A-Za-z_]\w*)*?)\s*\.\s*([A-Za-z_]\w*)\s*\(")
_FUNCTION: Final = regex(
    r"(?<![\w.])(?:(timestamp|duration|get[A-Z]\w*)\s*\(\s*now\b|(int|double|string)\s*\(\s*now\b(?!\s*[.\[]))"
)
_NOW: Final = r"(?<![\w.])now\b(?!\s*[.\[(])"
_OPERATOR: Final = r"(?:[<>=!]=|[<>+-])"
_AS_INSTANT: Final = regex(rf"{_NOW}\s*{_OPERATOR}|{_OPERATOR}\s*{_NOW}|(?<![\w.])now\s*\(")


def instead_of(name: str) -> str | None:
    """Return what to write for a name that does not exist, as in ``now.month``, ``getHours`` or ``hour`` alone."""
    return _INSTEAD.get(name.lower().removeprefix("get").removesuffix("s"))


def misuses(code: str) -> Iterator[tuple[str, str]]:
    """Yield each place where the condition treats ``now`` as a timestamp, with the remedy. code: without strings and
    comments."""
    for match in _METHOD.finditer(code):
        members, name = "".join(match[1].split()), match[2]
        if name not in _OF_TEXTS:
            yield f"calls `now{members}.{name}()`, but `now` is no timestamp", instead_of(name) or _ANY
    for match in _FUNCTION.finditer(code):
        name = match[1] or match[2]
        yield f"calls `{name}()` with `now`, which is no timestamp", instead_of(name) or _ANY
    if _AS_INSTANT.search(code):
        yield "takes `now` for a timestamp, but it is a group of values", _ANY


STRING: Final = (
    r"""(?:[bB]?[rR](?:\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}|"[^"\r\n]*"|'[^'\r\n]*')"""
    r"""|[bB]?(?:\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\\r\n])*"|'(?:\\.|[^'\\\r\n])*'))"""
)
_NO_CODE = regex(rf"{STRING}|//[^\n]*", re.DOTALL)
_SIZE = regex(r"(?<!\w)size(?=\s*\()")
_OWN_SIZE: Final = "_len"
"""Replacement for ``size`` in the text given to the library, whose own functions cannot be overridden. It has the same
length, so that positions in the text are preserved."""
FUNCTIONS: Final = frozenset(
    {"bytes", "contains", "double", "duration", "endsWith", "int", "matches", "size", "startsWith", "string"}
    | {"timestamp", "uint", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours"}
    | {"getMilliseconds", "getMinutes", "getMonth", "getSeconds"}
)
_MAX_MESSAGE: Final = 300
_NOT_OF_THESE = regex(r"Undefined variable or function: '(\w+)'|Function '(\w+)' error: Python function call")
"""The library's message for a function that does not take such values: that it is undefined, or the error that ours
raises."""
_COERCES = regex(r"Unsupported operation: (\S+) (\S+) (\S+)\. CEL does not coerce")


class Unevaluated(Exception):
    """The condition could not be evaluated for a task. The message gives the reason; remedy: the library's advice."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


@dataclass(slots=True)
class Allowance:
    """Maximum cost of evaluating the rules on a task, for conditions evaluated in a separate process, see
    ``sandbox``."""

    total_ms: float
    """Processor time."""
    left_ms: float
    is_urgent: bool = False
    """True if others wait for the result: it then does not wait for evaluations that are not urgent."""

    @classmethod
    def of_task(cls, share: int = 1) -> "Allowance":
        """Make the allowance for one of several tasks that share the maximum of one."""
        return cls(MAX_TASK_CPU_MS / share, MAX_TASK_CPU_MS / share)

    @classmethod
    def urgent(cls) -> "Allowance":
        """Make the allowance for evaluations during which nobody else can write anything."""
        return cls(MAX_URGENT_CPU_MS, MAX_URGENT_CPU_MS, is_urgent=True)


class Context:
    """The values of ``facts.Facts``, converted once for all conditions."""

    def __init__(self, values: Mapping[str, Any], allowance: Allowance) -> None:
        self.values = values
        self.allowance = allowance

    @cached_property
    def converted(self) -> "cel.Context":
        """The values in the library's form."""
        context: cel.Context = _cel().Context(dict(self.values))
        context.add_function(_OWN_SIZE, _size)
        return context

    @cached_property
    def characters(self) -> int:
        """Total number of characters in all texts."""
        return sum(map(len, _texts(self.values)))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner)


MAX_TASK_CPU_MS: Final = 1_500
"""Processor time for all conditions on one task."""
MAX_URGENT_CPU_MS: Final = 300
"""Processor time for all conditions on one message or answer."""


def context_of(values: Mapping[str, Any], allowance: Allowance | None = None) -> Context:
    """Return the context for evaluating conditions. allowance: what is left for the task; None for the full
    allowance."""
    return Context(values, allowance or Allowance.of_task())


def _size(value: object) -> int:
    """Size as the language defines it: for a text, the number of code points."""
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    raise TypeError(f"{type(value).__name__} has no size")


@cache
def _cel() -> ModuleType:
    # The library imports its own command line, with an editor: 350 ms and 20 MB not used here.
    sys.modules.setdefault("cel.cli", ModuleType("cel.cli"))
    import cel

    return cel


class Expression:
    """An expression, or a part of one. Raises ValueError or RecursionError if the text is not valid."""

    def __init__(self, text: str, code: str) -> None:
        for match in _SIZE.finditer(code):
            text = f"{text[: match.start()]}{_OWN_SIZE}{text[match.end() :]}"
        try:
            self._compiled = _cel().compile(text)
        except (ValueError, RecursionError, KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException as panic:  # Rust panics are not Exceptions
            raise ValueError(first_line(panic)) from None

    @property
    def functions(self) -> Sequence[str]:
        """The functions that it calls."""
        return ["size" if name == _OWN_SIZE else name for name in self._compiled.functions()]

    def value(self, context: Context) -> object:
        """Return its value. Raises Unevaluated."""
        try:
            return self._compiled.execute(context.converted)
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException as error:  # errors of its functions, and Rust panics, which are not Exceptions
            raise Unevaluated(_cut(first_line(error)), _remedy(error)) from None


def _cut(message: str) -> str:
    """The library's messages contain the values, such as a whole text."""
    return message if len(message) <= _MAX_MESSAGE else f"{message[:_MAX_MESSAGE]}\N{HORIZONTAL ELLIPSIS}"


def literal(text: str) -> Any:
    """Return the value of a literal; None if the text is not one."""
    try:
        return Expression(text, code_of(text)).value(context_of({}))
    except (ValueError, RecursionError, Unevaluated):
        return None


def code_of(text: str) -> str:
    """Return the text at its original length, without the contents of quotes and comments."""
    return _NO_CODE.sub(lambda match: f'"{chr(0) * (len(match[0]) - 2)}"', text)


def first_line(error: BaseException) -> str:
    """Return the library's message, with the line and column of a syntax error but without its drawing."""
    whole = str(error).strip().replace(_OWN_SIZE, "size")
    if (coerces := _COERCES.match(whole)) is not None:
        left, sign, other = (coerces[number].replace("float", "double") for number in (1, 2, 3))
        return f"Unsupported operation: {left} {sign} {other}"
    if (called := _not_of_these(whole)) is not None:
        return f"`{called}` takes no values of these types"
    if "not a valid regex" in whole and (why := re.search(r"^error: ([^\n]*?)(?:\. Check|$)", whole, re.MULTILINE)):
        return f"{whole.splitlines()[0].removesuffix(':')}: {why[1]}"
    lines = whole.splitlines() or [type(error).__name__]
    text = lines[0].removesuffix(":").split(". ")[0].removesuffix(".")
    at = re.search(r"<input>:(\d+):(\d+): (.*)", text)
    if at is not None:
        inner = re.search(r'msg: "([^"]*)"', at.group(3))  # for a text nested too deeply, in Rust's own words
        types = inner.group(1) if inner is not None else at.group(3).split(" expecting ")[0]
        return f"has a syntax error at character {at.group(2)}: {types[0].lower()}{types[1:]}"
    return f"there is no value {text}" if isinstance(error, KeyError) else text


def _remedy(error: BaseException) -> str:
    """What to do about the error, if the library's message says so."""
    text = str(error).replace(_OWN_SIZE, "size")
    if _COERCES.match(text) is None and not text.startswith("No such overload") and _not_of_these(text) is None:
        return ""
    return "nothing is converted by itself: write 1.0 for 1, or convert with double(x), int(x) or string(x)"


def _not_of_these(message: str) -> str | None:
    """The existing function that does not take such values, according to the library's message; None for any other
    message."""
    match = _NOT_OF_THESE.match(message)
    name = "" if match is None else match[1] or match[2]
    return name if name in FUNCTIONS else None
