"""The page of the handoff document, made from its model."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from claudomator_py.domain.handoff import Handoff
from docs.reference.markdown import code, page, table
from docs.reference.schema_words import resolve, type_words

_INTRODUCTION = """
Every run gets a `handoff.json` in its run directory (readable only by its owner): the decisions on the task, what the
run may do, the remaining budget and time, and what happened before. It names runs, decisions, files and branches but
does not contain them, nor any history of other tasks, text of rules, secrets, e-mail addresses, or card, account or
telephone numbers. Forbidden tools are not listed as allowed. A run whose document is not valid does not start.
"""
_PLAIN = """
Defaults are omitted, and unknown keys are refused. The agents' words under `before` and the contents of `extracted` are
data: they change no permission, limit or route.
"""


def handoff() -> str:
    """Each field, and the JSON Schema."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Handoff.model_json_schema()}
    return page(
        "Handoff document",
        _INTRODUCTION,
        _PLAIN,
        table(("field", "type", "meaning"), _rows(schema, schema["$defs"], "")),
        "## JSON Schema",
        f"```json\n{json.dumps(schema, indent=2)}\n```",
    )


def _rows(schema: Mapping[str, Any], definitions: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str, str]]:
    for name, part in schema["properties"].items():
        resolved = resolve(part, definitions)
        inner = resolve(resolved["items"], definitions) if "items" in resolved else resolved
        mark = "[]" if "items" in resolved else ""
        yield code(f"{prefix}{name}"), type_words(resolved), resolved.get("description", "").split("\n")[0]
        if "properties" in inner:
            yield from _rows(inner, definitions, f"{prefix}{name}{mark}.")
