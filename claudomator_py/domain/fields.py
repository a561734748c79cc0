"""Field types shared by task files and configuration: each checks one kind of value and says how to write it."""

import ipaddress
import re
import unicodedata
from collections.abc import Callable, Hashable, Iterator
from enum import Enum
from functools import partial
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    StrictBool,
    StrictFloat,
    StrictInt,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import no_info_before_validator_function

from claudomator_py.domain.command_line import BadCommand, commands_in, in_shell, words_of
from claudomator_py.domain.errors import shown
from claudomator_py.domain.units import format_duration, format_size, parse_duration, parse_size
from claudomator_py.values import regex

MAX_NAME_LENGTH = 100
_NAMING_WORDS = 6
NAME_PATTERN = r"^[a-z0-9](?:[a-z0-9._-]{0,98}[a-z0-9])?$"
DURATION_PATTERN = r"^([0-9]{1,9}(ms|s|m|h|d))+$"
SIZE_PATTERN = r"^[0-9]{1,12} ?(B|KiB|MiB|GiB|TiB|kB|MB|GB)$"
ENV_NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"
OWN_ENV_PREFIX = "CLAUDOMATOR_"

_NAME = regex(NAME_PATTERN.removesuffix("$") + r"\Z")
_NOT_IN_NAMES = regex(r"[^a-z0-9._]+")
_ENV_NAME = regex(ENV_NAME_PATTERN.removesuffix("$") + r"\Z")
_CONTROL = regex(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")

H = TypeVar("H", bound=Hashable)


class Strict(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """Base of everything that a document contains: frozen, and unknown keys are errors."""


class TextUse(Enum):
    """What a text is for, which determines whether an unquoted ``#`` after it may have been meant as part of it."""

    PROSE = "prose"
    """Sentences, which may contain anything."""
    CHECK = "check"
    """Commands, one per line."""
    COMMAND = "command"
    """One command."""
    LABEL = "label"
    """A name or a word, rarely more."""

    @property
    def is_prose(self) -> bool:
        """True if whatever follows belongs to the text."""
        return self in (TextUse.PROSE, TextUse.CHECK)


def refusal(message: str, remedy: str | None = None) -> PydanticCustomError:
    """Return the error that a validator raises: what is wrong, and what to do about it."""
    return PydanticCustomError("refused", "{message}", {"message": message, "remedy": remedy})


def _duration(value: object) -> object:
    if not isinstance(value, str):
        if isinstance(value, int | float) and not isinstance(value, bool):
            raise refusal(f"is the bare number {value}, and its unit would be a guess", f"write {value}s or {value}m")
        raise refusal("is not a duration", "write a number and a unit, such as 90s, 45m, 2h or 1d")
    try:
        return parse_duration(value)
    except ValueError:
        remedy = "write a number and a unit, such as 90s, 45m, 2h or 1d"
        raise refusal(f"`{shown(value)}` is not a duration", remedy) from None


def _size(value: object) -> object:
    if not isinstance(value, str):
        raise refusal("is not a size", "write a number and a unit, such as 512KiB, 256MiB or 2GiB")
    try:
        return parse_size(value)
    except ValueError:
        remedy = "write a number and a unit, such as 512KiB, 256MiB or 2GiB"
        raise refusal(f"`{shown(value)}` is not a size", remedy) from None


def without_control(value: str) -> str:
    """Return the text unchanged. Refuses control characters other than white space."""
    if match := _CONTROL.search(value):
        raise refusal(f"contains the control character U+{ord(match[0]):04X}", "remove it")
    return value


def _on_one_line(value: str) -> str:
    if "\n" in value or "\r" in value:
        raise refusal("runs over several lines", "write it on one")
    return without_control(value)


def _one_line_for_all(value: str) -> str:
    """Also refuses U+2028 and U+2029, which some readers, such as models, take for line ends."""
    if "\u2028" in value or "\u2029" in value:
        raise refusal("runs over several lines", "write it on one")
    return _on_one_line(value)


def _name(value: str) -> str:
    if _NAME.match(value):
        return value
    remedy = "use lower-case letters, digits, `-`, `_` and `.`, at most 100, with a letter or digit at both ends"
    raise refusal(f"`{shown(value)}` is not a name", remedy)


def _ref(value: str) -> str:
    if value.startswith("-") or ".." in value or re.search(r"[\s~^:?*\[\\]|@\{", value):
        raise refusal(
            f"`{shown(value)}` is not the name of a branch or tag", "write it as git lists it, such as `main`"
        )
    return value


def name_from(text: str) -> str | None:
    """Return a valid name made from the text: ``Fix Café`` becomes ``fix-cafe``. None if nothing is left of it."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return _NOT_IN_NAMES.sub("-", plain).strip("-._")[:MAX_NAME_LENGTH].rstrip("-._") or None


def name_of_text(text: str) -> str | None:
    """Return the name of a task with that text, from its first words. None if nothing is left of them."""
    return name_from(" ".join(text.split()[:_NAMING_WORDS]))


def _env_name(value: str) -> str:
    if value.startswith(OWN_ENV_PREFIX):
        raise refusal(f"`{shown(value)}` is set by Claudomator itself", f"choose a name without {OWN_ENV_PREFIX}")
    if _ENV_NAME.match(value):
        return value
    raise refusal(f"`{shown(value)}` is not a variable's name", "use letters, digits and `_`, no digit first")


def _directory(value: str) -> str:
    if value.startswith(("/", "~/")) or value == "~":
        return _on_one_line(value)
    raise refusal(f"`{shown(value)}` is relative, and it would not be clear to what", "begin it with / or ~/")


def _split(value: object, *, listed: bool) -> object:
    if not isinstance(value, str):
        return value
    if not value.strip():
        return ()
    try:
        return words_of(value, listed=listed)
    except BadCommand as bad:
        raise refusal(str(bad), bad.remedy) from None


def _commands(value: object) -> object:
    """The items of a list of commands, in which a text may hold several, one per line."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        return value
    return [command for item in items for command in (_each_line(item) if isinstance(item, str) else (item,))]


def _each_line(text: str) -> tuple[str, ...]:
    """The commands in the text; if there are none, the text itself, which is then refused as an item."""
    try:
        commands = commands_in(text)
    except BadCommand:
        return (text,)
    if len(commands) > 1:
        for command in commands:
            try:
                words_of(command)
            except BadCommand as bad:
                raise refusal(str(bad), f"write {in_shell(text, listed=True)}") from None
    return commands or (text,)


def _with_program(words: tuple[str, ...]) -> tuple[str, ...]:
    if words and not words[0]:
        raise refusal("begins with an empty word", "begin it with the program to run")
    return words


def distinct(values: tuple[H, ...]) -> tuple[H, ...]:
    """Return the values unchanged. Raises a refusal if any appears twice."""
    seen: set[H] = set()
    for value in values:
        if value in seen:
            raise refusal(f"`{shown(str(value))}` appears twice", "remove one of them")
        seen.add(value)
    return values


def divided(text: str, is_between: Callable[[str], bool] = ",".__eq__) -> Iterator[str]:
    """Yield the parts of the text between separators that are outside brackets."""
    depth, word = 0, ""
    for character in text:
        depth = max(0, depth + (character == "(") - (character == ")"))
        if depth == 0 and is_between(character):
            if word.strip():
                yield word.strip()
            word = ""
        else:
            word += character
    if word.strip():
        yield word.strip()


def _tools(value: object) -> object:
    """The names in a text that lists several; in a list, rejoins items that YAML split at a comma within brackets."""
    if isinstance(value, str):
        return list(divided(value)) or value
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        return value
    joined: list[str] = []
    for item in value:
        is_open = bool(joined) and joined[-1].count("(") > joined[-1].count(")")
        joined[-1:] = [f"{joined[-1]}, {item}"] if is_open else [*joined[-1:], item]
    is_open = bool(joined) and joined[-1].count("(") > joined[-1].count(")")
    return value if is_open else joined


class _OneOrMore:
    """Marks a list of texts whose single item may be written without a list."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_before_validator_function(lambda v: [v] if isinstance(v, str) else v, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        listed = handler(schema)
        forms = listed["items"].get("anyOf", [listed["items"]])
        texts = [form for form in forms if handler.resolve_ref_schema(form).get("type") == "string"]
        return {"anyOf": [*texts, listed]}


def _schema(**schema: object) -> WithJsonSchema:
    return WithJsonSchema(schema)


def _serializer(function: Callable[[int], str]) -> PlainSerializer:
    return PlainSerializer(function, return_type=str)


OneOrMore = _OneOrMore()
Flag = StrictBool
Count = StrictInt
Number = StrictFloat
"""Integers are accepted, booleans and texts are not."""
Text = Annotated[str, TextUse.LABEL, AfterValidator(without_control)]
# Trailing white space depends on how a block is written (`|` or `|-`) and is not content.
Prose = Annotated[str, TextUse.PROSE, AfterValidator(without_control), AfterValidator(str.rstrip)]
Line = Annotated[str, TextUse.LABEL, Field(min_length=1, max_length=4_096), AfterValidator(_one_line_for_all)]
Name = Annotated[str, TextUse.LABEL, AfterValidator(_name), _schema(type="string", pattern=NAME_PATTERN)]
Ref = Annotated[Line, AfterValidator(_ref)]
"""A git branch, tag or commit."""
Directory = Annotated[Line, AfterValidator(_directory), _schema(type="string", pattern=r"^(/|~/|~$)", maxLength=4_096)]
Duration = Annotated[
    int,
    BeforeValidator(_duration),
    _serializer(format_duration),
    _schema(type="string", pattern=DURATION_PATTERN, examples=["90s", "45m", "2h", "1d"]),
]
Size = Annotated[
    int,
    BeforeValidator(_size),
    _serializer(format_size),
    _schema(type="string", pattern=SIZE_PATTERN, examples=["512KiB", "256MiB", "2GiB"]),
]
_WORDS_SCHEMA = WithJsonSchema(
    {
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 1_000},
        ]
    }
)
_Argv = Annotated[tuple[Text, ...], Field(min_length=1, max_length=1_000)]
Words = Annotated[
    _Argv, TextUse.COMMAND, BeforeValidator(partial(_split, listed=False)), AfterValidator(_with_program), _WORDS_SCHEMA
]
"""One command, as a list of words or as a text without shell syntax."""
_ListedWords = Annotated[
    _Argv, TextUse.CHECK, BeforeValidator(partial(_split, listed=True)), AfterValidator(_with_program), _WORDS_SCHEMA
]
Commands = Annotated[tuple[_ListedWords, ...], BeforeValidator(_commands), OneOrMore]
"""Commands, each as in ``Words``; a text may hold several, one per line."""
EnvName = Annotated[str, AfterValidator(_env_name), _schema(type="string", pattern=ENV_NAME_PATTERN)]
Environment = dict[EnvName, Text]
Distinct = AfterValidator(distinct)
LineList = Annotated[tuple[Line, ...], Field(max_length=100), OneOrMore, Distinct]
Tools = Annotated[tuple[Line, ...], Field(max_length=500), OneOrMore, Distinct, BeforeValidator(_tools)]
"""Names of tools, optionally with their permitted use in brackets."""


_HOST = regex(r"(?P<name>[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?")


def _allowed_host(value: str) -> str:
    text = shown(value)
    if "://" in value or "/" in value:
        raise refusal(f"`{text}` is a URL or a path", "write the host alone, such as box.example or box.example:8443")
    match = _HOST.fullmatch(value)
    name = match["name"] if match is not None else value.partition(":")[0]
    if is_wildcard(name):
        raise refusal(f"`{text}` stands for every host, which would let any page in", "name each host itself")
    if match is None or int(match["port"] or 1) not in range(1, 65_536):
        raise refusal(f"`{text}` is not a host", "write it as in a URL, such as box.example or [fd00::1]:8443")
    return value.lower()


def is_wildcard(host: str) -> bool:
    """Return whether the address means all addresses of the machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return host in ("", "*", "0")


Hosts = Annotated[
    tuple[Annotated[Line, AfterValidator(_allowed_host)], ...], Field(max_length=100), OneOrMore, Distinct
]
