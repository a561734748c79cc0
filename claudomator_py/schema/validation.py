"""From a mapping to a model, or to problems that an operator understands."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from claudomator_py.domain.errors import (
    NUMBER_OR_TEXT,
    Lines,
    Path,
    Problem,
    field_name,
    line_of,
    near,
    shown,
    suggestion,
)
from claudomator_py.values import regex, toml_data

MAX_DEPTH = 50
MAX_PROBLEMS = 100
MAX_JSON_PARTS = 30_000
"""Of a JSON text from outside. A megabyte of empty lists has a million, and keeps a processor for seconds."""
_JSON_PART = regex(r'"(?:[^"\\]++|\\.)*+"?|[,\[{]')
"""A text, even one without an end: what follows it is not looked through again from each of its quotes."""
_MAX_INT = 2**63 - 1
_QUOTES = "put it in quotes if it is meant as text"

M = TypeVar("M", bound=BaseModel)


def other_key(table: str, key: str) -> Any:
    """Return what to write for a key of other programs, from a table of ``other_keys.toml``; None: unknown."""
    return toml_data("claudomator_py.schema", "other_keys.toml")[table].get(key.lower().replace("-", "_"))


def key_suggestion(key: str, valid: Iterable[str]) -> str:
    """Return a remedy for an unknown key: the key that is meant, otherwise the closest one, or all of them."""
    known = list(valid)
    meant = other_key("same", key) or ()
    return next((f"write `{name}`" for name in meant if name in known), None) or suggestion(key, known)


def problem_at(lines: Lines, path: Path, message: str, remedy: str | None) -> Problem:
    """Return the problem at that place of a document."""
    return Problem(line=line_of(lines, path), field=field_name(path), message=message, remedy=remedy)


def validate(model: type[M], mapping: Mapping[str, object], lines: Lines, prefix: Path = ()) -> M | list[Problem]:
    """Return the mapping as that model, or its problems, at most ``MAX_PROBLEMS``. prefix: place of the mapping."""
    try:
        return model.model_validate(mapping)
    except ValidationError as error:
        details = error.errors(include_url=False)[:MAX_PROBLEMS]
        return [_problem(model, detail, lines, prefix) for detail in details if not _is_consequence(detail, details)]


def _is_consequence(detail: ErrorDetails, details: Sequence[ErrorDetails]) -> bool:
    """Return whether a list is too short only because of problems with its items, as those do not count."""
    place = detail["loc"]
    return detail["type"] == "too_short" and any(
        len(other["loc"]) > len(place) and other["loc"][: len(place)] == place for other in details
    )


def first_problem(model: type[BaseModel], error: ValidationError) -> Problem:
    """Return the first problem that keeps something from being that model, in an operator's words."""
    return _problem(model, error.errors(include_url=False)[0], {}, ())


def has_too_many_parts(text: str) -> bool:
    """Return whether the JSON text has more than ``MAX_JSON_PARTS`` texts, lists, objects and commas outside texts. It
    is found out without reading it as JSON."""
    if sum(map(text.count, '"[{,')) <= MAX_JSON_PARTS:
        return False
    return next(islice(_JSON_PART.finditer(text), MAX_JSON_PARTS, None), None) is not None


def value_problems(
    value: object, lines: Lines, path: Path = (), *, model: type[BaseModel] | None = None, at: int = 0
) -> list[Problem]:
    """Return problems of values that JSON or a database cannot hold, found before anything else looks at the values;
    not many more than ``MAX_PROBLEMS``.

    model: of the whole document, or of the part ``at`` keys deep in it, if known.
    """
    if len(path) > MAX_DEPTH:
        return [problem_at(lines, path[:3], f"is nested more than {MAX_DEPTH} deep", "flatten it")]
    problems: list[Problem] = []
    match value:
        case Mapping():
            for key, item in value.items():
                if len(problems) >= MAX_PROBLEMS:
                    break
                if isinstance(key, str):
                    problems += _text_problems(key, lines, path) + value_problems(
                        item, lines, (*path, key), model=model, at=at
                    )
                else:
                    problems.append(
                        problem_at(lines, path, f"the key {shown(repr(key))} is not text", "put it in quotes")
                    )
        case list() | tuple():
            for index, item in enumerate(value):
                if len(problems) >= MAX_PROBLEMS:
                    break
                problems += value_problems(item, lines, (*path, index), model=model, at=at)
        case str():
            problems += _text_problems(value, lines, path)
        case bool() | None:
            pass
        case int():
            if abs(value) > _MAX_INT:
                remedy = _instead_of(str(value), model, path[at:])
                problems.append(problem_at(lines, path, "is a number of more than 64 bits", remedy))
        case float():
            if not math.isfinite(value):
                remedy = _instead_of(str(value), model, path[at:])
                problems.append(problem_at(lines, path, f"is the number {value}, which JSON lacks", remedy))
        case _:
            problems.append(
                problem_at(lines, path, f"is a {type(value).__name__}, which JSON lacks", "put it in quotes")
            )
    return problems


def _instead_of(number: str, model: type[BaseModel] | None, path: Path) -> str:
    """What to write instead of a number that cannot be stored."""
    remedy = None if model is None else remedy_among(model, path, [(number, f'"{number}"')])
    return remedy or NUMBER_OR_TEXT


def _text_problems(text: str, lines: Lines, path: Path) -> list[Problem]:
    if "\0" in text:
        return [problem_at(lines, path, "contains a NUL character", "remove it")]
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        return [problem_at(lines, path, "contains half of a surrogate pair, which is not a character", "remove it")]
    return []


def _problem(model: type[BaseModel], detail: ErrorDetails, lines: Lines, prefix: Path) -> Problem:
    path = tuple(part for part in detail["loc"] if part != "[key]")
    message, remedy = wording(detail, model, path)
    return problem_at(lines, prefix + path, message, remedy)


def wording(detail: ErrorDetails, model: type[BaseModel] | None = None, path: Path = ()) -> tuple[str, str | None]:
    """Return message and remedy for an error. Pydantic's own text is the last resort, as it addresses programmers.
    model: of the document that contains the error at that path; None for a parameter or an option."""
    context: dict[str, Any] = detail.get("ctx", {})
    value: object = detail.get("input")
    kind = detail["type"]
    if kind == "refused":
        return context["message"], context["remedy"]
    if kind == "extra_forbidden":
        target = _model_at(model, path[:-1]) if model else None
        known = target.model_fields if target else ()
        return "is not a known key", key_suggestion(str(path[-1]), known) if model else "remove it"
    if kind == "missing":
        return "is missing", "add it"
    empty = "is empty", "give it a value, or delete the line" if _is_optional(model, path) else "give it a value"
    if value is None:
        return empty
    match kind:
        case "enum" | "literal_error":
            words = [word.strip("'") for word in str(context["expected"]).replace(" or ", ", ").split(", ")]
            if isinstance(value, str):
                return f"`{shown(value)}` is not one of {', '.join(words)}", near(value, words) or "write one of these"
            return f"{described(value)}, but must be one of {', '.join(words)}", _quotes(value)
        case "string_type":
            return f"{described(value)}, but must be text", _quotes(value) or "write it as text"
        case "bool_type":
            return f"{described(value)}, but must be true or false", "write true or false, without quotes"
        case "int_parsing":
            return f"{described(value)}, but must be a whole number", "write digits only"
        case "float_parsing":
            return f"{described(value)}, but must be a number", "write a number"
        case "bool_parsing":
            return f"{described(value)}, but must be true or false", "write true or false"
        case "int_type" | "int_from_float":
            return f"{described(value)}, but must be a whole number", _number(value, "digits only, without quotes")
        case "float_type":
            return f"{described(value)}, but must be a number", _number(value, "a number, without quotes")
        case "tuple_type" | "list_type":
            return f"{described(value)}, but must be a list", _list_remedy(model, path, value)
        case "dict_type" | "model_type" | "model_attributes_type":
            return f"{described(value)}, but must be a mapping", _mapping_remedy(model, path, value)
        case "string_too_short" | "too_short" | "string_pattern_mismatch":
            return empty
        case "string_too_long":
            return f"is longer than {context['max_length']} characters", "shorten it"
        case "too_long":
            return f"has more than {context['max_length']} items", "shorten it"
        case "greater_than" | "greater_than_equal" | "less_than" | "less_than_equal":
            return "is too small" if kind.startswith("greater") else "is too large", _bound(model, path, context)
        case "value_error":
            return str(context["error"]).rstrip("."), None
    message = detail["msg"].replace("Input should", "must", 1)
    return message[:1].lower() + message[1:], None


def _number(value: object, otherwise: str) -> str:
    """The remedy for a number in another notation: ``"12"``, ``0o10``, ``40.0``."""
    with suppress(ValueError, OverflowError):
        if isinstance(value, float) and value.is_integer():
            return f"write {int(value)}"
        if isinstance(value, str) and value.isascii():
            return f"write {_whole(value)}, without quotes"
    return f"write {otherwise}"


def _whole(text: str) -> int:
    """The number in the text, in base 10 or with a base prefix. Raises ValueError."""
    try:
        return int(text)
    except ValueError:
        return int(text, 0)


def _bound(model: type[BaseModel] | None, path: Path, context: Mapping[str, Any]) -> str:
    name, limit = next((key, value) for key, value in context.items() if key in ("gt", "ge", "lt", "le"))
    words = {"gt": "more than", "ge": "at least", "lt": "less than", "le": "at most"}[name]
    return f"it must be {words} {_as_written(model, path, limit)}"


def _as_written(model: type[BaseModel] | None, path: Path, number: float) -> str:
    """A bound in its field's notation: 86400000 in a duration is 1d."""
    for mark in marks_at(model, path) if model else ():
        write = getattr(mark, "func", None)
        if type(mark).__name__ == "PlainSerializer" and write is not None:
            return str(write(number))
    return str(int(number)) if number == int(number) else str(number)


def described(value: object) -> str:
    """Return a description of a value, as the start of a message."""
    match value:
        case None:
            return "is empty"
        case bool():
            return f"is the truth value {str(value).lower()} (YAML also reads yes, no, on and off as truth values)"
        case int() | float():
            return f"is the number {value}"
        case str():
            return f"is the text `{shown(value)}`"
        case list() | tuple():
            return "is a list"
        case _:
            return "is a mapping"


def _quotes(value: object) -> str | None:
    return _QUOTES if isinstance(value, bool | int | float) else None


def _list_remedy(model: type[BaseModel] | None, path: Path, value: object) -> str:
    text = str(value).lower()
    quoted = remedy_among(model, path, [(text, f'"{text}"')]) if model and _quotes(value) else None
    return quoted or "write [one, two]"


def _mapping_remedy(model: type[BaseModel] | None, path: Path, value: object) -> str:
    """The remedy for a value that stands where a mapping should: with the first key that accepts it."""
    target = _model_at(model, path) if model else None
    if target is None:
        return "write {key: value}"
    is_scalar = isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""
    fitting = (name for name in target.model_fields if is_scalar and _accepts(target, (name,), value))
    example = shown(str(value)) if is_scalar else "..."
    return f"write {{{next(fitting, next(iter(target.model_fields)))}: {example}}}"


def _accepts(model: type[BaseModel], path: Path, value: object) -> bool:
    """Whether a scalar is accepted at that place of a document, other than as a list of one item."""
    kinds = [each for each in _types_at(model, path) if _item_of(each[0]) is None]
    return any(_refused(Annotated[(kind, *marks)] if marks else kind, value) is None for kind, marks in kinds)


def _is_optional(model: type[BaseModel] | None, path: Path) -> bool:
    """Whether the document may lack what stands at that place."""
    around = _model_at(model, path[:-1]) if model else None
    field = around.model_fields.get(str(path[-1])) if around and path else None
    return model is not None and (field is None or not field.is_required())


def _model_at(model: type[BaseModel], path: Path) -> type[BaseModel] | None:
    """The model that describes this place, if there is one."""
    return next((kind for kind, _ in _types_at(model, path) if _is_model(kind)), None)


def marks_at(model: type[BaseModel], path: Path) -> tuple[object, ...]:
    """Return the annotations of the value's type at that place of a document and, for a list, of its items; empty if
    the model has no such place."""
    marks: list[object] = []
    types = _types_at(model, path)
    while types:
        marks += [mark for _, each in types for mark in each]
        types = [item for kind, _ in types for item in _alternatives(_item_of(kind))]
    return tuple(marks)


def remedy_among(model: type[BaseModel], path: Path, forms: Sequence[tuple[object, str]]) -> str | None:
    """Return what to write at that place of a document: the notations of those values that it accepts, otherwise the
    remedy from the refusal of the last one. None if the model has no such place, or accepts all of them."""
    kinds = _types_at(model, path)
    fitting: list[str] = []
    remedy = None
    for value, form in forms:
        refused = [_refused(Annotated[(kind, *marks)] if marks else kind, value) for kind, marks in kinds]
        if None in refused:
            fitting.append(form)
        elif refused and refused[-1] is not None:
            text = wording(refused[-1], None)[1]
            remedy = "write a smaller number" if text is not None and str(value) in text else text
    if not kinds or (len(fitting) == len(forms) and len(forms) > 1):
        return None
    return f"write {' or '.join(fitting)}" if fitting else remedy


def _refused(kind: Any, value: object) -> ErrorDetails | None:
    """Return why the type rejects the value; None if it accepts it."""
    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        return error.errors(include_url=False)[0]
    return None


_Annotated = tuple[Any, tuple[object, ...]]
"""A type and its annotations, outermost first."""


def _types_at(model: type[BaseModel], path: Path) -> list[_Annotated]:
    """The possible types of the value at that place of a document; empty if the model has no such place."""
    pending: list[_Annotated] = [(model, ())]
    for part in path:
        inside: list[_Annotated] = []
        for kind, _ in pending:
            if _is_model(kind):
                if (field := kind.model_fields.get(str(part))) is not None:
                    inside += _alternatives(field.annotation, tuple(field.metadata))
            else:
                inside += _alternatives(_item_of(kind))
        pending = inside
    return pending


def _alternatives(annotation: Any, marks: tuple[object, ...] = ()) -> Iterator[_Annotated]:
    """Each type that the annotation allows, except None."""
    if hasattr(annotation, "__metadata__"):
        yield from _alternatives(annotation.__origin__, (*marks, *annotation.__metadata__))
    elif get_origin(annotation) in (Union, UnionType):
        for arg in get_args(annotation):
            yield from _alternatives(arg, marks)
    elif annotation not in (None, type(None)):
        yield annotation, marks


def _item_of(kind: Any) -> Any:
    """The type of a list's items or a mapping's values; None for anything else."""
    origin: Any = get_origin(kind)
    if origin not in (tuple, list, dict):
        return None
    return get_args(kind)[-1 if origin is dict else 0]


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
