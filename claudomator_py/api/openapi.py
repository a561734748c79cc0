"""The OpenAPI 3.1 document: what each route declares, plus what holds for all of them."""

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, NoDefault
from pydantic_core import core_schema
from starlette.routing import BaseRoute

from claudomator_py.api.guard.roles import OPERATIONS
from claudomator_py.api.guard.security import OPEN_PATHS
from claudomator_py.api.problem import MEDIA_TYPE
from claudomator_py.domain.shape import ProblemDetails, View
from claudomator_py.schema.json_schema import task_json_schema
from claudomator_py.surface import Needed

_REF = "#/components/schemas/{model}"
_MEANINGS = {
    400: "The request is malformed: invalid HTTP or JSON, or a header or cursor that cannot be read",
    401: "The token is missing or wrong",
    403: "The token lacks the required role, or a page of another site sent the request",
    404: "There is no such thing",
    408: "The request did not arrive in time",
    409: "Not possible in this state, or an ambiguous name",
    410: "No longer kept",
    412: "If-Match does not name the current version",
    413: "The body is too large",
    414: "Path and query are too long",
    415: "The body's media type is not supported",
    421: "The Host is not a name of this daemon",
    422: "Well-formed, but not valid",
    429: "Too many changes by this client, or too many failed logins from this address",
    431: "The headers are too large or too many",
    500: "An internal error",
    503: "Temporarily unavailable: the database failed, or there are too many requests",
}
_RETRY_AFTER = {"Retry-After": {"description": "Seconds to wait", "schema": {"type": "integer", "minimum": 1}}}
_HEADERS_OF: dict[int, dict[str, Any]] = {
    401: {"WWW-Authenticate": {"description": "The scheme to use", "schema": {"type": "string"}}},
    429: _RETRY_AFTER,
    503: _RETRY_AFTER,
}
# Health is answered whatever the load.
_HEALTH_TOO = (400, 403, 408, 413, 414, 421, 422, 429, 431, 500)
_EVERYWHERE = (*_HEALTH_TOO, 401, 503)
_WHOLE = "Affects the whole daemon: not permitted with a token of an organisation."
_NO_DESCRIPTION = "Successful Response"
_DEFINITIONS = "#/$defs/"


class _BodySchema(GenerateJsonSchema):
    """Writes defaults as a body has them, durations as ``7d``, which pydantic does for answers only."""

    def get_default_value(self, schema: core_schema.WithDefaultSchema) -> Any:
        """Return the default as it is serialized; without a default, what the base class does."""
        default = super().get_default_value(schema)
        inner: Mapping[str, Any] = schema["schema"]
        while "serialization" not in inner and "schema" in inner:
            inner = inner["schema"]
        written = inner.get("serialization", {})
        is_written = written.get("type") == "function-plain" and default not in (None, NoDefault)
        return written["function"](default) if is_written else default


def request_body(model: str, *, required: bool, examples: Mapping[str, object]) -> dict[str, Any]:
    """Return the ``openapi_extra`` of a route that reads its JSON body itself. model: the name of its schema."""
    named = {name: {"summary": name.replace("_", " "), "value": value} for name, value in examples.items()}
    schema = {"$ref": _REF.format(model=model)}
    return {
        "requestBody": {"required": required, "content": {"application/json": {"schema": schema, "examples": named}}}
    }


def refusals(statuses: Iterable[int]) -> dict[int | str, dict[str, Any]]:
    """Return the ``responses`` of a route that may refuse with these statuses."""
    return {status: _response(status) for status in statuses}


def build(app: FastAPI, routes: Sequence[BaseRoute], bodies: Iterable[type[BaseModel]]) -> dict[str, Any]:
    """Return the application's document. routes: of its operations. bodies: the shapes of the request bodies."""
    schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=routes)
    components: dict[str, Any] = schema.setdefault("components", {})
    schemas: dict[str, Any] = components.setdefault("schemas", {})
    details = ProblemDetails.model_json_schema(mode="serialization", ref_template=_REF)
    schemas.update(details.pop("$defs", {}))
    schemas["ProblemDetails"] = details
    schemas.update(_task_document())
    for model in bodies:
        body = model.model_json_schema(ref_template=_REF, schema_generator=_BodySchema)
        schemas.update(body.pop("$defs", {}))
        schemas[model.__name__] = body
    for shape in _shapes(View):
        _describe_fields(schemas.get(shape.__name__, {}), shape)
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            responses = operation["responses"]
            for status in _HEALTH_TOO if path in OPEN_PATHS else _EVERYWHERE:
                responses.setdefault(str(status), _response(status))
            for response in responses.values():
                if response["description"] == _NO_DESCRIPTION:
                    response["description"] = "As asked for"
            needed = OPERATIONS[operation["operationId"]]
            operation["security"] = _security(needed)
            if needed.whole:
                operation["description"] = f"{operation['description']}\n\n{_WHOLE}"
            operation["responses"] = dict(sorted(responses.items()))
    return schema


def _shapes(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for shape in base.__subclasses__():
        yield shape
        yield from _shapes(shape)


def _describe_fields(schema: dict[str, Any], shape: type[BaseModel]) -> None:
    """Describe each field of the schema by the docstring below it in the shape."""
    if "properties" not in schema:
        return
    for name, words in member_words(shape).items():
        schema["properties"].get(name, {}).setdefault("description", words)


def _security(needed: Needed) -> list[dict[str, list[str]]]:
    """Return the required role; OpenAPI 3.1 allows role names here for schemes of any type."""
    return [{}] if needed.role is None else [{"token": [needed.role.value]}]


def _response(status: int) -> dict[str, Any]:
    reference = {"schema": {"$ref": _REF.format(model="ProblemDetails")}}
    headers = {"headers": _HEADERS_OF[status]} if status in _HEADERS_OF else {}
    return {"description": _MEANINGS[status], "content": {MEDIA_TYPE: reference}, **headers}


def _task_document() -> dict[str, Any]:
    """Return the task file's schema as components, with prefixed names so that they do not collide."""
    whole = task_json_schema()
    definitions = whole.pop("$defs", {})
    whole.pop("$schema", None)
    named = {f"TaskDocument_{name}": definition for name, definition in definitions.items()}
    renamed: dict[str, Any] = _rerooted({"TaskDocument": {**whole, "required": ["name", "instructions"]}, **named})
    return renamed


def _rerooted(node: Any) -> Any:
    if isinstance(node, dict):
        return {
            key: _REF.format(model=f"TaskDocument_{value.removeprefix(_DEFINITIONS)}")
            if key == "$ref" and isinstance(value, str) and value.startswith(_DEFINITIONS)
            else _rerooted(value)
            for key, value in node.items()
        }
    if isinstance(node, list):
        return [_rerooted(value) for value in node]
    return node


def member_words(kind: type) -> dict[str, str]:
    """Return the docstring below each member, on one line, as Markdown; members without one are left out. A model's
    inherited members come first."""
    words: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        # Classes that pydantic makes of generic models, such as ``Page[TaskView]``, have no source.
        if base.__module__.startswith("claudomator_py") and "[" not in base.__name__:
            words |= _words_in(base.__module__)[base.__qualname__]
    return words


@cache
def _words_in(module: str) -> Mapping[str, Mapping[str, str]]:
    """Return the docstrings below the members of each class of a module, by the class's qualified name. Parsing is
    costly, and a module has several classes."""
    words: dict[str, dict[str, str]] = {}
    pending = [("", ast.parse(inspect.getsource(sys.modules[module])).body)]
    for prefix, body in pending:
        for node in body:
            if isinstance(node, ast.ClassDef):
                words[prefix + node.name] = dict(_member_docstrings(node.body))
                pending.append((f"{prefix}{node.name}.", node.body))
    return words


def _member_docstrings(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    for statement, below in pairwise(body):
        match statement, below:
            case (
                ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, " ".join(text.split()).replace("``", "`")
