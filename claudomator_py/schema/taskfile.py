"""The task file's schema: a mapping becomes a valid task or problems; a task becomes a document, a hash, a schema."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from claudomator_py.domain.errors import Lines, Problem, problems_text, suggestion
from claudomator_py.domain.redaction import MARK
from claudomator_py.domain.task import TaskSpec
from claudomator_py.schema.known_secrets import secrets_in
from claudomator_py.schema.validation import MAX_PROBLEMS, odd_values, problem_at, validate

SCHEMA_ID = "https://json-schema.org/draft/2020-12/schema"
EXTRA_PREFIX = "x-"


_ELSEWHERE = {
    "model": "agent: {model: ...}",
    "tier": "agent: {tier: ...}",
    "type": "agent: {type: ...}",
    "strict": "agent: {strict: ...}",
    "max_tokens": "budget: {tokens: ...}",
    "tokens": "budget: {tokens: ...}",
    "token_budget": "budget: {tokens: ...}",
    "max_cost": "budget: {usd: ...}",
    "max_cost_usd": "budget: {usd: ...}",
    "max_budget_usd": "budget: {usd: ...}",
    "cost_usd": "budget: {usd: ...}",
    "usd": "budget: {usd: ...}",
    "max_runs": "budget: {runs: ...}",
    "permission_mode": "permissions: {mode: ...}",
    "allowed_tools": "permissions: {allowed_tools: [...]}",
    "disallowed_tools": "permissions: {disallowed_tools: [...]}",
    "tools": "permissions: {allowed_tools: [...]}",
    "max_attempts": "retry: {max_attempts: ...}",
    "backoff": "retry: {backoff: ...}",
    "retries": "retry: {max_attempts: ...}, the first attempt included",
    "prompt": "instructions: ...",
    "cron": 'schedule: "..."',
    "cwd": "working_dir: ...",
    "dir": "working_dir: ...",
    "directory": "working_dir: ...",
    "checks": "check: [...]",
    "after": "depends_on: [...]",
    "needs": "depends_on: [...]",
}
"""What other programs call it, and people expect; and where it is."""
_ACTED_ON = tuple(name for name in TaskSpec.model_fields if name != "extra")


def parse_task(
    mapping: Mapping[str, object], *, default_name: str | None = None, lines: Lines | None = None
) -> TaskSpec | list[Problem]:
    """The task that the mapping describes, or what is wrong with it. Nothing in it is ignored.

    default_name: the name if the mapping has none. lines: the line of each path, for the problems.
    """
    where = lines or {}
    if problems := odd_values(mapping, where):
        return problems[:MAX_PROBLEMS]
    fields: dict[str, object] = {} if default_name is None else {"name": default_name}
    extra: dict[str, object] = {}
    for key, value in mapping.items():
        if len(problems) == MAX_PROBLEMS:
            return problems
        if key.startswith(EXTRA_PREFIX) and len(key) > len(EXTRA_PREFIX):
            extra[key] = value
        elif key not in _ACTED_ON:
            place = _ELSEWHERE.get(key.lower().replace("-", "_"))
            remedy = f"write {place}" if place is not None else suggestion(key, _ACTED_ON)
            problems.append(problem_at(where, (key,), "is not a known key", remedy))
        else:
            fields[key] = value
    environment = fields.get("env")
    for name in [name for name, value in environment.items() if value == MARK] if isinstance(environment, dict) else ():
        problems.append(problem_at(where, ("env", name), "is not the value, which was not shown", "write the value"))
    parsed = validate(TaskSpec, {**fields, "extra": extra}, where)
    if isinstance(parsed, TaskSpec):
        return problems or parsed
    return sorted(problems + parsed, key=lambda problem: problem.line or 0)


def to_document(spec: TaskSpec, *, defaults: bool = True) -> dict[str, Any]:
    """The task as a file would say it: durations, times and priority as text, ``x-*`` keys in their place.

    defaults: also what the file need not have said.
    """
    document = spec.model_dump(mode="json", exclude_defaults=not defaults, exclude_none=True, exclude={"extra"})
    return {**document, **spec.extra}


def shown_document(spec: TaskSpec) -> dict[str, Any]:
    """As ``to_document``, for people to see: variables with what looks like a secret have MARK for a value."""
    document = to_document(spec)
    hidden = {name: MARK for name, value in spec.env.items() if secrets_in({name: value})}
    return {**document, "env": {**document["env"], **hidden}} if hidden else document


def from_document(document: Mapping[str, object]) -> TaskSpec:
    """The task that ``to_document`` wrote. Raises ValueError naming every problem of any other document."""
    parsed = parse_task(document)
    if isinstance(parsed, TaskSpec):
        return parsed
    raise ValueError(problems_text(parsed))


def canonical_json(spec: TaskSpec) -> str:
    """The task's content, equal for every way of writing it.

    Defaults are left out, so that a field added to the schema later changes the content of no task there is.
    """
    document = to_document(spec, defaults=False)
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def content_hash(spec: TaskSpec) -> str:
    """SHA-256 of the canonical content, in hexadecimal: comments, order and formatting change nothing."""
    return hashlib.sha256(canonical_json(spec).encode()).hexdigest()


def task_json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a task document, for editors and other clients."""
    schema = TaskSpec.model_json_schema()
    properties: dict[str, Any] = schema["properties"]
    del properties["extra"]
    definitions: dict[str, Any] = schema["$defs"]
    whole = TaskSpec(name="a", instructions="a").model_dump(mode="json")
    _set_defaults(properties, whole, definitions)
    properties["env"]["additionalProperties"] = False
    _drop_titles(schema)
    return {
        "$schema": SCHEMA_ID,
        "title": "Claudomator task",
        "description": "One task. A list of strings may be written as a single string. "
        "The name defaults to the file name without its suffix.",
        "type": "object",
        "additionalProperties": False,
        "required": ["instructions"],
        "properties": properties,
        "patternProperties": {"^x-.+": {"description": "Stored, never interpreted."}},
        "$defs": definitions,
    }


def _set_defaults(properties: dict[str, Any], values: Mapping[str, Any], definitions: Mapping[str, Any]) -> None:
    """Write every default as a file would say it."""
    for name, schema in properties.items():
        reference = schema.get("$ref", "").rpartition("/")[2]
        if reference and "properties" in definitions[reference]:
            _set_defaults(definitions[reference]["properties"], values[name], definitions)
            schema.pop("default", None)
        elif "default" in schema:
            schema["default"] = values[name]


def _drop_titles(schema: Any) -> None:
    """Without the titles that restate a field's name."""
    if isinstance(schema, dict):
        if isinstance(schema.get("title"), str):
            del schema["title"]
        for value in schema.values():
            _drop_titles(value)
    elif isinstance(schema, list):
        for value in schema:
            _drop_titles(value)
