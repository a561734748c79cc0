"""A JSON object from a request, read strictly: what is ambiguous or out of the standard is refused, not guessed."""

import codecs
import json
from typing import Annotated, Any

from fastapi import Depends, Request

from claudomator_py.core.problem import shown
from claudomator_py.web.problem import Refused


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {shown(twice)!r} is there twice")
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
