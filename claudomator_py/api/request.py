"""A JSON object from a request, read strictly: what is ambiguous or out of the standard is refused, not guessed."""

import codecs
import json
from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import Annotated, Any

from fastapi import Depends, Request

from claudomator_py.api.problem import Refused
from claudomator_py.domain.errors import Invalid, Problem, shown, suggestion


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"duplicate key {shown(twice)!r}")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _content_type(header: str) -> tuple[str, dict[str, str]]:
    """The media type in small letters, and its parameters, their names in small letters."""
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


async def _json_object(request: Request) -> dict[str, object]:
    media_type, parameters = _content_type(request.headers.get("content-type", ""))
    if media_type != "application/json":
        said = f"The body is {shown(media_type)}" if media_type else "The body has no Content-Type"
        raise Refused(415, "unsupported_media_type", f"{said}, not JSON.", "Send Content-Type: application/json.")
    charset = parameters.get("charset", "utf-8")
    if charset.lower() not in ("utf-8", "utf8"):
        said = f"The body is JSON in {shown(charset)}, and JSON is UTF-8"
        raise Refused(415, "unsupported_media_type", f"{said}.", "Send UTF-8, and Content-Type: application/json.")
    try:
        # Bytes, the library would take in any encoding of Unicode that it thinks to recognise.
        document = json.loads(_text(await request.body()), object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        said = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Refused(400, "bad_json", f"The body is not JSON: {shown(said)}.", "Send one JSON object.") from error
    if not isinstance(document, dict):
        raise Refused(
            422, "invalid", "The body is not a JSON object.", "Send one JSON object; /openapi.json has its schema."
        )
    return document


async def _optional(request: Request) -> dict[str, object] | None:
    return await _json_object(request) if await request.body() else None


JsonObject = Annotated[dict[str, object], Depends(_json_object)]
OptionalJsonObject = Annotated[dict[str, object] | None, Depends(_optional)]


_MOST = 20


def strict_query(request: Request) -> None:
    """A dependency of every route of the API. Raises Invalid."""
    given = Counter(name for name, _ in request.query_params.multi_items())
    if not given:
        return
    known = _known(request)
    if known is None:
        return
    problems: list[Problem] = []
    for name, count in islice(given.items(), _MOST):
        if name not in known:
            remedy = suggestion(name, known) if known else "leave it out: this operation takes none"
            problems.append(Problem(field=shown(name), message="is not a parameter of this operation", remedy=remedy))
        elif count > 1 and not known[name]:
            problems.append(Problem(field=name, message=f"is there {count} times", remedy="send it once"))
    if problems:
        raise Invalid.of(problems, said=3, remedy="Fix the query.")


def _known(request: Request) -> Mapping[str, bool] | None:
    """The operation's parameters, each with whether it may be repeated; None for what is no operation of the API."""
    path = request.scope["route"].path
    operation = request.app.openapi()["paths"].get(path, {}).get(request.method.lower())
    if operation is None:
        return None
    parameters = operation.get("parameters", ())
    return {one["name"]: _is_list(one["schema"]) for one in parameters if one["in"] == "query"}


def _is_list(schema: Mapping[str, object]) -> bool:
    forms = schema.get("anyOf", [schema])
    assert isinstance(forms, list)  # noqa: S101 - JSON Schema
    return any(form.get("type") == "array" for form in forms)
