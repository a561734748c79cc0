"""Codes with parameters, and words that contain instants.

A code is stored and shown to programs with its parameters; its words are assembled only for display. A text assembled
here keeps instants separate, so that each display can format them in its own zone or as markup; it is never parsed
again.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    model_serializer,
)
from pydantic_core import CoreSchema

from claudomator_py.domain.units import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
    format_duration,
    format_instant,
    parse_instant,
    short_id,
)
from claudomator_py.values import dataclass, regex

V = TypeVar("V")

_PART = regex(r"\[([^\[\]]*)\]|\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text, or an instant (RFC 3339, UTC)."""

    text: str = ""
    instant: str | None = None


Sentence = tuple[Piece, ...]

Clock = Callable[[str], str]
"""Formats an instant (RFC 3339, UTC)."""

_UNKNOWN = (Piece("?"),)


def at(instant_ms: int) -> Sentence:
    """Return the instant, given in epoch milliseconds, to be formatted on display."""
    return (Piece(instant=format_instant(instant_ms)),)


def said(text: str) -> Sentence:
    """Return the text without instants."""
    return (Piece(text),)


def instant_text(instant: str) -> str:
    """Return an RFC 3339 instant in UTC, to the minute, as the daemon's sentences show it."""
    return f"{instant[:10]} {instant[11:16]} UTC"


def worded(sentence: Sentence, clock: Clock = instant_text) -> str:
    """Return the sentence as text, formatting each instant with ``clock``."""
    return "".join(piece.text if piece.instant is None else clock(piece.instant) for piece in sentence)


def joined(sentences: Sequence[Sentence], between: str) -> Sentence:
    """Return several sentences as one."""
    pieces: list[Piece] = []
    for number, sentence in enumerate(sentences):
        pieces += [Piece(between)] if number else []
        pieces += sentence
    return tuple(pieces)


def filled(template: str, values: Mapping[str, Sentence]) -> Sentence:
    """Return the template filled in: ``{name}`` is a value, ``[a|b]`` the first alternative whose values are all
    present, or nothing if there is none. Any other missing value becomes a question mark."""
    pieces: list[Piece] = []
    for part in _filled(template, values):
        if part.instant is None and pieces and pieces[-1].instant is None:
            pieces[-1] = Piece(pieces[-1].text + part.text)
        elif part.text or part.instant is not None:
            pieces.append(part)
    return tuple(pieces)


@cache
def placeholders(template: str) -> tuple[str, ...]:
    """Return the names of all values that the template may use, in order."""
    return tuple(dict.fromkeys(re.findall(r"\{([a-z_]+)\}", template)))


def _filled(template: str, values: Mapping[str, Sentence]) -> Iterator[Piece]:
    end = 0
    for match in _PART.finditer(template):
        yield Piece(template[end : match.start()])
        end = match.end()
        alternatives, name = match.groups()
        if name is not None:
            yield from values.get(name, _UNKNOWN)
            continue
        for alternative in alternatives.split("|"):
            if all(needed in values for needed in placeholders(alternative)):
                yield from _filled(alternative, values)
                break
    yield Piece(template[end:])


def due_clock(now_ms: int) -> Clock:
    """Return a clock that shows a future instant in UTC, and how far it is from now."""
    return lambda instant: due_text(parse_instant(instant), now_ms)


def utc_clock(near_ms: int) -> Clock:
    """Return a clock that shows an instant next to another one: in UTC, with the date if it is a different day."""
    return lambda instant: clock_text(parse_instant(instant), near_ms)


def clock_text(instant_ms: int, near_ms: int) -> str:
    """Return the time of day in UTC, to the minute, with the date unless it is the day of ``near_ms``."""
    date, _, clock = format_instant(instant_ms).partition("T")
    same_day = instant_ms // DAY_MS == near_ms // DAY_MS
    return f"{clock[:5]} UTC" if same_day else f"{date} {clock[:5]} UTC"


def due_text(until_ms: int, now_ms: int) -> str:
    """Return the time, and how far it is from now."""
    return f"{clock_text(until_ms, now_ms)} (in {time_between(now_ms, until_ms)})"


def time_between(start_ms: int, end_ms: int) -> str:
    """Return the length of the interval: ``12m5s``, without seconds from an hour on, without minutes from a day on."""
    length_ms = max(0, end_ms - start_ms)
    unit_ms = SECOND_MS if length_ms < HOUR_MS else MINUTE_MS if length_ms < DAY_MS else HOUR_MS
    return format_duration(length_ms // unit_ms * unit_ms)


class WordedCode(StrEnum):
    """Base of enums of codes that carry their words: templates for ``filled``."""

    words: str
    parameters: tuple[str, ...]
    """The parameters that its words may name, in order."""

    def __new__(cls, value: str, words: str) -> Self:
        """Create a member from its value and its words."""
        code = str.__new__(cls, value)
        code._value_ = value
        code.words = words
        code.parameters = placeholders(words)
        return code


class Coded(BaseModel, frozen=True):
    """A code with its parameters, or the parameters of one. JSON omits missing values."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        # The model's own fields, not the dictionary that its serializer returns.
        return handler({name: part for name, part in core_schema.items() if name != "serialization"})

    @model_serializer(mode="wrap")
    def _without_what_is_missing(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = handler(self)
        return {name: value for name, value in values.items() if value is not None and value not in ((), [])}


def refuse_unknown(code: str, given: Iterable[str], allowed: Collection[str]) -> None:
    """Raise TypeError for a parameter that the code does not have."""
    if unknown := set(given).difference(allowed):
        raise TypeError(f"{code} has no {', '.join(sorted(unknown))}")


def _epoch_ms(value: object) -> object:
    return parse_instant(value) if isinstance(value, str) else value


Instant = Annotated[
    int,
    BeforeValidator(_epoch_ms),
    PlainSerializer(format_instant, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""Epoch milliseconds; in JSON, RFC 3339 in UTC."""


class TaskRef(Coded):
    """A task that blocks another."""

    name: str
    id: str | None = Field(None, description="Where it is known.")
    state: str | None = Field(
        None, description="Where it is known; of a dependency it is missing before there was a task of that name."
    )


class ConversationRef(Coded):
    """A conversation that only one agent can resume."""

    run: str = Field(description="The run that it was held in.")
    agent: str = Field(description="The agent that has it.")
    task: str | None = Field(None, description="The name of the task whose it is, if another's.")

    @property
    def text(self) -> str:
        """Text such as ``run 41c98f14 of build on claude``."""
        whose = f" of {self.task}" if self.task is not None else ""
        return f"run {short_id(self.run)}{whose} on {self.agent}"


class CodedValue(Coded):
    """A code with its parameters."""

    code: StrEnum
    params: Coded

    def having(self, **params: object) -> Self:
        """Return a copy with these parameters replaced."""
        return self.model_copy(update={"params": self.params.model_copy(update=params)})


class WordedValue(CodedValue):
    """A code that carries its words, with its parameters."""

    code: WordedCode

    @property
    def text(self) -> str:
        """In words, without a full stop."""
        known = {name: getattr(self.params, name) for name in self.code.parameters}
        return worded(filled(self.code.words, {name: said(_shown(value)) for name, value in known.items() if value}))


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return value.text if isinstance(value, ConversationRef) else str(value)


def _known_or_none(value: object, handler: ValidatorFunctionWrapHandler) -> Any:
    try:
        return handler(value)
    except ValidationError:
        return None


Known = Annotated[V | None, WrapValidator(_known_or_none)]
"""A value with a code as a field of an API shape; None if it is not valid: a client may be older than the daemon and
not know the code. It then uses the text supplied with it."""
