"""The page of the HTTP API, from its OpenAPI document."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast
from unittest.mock import MagicMock

from claudomator_py.api.app import create_app
from claudomator_py.api.settings import MIN_TOKEN_LENGTH, WebSettings
from claudomator_py.domain.errors import ServiceError
from claudomator_py.resources.access.service import Keyring
from claudomator_py.resources.session import Access
from docs.reference.markdown import code, page, table

_INTRODUCTION = """
The daemon serves this as an OpenAPI 3.1 document at `/openapi.json`. Unless stated otherwise, a path requires
`Authorization: Bearer TOKEN`, with the token in the file `token` of the state folder. Instants are RFC 3339 in UTC,
states are in upper case, and lists are `{"items": [...], "next_cursor": ...}`. Clients should ignore unknown fields.
"""
_ERRORS = """
An error is `application/problem+json` (RFC 9457) with `title`, `status`, `detail`, a stable `code`, a `remedy` that
says what to do next, and `problems` if several fields are wrong.
"""
_PROBLEM = "application/problem+json"
_METHODS = ("get", "post", "put", "patch", "delete")
# A description of the routes asks nobody, and lets nobody in.
_ABSENT = cast(Access, MagicMock(name="access"))
_NO_KEYS = cast(Keyring, MagicMock(name="keyring"))
_CLOSED = WebSettings("x" * MIN_TOKEN_LENGTH, "127.0.0.1:8484")


def openapi() -> dict[str, Any]:
    """The document, made anew."""
    return create_app(_ABSENT, _CLOSED, _NO_KEYS).openapi()


def api() -> str:
    """Every operation, the answers, and the shapes in them."""
    document = openapi()
    schemas: dict[str, Any] = document["components"]["schemas"]
    operations = list(_operations(document))
    overview = [
        (f"[{code(f'{method.upper()} {path}')}](#{_anchor(one)})", one.get("summary", ""))
        for path, method, one in operations
    ]
    parts = [table(("operation", "what it does"), overview), "## Errors", _ERRORS]
    parts += [table(("kind", "title", "meaning"), [_kind(kind) for kind in ServiceError.__subclasses__()])]
    parts.append("## Operations")
    for path, method, operation in operations:
        parts += [f"### {operation['operationId']}", *_operation(path, method, operation)]
    parts.append("## Shapes")
    for name in sorted(_used(operations, schemas)):
        parts += [f"### {_shape_name(name)}", *_shape(schemas[name])]
    return page("HTTP API", _INTRODUCTION, *parts)


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if method in _METHODS:
                yield path, method, operation


def _anchor(operation: Mapping[str, Any]) -> str:
    return str(operation["operationId"]).lower()


def _kind(kind: type[ServiceError]) -> list[str]:
    return [code(kind.status), kind.title, " ".join((kind.__doc__ or "").split())]


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> list[str]:
    parts = [f"{code(f'{method.upper()} {path}')}: {operation.get('summary', '')}."]
    if operation.get("description"):
        parts.append(operation["description"])
    roles = [role for way in operation["security"] for role in way.get("token", ())]
    parts.append(f"Needs the role {code(roles[0])}." if roles else "Needs no token.")
    if body := operation.get("requestBody"):
        kinds = [_type(content["schema"]) for content in body["content"].values()]
        parts.append(f"Body: {', '.join(kinds)}{'' if body.get('required') else ', optional'}.")
    rows = [
        (code(one["name"]), one["in"], _type(one["schema"]), one.get("description", ""))
        for one in operation.get("parameters", ())
    ]
    if rows:
        parts.append(table(("parameter", "in", "type", "meaning"), rows))
    answers = dict(operation["responses"])
    refused = [code(status) for status, answer in answers.items() if _PROBLEM in answer.get("content", {})]
    given = [_answer(status, answer) for status, answer in answers.items() if code(status) not in refused]
    return [*parts, f"Answers: {'; '.join(given)}. Refuses with {', '.join(refused)}."]


def _answer(status: str, response: Mapping[str, Any]) -> str:
    contents = response.get("content", {})
    shapes = [_type(content.get("schema", {})) for content in contents.values()]
    media = [code(name) for name in contents if name != "application/json"]
    return " ".join([code(status), *(word for word in (*shapes, *media) if word)])


def _used(operations: list[tuple[str, str, dict[str, Any]]], schemas: Mapping[str, Any]) -> set[str]:
    """The shapes that answers and bodies are made of; the task document has a page of its own."""
    found: set[str] = set()
    pending: list[Any] = [operation for _, _, operation in operations]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            name = str(node.get("$ref", "")).rpartition("/")[2]
            if name and name not in found and not name.startswith("TaskDocument"):
                found.add(name)
                pending.append(schemas[name])
            pending += node.values()
        elif isinstance(node, list):
            pending += node
    return found


def _shape(schema: Mapping[str, Any]) -> list[str]:
    said = re.sub(r"\s+", " ", schema.get("description", "")).replace("``", "`")
    if "enum" in schema:
        return [said, " ".join(code(str(value)) for value in schema["enum"])]
    rows = [
        (code(name), _type(part), part.get("description", "")) for name, part in schema.get("properties", {}).items()
    ]
    if not any(row[2] for row in rows):
        return [said, table(("field", "type"), [row[:2] for row in rows])]
    return [said, table(("field", "type", "meaning"), rows)]


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return _link(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " or ".join(_type(form) for form in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(code(str(value)) for value in schema["enum"])
    if "const" in schema:
        return code(str(schema["const"]).lower())
    match schema.get("type"):
        case "array":
            return f"list of {_type(schema.get('items', {}))}"
        case "object" if isinstance(schema.get("additionalProperties"), Mapping):
            return f"mapping to {_type(schema['additionalProperties'])}"
        case str() as name:
            return f"{name}, {schema['format']}" if "format" in schema else name
    return ""


def _link(name: str) -> str:
    if name.startswith("TaskDocument"):
        return "[a task](task-file.md)"
    shown = _shape_name(name)
    return f"[{shown}](#{re.sub(r'[^a-z0-9]+', '-', shown.lower()).strip('-')})"


def _shape_name(name: str) -> str:
    """``Page_TaskView_`` is how the document names a page of tasks."""
    match = re.fullmatch(r"Page_(\w+?)_", name)
    return f"Page of {match[1]}" if match else name
