"""The OpenAPI 3.1 document: what the routes say of themselves, plus what holds for all of them."""

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from claudomator_py.core.taskfile import task_json_schema
from claudomator_py.core.views import ProblemDetails
from claudomator_py.web.problem import MEDIA_TYPE
from claudomator_py.web.security import OPEN_PATHS

_REF = "#/components/schemas/{model}"
_EVERYWHERE = (403, 421, 500)
_DEFINITIONS = "#/$defs/"

TASK_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": _REF.format(model="TaskDocument")}}},
    }
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of a route that may refuse with these statuses."""
    return {status: _response(status) for status in statuses}


def build(app: FastAPI) -> dict[str, Any]:
    """The whole document of the application."""
    schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    components: dict[str, Any] = schema.setdefault("components", {})
    schemas: dict[str, Any] = components.setdefault("schemas", {})
    details = ProblemDetails.model_json_schema(mode="serialization", ref_template=_REF)
    schemas.update(details.pop("$defs", {}))
    schemas["ProblemDetails"] = details
    schemas.update(_task_document())
    components["securitySchemes"] = {"operator": {"type": "http", "scheme": "bearer"}}
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            responses = operation["responses"]
            everywhere = _EVERYWHERE if path in OPEN_PATHS else (401, *_EVERYWHERE)
            for status in everywhere:
                responses.setdefault(str(status), _response(status))
            operation["security"] = [{}] if path in OPEN_PATHS else [{"operator": []}]
            operation["responses"] = dict(sorted(responses.items()))
    return schema


def _response(status: int) -> dict[str, Any]:
    reference = {"schema": {"$ref": _REF.format(model="ProblemDetails")}}
    return {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: reference}}


def _task_document() -> dict[str, Any]:
    """The task file's schema as components: its definitions get a prefix, so that they meet no other of that name."""
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
