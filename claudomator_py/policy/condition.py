"""The condition of a rule: an expression in CEL, checked as far as it can be before it decides anything.

The language is Google's Common Expression Language (https://cel.dev). Its implementation checks neither names nor types
when it compiles, and a name that is missing is only noticed when the expression gets that far; so names are looked up
here, and every condition is tried once on a task that has everything.
"""

import re
import sys
from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from claudomator_py.domain.errors import shown, suggestion
from claudomator_py.policy import facts

if TYPE_CHECKING:
    from cel import Context

LONGEST = 2_000
"""Characters of a condition."""
_STRING = re.compile(r"""[rRbB]*(\"\"\".*?\"\"\"|'''.*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""", re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*")
_MEMBER = re.compile(r"(?<![\w.])([A-Za-z_]\w*)((?:\s*\.\s*[A-Za-z_]\w*)*)(\s*\()?")
_MACROS = re.compile(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(\s*([A-Za-z_]\w*)\s*,")
_COMPARED = re.compile(r"(?<![\w.])((?:task|actor)\.\w+)\s*(?:==|!=)\s*([^\s()&|?:,\]]+)")
_LISTED = re.compile(r"(?<![\w.])((?:task|actor)\.\w+)\s+in\s+\[([^\]]*)\]")
_FUNCTIONS = frozenset(
    {"bytes", "contains", "double", "duration", "endsWith", "int", "matches", "size", "startsWith", "string"}
    | {"timestamp", "uint", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours"}
    | {"getMilliseconds", "getMinutes", "getMonth", "getSeconds"}
)
_LITERALS = frozenset({"true", "false", "null", "in", "has"})


class BadCondition(ValueError):
    """It is none. Its text says why; remedy: what to do about it."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class Undecided(Exception):
    """It could not be evaluated for a task. Its text says why."""


class Condition:
    """Whether a rule applies to a task. Raises BadCondition for a text that is no condition."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise BadCondition(f"is longer than {LONGEST:,} characters", "split it into several rules")
        _check_names(text)
        try:
            self._program = _cel().compile(text)
        except (ValueError, RecursionError) as error:
            raise BadCondition(_first_line(error), "see https://cel.dev for the language") from None
        self._text = text
        _check_functions(self._program.functions())
        _check_values(text)
        self._try()

    def applies(self, context: "Context") -> bool:
        """Raises Undecided."""
        try:
            found = self._program.execute(context)
        except Exception as error:  # the library raises what its functions raise
            raise Undecided(_first_line(error)) from None
        if not isinstance(found, bool):
            raise Undecided(f"is {shown(str(found))}, which is neither true nor false")
        return found

    def mentions(self, name: str) -> bool:
        """Whether it looks at that value, such as ``task.specialist`` or ``spent``."""
        return re.search(rf"(?<![\w.]){re.escape(name)}\b", _plain(self._text)) is not None

    def _try(self) -> None:
        try:
            self.applies(context_of(facts.sample().values))
        except Undecided as undecided:
            message = f"cannot be evaluated: {undecided}"
            raise BadCondition(message, "it has to be true or false for every task") from None


def context_of(values: Mapping[str, Any]) -> "Context":
    """The values of ``facts.Facts``, converted once for all conditions."""
    context: Context = _cel().Context(dict(values))
    return context


@cache
def _cel() -> ModuleType:
    # It imports a command line of its own, with an editor: 350 ms and 20 MB that nothing here uses.
    sys.modules.setdefault("cel.cli", ModuleType("cel.cli"))
    import cel

    return cel


def _check_names(text: str) -> None:
    """Raises BadCondition for a name that no task has, wherever it stands in the condition."""
    plain, known = _plain(text), facts.names()
    bound = set(_MACROS.findall(plain))
    for match in _MEMBER.finditer(plain):
        root, rest, call = match.groups()
        if root in bound or root in _LITERALS or (call and not rest):
            continue
        if root not in known:
            raise BadCondition(f"uses `{shown(root)}`, which is not a known name", suggestion(root, known))
        members = [part.strip() for part in rest.split(".")[1:]]
        if call:
            members = members[:-1]
        for end in range(len(members)):
            path = ".".join(members[: end + 1])
            if path not in known[root]:
                near = [f"{root}.{name}" for name in known[root]]
                message = f"uses `{shown(f'{root}.{path}')}`, which no task has"
                raise BadCondition(message, suggestion(f"{root}.{path}", near))


def _check_functions(used: list[str]) -> None:
    """Raises BadCondition for one that there is not, although the condition may never get to it."""
    for name in used:
        if name.isidentifier() and name not in _FUNCTIONS:
            raise BadCondition(f"calls `{shown(name)}`, which is not a function", suggestion(name, _FUNCTIONS))


def _check_values(text: str) -> None:
    """Raises BadCondition where one of few words is compared with another one, which would never be equal."""
    compared = [(name, [value]) for name, value in _COMPARED.findall(text)]
    compared += [(name, listed.split(",")) for name, listed in _LISTED.findall(text)]
    for name, values in compared:
        possible = facts.WORDS.get(name)
        if possible is None:
            continue
        for word in (value.strip() for value in values):
            if word[1:-1] not in possible and (word[:1] in "\"'" or word[:1].isdigit()):
                message = f"compares `{name}` with {shown(word)}, which it never is"
                raise BadCondition(message, suggestion(word.strip("\"'"), possible))


def _plain(text: str) -> str:
    """The text without what stands in quotes, and without comments."""
    return _COMMENT.sub(" ", _STRING.sub('""', text))


def _first_line(error: BaseException) -> str:
    """The library's message, with the line and column of a syntax error but not its drawing."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    text = lines[0].removesuffix(":").split(". ")[0].removesuffix(".")
    at = re.search(r"<input>:(\d+):(\d+): (.*)", text)
    if at is not None:
        inner = re.search(r'msg: "([^"]*)"', at.group(3))  # of a text that is nested too deeply, in Rust's own words
        said = inner.group(1) if inner is not None else at.group(3).split(" expecting ")[0]
        return f"has a syntax error at character {at.group(2)}: {said[0].lower()}{said[1:]}"
    return f"there is no value {text}" if isinstance(error, KeyError) else text
