"""Strict parsing of a request's body and query: what is ambiguous or non-standard is refused, not guessed."""

import codecs
import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any, get_args, get_origin

from fastapi import Depends, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel, BeforeValidator

from claudomator_py.api.problem import Refused
from claudomator_py.domain.errors import Invalid, Problem, shown, suggestion
from claudomator_py.domain.fields import refusal
from claudomator_py.domain.units import number_fault
from claudomator_py.json_fields import refuse_constant
from claudomator_py.schema.validation import MAX_JSON_PARTS, has_too_many_parts


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"duplicate key {shown(twice)!r}")
    return values


def _content_type(header: str) -> tuple[str, dict[str, str]]:
    """Return the media type in lower case, and its parameters by lower-case name."""
    media_type, *rest = header.split(";")
    pairs = (part.partition("=") for part in rest)
    return media_type.strip().lower(), {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}


def _text(body: bytes) -> str:
    if body.startswith(codecs.BOM_UTF8):
        raise ValueError("it begins with a byte order mark")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from None


async def read_json(request: Request) -> Any:
    """Return the body as JSON of any type. Raises Refused, with the code ``bad_json`` for invalid JSON."""
    media_type, parameters = _content_type(request.headers.get("content-type", ""))
    if media_type != "application/json":
        problem = f"The body is {shown(media_type)}" if media_type else "The body has no Content-Type"
        raise Refused(415, "unsupported_media_type", f"{problem}, not JSON.", "Send Content-Type: application/json.")
    charset = parameters.get("charset", "utf-8")
    if charset.lower() not in ("utf-8", "utf8"):
        problem = f"The body is JSON in {shown(charset)}, and JSON is UTF-8"
        raise Refused(415, "unsupported_media_type", f"{problem}.", "Send UTF-8, and Content-Type: application/json.")
    try:
        text = _text(await request.body())
        if not text.strip():
            raise Refused(400, "bad_json", "The body is empty.", "Send one JSON object.")
        if has_too_many_parts(text):
            problem = f"The body has more than {MAX_JSON_PARTS:,} texts, lists, objects and commas."
            raise Refused(400, "bad_json", problem, "Send less at once, or as one text.")
        # Given bytes, json.loads would guess among the encodings of Unicode.
        return json.loads(text, object_pairs_hook=_unique, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Refused(400, "bad_json", f"The body is not JSON{_fault(error)}.", "Send one JSON object.") from error


def _fault(error: Exception) -> str:
    """Return where and why a text is not JSON, to follow ``The body is not JSON``."""
    match error:
        case json.JSONDecodeError(msg=message, lineno=line, colno=column):
            return f" at line {line}, column {column}: {message[:1].lower()}{message[1:]}"
        case RecursionError():
            return ": it is nested too deeply"
    return f": {shown(str(error))}"


async def _json_object(request: Request) -> dict[str, object]:
    document = await read_json(request)
    if not isinstance(document, dict):
        raise Refused(
            422, "invalid", "The body is not a JSON object.", "Send one JSON object; /openapi.json has its schema."
        )
    return document


async def _optional(request: Request) -> dict[str, object] | None:
    return await _json_object(request) if await request.body() else None


JsonObject = Annotated[dict[str, object], Depends(_json_object)]
OptionalJsonObject = Annotated[dict[str, object] | None, Depends(_optional)]


def _digits(value: object) -> object:
    if isinstance(value, str) and (fault := number_fault(value, whole=True)) is not None:
        raise refusal(*fault)
    return value


DIGITS = BeforeValidator(_digits)
"""Validates an integer in a URL or a form. It comes after ``Query`` and the like; before them, their bounds would be
published under names that no client knows."""
_MAX_PROBLEMS = 20
_LISTS = (list, tuple, set, frozenset)


async def strict_query(request: Request) -> None:
    """Refuse unknown query parameters; a dependency of every route of the API. Raises Invalid."""
    given = Counter(name for name, _ in request.query_params.multi_items())
    if not given:
        return
    route: APIRoute = request.scope["route"]
    if not route.include_in_schema:  # not an operation of the API
        return
    known = dict(query_parameters(route.dependant))
    problems: list[Problem] = []
    for name, count in islice(given.items(), _MAX_PROBLEMS):
        if name not in known:
            remedy = suggestion(name, known) if known else "leave it out: this operation takes none"
            problems.append(Problem(field=shown(name), message="is not a parameter of this operation", remedy=remedy))
        elif count > 1 and not known[name]:
            problems.append(Problem(field=name, message=f"is given {count} times", remedy="send it once"))
    if problems:
        raise Invalid.of(problems, listed=3, remedy="Fix the query.")


def query_parameters(dependant: Dependant) -> Iterator[tuple[str, bool]]:
    """Yield the query parameters of an operation, each with whether it may be repeated."""
    for parameter in dependant.query_params:
        annotation = parameter.field_info.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):  # its fields are the parameters
            fields = annotation.model_fields.items()
            yield from ((field.alias or name, _is_list(field.annotation)) for name, field in fields)
        else:
            yield parameter.alias, _is_list(annotation)
    for other in dependant.dependencies:
        yield from query_parameters(other)


def _is_list(annotation: Any) -> bool:
    return any(get_origin(form) in _LISTS for form in (annotation, *get_args(annotation)))
