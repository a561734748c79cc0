"""JSON Schemas (draft 2020-12) of what people write: task files and card files. For editors and other clients."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from claudomator_py.domain.card import ALIASES, Card
from claudomator_py.domain.task import TaskSpec

SCHEMA_ID: Final = "https://json-schema.org/draft/2020-12/schema"


def task_json_schema() -> dict[str, Any]:
    """Describe a task document."""
    schema = _document_schema(
        TaskSpec(name="a", instructions="a"),
        title="Claudomator task",
        description="One task. A list of strings may be written as a single string. "
        "The name defaults to the file name without its suffix.",
        required="instructions",
    )
    del schema["properties"]["extra"]
    schema["properties"]["env"]["additionalProperties"] = False
    return schema


def card_json_schema() -> dict[str, Any]:
    """Describe a specialist's card, including the equivalent keys used in other programs' cards."""
    schema = _document_schema(
        Card(id="a", description="a"),
        title="Claudomator specialist",
        description="The card of one specialist. A list of strings may be written as a single string. "
        "The id defaults to the file name without its suffix.",
        required="description",
    )
    properties = schema["properties"]
    properties |= {
        alias: {**properties[name], "description": f"The same as `{name}`."} for alias, name in ALIASES.items()
    }
    return schema


def _document_schema(whole: BaseModel, *, title: str, description: str, required: str) -> dict[str, Any]:
    """Return the schema of the document's kind. whole: a minimal one."""
    schema = type(whole).model_json_schema()
    properties: dict[str, Any] = schema["properties"]
    definitions: dict[str, Any] = schema["$defs"]
    _set_defaults(properties, whole.model_dump(mode="json"), definitions)
    _drop_titles(schema)
    return {
        "$schema": SCHEMA_ID,
        "title": title,
        "description": description,
        "type": "object",
        "additionalProperties": False,
        "required": [required],
        "properties": properties,
        "patternProperties": {"^x-.+": {"description": "Stored, never interpreted."}},
        "$defs": definitions,
    }


def _set_defaults(properties: dict[str, Any], values: Mapping[str, Any], definitions: Mapping[str, Any]) -> None:
    """Write every default in file notation."""
    for name, schema in properties.items():
        reference = schema.get("$ref", "").rpartition("/")[2]
        if reference and "properties" in definitions[reference]:
            _set_defaults(definitions[reference]["properties"], values[name], definitions)
            schema.pop("default", None)
        elif "default" in schema:
            schema["default"] = values[name]


def _drop_titles(schema: Any) -> None:
    """Remove titles that merely restate a field's name."""
    if isinstance(schema, dict):
        if isinstance(schema.get("title"), str):
            del schema["title"]
        for value in schema.values():
            _drop_titles(value)
    elif isinstance(schema, list):
        for value in schema:
            _drop_titles(value)
