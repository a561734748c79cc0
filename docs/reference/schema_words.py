"""What a JSON Schema asks for, in words: its type, its bounds and its default."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from claudomator_py.domain.fields import DURATION_PATTERN, ENV_NAME_PATTERN, NAME_PATTERN, SIZE_PATTERN
from docs.reference.markdown import code

Schema = Mapping[str, Any]

_TEXTS = {
    DURATION_PATTERN: "duration",
    SIZE_PATTERN: "size",
    NAME_PATTERN: "name",
    ENV_NAME_PATTERN: "variable's name",
    r"^(/|~/|~$)": "folder",
}
_PLURALS = {"name": "names", "folder": "folders", "variable's name": "variables' names", "text": "texts"}


def fields(schema: Schema, values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Schema, Any]]:
    """Every field with its dotted name, its schema and its default as a file would write it, nested ones included."""
    definitions = schema.get("$defs", {})
    for name, part in schema["properties"].items():
        resolved = resolve(part, definitions)
        value = values.get(name)
        yield f"{prefix}{name}", resolved, value
        if "properties" in resolved and (value is None or isinstance(value, Mapping)):
            yield from fields({**resolved, "$defs": definitions}, value or {}, f"{prefix}{name}.")


def resolve(schema: Schema, definitions: Mapping[str, Any]) -> Schema:
    """The schema without references at its top; what stands beside a reference wins."""
    if "anyOf" in schema:
        forms = [resolve(form, definitions) for form in schema["anyOf"] if form.get("type") != "null"]
        return {**schema, "anyOf": forms} if len(forms) > 1 else {**forms[0], **_without(schema, "anyOf")}
    if "items" in schema:
        return {**schema, "items": resolve(schema["items"], definitions)}
    if "$ref" in schema:
        return {**definitions[schema["$ref"].rpartition("/")[2]], **_without(schema, "$ref")}
    return schema


def _without(schema: Schema, name: str) -> Schema:
    return {key: value for key, value in schema.items() if key != name}


def type_words(schema: Schema) -> str:
    """The kind of value, such as ``duration`` or ``whole number, 1 to 100``."""
    if "enum" in schema:
        return " or ".join(code(str(value)) for value in schema["enum"])
    if "anyOf" in schema:
        return _alternatives(schema["anyOf"])
    match schema.get("type"):
        case "string":
            return _TEXTS.get(schema.get("pattern", ""), "time" if "T" in schema.get("pattern", "") else "text")
        case "integer":
            return f"whole number{_bounds(schema)}"
        case "number":
            return f"number{_bounds(schema)}"
        case "boolean":
            return "`true` or `false`"
        case "array":
            return _list(schema)
    return "mapping"


def default_words(value: Any, *, required: bool) -> str:
    """The default as a file would write it."""
    if required:
        return "required"
    if value in (None, [], {}, ()):
        return "none"
    if isinstance(value, Mapping):
        return ""
    if isinstance(value, bool | int | float):
        return code(json.dumps(value))
    return code(value) if isinstance(value, str) else code(f"[{', '.join(str(item) for item in value)}]")


def _alternatives(forms: list[Schema]) -> str:
    """One item may stand for a list of them; a command may be a text, or its words."""
    single, several = forms
    if several.get("minItems") == 1 and several["items"] == {"type": "string"}:
        return "command: text or list of words"
    word = type_words(single)
    if "enum" in single:
        return f"{word}, or a list of these"
    return _list(several) if "anyOf" in several["items"] else f"{word} or list of {_PLURALS.get(word, word)}"


def _list(schema: Schema) -> str:
    items = schema["items"]
    if "anyOf" in items:
        return "command or list of commands, each a text or a list of words"
    word = type_words(items)
    return f"list of {_PLURALS.get(word, word)}"


def _bounds(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f", {low} to {high}"
    return "" if low is None else f", at least {low}"
